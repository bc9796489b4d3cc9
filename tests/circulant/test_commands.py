"""The steps of a run: what each starts from, what it says at its end, and that a refused one changes nothing."""
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from circulant.run import steps
from circulant.run.run_folder import Run
from circulant.sim.cosim import Verification
from circulant.sim.files.writing import atomic_text
from circulant.sim.vectors import Vectors
from tests.circulant.conftest import contents, make_quantized, make_simulated, make_trained


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


@pytest.mark.parametrize(("line", "member"), [
    (("generate",), "multipliers"), (("generate", "--target", "c"), "table_bytes"), (("report",), "clock"),
    (("inspect",), "exportable")])
def test_results_as_json_are_all_of_standard_output(call, finished, line, member):
    code, out, err = call(line[0], finished.folder, *line[1:], "--json")
    assert (code, err) == (0, "") and member in json.loads(out)


def test_every_command_that_prints_results_has_json():
    from circulant.cli import cli

    assert {name for name, each in cli.commands.items() if "as_json" not in {given.name for given in each.params}} == {
        "new", "plot", "completion"}, "they write files or a script"


def test_c_needs_a_network(call, finished):
    finished.path("weights.npz").unlink()
    code, _, err = call("generate", finished.folder, "--target", "c")
    assert (code, err) == (2, f"{finished.path('weights.npz')} is missing; run `circulant quantize {finished.folder}` "
                              "first\n")


def test_c_does_not_overwrite_what_is_not_its_own(call, finished):
    atomic_text(finished.path("c/mine.txt"), "mine")
    code, _, err = call("generate", finished.folder, "--target", "c")
    assert (code, err) == (2, "The folder of a C design must be new, empty or a C design's, but "
                              f"{finished.path('c')} holds other files; choose another one\n")


def test_an_unknown_target(call):
    code, _, err = call("generate", "--target", "vhdl")
    assert code == 2
    assert "'vhdl' is not one of 'verilog', 'c'" in err


def test_generate_says_what_limits_the_design_and_what_it_takes_of_its_device(call, finished):
    code, out, err = call("generate", finished.folder, "--multipliers", "30", "--device", "LFE5U-25F")
    assert (code, err) == (0, "")
    first, second = out.splitlines()[:2]
    assert first.startswith(f"{finished.folder}/hardware: ") and " multipliers, " in first
    hardware = json.loads(finished.path("generation.json").read_text())["hardware"]
    assert hardware["multipliers"] <= 30
    gru = hardware["layers"][0]
    assert (gru["name"], gru["per"], hardware["layers"][1]["per"]) == ("gru", "step", "sequence")
    assert second.startswith(f"{gru['cycles']} cycles per step, ")
    what, _, why = gru["limit"].partition(": ")
    assert f"; limited by {what} in layer 'gru'" in second and second.endswith(f": {why}")
    assert re.search(r"^LFE5U-25F: \d+ of 28 DSP blocks, \d+ of 56 block RAMs, about [\d,]+ \(± \d+%\) of 24,288 "
                     r"look-up tables, about [\d,]+ \(± \d+%\) of 24,288 flip-flops$", out, re.M), out


def test_a_device_that_cannot_hold_the_design_leaves_everything_as_it_was(call, finished):
    before = finished.path("generation.json").read_text(), finished.path("hardware/top.v").read_text()
    for more in ([], ["--set", "hardware.family=generic"]):
        code, out, err = call("generate", finished.folder, "--device", "iCE40UP5K", "--multipliers", "30", *more)
        assert (code, out) == (2, "")
        placed = r"and a place for \d+ memories that lie in look-up tables, .*; " if more else r"; "
        assert re.search(r"A design must fit iCE40UP5K, but it needs \d+ of 8 DSP blocks \(\d+ too many\) and .*"
                         rf"{placed}.* or take \S+, the smallest known one", err), err
        assert more or "a place for" not in err, "memories are those of the device's family"
    assert (finished.path("generation.json").read_text(), finished.path("hardware/top.v").read_text()) == before


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
    ("generate", "network.json", {"version": 99}, "field 'version' must be 5, not 99"),
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


@pytest.fixture
def other(finished, tmp_path):
    """A run of the same experiment with another network."""
    run = Run(tmp_path / "other", finished.experiment)
    make_trained(run)
    make_quantized(run, seed=2)
    return run


def test_vectors_of_another_network(call, finished, other):
    finished.path("vectors.npz").write_bytes(other.path("vectors.npz").read_bytes())
    code, _, err = call("simulate", finished.folder)
    assert code == 2
    assert "vectors.npz must be of the network beside it, but it is another's" in err


def test_a_network_of_another_run(call, finished, other):
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


def test_a_mismatch_exits_1_and_names_it(call, finished, monkeypatch):
    monkeypatch.setattr(steps, "simulate", lambda run, show, trace: make_simulated(run, mismatches=2))
    code, out, err = call("simulate", finished.folder)
    assert code == 1
    assert "7 sequences, 21 words, 2 mismatches" in out
    assert err == ("2 of 30 words differ from the golden model; the first: "
                   "sequence 3, step 4, word 1: expected 17, got -5\n")


@pytest.mark.parametrize(("found", "said"), [
    ({"text": "The first difference is in layer 'gru'"}, "The first difference is in layer 'gru'"),
    (None, "No value that is tapped differs: the fault is behind the last layer")])
def test_a_traced_mismatch_says_where_it_begins(call, finished, monkeypatch, found, said):
    asked = []

    def simulate(run, show, trace):
        asked.append(trace)
        simulated = make_simulated(run, mismatches=2)
        simulated["verification"]["divergence"] = found
        return simulated

    monkeypatch.setattr(steps, "simulate", simulate)
    code, _, err = call("simulate", "--trace", finished.folder)
    assert (code, asked) == (1, [True])
    assert err.endswith(f"{said}\n")


def test_a_mismatch_in_a_whole_run_is_reported_too(call, finished, monkeypatch):
    for step in ("train", "quantize", "generate"):
        monkeypatch.setattr(steps, step, lambda run, show, **options: {})
    monkeypatch.setattr(steps, "simulate", lambda run, show, trace: make_simulated(run, mismatches=2))
    code, out, err = call("run", finished.folder)
    assert code == 1
    assert "2 mismatches" in out
    assert "expected 17, got -5" in err
    assert json.loads(finished.path("report.json").read_text())["verification"]["mismatches"] == 2


def test_report_prints_the_summary(call, finished):
    code, out, err = call("report", finished.folder)
    assert (code, err) == (0, "")
    assert "7 sequences, 21 words, 0 mismatches" in out
    assert str(finished.path("report.html")) in out


def test_simulate_writes_the_record_of_what_verify_found(call, finished, monkeypatch):
    found = Verification(7, words=21, words_compared=30, mismatches=0, first=None, simulator="Verilator 5.48.0",
                         cycles_per_step=10.0, cycles_per_sequence=52.0, steps_per_sequence=5.0, latency_spaced=40.0,
                         latency_contiguous=55.0,
                         cycles=999, seconds_build=1.0, seconds_simulate=1.0, sequences_per_s=7.0)
    seen = []

    def verify(folder, vectors, drawn, progress):
        progress("build", 0, 1)
        progress("build", 1, 1)
        progress("simulate", 7, 7)
        seen.append((folder, len(vectors), len(drawn)))
        return found

    monkeypatch.setattr("circulant.sim.cosim.verify", verify)
    code, _, err = call("simulate", finished.folder)
    assert code == 0
    assert seen == [(finished.path("hardware"), 7, 7)], "no more samples are drawn than there are"
    assert err.endswith("compiling Verilog: 1 of 1\nsimulating: 7 of 7\n")
    written = json.loads(finished.path("verification.json").read_text())["verification"]
    assert written.pop("coverage")["points"]["segment"] > 0
    assert written == found.as_json()


def test_simulate_plays_the_first_samples(call, finished, monkeypatch):
    whole, seen = Vectors.load(finished.path("vectors.npz")), []

    def verify(folder, vectors, drawn, progress):
        seen.append(vectors)
        return Verification(len(vectors), words=9, words_compared=12, mismatches=0, first=None,
                            simulator="Verilator 5.48.0", cycles_per_step=10.0, cycles_per_sequence=52.0,
                            steps_per_sequence=5.0, latency_spaced=40.0, latency_contiguous=55.0, cycles=999,
                            seconds_build=1.0, seconds_simulate=1.0, sequences_per_s=7.0)

    monkeypatch.setattr("circulant.sim.cosim.verify", verify)
    code, out, _ = call("simulate", finished.folder, "--set", "simulation.samples=3")
    assert code == 0
    assert "3 sequences, 9 words, 0 mismatches" in out
    assert np.array_equal(seen[0].inputs, whole.inputs[:3])
    assert np.array_equal(seen[0].outputs, whole.outputs[:3])
    code, _, err = call("report", finished.folder, "--set", "simulation.samples=4")
    assert code == 2
    assert "simulation.samples must stay 3, with which `circulant simulate` made" in err


def test_resuming_a_finished_training_says_that_it_is(call, finished, monkeypatch):
    monkeypatch.setattr("circulant.training.train", lambda *arguments, **options: pytest.fail("nothing is left to do"))
    before = contents(finished.folder)
    for arguments in ([finished.folder, "--resume"], ["--out", finished.folder, "--resume"]):
        code, out, err = call("train", *arguments)
        assert (code, err) == (0, f"The training of {finished.folder} is finished; there is nothing to resume\n")
        assert out == f"{finished.path('model.pt')}: accuracy 97.00% block-circulant, 98.00% dense\n"
    assert contents(finished.folder) == before


def test_a_finished_training_of_another_experiment_is_not_resumed(call, finished):
    code, out, err = call("train", finished.folder, "--resume", "--set", "training.seed=5")
    assert (code, out) == (2, "")
    assert err.startswith(f"training.seed must stay 0, with which `circulant train` made {finished.folder}, not 5; ")
