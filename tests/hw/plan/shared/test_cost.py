"""Random stacks of layers that share an array equal golden, and take the cycles that their plan predicts."""
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from circulant.hw.array.plans import LayerPlan, Sharing
from circulant.hw.array.program import ArrayShape
from circulant.hw.plan.ladders import layer_entry
from circulant.hw.plan.latency import sample_latency
from circulant.hw.plan.shared.arrays import _steady
from circulant.hw.plan.shared.cost import (
    end_latency,
    loop_latency,
    period,
    periods,
    sample_results,
    settled,
    shared_cost,
    taken_steps,
)
from circulant.hw.plan.shared.play import Play
from circulant.hw.planner import alternatives, plan
from circulant.hw.stream.link import values
from circulant.hw.top import Top
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from tests.hw.golden import recurrent
from tests.hw.plan.shared.drawn_stacks import (
    COUNT,
    FAST,
    PLAYED,
    assert_as_predicted,
    cost,
    drawn_stack,
    groups,
    layer,
    plans_of,
    play,
    stack,
    steps_of,
)
from tests.hw.played import step_cycles


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.soak)
                                       for seed in (0, 1, 2, *range(4, 10)))])
def test_groups_of_layers_with_an_array_each_equal_golden_and_take_the_predicted_cycles(seed):
    network, plans = groups(seed)
    assert_as_predicted(network, plans, seed)


@pytest.mark.parametrize("seed", [*range(FAST), *(pytest.param(seed, marks=pytest.mark.soak)
                                                 for seed in range(FAST, COUNT))])
def test_a_random_stack_equals_golden(seed):
    network, plans, stall = stack(seed)
    form = network.input_format
    x = np.random.default_rng(seed).integers(form.lo, form.hi + 1, (1, 4, network.flow.size))
    found, _, _ = play(network, Top(network, plans), x[0], stall=stall)
    assert (found == network.run_integers(x)[0]).all()


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(FAST, COUNT))])
def test_a_random_stack_takes_the_predicted_cycles(seed):
    network, plans, _ = stack(seed)
    top, predicted = Top(network, plans), cost(network, plans)
    steps = steps_of(predicted, PLAYED)
    x = np.random.default_rng(seed).integers(-99, 99, (len(steps) + 1, network.flow.size))
    _, came, _ = play(network, top, x)
    assert np.diff(came).tolist() == steps
    _, came, went = play(network, top, x[:3], silence=700)
    assert [late - early for early, late in zip(came, went, strict=True)] == [predicted.latency] * 3
    blocks = [(values(unit.i), values(unit.o)) for unit in top.units]
    assert sample_latency(network, plans, blocks) == predicted.latency


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak)
                                       for seed in range(COUNT) if seed != 1)])
def test_a_random_stack_of_interleaved_streams_equals_golden_and_takes_the_predicted_cycles(seed):
    """Sequences of some steps each, one after the other in every stream."""
    streams = 2 + seed % 3
    network, plans, stall = stack(seed, streams)
    top, form = Top(network, plans), network.input_format
    x = np.random.default_rng(seed).integers(form.lo, form.hi + 1, (2, 3, streams, network.flow.size))
    found, _, _ = play(network, top, x.reshape(-1, network.flow.size), stall=stall, ends=3, streams=streams)
    wanted = network.run_integers(x.swapaxes(1, 2).reshape(2 * streams, 3, -1))
    assert (found.reshape(2, 3, streams, -1).swapaxes(1, 2) == wanted.reshape(2, streams, 3, -1)).all()
    predicted = cost(network, plans)
    steps = steps_of(predicted, PLAYED)
    x = np.random.default_rng(seed).integers(-99, 99, (len(steps) + 1, network.flow.size))
    _, came, _ = play(network, top, x, ends=1 << 20)
    assert np.diff(came).tolist() == steps
    _, came, went = play(network, top, x[:3], silence=900, ends=1 << 20)
    assert [late - early for early, late in zip(came, went, strict=True)] == [predicted.latency] * 3


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.soak)
                                          for seed in range(COUNT) if seed not in (1, 2))])
def test_sequences_that_end_take_the_predicted_cycles(seed):
    streams = 1 + (seed % 3 if seed % 2 else 0)
    network, plans, _ = stack(seed, streams)
    top, arrays = Top(network, plans), list(dict.fromkeys(plan.sharing for plan in plans))
    x = np.random.default_rng(seed).integers(-99, 99, (PLAYED * streams, network.flow.size))
    for ends in (1, 2, 5):
        lasts = {n for n in range(len(x)) if (n // streams + 1) % ends == 0}
        _, came, _ = play(network, top, x, ends=ends, streams=streams)
        taken = taken_steps(arrays, [plan.elements for plan in plans], lasts)
        assert np.diff(came).tolist() == np.diff([cycle for cycle, _ in islice(taken, len(x))]).tolist()


def chain(inputs, *layers):
    """A quantized chain of layers, each a kind, a block size and outputs."""
    rng = np.random.default_rng(1)
    sizes = [inputs, *(outputs for _, _, outputs in layers)]
    made = tuple(layer(rng, n, kind, k=k, inputs=sizes[n], outputs=outputs)
                 for n, (kind, k, outputs) in enumerate(layers))
    return quantize(float_model.Model.chain("chain", inputs, True, made), rng.normal(0, 1, (2, 4, inputs)))


def paces(network, plans, lengths, *, over):
    """The mean cycles of the last steps of the longest of sequences that follow each other, as they are simulated."""
    streams, ends = plans[0].streams, np.cumsum(lengths)
    x = np.random.default_rng(2).integers(-99, 99, (ends[-1] * streams, network.flow.size))
    _, came, _ = play(network, Top(network, plans), x, ends=set(ends.tolist()), streams=streams)
    lasts = [end * streams - 1 for end, length in zip(ends, lengths, strict=True) if length == max(lengths)]
    return [(came[last] - came[last - over * streams]) / (over * streams) for last in lasts]


def test_the_planned_period_is_that_of_each_sequence_and_not_of_the_first_alone():
    """Where who is furthest behind goes first, two LSTMs take 45 cycles a step behind a reset, but in every second
    sequence 50: they go in turn, which takes 45 always."""
    network = chain(16, ("lstm", 8, 16), ("lstm", 8, 16))
    plans = plan(network, 400, levels=4, objective="latency")
    assert plans[0].repeats is not None, "exact"
    assert paces(network, plans, [12] * 4, over=4) == [plans[0].cycles] * 4 == [45] * 4
    other = replace(plans[0].sharing, in_turn=False)
    assert periods([other], [each.elements for each in plans]) == {45, 50}
    assert period([other], [each.elements for each in plans])[0] == 45, "behind a reset"
    _, cost = _steady(iter([[replace(each, sharing=other) for each in plans]]), "latency", steps=0)
    assert (cost.period, cost.repeats) == (50, None), "where no way has always the same, the greatest is an estimate"
    assert paces(network, [replace(each, sharing=other) for each in plans], [12] * 4, over=4) == [45, 50, 45, 50]


def test_a_period_that_varies_with_the_start_is_an_estimate_the_greatest():
    two, three = ((1, "a"), (3, "b"), (5, "b")), ((2, "c"), (5, "c"))
    assert settled([two], most=9) == (2, (2, 2), (2, 1))
    assert settled([two, three], most=9) == (3, (2, 2), None)
    assert settled([two, ((9, "d"), (11, "b"))], most=9) == (2, (2, 2), (2, 1))
    assert settled([((1, "a"), (3, "b"), (6, "a"), (9, "b"))], most=9) == (2.5, (2, 3), (1, 2))


@pytest.mark.soak
def test_a_period_that_depends_on_the_sequences_before_is_an_estimate_the_greatest_of_those_seen():
    network, asked = drawn_stack(25)
    (plans,) = (each.plans for each in alternatives(network, **asked) if each.plans[0].sharing is not None)
    arrays, elements = list(dict.fromkeys(each.sharing for each in plans)), [each.elements for each in plans]
    found = periods(arrays, elements)
    assert period(arrays, elements)[0] == 23.5 < plans[0].cycles == max(found) == 25
    assert {each.estimated for each in plans} == {True}, "no plan nearly as good has always the same"
    measured = paces(network, plans, [40, 1, 1, 40, 2, 2, 40, 3, 3, 40, 5, 5, 40], over=12)
    assert len(set(measured)) > 1 and max(measured) <= plans[0].cycles


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[pytest.mark.soak] * (n % 2)) for n in range(8)])
def test_cycles_without_an_event_are_gone_through_at_once(seed: int, monkeypatch: pytest.MonkeyPatch):
    """All costs are those of a play of cycle by cycle."""
    network, asked = drawn_stack(seed)
    plans = next(each.plans for each in alternatives(network, **asked) if each.plans[0].sharing is not None)
    arrays, elements = list(dict.fromkeys(each.sharing for each in plans)), [each.elements for each in plans]
    rest, passed = Play.skip, list[int]()

    def found() -> list[object]:
        return [period(arrays, elements), periods(arrays, elements), sample_results(arrays, elements),
                loop_latency(arrays, elements, lambda given: given[-1]),
                end_latency(arrays, elements, lambda given: given[-1])]

    monkeypatch.setattr(Play, "skip", lambda *given: passed.append(rest(*given)) or passed[-1])
    at_once = found()
    monkeypatch.setattr(Play, "skip", lambda *given: 0)
    assert at_once == found()
    assert sum(passed) > 0


def test_a_step_may_take_more_where_a_sample_takes_much_less():
    """Three layers behind each other: the product of period and latency decides."""
    found = alternatives(chain(16, *[("lstm", 8, 64)] * 3), 200, objective="auto", levels=6)
    one, each = found
    assert (one.engines, each.engines) == ("one array for all layers", "an array for each layer")
    assert one.period > each.period and one.period * one.latency < each.period * each.latency
    assert one.reason == (f"its step takes {one.period / each.period - 1:.0%} more, and a sample "
                          f"{1 - one.latency / each.latency:.0%} less")


def test_a_reloadable_design_takes_the_predicted_cycles():
    """Products with a state wait for no input there, either."""
    network = chain(12, ("after", 8, 16), ("linear", 8, 12), ("before", 8, 8))
    assert_as_predicted(network, plan(network, 100, objective="latency", levels=6), 1, reloadable=True)


@pytest.mark.parametrize("objective", ["auto", "latency", "area"])
def test_a_dense_last_layer_has_an_array_of_its_own_beside_the_shared_one(objective):
    """It takes values side by side, as many as its array, and all cycles are as predicted."""
    network = chain(12, ("after", 8, 16), ("after", 8, 16), ("linear", 1, 3))
    found = next(each for each in alternatives(network, 120, objective=objective, levels=6)
                 if each.plans[0].sharing is not None)
    first, second, dense = found.plans
    assert first.sharing is second.sharing is not dense.sharing and dense.sharing.layers == (network.stages[2],)
    assert found.multipliers == sum(each.shape.multipliers(k) for each, k in ((first, 8), (dense, 1))) + sum(
        each.elements for each in (first, second)) * 5 <= 120
    if objective == "auto":
        top, _ = assert_as_predicted(network, found.plans, 1)
        assert top.units[2].i.payload.data.shape().length > 1


@pytest.mark.parametrize(("inputs", "kind", "levels"), [(4, "lstm", 4), (13, "after", 6)])
def test_no_objective_has_a_lower_latency_than_that_for_it(inputs, kind, levels):
    lowest, other = (min(each.latency for each in alternatives(
        chain(inputs, (kind, 8, 32)), 100, objective=objective, levels=levels)) for objective in ("latency", "auto"))
    assert lowest <= other


def test_a_period_is_the_one_that_stays():
    """By the rule of old, lengths of steps that repeat over a turn, one array takes 21 cycles, less than an array each
    with 22. But from its 11th step on it takes 23."""
    network = chain(12, ("after", 4, 8), ("lstm", 4, 12), ("after", 4, 4))
    best, other = sorted(alternatives(network, 300, objective="area", levels=9), key=lambda each: each.engines)
    assert (best.engines, best.period, other.engines, other.period) == (
        "an array for each layer", 22, "one array for all layers", 23)
    steps = shared_cost([other.plans[0].sharing], [each.elements for each in other.plans]).steps
    assert (set(steps[3:10]), steps[10:]) == ({21}, (24, 24, 23)), "a queue fills"
    x = np.random.default_rng(2).integers(-99, 99, (28, network.flow.size))
    for each in (best, other):
        _, _, went = play(network, Top(network, each.plans), x)
        assert (went[-9] - went[-15]) / 6 == each.period, "while more steps come"


def test_sequences_behind_each_other_begin_without_a_state():
    """The recurrent share of a first step, which may be issued before its input, counts as zero; that of later ones
    does not."""
    rng = np.random.default_rng(3)
    layers = (layer(rng, 0, "rnn", k=4, inputs=5, outputs=6), layer(rng, 1, "after", k=4, inputs=6, outputs=5))
    network = quantize(float_model.Model.chain("two", 5, True, layers), rng.normal(0, 1, (8, 6, 5)))
    top = Top(network, plans_of(network.stages, ArrayShape(2, 1, 1), 2, ((2, 3, 2),) * 2))
    form = network.input_format
    for steps, silence in ((1, 0), (2, 0), (3, 90)):
        x = rng.integers(form.lo, form.hi + 1, (4, steps, 5))
        found, _, _ = play(network, top, x.reshape(-1, 5), silence=silence, ends=steps)
        assert (found.reshape(4, steps, -1) == network.run_integers(x)).all()


@pytest.mark.parametrize("kind", ["lstm", "before"])
def test_a_layer_alone_takes_as_long_from_step_to_step_as_with_its_own_array_and_less_for_a_sample(kind):
    golden = recurrent(kind, k=4, inputs=16, hidden=12, projection=8 if kind == "lstm" else 0)
    plan = LayerPlan(shape := ArrayShape(4, 2, 2), 2, 0, 0, (2, 6, 2))
    alone = step_cycles(golden, plan.program(golden), 2)
    network = Network.chain("alone", 16, True, (golden,))
    shared = [LayerPlan(shape, 2, 0, 0, (2, 6, 2), sharing=Sharing((golden,), shape, ((2, 6, 2),)))]
    assert cost(network, shared).period == alone
    assert sample_latency(network, [plan], [(4, 4)]) > cost(network, shared).latency


@pytest.mark.parametrize("seed", [5, 9, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(300)
                                          if seed not in (5, 9))])
def test_the_planned_period_of_a_random_stack_is_that_of_300_more_steps(seed):
    """Behind those after which all repeats."""
    network, asked = drawn_stack(seed)
    for plans in (each.plans for each in alternatives(network, **asked) if each.plans[0].sharing is not None):
        if plans[0].repeats is None:  # An estimate: its period depends on the sequences before.
            assert seed not in (5, 9), "these hold behind every end of a sequence"
            continue
        (after, turn), groups = plans[0].repeats, list(dict.fromkeys(plan.sharing for plan in plans))
        played = taken_steps(groups, [plan.elements for plan in plans])
        late = np.array([cycle for cycle, _ in islice(played, after - 1, after + 300 + turn)])
        assert set((late[turn:] - late[:-turn]).tolist()) == {round(plans[0].cycles * turn)}
        assert {plan.cycles for plan in plans} == {plans[0].cycles}


@pytest.mark.parametrize("streams", [1, 2])
def test_a_step_that_waits_for_the_blocks_of_its_input_alone_takes_as_long_as_planned(streams):
    """Where those of the layer's own, which are written to the same memories, hold none of them up."""
    rng = np.random.default_rng(1)
    network = quantize(float_model.Model.chain("wide", 130, True, (layer(rng, 0, "lstm", k=2, inputs=130, outputs=6),)),
                       rng.normal(0, 1, (2, 4, 130)))
    plans = plan(network, 800, objective="throughput", streams=streams)
    _, came, _ = play(network, Top(network, plans), rng.integers(-9, 9, (16 * streams, 130)), ends=1 << 20,
                      streams=streams)
    assert (came[-1] - came[-9]) / 8 == plans[0].cycles == 65, "the fastest plan is held up in no step"
    assert layer_entry(network.stages[0], plans[0])["limit"].startswith("input: a block comes in every cycle")
