"""The fuzz of plans: its draws cover what a shared array can be, and a figure that is off is a difference."""
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import paces
from benchmarks.paces import draw, measure, trial
from circulant.hw.array.plans import sharings
from circulant.sim.cosim.judge.check import SimulationError

SEEDS = range(72)
RIGHT = {"latency_spaced": 80, "latency_contiguous": 90, "period": 20}


def test_the_draws_cover_objectives_levels_and_options():
    drawn = [draw(seed) for seed in SEEDS]
    options = [each.options for each in drawn]
    assert {each["objective"] for each in options} == {"latency", "area", "auto", "throughput"}
    assert {each["levels"] for each in options} == set(range(4, 10))
    assert {each["streams"] for each in options} == {1, 2, 3}
    assert {each["reloadable"] for each in options} == {True, False}
    assert {each["beat_blocks"] for each in options} == {0, 1, 2, 4}
    layers = [each.network.stages for each in drawn]
    own = [each for each, made in zip(layers, options, strict=True) if made["objective"] == "throughput"]
    assert {layer.kind for each in own for layer in each} >= {"lstm", "gru"}, "cells have arrays of their own"
    assert {layer.kind for each in layers for layer in each} == {"lstm", "gru", "bidirectional", "linear"}
    products = [product for each in layers for layer in each if layer.kind in ("lstm", "gru")
                for product in layer.products.values()]
    assert {product.weight.width for product in products} >= set(range(2, 9))
    assert any(product.row_shifts for product in products)
    sizes = [{layer.products["input_product"].block_size for layer in each if layer.kind in ("lstm", "gru")}
             for each in layers]
    assert any({layer.kind for layer in each} == {"linear"} for each in layers), "some have no state"
    assert max(map(len, sizes)) > 1, "block sizes are mixed"
    assert {each.network.per_step for each in drawn} == {True, False}


def test_a_seed_draws_the_same_network_again():
    first, second = draw(3), draw(3)
    assert (first.title, first.network.hash) == (second.title, second.network.hash)
    assert (first.x == second.x).all()


def test_too_small_a_budget_is_doubled():
    drawn = draw(1)
    design = replace(drawn, options=drawn.options | {"multipliers": 1}).design()
    assert sharings(design.plans) and design.multipliers > 1


def test_a_longer_sequence_repeats_the_steps_of_the_shorter_one():
    drawn = draw(7)
    longer = drawn.longer(30)
    assert longer.x.shape == (3, 30, drawn.network.flow.size) and longer.options["max_steps"] == 30
    assert (longer.x[:, :12] == drawn.x).all() and (longer.x[:, 24:] == drawn.x[:, :6]).all()


class Played:
    mismatches = 0
    cycles_per_step, latency_spaced, latency_contiguous = 20.0, 80.0, 90.0


@pytest.fixture
def quick(monkeypatch):
    """A design that is neither generated nor simulated."""
    class Design:
        plans, manifest = (), {}

        def write(self, folder):
            return folder

    class Manifest:
        load = staticmethod(lambda folder: None)

    monkeypatch.setattr(paces.Drawn, "design", lambda self: Design())
    monkeypatch.setattr(paces, "Manifest", Manifest)
    monkeypatch.setattr(paces, "planned", lambda design, manifest: RIGHT)
    monkeypatch.setattr(paces, "verify", lambda *_, **__: Played())


def test_equal_figures_are_equal(quick):
    assert (trial(0).outcome, trial(0).reason) == ("equal", "")


@pytest.mark.parametrize(("name", "value", "reason"), [
    ("cycles_per_step", 20.5, "period 20 planned, 20.5 measured"),
    ("latency_spaced", 81.0, "latency_spaced 80 planned, 81 measured"),
    ("latency_contiguous", 89.0, "latency_contiguous 90 planned, 89 measured"),
    ("mismatches", 3, "3 words differ")])
def test_a_figure_that_is_off_is_a_difference(quick, monkeypatch, name, value, reason):
    monkeypatch.setattr(Played, name, value)
    assert (trial(0).outcome, trial(0).reason) == ("different", reason)


def test_a_broken_rule_is_a_difference(quick, monkeypatch):
    def broken(*_, **__):
        raise SimulationError("A rule must hold")

    monkeypatch.setattr(paces, "verify", broken)
    assert (trial(0).outcome, trial(0).reason) == ("different", "A rule must hold")


def test_what_was_right_is_not_played_again(quick, monkeypatch, tmp_path: Path):
    monkeypatch.setattr(Played, "mismatches", 1)
    kept, said = tmp_path / "kept.jsonl", []
    found = measure(count=2, kept=kept, note=said.append)
    assert (found["equal"], found["different"], len(found["faults"])) == (0, 2, 2)
    monkeypatch.setattr(Played, "mismatches", 0)
    assert measure(count=2, kept=kept)["equal"] == 2
    monkeypatch.setattr(paces, "trial", lambda seed: pytest.fail("it is kept"))
    again = measure(count=2, kept=kept)
    assert (again["equal"], again["faults"]) == (2, [])
    assert said[0].startswith("0: different 1 words differ: ")


@pytest.mark.soak
@pytest.mark.parametrize("seed", [
    0, 2, 3, 5, 7, pytest.param(167, id="a queue of whole sequences"), pytest.param(182, id="faster by one cycle")])
def test_a_network_keeps_to_its_plan(seed):
    found = trial(seed)
    assert found.outcome == "equal", found.reason
