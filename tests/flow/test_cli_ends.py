import json
import os
import subprocess
import sys

import pytest

from circulant import steps
from circulant.sim.cosim import SimulationError, Verification
from tests.flow.conftest import contents, make_simulated

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
    found = Verification(7, 21, 30, 0, None, "Verilator 5.48.0", 10.0, 52.0, 40.0, 999, 1.0, 1.0)
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
