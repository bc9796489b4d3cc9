import re

import pytest

from circulant.hw.plan import layer_multiplications, plan
from circulant.sim.circulant import multiplications
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
    assert (gru.multipliers, out.multipliers) == (gru.shape.multipliers(4) + 5 * gru.elements, out.shape.multipliers(2))


def test_more_multipliers_are_faster():
    slowest = [max(p.cycles for p in plan(TWO, multipliers)) for multipliers in (12, 40, 200, 1000)]
    assert slowest == sorted(slowest, reverse=True)
    assert slowest[0] > 4 * slowest[-1]


def test_streams_fill_the_array():
    (one, _), (three, _) = (plan(TWO, 60, streams=streams) for streams in (1, 3))
    assert three.cycles < one.cycles
    assert three.streams == 3


@pytest.mark.parametrize("multipliers", [0, -3, 2.5, "64", None, True])
def test_a_budget_that_is_no_positive_integer_is_refused(multipliers):
    with pytest.raises(Refusal, match="^multipliers must be a positive integer, not " + re.escape(repr(multipliers))
                                      + "; give the budget of the device$"):
        plan(TWO, multipliers)


def test_a_budget_below_one_lane_per_layer_is_refused():
    with pytest.raises(Refusal, match=r"^Network 'small' needs at least 7 multipliers, the smallest lane per layer, "
                                      r"not 6; raise hardware\.multipliers or choose a smaller block size$"):
        plan(TWO, 6)
