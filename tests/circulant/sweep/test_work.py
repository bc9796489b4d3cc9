import shutil
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from circulant.experiment import Board
from circulant.hw.plan.families import FAMILIES
from circulant.hw.planner import plan
from circulant.sim.arith.circulant import multiplications
from circulant.sim.cosim import SimulationError
from circulant.sim.figures import Figures
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal, ToolError
from circulant.sweep import work
from circulant.sweep.grid import read
from circulant.sweep.point import Point
from circulant.sweep.work import epochs, evaluate, failure, reason, train


@pytest.fixture
def points(sweep_file):
    return read(sweep_file("block_size = [4]\nweight_bits = [8]\nmultipliers = [2, 16, 64]")).points


def test_reasons():
    assert reason(Refusal("One\nTwo")) == "One; Two"
    assert reason(MemoryError()) == "MemoryError"
    assert reason(KeyError("x")) == "KeyError: 'x'"
    assert reason(ToolError("g++ failed")) == "g++ failed"


@pytest.mark.parametrize(("error", "code"), [
    (Refusal("no"), 2), (ToolError("g++ failed"), 3), (KeyError("x"), 3), (SimulationError("2 of 30 words differ"), 1)])
def test_a_failure_has_the_exit_code_of_its_error(error, code):
    assert failure(error)["code"] == code


@pytest.mark.parametrize(("settings", "count"), [("", 2), (', "training.method=direct"', 80)])
def test_epochs(sweep_file, settings, count):
    path = Path(sweep_file(""))
    path.write_text(path.read_text().replace('_epochs=1"]', f'_epochs=1"{settings}]'))
    point, = read(str(path)).points
    assert (epochs(point), epochs(point.baseline, dense=True)) == (count, 1)


def test_a_point_is_what_the_steps_of_a_run_give(points, tmp_path):
    """Against `circulant train`, `quantize` and `generate` on the same experiment."""
    from circulant.run import steps
    from circulant.run.run_folder import Run

    seen = []
    dense = train(points[0].baseline)
    trained = train(points[0], dense, lambda done, words: seen.append((done, words)))
    assert [done for done, _ in seen] == [1, 2]
    assert seen[0][1].startswith("admm 1 of 1, accuracy ")
    found = evaluate(points, trained, "plan")

    run = Run(tmp_path / "run", points[1].experiment)
    scores = steps.train(run)["accuracy"]
    quantized = steps.quantize(run)["accuracy"]["quantized"]
    generated = steps.generate(run)["hardware"]
    network = Network.load(run.folder)
    assert trained["scores"] == scores
    assert found[1] == {
        "quantized": quantized, "multipliers": generated["multipliers"], "memory_bits": generated["memory_bits"],
        "weights": 3 * (8 * 8 // 4 + 8 * 8 // 4) + 12 * 8 // 4, "dense_weights": 3 * 2 * 8 * 8 + 12 * 8,
        "multiplications": generated["multiplications"]["per_step"],
        **{name: generated[name] for name in ("latency_spaced", "latency_contiguous") if generated[name] is not None},
        "weight_memory_bits": 8 * found[1]["weights"],
        "cycles_per_step": generated["layers"][0]["cycles"],
        "floor_cycles": -(-generated["multiplications"]["per_step"] // generated["multipliers"])}
    assert network.layers[0].gates.block_size == 4
    assert generated["multiplications"]["per_step"] > 2 * 3 * 4 * multiplications(4)

    # A budget that is too small, and what is known of the point all the same.
    assert found[0] == {name: found[1][name] for name in ("quantized", "weights", "dense_weights",
                                                                   "weight_memory_bits")} | {
        "reason": found[0]["reason"], "code": 2}
    assert "needs at least" in found[0]["reason"] and "multipliers" in found[0]["reason"]

    # Counted in the Verilog.
    counted, = evaluate(points[1:2], trained, "verilog")
    assert counted == found[1]

    # Kept.
    assert train(points[0], dense, lambda *seen: pytest.fail("it is trained already")) == trained
    model = trained["folder"] / "model.pt"
    model.unlink()
    assert evaluate(points[1:], trained, "plan") == found[1:], "what is kept needs no model"
    assert train(points[0], dense)["scores"] == scores, "a model that is lost is trained again"
    assert train(points[0], {"reason": "no baseline"}) == {"reason": "no baseline"}


def test_a_training_ends_with_its_epoch_when_the_time_is_over_and_goes_on(sweep_file, monkeypatch):
    shared, = read(sweep_file("block_size = [2]")).points
    training = replace(shared.experiment.training, seed=17)  # Of no other test, whose outcome would be kept.
    point = replace(shared, experiment=replace(shared.experiment, training=training))
    dense, now, seen = train(point.baseline), [0.0], []

    def note(done, words):
        now[0] = 2.0
        seen.append(words)

    monkeypatch.setattr("circulant.sweep.work.time", SimpleNamespace(
        time=lambda: now[0], perf_counter=time.perf_counter))
    assert train(point, dense, until=-1.0) == {"reason": "the time was over", "code": 2}
    assert train(point, dense, note, until=1.0)["reason"] == (
        "the time was over in epoch 1 of 1 of phase 'admm', from which the same command goes on")
    found = train(point, dense, note)
    assert "scores" in found and [words.split()[0] for words in seen] == ["admm", "retrain"]
    assert train(point, dense, until=-1.0) == found, "what is kept takes no time"


def test_no_point_is_evaluated_after_its_time_but_what_is_kept_is_there(points):
    trained = train(points[0], train(points[0].baseline))
    second, = evaluate(points[1:2], trained, "plan")
    assert evaluate(points[:2], trained, "plan", until=0.0) == [{"reason": "the time was over", "code": 2}, second]


def test_a_training_in_the_folder_of_another_is_made_again(points, sweep_file):
    other, = read(sweep_file("block_size = [2]")).points
    mine, theirs = train(points[0]), train(other)
    for name in ("model.pt", "training.json"):
        shutil.copyfile(theirs["folder"] / name, mine["folder"] / name)
    assert train(points[0]) == mine


def test_direct_training_starts_at_random_where_the_baseline_has_no_epochs(sweep_file):
    path = Path(sweep_file("block_size = [4]"))
    path.write_text(path.read_text().replace("dense_epochs=1", "dense_epochs=0").replace(
        '_epochs=1"]', '_epochs=1", "training.method=direct", "training.direct_epochs=1"]').replace(
        'set = [', 'set = ["training.distillation=0", '))
    point, = read(str(path)).points
    dense = train(point.baseline)
    found = train(point, dense)
    assert "scores" in found, found
    assert found["scores"].keys() == {"circulant"}, "nothing was trained to start from"


def test_a_training_that_fails(sweep_file):
    point, = read(sweep_file("block_size = [64]")).points
    assert set(train(point)) == {"reason", "code"}
    assert "Block size must not exceed both sides" in train(point)["reason"]


def test_an_error_is_a_reason_too(points, monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError("of a bug")

    monkeypatch.setattr(work, "_golden", broken)
    assert evaluate(points[:1], {"model": "x"}, "plan") == [{"reason": "ZeroDivisionError: of a bug", "code": 3}]


def test_a_device_that_is_too_small(points, monkeypatch):
    point = Point("small", replace(points[2].experiment, board=Board("iCE40UP5K")))
    trained = train(point)
    found, = evaluate([point], trained, "plan")
    assert found["reason"].startswith("A design must fit iCE40UP5K, but it needs ")


def test_approximate_products_take_look_up_tables_and_a_slower_clock(points):
    given, trained = replace(points[2].experiment, board=Board("LFE5U-85F")), train(points[2])
    exact, other = (evaluate([Point("made", replace(given, quantization=replace(given.quantization, multiplier=name)))],
                             trained, "plan")[0] for name in ("exact", "truncated:5"))
    assert other["dsps"] < exact["dsps"] and other["luts"] > exact["luts"]
    assert other["mhz"] < exact["mhz"] == FAMILIES["ecp5"].mhz(4)
    assert other["cycles_per_step"] == exact["cycles_per_step"]


@pytest.mark.parametrize("mismatches", [0, 2])
def test_a_simulation_gives_its_cycles_or_the_reason(points, monkeypatch, mismatches):
    from circulant.sim.cosim import Verification

    class Design:
        def __init__(self, network, multipliers, streams, **options):
            self.plans = plan(network, multipliers)
            self.figures = Figures(multipliers, 1, 0, memory_bits=4321, latency_spaced=77, latency_contiguous=99)

        def write(self, folder):
            return folder

    verification = Verification(
        7, words=21, words_compared=30, mismatches=mismatches, first=None, simulator="Verilator", cycles_per_step=99.5,
        cycles_per_sequence=52.0, steps_per_sequence=5.0, latency_spaced=40.0, latency_contiguous=55.0, cycles=999,
        seconds_build=1.0, seconds_simulate=1.0, sequences_per_s=7.0)
    seen = []

    def verify(folder, vectors):
        seen.append((folder.name, len(vectors)))
        return verification

    monkeypatch.setattr("circulant.hw.generate", lambda network, **options: Design(network, **options))
    monkeypatch.setattr("circulant.sim.cosim.verify", verify)
    found, = evaluate(points[1:2], train(points[1]), "simulate")
    assert seen == [("design", 40)]
    if mismatches:
        assert found["reason"] == "2 of 30 words differ from the golden model"
        assert "cycles_per_step" not in found and 0 <= found["quantized"] <= 1
    else:
        assert (found["cycles_per_step"], found["memory_bits"], "reason" in found) == (99.5, 4321, False)
