"""What a command line means: which experiment, which folder, and the size of a design."""
from pathlib import Path

import pytest

from circulant.arguments import STEPS, find
from circulant.experiment import load
from circulant.run import steps
from circulant.run.run_folder import Run, require
from circulant.sim.refusal import Refusal
from tests.circulant.conftest import contents, make_trained


@pytest.mark.parametrize("command", ["run", *STEPS])
def test_help_has_an_example(call, command):
    code, out, _ = call(command, "--help")
    assert code == 0
    assert f"Example:\n    circulant {command}" in out
    assert "--out DIR" in out
    assert "--set KEY=VALUE" in out


@pytest.mark.parametrize(("command", "options", "multipliers", "device"), [
    ("generate", [], 64, "none"),
    ("generate", ["--multipliers", "30"], 30, "none"),
    ("generate", ["--device", "xcku060"], 0, "XCKU060"),
    ("generate", ["--device", "LFE5U-85F", "--multipliers", "40"], 40, "LFE5U-85F"),
    ("generate", ["--device", "LFE5U-85F", "--set", "hardware.multipliers=50"], 50, "LFE5U-85F"),
    ("run", ["--device", "XC7Z020"], 0, "XC7Z020"),
    ("run", ["--multipliers", "9"], 9, "none")])
def test_multipliers_and_device(call, finished, monkeypatch, command, options, multipliers, device):
    seen = []
    for step in ("train", "quantize"):
        monkeypatch.setattr(steps, step, lambda run, show, **more: {})

    def generate(run, show):
        seen.append((run.experiment.hardware.multipliers, run.experiment.board.device))
        raise KeyboardInterrupt

    monkeypatch.setattr(steps, "generate", generate)
    call(command, finished.folder, *options)
    assert seen == [(multipliers, device)]


@pytest.mark.parametrize(("options", "words"), [
    (["--device", "XCKU06"], "board.device must be one of 'none', 'XCKU060', "),
    (["--device", "XCKU06"], "not 'XCKU06'; did you mean 'XCKU060'?"),
    (["--multipliers", "many"], "'many' is not a valid integer"),
    (["--multipliers", "-3"], "hardware.multipliers must be an integer from 1 to 65536, or 0 for all of the device's"),
    (["--multipliers", "0"], "hardware.multipliers may be 0 (all of the device's) only if board.device names a device"),
    (["--multipliers", "2"], "multipliers, the smallest lane per layer, not 2; raise hardware.multipliers"),
    (["--multipliers", "9", "--set", "hardware.multipliers=9"],
     "--multipliers and --set hardware.multipliers must not both be given, as they say the same; leave one out"),
    (["--device", "XC7Z020", "--set", "board.device=XC7Z020"], "--device and --set board.device must not both be "),
    (["--target", "c", "--device", "XC7Z020"], "--device must be left out with --target c"),
    (["--target", "c", "--multipliers", "9"], "--multipliers must be left out with --target c"),
])
def test_sizes_that_are_refused(call, finished, options, words):
    before = contents(finished.folder)
    code, out, err = call("generate", finished.folder, *options)
    assert (code, out) == (2, "")
    assert words in err
    assert contents(finished.folder) == before


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """runs/digits-gru of an earlier run with 32 multipliers."""
    monkeypatch.chdir(tmp_path)
    make_trained(Run(Path("runs/digits-gru"), load("digits-gru", ["hardware.multipliers=32"])))


@pytest.mark.parametrize(("command", "source", "out", "folder", "multipliers"), [
    ("run", None, None, "runs/digits-gru", 64),
    ("train", "digits-gru", None, "runs/digits-gru", 64),
    ("run", "digits-gru", "elsewhere", "elsewhere", 64),
    ("run", None, "elsewhere", "elsewhere", 64),
    ("run", None, "runs/digits-gru", "runs/digits-gru", 32),
    ("run", "runs/digits-gru", None, "runs/digits-gru", 32),
    ("run", "runs/digits-gru", "elsewhere", "elsewhere", 32),
    ("generate", None, None, "runs/digits-gru", 32),
    ("generate", "digits-gru", None, "runs/digits-gru", 32),
    ("generate", "runs/digits-gru", None, "runs/digits-gru", 32),
    ("generate", None, "runs/digits-gru", "runs/digits-gru", 32),
    ("generate", "digits-gru", "elsewhere", "elsewhere", 64)])
def test_which_experiment_and_which_folder(kept, command, source, out, folder, multipliers):
    run = find(command, source, out and Path(out), ())
    assert (str(run.folder), run.experiment.hardware.multipliers) == (folder, multipliers)
    assert run.experiment.name == "digits-gru"


def test_a_folder_that_keeps_another_experiment_is_not_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_trained(Run(Path("runs/fsdd-gru"), load("digits-gru")))
    with pytest.raises(Refusal) as caught:
        find("generate", "fsdd-gru", None, ())
    assert str(caught.value) == ("runs/fsdd-gru must keep the experiment fsdd-gru to go on with it, but it keeps "
                                 "digits-gru; give runs/fsdd-gru instead of the name, or another --out")
    assert str(find("generate", "runs/fsdd-gru", None, ()).folder) == "runs/fsdd-gru"


@pytest.mark.parametrize(("source", "out", "command"), [
    ("fsdd-gru", None, "`circulant train fsdd-gru --out runs/fsdd-gru`"),
    ("fsdd-gru", "elsewhere", "`circulant train fsdd-gru --out elsewhere`"),
    ("mine.toml", None, "`circulant train mine.toml --out runs/mine`"),
    (None, "elsewhere", "`circulant train --out elsewhere`")])
def test_the_way_out_names_the_experiment(tmp_path, monkeypatch, source, out, command):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("[model]\nhidden = 16\n")
    run = find("generate", source, out and Path(out), ())
    with pytest.raises(Refusal, match=f"model.pt is missing; run {command} first"):
        require(run, "train")


def test_a_file_names_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("[model]\nhidden = 16\n")
    run = find("run", "mine.toml", None, ("model.hidden=24",))
    assert (str(run.folder), run.experiment.model.hidden) == ("runs/mine", 24)
