"""Which layers share an array, what it costs, and what cannot be had."""
import re
from dataclasses import replace
from functools import cache

import pytest

from circulant.hw import generate
from circulant.hw.array.schedules.adjacent import Adjacent
from circulant.hw.array.schedules.split_rows import SplitShape
from circulant.hw.emit.inventory import Inventory
from circulant.hw.plan.latency import sample_latency
from circulant.hw.plan.shared.candidates import candidates, least_shared
from circulant.hw.plan.shared.cost import shared_cost
from circulant.hw.plan.shared.groups import Group, shareable
from circulant.hw.planner import alternatives, plan
from circulant.hw.resources import figures, inventory
from circulant.hw.stream.link import values
from circulant.hw.top import Top
from circulant.hw.unit import unelaborated
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.network import Network
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.over_time import OverTime
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from tests.hw.golden import FORMATS, network, product, recurrent
from tests.random_networks import Random
from tests.sim.samples import rebuilt

TWO, WIDER = network(4, 12, 8, outputs=8), network(4, 32, 8, outputs=8)

GRU, OUT = TWO.layers

PROJECTED = recurrent("lstm", k=4, inputs=4, hidden=8, projection=4)


def test_one_array_serves_a_network_within_fewer_multipliers_than_an_array_each():
    least = least_shared(shareable(TWO, 1), 4)
    assert sum(each.multipliers for each in plan(TWO, 8, objective="area")) <= 8
    assert least == 6, "five of the pointwise unit, one of the array"
    with pytest.raises(Refusal, match=re.escape(
            "needs at least 7 multipliers, the smallest lane per layer, not 6; raise hardware.multipliers or choose a "
            "smaller block size, or set hardware.objective to 'area': layers that share an array need 6")):
        plan(TWO, 6)
    with pytest.raises(Refusal, match="One array for all layers needs at least 6 multipliers, not 5"):
        plan(TWO, 5, objective="area")


def test_more_multipliers_make_a_shared_array_faster():
    few, many = (plan(TWO, budget, objective="area") for budget in (12, 60))
    assert many[0].cycles < few[0].cycles
    assert many[0].sharing is many[1].sharing and many[0].shape == many[1].shape
    assert sum(each.multipliers for each in many) <= 60


def both(*sizes, twiddle_bits=(16, 16)):
    """A network of a bidirectional layer, whose directions have these block sizes."""
    layers = [replace(recurrent("lstm", k=k, inputs=4, hidden=4, twiddle_bits=bits), name=f"both.{way}")
              for k, bits, way in zip(sizes, twiddle_bits, ("forward", "backward"), strict=True)]
    return Network.chain("both", 4, True, (Bidirectional("both", *layers),))


CANNOT = "hardware.objective must be 'throughput' or 'auto' where layers cannot share an array, but "


@pytest.mark.parametrize(("made", "options", "rule"), [
    (rebuilt(TWO, replace(TWO.layers[0], returns="sequence"), OverTime(
        "most", 12, "max", TWO.layers[0].output_format, TWO.layers[0].output_format)), {"objective": "area"},
     f"{CANNOT}layer 'most' is of the kind 'over_time', neither recurrent nor fully connected"),
    (Random(1).network([Random(1).gru("gru", 4, 6, 2, "sequence"), float_model.Residual(
        "sum", 6, grid=None, body=(Random(2).linear("within", 6, 6, 2),), shortcut=(), relu=False)], 4, sequence=True),
     {"objective": "area"}, f"{CANNOT}layer 'sum' is of the kind 'residual', neither recurrent nor fully connected"),
    (both(4, 2), {"objective": "area"}, f"{CANNOT}the directions of layer 'both' have two block sizes"),
    (both(4, 4, twiddle_bits=(16, 12)), {"objective": "area"},
     f"{CANNOT}the directions of layer 'both' have two numbers of twiddle bits"),
    (Network.chain("one", 4, True, (replace(PROJECTED, projection=replace(PROJECTED.projection, twiddle_bits=12)),)),
     {},
     f"{CANNOT}the matrices of layer 'layer' have different numbers of twiddle bits"),
    (both(4, 4), {"objective": "area", "streams": 2}, "Sequences can only be interleaved if all layers run forward, "
     "but layer 'both' is bidirectional; set hardware.streams to 1, not 2"),
    (both(4, 4), {}, "hardware.objective must not be 'latency' where a layer is bidirectional, as network 'both' has "
     "no result before a sequence ends; choose 'throughput', 'auto' or 'area'")])
def test_layers_that_cannot_share_are_refused(made, options, rule):
    with pytest.raises(Refusal, match=re.escape(rule)):
        plan(made, 60, **({"objective": "latency"} | options))


def test_both_directions_share_an_array_in_turn():
    """Their pace is that of the longest sequences, which is one of both; there is no latency of a sample."""
    made = both(4, 4)
    found = alternatives(made, 40, objective="area")
    (pair,) = found[0].plans
    assert pair.forward.sharing is pair.backward.sharing
    assert (pair.forward.sharing.pairs, pair.forward.sharing.in_turn) == ((0,), True)
    assert pair.multipliers <= 40 and pair.cycles == pair.forward.cycles == pair.backward.cycles
    assert [each.latency for each in found] == [None, None]
    design = generate(made, multipliers=40, objective="area").manifest
    entry = design["layers"][0]
    assert entry["floor"] == entry["forward"]["floor"] + entry["backward"]["floor"] <= entry["cycles"]
    assert [each.get("estimate") for each in design["alternatives"]] == [None, None]
    assert entry["forward"]["limit"] == "sharing: one array serves 2 layers in turn"


def test_interleaved_streams_share_an_array():
    """Others fill the wait for a state, so that a step takes less than that of a single stream."""
    one, three = (plan(TWO, 60, objective="area", streams=streams) for streams in (1, 3))
    assert three[0].sharing.streams == 3 and three[0].streams == 3
    assert three[0].cycles < one[0].cycles


def test_a_reloadable_design_takes_as_long_as_another_one():
    """Products with the state before are issued in both before the sample comes."""
    fixed, loadable = (generate(TWO, multipliers=24, objective="latency", reloadable=reloadable).manifest
                       for reloadable in (False, True))
    assert "configuration" in loadable
    for figure in ("repeats", "latency_spaced", "latency_contiguous"):
        assert loadable[figure] == fixed[figure], figure


def test_an_unknown_objective_is_refused():
    layer = recurrent("lstm", k=4, inputs=4, hidden=4)
    rule = "hardware.objective must be one of throughput, auto, latency, area, not 'speed'"
    with pytest.raises(Refusal, match=re.escape(rule)):
        plan(Network.chain("one", 4, True, (layer,)), 60, objective="speed")


def test_the_better_engines_are_chosen_of_an_array_for_each_layer_and_one_for_all():
    few, many = (alternatives(TWO, budget, objective="auto") for budget in (16, 400))
    for found in few, many:
        weighed = [each.period * each.latency for each in found]
        assert weighed == sorted(weighed)
        assert {each.engines for each in found} == {"an array for each layer", "one array for all layers"}
        assert all(each.multipliers == sum(plan.multipliers for plan in each.plans) for each in found)
    assert few[0].period > many[0].period
    assert [each.reason for each in few] == ["its step is shorter", ""]
    assert few[0].latency < few[1].latency
    soonest = alternatives(TWO, 400, objective="latency")
    assert soonest[0].latency == min(each.latency for each in soonest) <= many[0].latency


def late(plans):
    made = TWO if len(plans) == 2 and plans[0].shape.levels == 4 else WIDER
    return figures(made, plans, max_steps=1, reloadable=False).latency_spaced


@cache
def wider(objective, latency=0):
    return plan(WIDER, 36, objective=objective, levels=6, latency=latency)


def test_a_latency_is_asked_for_beside_an_objective():
    soonest, usual, fastest = (late(wider(objective)) for objective in ("latency", "auto", "area"))
    assert soonest < usual < fastest, "else the limits below say nothing"
    periods = []
    for limit in (soonest, usual - 1, fastest - 1, fastest):
        plans = wider("area", limit)
        assert late(plans) <= limit and sum(each.multipliers for each in plans) <= 36
        periods.append(plans[0].cycles)
    assert periods == sorted(periods, reverse=True) and len(set(periods)) > 2, "each cycle more is there to be used"
    assert periods[-1] == wider("area")[0].cycles
    assert late(wider("auto", usual - 1)) < usual and late(wider("latency", fastest)) == soonest
    made = generate(WIDER, multipliers=36, levels=6, objective="area", latency=soonest).manifest
    assert (made["latency_asked"], made["latency_spaced"]) == (soonest, soonest)


def test_a_latency_decides_between_an_array_for_each_layer_and_one_for_all():
    layers = [Linear(f"linear{n}", 64, 64, product(16, 16, 4, output=FORMATS["input"])) for n in range(3)]
    made = Network.chain("dense", 64, False, tuple(layers))
    free, one = alternatives(made, 320, objective="auto")
    bound, other = alternatives(made, 320, objective="auto", latency=one.latency)
    assert (bound.engines, bound.period, bound.latency) == (one.engines, one.period, one.latency)
    assert bound.reason == f"only so does a sample take at most {one.latency} cycles"
    assert other.engines == free.engines == "an array for each layer" and free.latency > one.latency


@pytest.mark.parametrize(("objective", "more"), [("auto", ""), ("throughput", " or objective 'latency'")])
def test_a_latency_that_no_plan_has_is_refused_with_the_nearest(objective, more):
    nearest = late(wider("latency" if objective == "auto" else objective))
    with pytest.raises(Refusal, match=f"must take at most {nearest - 1} cycles .hardware.latency., but the nearest "
                                      f"plan takes {nearest}, .* with [0-9]+ of 36 multipliers and a step of [0-9]+ "
                                      f"cycles; ask for {nearest}, or give more .*blocks a beat{more}$"):
        wider(objective, nearest - 1)
    assert late(wider(objective, nearest)) == nearest


def test_a_latency_that_is_not_planned_cannot_be_asked_for():
    with pytest.raises(Refusal, match=re.escape(
            "The latency of a sample is not planned of network 'both', so that hardware.latency must be 0, not 90")):
        plan(both(4, 4), 60, objective="area", latency=90)


def test_layers_that_cannot_share_keep_an_array_each_where_the_choice_is_free():
    layer = replace(PROJECTED, projection=replace(PROJECTED.projection, twiddle_bits=12))
    made = Network.chain("one", 4, True, (layer,))
    found, = alternatives(made, 60, objective="auto")
    assert found.engines == "an array for each layer"
    assert found.reason == ("layers cannot share one: the matrices of layer 'layer' have different numbers of twiddle "
                            "bits")
    assert [each.shape for each in found.plans] == [each.shape for each in plan(made, 60)]


def test_layers_of_one_block_size_in_a_row_share_an_array():
    made = network(4, 12, 8, outputs=8, k_out=2)
    found = alternatives(made, 60, objective="area")
    assert [each.engines for each in found] == ["an array for each group of layers with one block size and "
                                               "one width of twiddles, as lanes and transforms have one",
                                               "an array for each layer"]
    first, second = found[0].plans
    assert first.sharing is not second.sharing and found[0].multipliers <= 60
    assert first.cycles == second.cycles == found[0].period == shared_cost(
        [first.sharing, second.sharing], [first.elements, second.elements]).period
    with pytest.raises(Refusal, match="An array for each group of layers that can share one needs at least 7 "
                                      "multipliers"):
        plan(made, 6, objective="area")


def test_layers_of_different_twiddle_bits_have_arrays_of_their_own():
    made = rebuilt(TWO, GRU, replace(OUT, product=replace(OUT.product, twiddle_bits=12)))
    assert [group.layers for group in shareable(made, 1)] == [(made.layers[0],), (made.layers[1],)]


def test_a_budget_below_an_array_for_each_layer_leaves_one_for_all():
    found, = alternatives(TWO, 6, objective="auto")
    assert (found.engines, found.multipliers) == ("one array for all layers", 6)
    assert found.reason == "an array for each layer needs at least 7 multipliers"


def test_the_latency_of_an_alternative_goes_through_what_stands_behind_the_arrays():
    """Of layers of two block sizes, and with the choice of the largest output."""
    for made in (network(4, 12, 8, outputs=8, k_out=2), TWO.with_argmax()):
        for each in alternatives(made, 60, objective="latency"):
            with unelaborated():
                blocks = [(values(unit.i), values(unit.o)) for unit in Top(made, each.plans).units]
            assert each.latency == sample_latency(made, each.plans, blocks)


def test_the_candidate_of_a_gru_alone_shares_lanes_where_that_saves_issues():
    """What the plan foresees is in the design, and no step is below its floor."""
    layer = recurrent("after", k=2, inputs=8, hidden=48)
    made = Network.chain("one", 8, True, (layer,))
    found, own = alternatives(made, 50, levels=12, objective="area")
    chosen, = found.plans
    assert chosen.shape == SplitShape(4, 7, 4, levels=12) and chosen.sharing.schedule is Adjacent
    assert found.period == chosen.cycles == 97 < own.period
    design = generate(made, multipliers=50, levels=12, objective="area")
    entry, counted = design.manifest["layers"][0], Inventory.from_json(design.manifest["resources"])
    assert (entry["rows"], entry["columns"], design.multipliers) == (3, 7, 3 * 7 * 2 + 5)
    assert entry["floor"] == -(-(3 * 24 * (4 + 24) * 2 + 48 * 5) // 47) <= entry["cycles"]
    foreseen = inventory(made, design.plans)
    assert (foreseen.products, foreseen.memories) == (counted.products, counted.memories)
    groups = Group((layer,)), Group((layer,), streams=2), Group((layer, layer))
    assert [any(bool(each.shape.shared) for each in candidates(group, 12)) for group in groups] == [True, False, True]
