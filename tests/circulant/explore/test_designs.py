"""Phase II: which design of a model is chosen, and what is said where none keeps the limits."""
from dataclasses import replace
from functools import partial

import pytest

from circulant.explore.designs import Limits, phase_two
from circulant.explore.models import Models
from circulant.run.untrained import sized
from circulant.sim.refusal import Refusal, ToolError


@pytest.fixture
def models(experiment):
    trained = (sized(experiment, 8), sized(experiment, 16))
    return Models(trained[-1], (), trained, dense=0.99, metric="accuracy", higher_is_better=True)


def row(point):
    """Narrow words cost accuracy, larger blocks save cycles, and fewer multipliers take more of them."""
    experiment = point.experiment
    k, bits = experiment.compression.block_size, experiment.quantization
    share = 28 // (experiment.hardware.multipliers or 28)
    return {"reason": "", "metric": "accuracy", "higher_is_better": True, "block_size": str(k),
            "weight_bits": bits.weight_bits, "activation_bits": bits.activation_bits,
            "quantized": 0.991 - 0.0001 * k - 0.1 * 2.0 ** -bits.weight_bits - 2.0 ** -bits.activation_bits,
            "cycles_per_step": 1000 * share // k, "multipliers": 28 // share,
            "weight_memory_bits": 80000 * bits.weight_bits // k, "memory_bits": 100000 * bits.weight_bits // k}


def evaluator(refused=()):
    def evaluate(points, measure="plan", deadline=None):
        rows = [row(point) for point in points]
        for each in rows:
            if measure == "verilog" and (each["weight_bits"], each["activation_bits"]) in refused:
                each["reason"] = "It needs too many look-up tables"
        return rows

    return evaluate


def test_the_design_with_the_least_cycles_within_the_limits(models):
    designs = phase_two(models, Limits(0.5), evaluate=evaluator())
    chosen = designs.rows[designs.chosen]
    assert (chosen["block_size"], chosen["multipliers"], chosen["broken"]) == ("16", 28, [])
    legal = [each for each in designs.rows if not each["broken"]]
    assert chosen["cycles_per_step"] == min(each["cycles_per_step"] for each in legal)
    assert chosen["weight_memory_bits"] == min(
        each["weight_memory_bits"] for each in legal if each["cycles_per_step"] == chosen["cycles_per_step"])
    assert designs.chosen not in designs.runners_up
    assert all(not designs.rows[at]["broken"] for at in designs.runners_up)


def test_of_designs_of_equal_cost_the_most_accurate_one(models):
    """Bits of activations are no cost, so that all of one number of weight bits are equal."""
    designs = phase_two(models, Limits(2), evaluate=evaluator())
    chosen = designs.rows[designs.chosen]
    same = [row for row in designs.rows if all(row[name] == chosen[name] for name in (
        "cycles_per_step", "multipliers", "weight_memory_bits"))]
    assert len({row["activation_bits"] for row in same if not row["broken"]}) > 1
    assert chosen["quantized"] == max(row["quantized"] for row in same)


def test_the_uniform_design_is_among_them(models):
    designs = phase_two(models, Limits(0.5), evaluate=evaluator())
    uniform = designs.rows[designs.uniform]
    assert [uniform[name] for name in ("block_size", "weight_bits", "activation_bits", "multipliers")] == [
        "8", 12, 16, 28]


def test_of_the_other_models_every_width_is_evaluated(models):
    """That of the uniform design is there although it loses too much."""
    models = replace(models, trained=models.trained[1:], left=models.trained[:1])
    designs = phase_two(models, Limits(0.5), evaluate=evaluator())
    assert [each["weight_bits"] for each in designs.rows if each["block_size"] == "8"] == [4, 5, 6, 8, 10, 12]
    assert designs.rows[designs.uniform]["block_size"] == "8"


def test_a_design_that_costs_in_nothing_more_than_the_uniform_one_comes_first(models):
    """Here the design with the least cycles has more weight bits than the uniform one, so that another is chosen."""

    def evaluate(points, measure="plan", deadline=None):
        return [each | ({"cycles_per_step": 1, "weight_memory_bits": 10**6} if each["weight_bits"] == 10 else {})
                for each in map(row, points)]

    designs = phase_two(models, Limits(0.5), evaluate=evaluate)
    chosen, uniform = (designs.rows[at] for at in (designs.chosen, designs.uniform))
    assert chosen["weight_bits"] != 10
    assert all(chosen[name] <= uniform[name] for name in ("cycles_per_step", "multipliers", "weight_memory_bits"))
    assert any(designs.rows[at]["weight_bits"] == 10 for at in designs.runners_up)


def test_a_design_whose_logic_does_not_fit_gives_way_to_the_next(models):
    first = phase_two(models, Limits(0.5), evaluate=evaluator())
    kind = tuple(first.rows[first.chosen][name] for name in ("weight_bits", "activation_bits"))
    second = phase_two(models, Limits(0.5), evaluate=evaluator(refused=[kind]))
    assert tuple(second.rows[second.chosen][name] for name in ("weight_bits", "activation_bits")) != kind
    assert first.failed == "" and second.failed == "It needs too many look-up tables"
    assert first.chosen not in second.runners_up


def test_designs_that_cannot_be_generated_end_it(models):
    """31 were tried, 20 s each; documented are six. The same reason three times in a row is enough."""
    tried = []

    def evaluate(points, measure="plan", deadline=None, *, other=lambda turn: "It needs too many look-up tables"):
        if measure == "plan":
            return [row(point) for point in points]
        tried.extend(points)
        return [{"reason": other(len(tried)), "code": 3}]

    with pytest.raises(ToolError, match=r"^Some design must be generated, but the best 3 of \d\d cannot: It needs too "
                                        r"many look-up tables \(3 times\)$"):
        phase_two(models, Limits(0.5), evaluate=evaluate)
    assert len(tried) == 3
    tried.clear()
    with pytest.raises(ToolError, match=r"the best 6 of \d\d cannot: It needs too many: 1; It needs too many: 2; "):
        phase_two(models, Limits(0.5), evaluate=partial(evaluate, other=lambda turn: f"It needs too many: {turn}"))
    assert len(tried) == 6


def test_a_design_that_would_crowd_the_device_gives_way_where_another_does_not(models):
    """Its logic, as it was counted in what was generated, is an estimate: it may fit, but the other one will."""

    def evaluate(points, measure="plan", deadline=None, *, full=(14, 16)):
        return [each | ({"luts": 25000 if each["activation_bits"] in full else 20000, "flip_flops": 10000}
                        if measure == "verilog" else {}) for each in map(row, points)]

    first = phase_two(models, Limits(2), evaluate=evaluator())
    assert first.rows[first.chosen]["activation_bits"] == 16
    second = phase_two(models, Limits(2), evaluate=evaluate)
    assert second.rows[second.chosen]["activation_bits"] == 12
    third = phase_two(models, Limits(2), evaluate=partial(evaluate, full=range(20)))
    assert third.chosen == first.chosen, "where all crowd it, the first one"


def test_limits_that_no_design_keeps(models):
    with pytest.raises(Refusal, match=r"Some design must keep all limits, but none of \d+ does; the nearest one, with "
                                      r"12 bits of weights, 16 of activations and 28 multipliers, takes \d+ cycles, "
                                      "and 10 are allowed; relax one of these limits"):
        phase_two(models, Limits(0.5, cycles=10), evaluate=evaluator())


def test_designs_for_which_there_is_no_time(models):
    """Those that were evaluated decide; wide words come first, since these keep the accuracy."""

    def evaluate(points, measure="plan", deadline=None, *, first=40):
        over = {"reason": "the time was over", "code": 2}
        return [row(point) if at < first else over for at, point in enumerate(points)]

    designs = phase_two(models, Limits(0.5), evaluate=evaluate)
    assert designs.rows[designs.chosen]["weight_bits"] == 10
    with pytest.raises(Refusal, match=r"^--hours must be enough for a design that keeps all limits, but the time was "
                                      r"over before 126 of 126 were evaluated; the same command goes on with them$"):
        phase_two(models, Limits(0.5), evaluate=partial(evaluate, first=0))


def test_designs_are_evaluated_in_their_share_and_generated_until_the_deadline(models):
    seen = {}
    phase_two(models, Limits(0.5), deadline=20.0, share=10.0, evaluate=lambda points, measure="plan", *, deadline: (
        seen.update({measure: deadline}) or evaluator()(points, measure)))
    assert seen == {"plan": 10.0, "verilog": 20.0}


def test_no_design_at_all(models):
    with pytest.raises(Refusal, match="Some design must fit, but none of 126 does: No room"):
        phase_two(models, Limits(0.5), evaluate=lambda points, **options: [{"reason": "No room"} for _ in points])
