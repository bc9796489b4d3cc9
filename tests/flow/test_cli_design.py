import json
import shutil
import subprocess

import pytest

from circulant import steps
from circulant.sim import artifact
from tests.flow.conftest import contents


def test_c_is_generated_and_tests_itself(call, finished):
    folder = finished.path("c")
    code, out, err = call("generate", finished.folder, "--target", "c")
    record = json.loads(finished.path("generation-c.json").read_text())
    assert (code, err) == (0, "")
    assert out == (f"{folder}: {record['c']['table_bytes']:,} bytes of tables; `make -C {folder} test` runs its "
                   "self-test\n")
    assert sorted([*record["c"]["files"], "manifest.json"]) == sorted(path.name for path in folder.iterdir())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["network"] == record["hashes"]["network"]
    if not all(map(shutil.which, ("make", "gcc"))):
        pytest.skip("make and gcc must be on PATH for the rest")
    done = subprocess.run(["make", "-C", folder, "test", "CFLAGS=-O0"], capture_output=True, text=True)
    assert "PASS: 7 of 7 sequences equal the golden model" in done.stdout, done.stdout + done.stderr
    # The other steps go on as if nothing had happened.
    assert call("report", finished.folder)[0] == 0


def test_c_needs_a_network(call, finished):
    finished.path("weights.npz").unlink()
    code, _, err = call("generate", finished.folder, "--target", "c")
    assert (code, err) == (2, f"{finished.path('weights.npz')} is missing; run `circulant quantize {finished.folder}` "
                              "first\n")


def test_c_does_not_overwrite_what_is_not_its_own(call, finished):
    artifact.atomic_text(finished.path("c/mine.txt"), "mine")
    code, _, err = call("generate", finished.folder, "--target", "c")
    assert (code, err) == (2, "The folder of a C design must be new, empty or a C design's, but "
                              f"{finished.path('c')} holds other files; choose another one\n")


def test_an_unknown_target(call):
    code, _, err = call("generate", "--target", "vhdl")
    assert code == 2
    assert "'vhdl' is not one of 'verilog', 'c'" in err


# The size of a design.

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


def test_generate_says_what_limits_the_design(call, finished):
    code, out, err = call("generate", finished.folder, "--multipliers", "30")
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first.startswith(f"{finished.folder}/hardware: ") and " multipliers, " in first
    hardware = json.loads(finished.path("generation.json").read_text())["hardware"]
    assert hardware["multipliers"] <= 30
    gru = hardware["layers"][0]
    assert (gru["name"], gru["per"], hardware["layers"][1]["per"]) == ("gru", "step", "sequence")
    assert second.startswith(f"{gru['cycles']} cycles per step, ")
    what, _, why = gru["limit"].partition(": ")
    assert second.endswith(f"; limited by {what} in layer 'gru': {why}")


@pytest.mark.parametrize(("options", "words"), [
    (["--device", "XCKU06"], "board.device must be one of 'none', 'XCKU060', "),
    (["--device", "XCKU06"], "not 'XCKU06'; did you mean 'XCKU060'?"),
    (["--multipliers", "many"], "'many' is not a valid integer"),
    (["--multipliers", "-3"], "hardware.multipliers must be an integer from 1 to 65536, or 0 for all of the device's"),
    (["--multipliers", "0"], "hardware.multipliers may only be 0, all of the device's, where board.device names one"),
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
