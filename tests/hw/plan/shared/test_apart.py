"""One array for fully connected layers between which others lie: results are golden's, and samples take what is planned
for them."""
import numpy as np
import pytest

from circulant.hw.array.plans import ValuesPlan, sharings
from circulant.hw.plan.dataflow import latencies
from circulant.hw.plan.shared.apart import apart_plans
from circulant.hw.plan.sizes import Sizes
from circulant.hw.planner import plan
from tests.hw.golden import blocks
from tests.hw.plan import test_latency
from tests.hw.simulate import stream
from tests.hw.test_beats import network
from tests.hw.test_top import Beats

NETWORKS = {"tcn": lambda: network("tcn", 16), "causal": lambda: network("causal", 16, 3, inputs=16),
            "wavenet": lambda: network("wavenet", 16, 2)}


def made(name):
    found = NETWORKS[name]()
    each = plan(found, 300, levels=6)
    return found, list(apart_plans(found, each, 300, levels=6, beats=8))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_sample_takes_what_is_planned_and_results_are_those_of_golden(name, monkeypatch):
    monkeypatch.setattr(test_latency, "SILENCE", 600)
    found, ways = made(name)
    plans = ways[0]
    sharing, = sharings(plans)
    assert sharing.apart and len(sharing.layers) > 2 and sharing.shape.gives > 1
    assert sum(each.multipliers for each in plans) <= 300
    dut, form = Beats(found, 0, plans), found.input_format
    late = latencies(found, plans, dut.top.blocks)
    x = np.random.default_rng(1).integers(form.lo, form.hi + 1, (3, found.flow.size))
    _, *others = test_latency.closed_loop(dut, found, x)  # Behind a reset products with older taps come first.
    assert others == [late["latency_spaced"]] * 2 and late["latency_contiguous"] is None

    x = np.random.default_rng(2).integers(form.lo, form.hi + 1, (3, 4, found.flow.size))
    wanted = blocks([np.atleast_2d(found.run_integers(each[None])[0]) for each in x], dut.top.output_block)
    assert stream(dut, blocks(list(x), dut.top.input_block), stall_i=0.3, stall_o=0.3, quiet=700) == wanted


def test_the_best_estimate_comes_first_and_a_single_layer_has_none():
    found, ways = made("tcn")
    sizes = Sizes(found)
    late = [latencies(found, plans, sizes(plans))["latency_spaced"] for plans in ways]
    assert late[0] <= 1.1 * min(late)
    alone = network("perceptron", 1, 16, inputs=16)
    assert not list(apart_plans(alone, plan(alone, 300, levels=6), 300, levels=6, beats=8))


def test_layers_beside_the_array_take_as_many_values_as_it_gives_if_it_leaves_so_much():
    found = NETWORKS["wavenet"]()
    slow, seen = plan(found, 130, levels=6), set()
    for plans in apart_plans(found, slow, 300, levels=6, beats=8):
        (sharing,), beside = sharings(plans), [each for each in plans if isinstance(each, ValuesPlan)]
        given, least = min(16, 4 * sharing.shape.gives), min(each.elements for each in beside)
        assert sum(each.multipliers for each in plans) <= 300
        assert least >= given or sum(each.multipliers for each in plans) + 6 * least > 300
        seen |= {(each.elements, least) for each in slow if isinstance(each, ValuesPlan)}
    assert all(before < least for before, least in seen)
