import re

import pytest

from circulant.hw.plan import LayerPlan, issue_cycles, layer_multiplications, plan
from circulant.sim.circulant import multiplications
from circulant.sim.gru import Gru
from circulant.sim.linear import Linear
from circulant.sim.network import Network
from circulant.sim.refusal import Refusal
from tests.hw.golden import network, product


def chain(*layers, name="small"):
    return Network(name, layers[0].inputs, False, layers)


def linear(name, k, outputs, inputs, **formats):
    return Linear(name, inputs, outputs, product(-(-outputs // k), -(-inputs // k), k, **formats))


TWO = network(4, 24, 10, outputs=10, k_out=2)
BUDGETS = [*range(12, 60), 80, 120, 200, 500, 5000]


@pytest.mark.parametrize(("rows", "columns", "lanes", "cycles"), [
    (6, 4, 1, 24), (6, 4, 2, 12), (6, 4, 4, 8), (6, 4, 5, 10), (6, 4, 6, 6), (1, 1, 1, 1), (7, 1, 3, 9)])
def test_issue_cycles_are_the_columns_or_the_drain_for_each_group(rows, columns, lanes, cycles):
    assert issue_cycles(rows, columns, lanes) == cycles


def test_layer_multiplications():
    gru, out = TWO.layers
    assert layer_multiplications(gru) == (18 * 3 + 18 * 6) * multiplications(4) + 5 * 24
    assert layer_multiplications(out) == 5 * 12 * 2


@pytest.mark.parametrize("multipliers", BUDGETS)
def test_the_budget_is_respected_and_every_figure_is_that_of_the_plan(multipliers):
    plans = plan(TWO, multipliers)
    assert sum(p.multipliers for p in plans) <= multipliers
    gru, out = plans
    assert 4 % gru.elements == 0 == out.elements
    assert (gru.multipliers, out.multipliers) == (gru.lanes * 5 + 5 * gru.elements, out.lanes * 2)
    assert out.cycles == issue_cycles(5, 12, out.lanes)
    assert gru.cycles == max(issue_cycles(18, 3, gru.lanes) + issue_cycles(18, 6, gru.lanes), 24 // gru.elements)


def test_more_multipliers_are_never_slower():
    slowest = [max(p.cycles for p in plan(TWO, multipliers)) for multipliers in BUDGETS]
    assert slowest == sorted(slowest, reverse=True)
    assert slowest[0] > 4 * slowest[-1]


def test_the_smallest_and_the_greatest_plan():
    assert plan(TWO, 12) == [LayerPlan(1, 1, 10, 162), LayerPlan(1, 0, 2, 60)]
    gru, out = plan(TWO, 10 ** 6)
    assert (gru.lanes, out.lanes) == (6, 5), "more lanes would wait for the drain"
    assert gru.multipliers + out.multipliers == 45


def test_the_slowest_layer_grows_first():
    """Two equal layers but for their size: the large one gets what there is."""
    network = chain(linear("large", 4, 32, 32), linear("small", 4, 4, 32, input=product(1, 1, 4).output))
    assert [p.lanes for p in plan(network, 9 * 5)] == [8, 1]


@pytest.mark.parametrize("multipliers", [0, -3, 2.5, "64", None, True])
def test_a_budget_that_is_no_positive_integer_is_refused(multipliers):
    with pytest.raises(Refusal, match="^multipliers must be a positive integer, not " + re.escape(repr(multipliers))
                                      + "; give the budget of the device$"):
        plan(TWO, multipliers)


def test_a_budget_below_one_lane_per_layer_is_refused():
    with pytest.raises(Refusal, match=r"^Network 'small' needs at least 12 multipliers, one lane per layer, not 11; "
                                      r"raise hardware\.multipliers or choose a smaller block size$"):
        plan(TWO, 11)


def test_matrices_of_two_block_sizes_are_refused_with_all_their_layers():
    gru = TWO.layers[0]
    layers = [Gru(name, 10, 24, "sequence", product(36, 5, 2, input=gru.input_format, output=gru.pre_format),
                  gru.recurrent_product, gru.sigmoid, gru.tanh) for name in ("first", "second")]
    mixed = Network("mixed", 10, True, (layers[0],))
    object.__setattr__(mixed, "layers", tuple(layers))
    with pytest.raises(Refusal, match=r"^All matrices of a hardware layer must share a block size, but first has 2 and "
                                      r"4, second has 2 and 4; compress them with one$"):
        plan(mixed, 64)


def test_block_sizes_above_sixteen_are_refused():
    network = chain(linear("wide", 32, 32, 32), linear("wider", 64, 64, 32, input=product(1, 1, 4).output))
    with pytest.raises(Refusal, match=r"^Hardware block sizes must be 1, 2, 4, 8 or 16, but wide has 32, wider has 64; "
                                      r"compress with a smaller one$"):
        plan(network, 1000)
