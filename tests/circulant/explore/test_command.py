import json
from functools import partial
from types import SimpleNamespace

import pytest

from circulant.experiment import load
from circulant.explore import command as module
from circulant.explore.bounds import Bounds
from circulant.explore.designs import Designs
from circulant.explore.fair import Comparison
from circulant.explore.models import Decision, Models
from circulant.sim import artifact
from circulant.sweep.point import Point


@pytest.fixture
def call(call):
    """Runs `circulant explore`."""
    return partial(call, "explore")


@pytest.fixture
def explored(monkeypatch):
    """An exploration that is there at once: what its phases were asked."""
    seen = {}

    def bounds(experiment, *, memory_bits, cycles, deadline):
        seen["experiment"], seen["memory_bits"], seen["cycles"] = experiment, memory_bits, cycles
        return Bounds(1, 16, (), ("every block size fits", "no larger block takes fewer than 90 cycles a step"))

    def phase_one(experiment, limits, allowed, *, deadline, share, widths, evaluate):
        seen.update(widths=widths, allowed=allowed, deadline=deadline, shares={"phase_one": share})
        decision = Decision(1, "8", "gru", score=0.98, lost=0.5, kept=True, why="has accuracy 98.00%")
        return Models(experiment, (decision,), (experiment,), dense=0.985, metric="accuracy", higher_is_better=True,
                      ended="the time was over before rule 2")

    def phase_two(models, limits, *, deadline, share, evaluate):
        seen["limits"] = limits
        seen["shares"]["phase_two"] = share
        row = {"reason": "", "metric": "accuracy", "higher_is_better": True, "block_size": "8",
               "weight_bits": 12, "activation_bits": 16, "quantized": 0.98,
               "cycles_per_step": 130, "multipliers": 28, "weight_memory_bits": 12000, "broken": []}
        points = tuple(Point("digits-gru", models.chosen) for _ in range(3))
        return Designs((row, row | {"weight_bits": 8}, row), 1, (0,), uniform=2, points=points)

    def compare(chosen, row, *, samples, others, deadline, evaluate):
        seen["compared"] = row["weight_bits"], samples
        return Comparison((), (), ("Block-circulant is no wrong choice here.",))

    def repeat(designs, count, *, deadline, evaluate):
        seen["seeds"] = count
        seen["shares"]["repeat"] = deadline
        return ()

    for name, function in (("bounds", bounds), ("repeat", repeat), ("phase_one", phase_one), ("phase_two", phase_two),
                           ("compare", compare)):
        monkeypatch.setattr(module, name, function)
    return seen


def test_what_it_writes(call, explored, tmp_path):
    code, out, err = call("digits-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25F", "--latency-us", "2",
                          "--memory-bits", "90000")
    assert (code, err.count("Refusal")) == (0, 0)
    assert "Phase I: k from 1 (every block size fits) to 16" in out.replace("\n", " ").replace("  ", " ")
    assert "It ended early: the time was over before rule 2" in out
    assert out.endswith("runs/explore-digits-gru/chosen: train and verify it by `circulant run "
                        "runs/explore-digits-gru/chosen`\n")
    folder = tmp_path / "runs" / "explore-digits-gru"
    assert "Block-circulant is no wrong choice here." in out and explored["compared"] == (8, 287)
    assert "Exploration of digits-gru" in (folder / "explore.html").read_text()
    body = artifact.read_json(folder / "explore.json", "circulant-exploration", 1)
    assert (body["device"], body["trainings"], body["chosen"], body["runners_up"]) == ("LFE5U-25F", 2, 1, [0])
    chosen = load(folder / "chosen")
    assert (chosen.name, chosen.board.device, chosen.data.held_out) == ("digits-gru", "LFE5U-25F", 0)
    assert (folder / "runner-up-1" / "experiment.toml").is_file()
    assert explored["experiment"].data.held_out == 287, "a fifth of the training samples"
    assert explored["experiment"].hardware.multipliers == 0, "all of the device's"
    assert explored["limits"].cycles == 2 * int(1000 / (1.5 + 4 * 1.9)), "at the estimated clock of an ECP5"
    assert explored["limits"].memory_bits == explored["memory_bits"] == 90000


@pytest.mark.parametrize("given", [("--mhz", "50"), ("--set", "hardware.clock_mhz=50")])
def test_a_clock_that_is_given(call, explored, given):
    assert call("digits-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25F", "--latency-us", "2", *given)[0] == 0
    assert explored["limits"].cycles == explored["cycles"] == 100
    assert explored["seeds"] == 1


def test_bit_widths_are_those_that_are_planned_not_narrower_ones(call, explored, tmp_path):
    """A search for each of 30 networks took a minute each."""
    assert call("digits-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25F", "--set", "quantization.budget=0.5")[
        0] == 0
    assert explored["experiment"].quantization.budget == 0
    assert load(tmp_path / "runs" / "explore-digits-gru" / "chosen").quantization.budget == 0


def test_the_time_is_divided(call, explored, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert call("digits-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25F", "--hours", "1")[0] == 0
    assert explored["deadline"] == 3700 and explored["shares"] == {"phase_one": 1900, "phase_two": 1300, "repeat": 1900}


def test_seeds(call, explored, tmp_path):
    assert call("digits-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25F", "--seeds", "3", "--latency-us", "2.5",
                "--widths", "--set", "training.dense_epochs=4")[0] == 0
    assert (explored["seeds"], explored["widths"]) == (3, True)
    page = (tmp_path / "runs" / "explore-digits-gru" / "explore.html").read_text()
    assert ("circulant explore digits-gru --accuracy-loss 0.5 --device LFE5U-25F --latency-us 2.5 --seeds 3 "
            "--set training.dense_epochs=4 --widths") in page


def test_json(call, explored):
    code, out, _ = call("digits-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25F", "--json")
    assert code == 0
    assert json.loads(out)["decisions"][0]["block_size"] == "8"


@pytest.mark.parametrize(("arguments", "words"), [
    (["digits-gru", "--device", "LFE5U-25F"], "Missing option '--accuracy-loss'"),
    (["digits-gru", "--accuracy-loss", "0.5"], "Missing option '--device'"),
    (["digits-gru", "--accuracy-loss", "-1", "--device", "LFE5U-25F"], "-1.0 is not in the range 0<=x<=100"),
    (["digits-gru", "--accuracy-loss", "nan", "--device", "LFE5U-25F"], "nan is not a finite number."),
    (["digits-gru", "--accuracy-loss", "1", "--device", "LFE5U-25F", "--hours", "inf"], "inf is not a finite number."),
    (["digits-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25"], "did you mean 'LFE5U-25F'?"),
    (["digit-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25F"], "did you mean 'digits-gru'?"),
    (["digits-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25F", "--cluster", "here"],
     "--cluster must be the address of a Dask scheduler that answers within 6 s, but here does not"),
    (["digits-gru", "--accuracy-loss", "0.5", "--device", "LFE5U-25F", "--set", "training.dense=runs/x"],
     "An exploration must train its own dense baseline, as another one has seen the samples held out, but "
     "training.dense names "),
    (["digits-gru", "--accuracy-loss", "0.5", "--device", "XCKU060", "--set", "hardware.dsp_packing=27x18"],
     "An exploration counts a DSP block for each product, so hardware.dsp_packing must be 'none', not '27x18'; leave "
     "it out, and set it to generate the chosen design"),
    (["digits-gru", "--accuracy-loss", "0.5", "--device", "XCKU060", "--set", "hardware.latency_us=0.5"],
     "so hardware.latency and hardware.latency_us must be 0; leave them out, and set one to generate the chosen"),
])
def test_what_is_refused(call, tmp_path, arguments, words):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert words in err.replace("\n", " ")
    assert not (tmp_path / "runs").exists()
