"""The command line as a whole: what is refused before anything is there, data sets, exit codes."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import circulant
from circulant.run import steps
from circulant.sim.cosim import SimulationError
from tests.circulant.conftest import contents

# What a user may get wrong before anything is there: the arguments, and what the one line on stderr says.
REFUSED = [
    (["run", "digit-gru"], "not 'digit-gru'; did you mean 'digits-gru'?"),
    (["run", "missing.toml"], "An experiment must be a file that exists, but there is no missing.toml; give the path"),
    (["run", "--set", "hardware.mutipliers=3"], "[hardware] has no key 'mutipliers'; did you mean 'multipliers'?"),
    (["run", "--set", "hardwar.multipliers=3"], "there is no table [hardwar]; did you mean 'hardware'?"),
    (["run", "--set", "model.hidden=many"], "model.hidden must be an integer from 1 to 4096, not 'many'"),
    (["run", "--set", "hardware.multipliers"], "--set takes table.key=value"),
    (["train", "--set", "compression.block_size=12"], "must be a power of two from 1 to 64"),
    (["train", "--set", "compression.block_size={gruu=8}"], "not to 'gruu'; did you mean 'gru'?"),
    (["train", "--set", "compression.block_size={gru=64}", "--set", "model.hidden=32"], "must not exceed both sides"),
    (["quantize"], "model.pt is missing; run `circulant train --out runs/digits-gru` first"),
    (["generate"], "model.pt is missing; run `circulant train "),
    (["simulate"], "model.pt is missing; run `circulant train "),
    (["report"], "model.pt is missing; run `circulant train "),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_refusals(call, tmp_path, arguments, words):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert not list(tmp_path.iterdir()), "a refused command must leave nothing behind"


def test_all_problems_of_a_file_are_said_at_once(call, tmp_path):
    (tmp_path / "mine.toml").write_text("[modle]\n[training]\nseeed = 1\nrho = 'x'\n")
    code, _, err = call("run", "mine.toml")
    assert code == 2
    assert [line.partition(": ")[2].split()[0] for line in err.splitlines()] == ["there", "[training]", "training.rho"]


def test_broken_toml(call, tmp_path):
    (tmp_path / "mine.toml").write_text("[model\n")
    code, _, err = call("run", "mine.toml")
    assert code == 2
    assert "mine.toml must be TOML: " in err
    assert "line 1" in err


def test_data(call, tmp_path):
    code, out, _ = call("data", "digits", "--set", "data.subset=100", "--picture", "digits.png")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "digits: classification, 10 classes"
    assert lines[2] == "  train    100 sequences of 8 steps × 8 features, 0.0 MB, values 0 … 1"
    assert lines[3] == "           10 … 10 targets per class"
    assert lines[-1] == "digits.png"
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")


def test_data_of_a_file_and_of_an_experiment(call, tmp_path):
    import numpy as np

    np.savez(tmp_path / "mine.npz", x=np.zeros((10, 4)), y=np.arange(10) % 2)
    assert call("data", "mine.npz")[1].splitlines()[1] == "  train    8 vectors of 4 features, 0.0 MB, values 0 … 0"
    (tmp_path / "mine.toml").write_text('[data]\nname = "npz"\npath = "mine.npz"\ntest_subset = 1\n')
    assert "test     1 vectors" in call("data", "mine.toml")[1]
    assert call("data", "digits-gru")[1].startswith("digits: ")


@pytest.mark.parametrize(("arguments", "words"), [
    (["data", "mnis"], "A data set must be one of 'digits', 'mnist', 'cifar10', 'fsdd', 'speechocean762', 'timit', "
                       "'npz', 'python', 'saved', an .npz file or an experiment, not 'mnis'; did you mean 'mnist'?"),
    (["data", "digits", "--set", "data.bands=3"], "takes the options seed, subset, test_subset, held_out, layout, no"),
    (["data", "digits", "--set", "data.layout=row"], "data.layout must be one of 'auto', 'image', 'flat', 'rows', not"),
    (["data", "none.npz"], "none.npz, but that does not exist"),
    (["data", "npz"], "The data set 'npz' must be told its file, but data.path is empty; set it"),
])
def test_data_that_are_refused(call, arguments, words):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_help_of_data(call):
    code, out, _ = call("data", "--help")
    assert code == 0
    assert "Example:\n    circulant data fsdd" in out
    assert "--picture FILE" in out


@pytest.mark.parametrize("arguments", [["runn"], ["run", "--owt", "x"], ["run", "a", "b"]])
def test_a_malformed_command_line(call, arguments):
    code, _, err = call(*arguments)
    assert code == 2
    assert "Usage: circulant" in err


def test_version(call):
    assert call("--version") == (0, f"circulant {circulant.__version__}\n", "")


def test_the_entry_point_is_installed():
    command = [str(Path(sys.executable).parent / "circulant"), "run", "digit-gru"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "did you mean 'digits-gru'?" in done.stderr


def test_a_folder_that_cannot_be_made_is_refused_before_any_training(call, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = call("train", "--out", "file/run")
    assert (code, out) == (2, "")
    assert err == ("file/run must be a folder that can be written to, but it cannot be (File exists); choose another "
                   "--out\n")
    code, out, err = call("train", "--out", "/proc/run")
    assert (code, out) == (2, "")
    assert err == ("/proc/run must be a folder that can be written to, but it cannot be (No such file or directory); "
                   "choose another --out\n")


def test_a_full_disk_is_said_in_one_line(call, finished, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device", "report.html")

    monkeypatch.setattr("circulant.report.report.write", full)
    assert call("report", finished.folder) == (3, "", "report.html could not be written: No space left on device; make "
                                               "room, and run the same command again\n")


def test_a_circuit_that_breaks_a_stream_rule_exits_1(call, finished, monkeypatch):
    def stuck(run, show, trace):
        raise SimulationError("A beat must move at least every 100 cycles, but none had by cycle 7")

    monkeypatch.setattr(steps, "simulate", stuck)
    assert call("simulate", finished.folder) == (
        1, "", "A beat must move at least every 100 cycles, but none had by cycle 7\n")


@pytest.mark.parametrize("step", ["train", "quantize", "generate", "simulate", "report"])
def test_an_interrupted_step_leaves_everything_as_it_was(call, finished, monkeypatch, step):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    inside = {"train": "circulant.training.train", "quantize": "circulant.training.load_trained",
              "generate": "circulant.hw.generate", "simulate": "circulant.sim.cosim.verify",
              "report": "circulant.report.plots.draw"}
    monkeypatch.setattr(inside[step], interrupted)
    before = contents(finished.folder)
    code, _, err = call(step, finished.folder)
    assert code == 130
    assert err == "\nInterrupted; what earlier steps wrote stays usable.\n"
    assert contents(finished.folder) == before


@pytest.mark.parametrize(("package", "extra", "step"), [
    ("torch", "training", "train"), ("torch", "training", "quantize"), ("amaranth", "hw", "generate")])
def test_a_missing_extra(finished, package, extra, step):
    program = f"import sys; sys.modules[{package!r}] = None\nfrom circulant.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", program, step, str(finished.folder)], capture_output=True, text=True,
                          env=os.environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f"circulant {step} needs {package}, which is not installed; "
                           f"run: pip install 'circulant[{extra}]'\n")
