import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import circulant
from circulant import steps
from circulant.cli import STEPS, find, main
from circulant.experiment import load
from circulant.records import Run
from circulant.sim import artifact
from circulant.sim.cosim import SimulationError, Verification
from tests.flow.conftest import make_quantized, make_simulated, make_trained


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Runs a command line in an empty folder; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return stopped.value.code, said.out, said.err

    return run


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# What a user may get wrong before anything is there: the arguments, and what the one line on stderr says.
REFUSED = [
    (["run", "digit-gru"], "'digit-gru' is none of them; did you mean 'digits-gru'?"),
    (["run", "missing.toml"], "'missing.toml' is none of them"),
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
    assert lines[3] == "           10 … 10 targets of a class"
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
                       "'npz', an .npz file or an experiment, not 'mnis'; did you mean 'mnist'?"),
    (["data", "digits", "--set", "data.bands=3"], "takes the options seed, subset, test_subset, layout, normalise, no"),
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


@pytest.mark.parametrize("command", ["run", *STEPS])
def test_help_has_an_example(call, command):
    code, out, _ = call(command, "--help")
    assert code == 0
    assert f"Example:\n    circulant {command}" in out
    assert "--out DIR" in out
    assert "--set KEY=VALUE" in out


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
    assert err == (f"file/run must be a folder that can be written to, but {tmp_path / 'file'} is none; "
                   "choose another --out\n")


def test_a_file_that_cannot_be_written_is_said_in_one_line(call, finished, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device", "report.html")

    monkeypatch.setattr(steps, "report", full)
    assert call("report", finished.folder) == (2, "", "report.html cannot be used: No space left on device\n")


# Files that a step starts from.

@pytest.mark.parametrize(("step", "missing", "first"), [
    ("quantize", "model.pt", "train"), ("generate", "weights.npz", "quantize"), ("simulate", "vectors.npz", "quantize"),
    ("simulate", "hardware/manifest.json", "generate"), ("report", "verification.json", "simulate")])
def test_a_missing_file_names_the_command_to_run(call, finished, step, missing, first):
    finished.path(missing).unlink()
    before = contents(finished.folder)
    code, out, err = call(step, finished.folder)
    assert (code, out) == (2, "")
    assert err == f"{finished.path(missing)} is missing; run `circulant {first} {finished.folder}` first\n"
    assert contents(finished.folder) == before


@pytest.mark.parametrize(("step", "name", "change", "words"), [
    ("generate", "network.json", {"version": 99}, "field 'version' must be 4, not 99"),
    ("generate", "network.json", {"format": "other"}, "field 'format' must be 'circulant-network', not 'other'"),
    ("generate", "network.json", {"inputs": 5}, "field 'hash' must be that of the contents"),
    ("simulate", "hardware/manifest.json", {"multipliers": 1}, "field 'hash' must be that of the contents"),
    ("report", "verification.json", {"version": 2}, "field 'version' must be 1, not 2")])
def test_a_damaged_file(call, finished, step, name, change, words):
    path = finished.path(name)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    before = contents(finished.folder)
    code, _, err = call(step, finished.folder)
    assert code == 2
    assert f"{path}: {words}" in err
    assert contents(finished.folder) == before


def test_damaged_vectors(call, finished):
    finished.path("vectors.npz").write_bytes(finished.path("vectors.npz").read_bytes()[:-40])
    code, _, err = call("simulate", finished.folder)
    assert code == 2
    assert "vectors.npz must be a circulant-vectors archive, but it is not" in err


def test_a_model_of_another_training(call, finished):
    finished.path("model.pt").write_bytes(b"other")
    code, _, err = call("quantize", finished.folder)
    assert code == 2
    assert "model.pt must be the file of training.json beside it" in err


def test_vectors_of_another_network(call, finished, tmp_path):
    other = Run(tmp_path / "other", finished.experiment)
    make_trained(other)
    make_quantized(other, seed=2)
    finished.path("vectors.npz").write_bytes(other.path("vectors.npz").read_bytes())
    code, _, err = call("simulate", finished.folder)
    assert code == 2
    assert "vectors.npz must be of the network beside it, but it is another's" in err


def test_a_network_of_another_run(call, finished, tmp_path):
    other = Run(tmp_path / "other", finished.experiment)
    make_trained(other)
    make_quantized(other, seed=2)
    for name in ("network.json", "weights.npz"):
        finished.path(name).write_bytes(other.path(name).read_bytes())
    code, _, err = call("generate", finished.folder)
    assert code == 2
    assert "network.json must be the network of quantization.json beside it" in err


@pytest.mark.parametrize(("step", "change", "first"), [
    ("quantize", "model.hidden=16", "train"), ("generate", "quantization.weight_bits=9", "quantize"),
    ("simulate", "hardware.multipliers=9", "generate"), ("report", "data.seed=1", "train")])
def test_a_step_may_not_change_what_earlier_steps_obeyed(call, finished, step, change, first):
    before = contents(finished.folder)
    code, _, err = call(step, finished.folder, "--set", change)
    key = change.partition("=")[0]
    assert code == 2
    assert err.startswith(f"{key} must stay ")
    assert f"run `circulant {first} {finished.folder} --set {change}` first" in err
    assert contents(finished.folder) == before


# What a command line means.

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


def test_a_file_names_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text("[model]\nhidden = 16\n")
    run = find("run", "mine.toml", None, ("model.hidden=24",))
    assert (str(run.folder), run.experiment.model.hidden) == ("runs/mine", 24)


# How a step ends.

def test_a_mismatch_exits_1_and_names_it(call, finished, monkeypatch):
    monkeypatch.setattr(steps, "simulate", lambda run, show: make_simulated(run, mismatches=2))
    code, out, err = call("simulate", finished.folder)
    assert code == 1
    assert "7 sequences, 21 words, 2 mismatches" in out
    assert err == ("2 of 30 words differ from the golden model; the first: "
                   "sequence 3, step 4, word 1: expected 17, got -5\n")


def test_a_mismatch_in_a_whole_run_is_reported_too(call, finished, monkeypatch):
    for step in ("train", "quantize", "generate"):
        monkeypatch.setattr(steps, step, lambda run, show, **options: {})
    monkeypatch.setattr(steps, "simulate", lambda run, show: make_simulated(run, mismatches=2))
    code, out, err = call("run", finished.folder)
    assert code == 1
    assert "2 mismatches" in out
    assert "expected 17, got -5" in err
    assert json.loads(finished.path("report.json").read_text())["verification"]["mismatches"] == 2


def test_a_circuit_that_breaks_a_stream_rule_exits_1(call, finished, monkeypatch):
    def stuck(run, show):
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
              "report": "circulant.pictures.draw"}
    monkeypatch.setattr(inside[step], interrupted)
    before = contents(finished.folder)
    code, _, err = call(step, finished.folder)
    assert code == 130
    assert err == "\nInterrupted; what earlier steps wrote stays usable.\n"
    assert contents(finished.folder) == before


def test_report_prints_the_summary(call, finished):
    code, out, err = call("report", finished.folder)
    assert (code, err) == (0, "")
    assert "7 sequences, 21 words, 0 mismatches" in out
    assert str(finished.path("report.html")) in out


def test_simulate_writes_the_record_of_what_verify_found(call, finished, monkeypatch):
    found = Verification(7, 21, 30, 0, None, "Verilator 5.48.0", 10.0, 52.0, 40.0, 999, 1.0, 1.0, 7.0)
    seen = []

    def verify(folder, vectors, progress):
        progress("build", 0, 1)
        progress("build", 1, 1)
        progress("simulate", 7, 7)
        seen.append((folder, len(vectors)))
        return found

    monkeypatch.setattr("circulant.sim.cosim.verify", verify)
    code, _, err = call("simulate", finished.folder)
    assert code == 0
    assert seen == [(finished.path("hardware"), 7)]
    assert err == "compiling Verilog: 1 of 1\nsimulating: 7 of 7\n"
    assert json.loads(finished.path("verification.json").read_text())["verification"] == found.as_json()


@pytest.mark.parametrize(("package", "extra", "step"), [
    ("torch", "training", "train"), ("torch", "training", "quantize"), ("amaranth", "hw", "generate")])
def test_a_missing_extra(finished, package, extra, step):
    program = f"import sys; sys.modules[{package!r}] = None\nfrom circulant.cli import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", program, step, str(finished.folder)], capture_output=True, text=True,
                          env=os.environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f"circulant {step} needs {package}, which is not installed; "
                           f"run: pip install 'circulant[{extra}]'\n")
