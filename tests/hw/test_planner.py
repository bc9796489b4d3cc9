import re

import numpy as np
import pytest

from circulant.hw.array.layer_programs import IN_TURN, layer_program, matrices
from circulant.hw.array.program import ArrayShape
from circulant.hw.design import layer_entry
from circulant.hw.kinds.linear import LinearLayer, vector_cycles
from circulant.hw.kinds.recurrent import RecurrentLayer
from circulant.hw.plan.layer_plan import LayerPlan
from circulant.hw.plan.step_cost import vector_limit
from circulant.hw.planner import each_step, layer_multiplications, plan
from circulant.hw.top import Top
from circulant.hw.unit import unelaborated
from circulant.sim.arith.circulant import multiplications
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.over_time import OverTime
from circulant.sim.refusal import Refusal
from tests.hw.golden import blocks, network, numbers, product, recurrent
from tests.hw.simulate import cycles


def chain(*layers, name="small"):
    return Network.chain(name, layers[0].inputs, layers[0].kind != "linear", layers)


def linear(name, k, outputs, inputs, **formats):
    return Linear(name, inputs, outputs, product(-(-outputs // k), -(-inputs // k), k, **formats))


TWO = network(4, 24, 10, outputs=10, k_out=2)
BUDGETS = [*range(7, 30), 40, 50, 80, 120, 200, 500, 5000]


def test_layer_multiplications():
    gru, out = TWO.layers
    assert layer_multiplications(gru) == (18 * 3 + 18 * 6) * multiplications(4) + 5 * 24
    assert layer_multiplications(out) == 5 * 12 * 2
    lstm = recurrent("lstm", k=4, inputs=8, hidden=12, projection=8, peephole=True)
    assert layer_multiplications(lstm) == (12 * 2 + 12 * 2 + 2 * 3) * multiplications(4) + 11 * 12


@pytest.mark.parametrize("mode", ["max", "mean"])
def test_a_network_that_begins_with_a_reduction_over_time_takes_a_value_in_each_cycle(mode):
    form = Format(12, 6)
    pooled = Network.chain("pooled", 5, True, (OverTime("pool", 5, mode, form, form),))
    plans = plan(pooled, 10)
    with unelaborated():
        assert Top(pooled, plans).input_block == 1
    assert plans[0].cycles == 5, "each beat of the input takes a cycle"
    behind = network(4, 24, 10, returns="sequence")
    form = behind.output_format
    found = plan(Network.chain("behind", 10, True, (*behind.layers, OverTime("pool", 24, mode, form, form))), 40)
    assert found[-1].cycles == 1, "blocks of the layer before"


def test_which_layers_work_at_each_step():
    assert each_step(TWO) == [True, False]
    assert each_step(network(4, 24, 10, outputs=10, k_out=2, returns="sequence")) == [True, True]
    assert each_step(chain(linear("first", 4, 20, 28))) == [False]


@pytest.mark.parametrize(("columns", "chains", "fold", "wanted"), [
    (1, 1, 1, "multipliers"), (2, 1, 1, "multipliers"), (8, 1, 1, "inverse FFTs"), (8, 4, 1, "input or output"),
    (8, 1, 4, "multipliers")])
def test_what_limits_a_linear_layer(columns, chains, fold, wanted):
    """16 rows of eight blocks, four at a time: their drain takes 4 / chains cycles, a group of columns ``fold``."""
    layer, shape = linear("first", 4, 64, 32), ArrayShape(4, columns, chains, fold)
    assert layer.product.weights.shape == (16, 8, 4)
    least = vector_cycles(layer, shape)
    assert vector_limit(matrices(layer), shape, least, 0, least).partition(":")[0] == wanted
    assert vector_limit(matrices(layer), shape, least + 0.5, 0, least).startswith("latency: banks hold two vectors")


@pytest.mark.parametrize(("rows", "columns", "fold", "floor", "wanted"), [
    (4, 1, 4, 128, "the array works in every cycle"),
    (4, 1, 4, 127, "the array works in every cycle, the multipliers of transforms and activations do not"),
    (3, 1, 4, 100, "the array has work in every cycle, in 89% of its lanes: passes are not full"),
    (4, 3, 4, 40, "the array has work in every cycle, in 89% of its lanes: passes are not full"),
    (4, 5, 4, 16, "the array has work in every cycle, in 80% of its lanes: passes are not full")])
def test_an_array_above_its_floor_says_what_is_idle(rows, columns, fold, floor, wanted):
    layer, shape = linear("first", 4, 64, 32), ArrayShape(rows, columns, 1, fold)
    cycles = -(-16 // rows) * -(-8 // columns) * fold
    assert (cycles > floor) == (wanted != "the array works in every cycle")
    assert vector_limit(matrices(layer), shape, cycles, floor, cycles) == f"multipliers: {wanted}"


@pytest.mark.parametrize("multipliers", [30, 64, 130, 300])
@pytest.mark.parametrize("whole", [TWO, chain(linear("first", 4, 20, 28)), chain(linear("first", 8, 44, 20))])
def test_no_layer_above_its_floor_says_that_its_array_works_in_every_cycle(whole, multipliers):
    for layer, each in zip(whole.layers, plan(whole, multipliers), strict=True):
        entry = layer_entry(layer, each)
        assert entry["limit"] != "multipliers: the array works in every cycle" or entry["cycles"] <= entry["floor"]


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("multipliers", BUDGETS)
def test_the_budget_is_respected_and_every_figure_is_that_of_the_plan(multipliers, streams):
    plans = plan(TWO, multipliers, streams=streams)
    assert sum(p.multipliers for p in plans) <= multipliers
    gru, out = plans
    assert 4 % gru.elements == 0 == out.elements
    assert gru.multipliers == gru.lanes * -(-5 // gru.shape.fold) + 5 * gru.elements
    assert out.multipliers == out.lanes * -(-2 // out.shape.fold)
    assert {p.streams for p in plans} == {streams}
    assert gru.cycles >= -(-layer_multiplications(TWO.layers[0]) // gru.multipliers)


def test_more_multipliers_are_hardly_ever_slower():
    """Which layer grows is decided by estimates: the exact cycles may be some percent more than of a smaller."""
    slowest = [max(p.cycles for p in plan(TWO, multipliers)) for multipliers in BUDGETS]
    assert all(cycles <= 1.03 * min(slowest[:n + 1]) for n, cycles in enumerate(slowest))
    assert slowest[0] > 20 * slowest[-1]


def test_more_multipliers_are_never_slower_where_the_estimate_is_exact():
    network = chain(linear("first", 4, 20, 28), linear("second", 2, 6, 20, input=product(1, 1, 4).output))
    slowest = [max(p.cycles for p in plan(network, multipliers)) for multipliers in range(2, 120)]
    assert slowest == sorted(slowest, reverse=True)


def test_the_smallest_plan_is_one_lane_that_makes_a_product_per_cycle():
    gru, out = plan(TWO, 7)
    assert (gru.lanes, gru.elements, gru.multipliers) == (1, 1, 6)
    assert (out.shape, out.multipliers, out.cycles) == (ArrayShape(1, 1, 1, 2), 1, 120)
    assert gru.shape.fold >= 5


def test_the_slowest_layer_grows_first():
    """Two equal layers but for their size: the large one gets what there is."""
    network = chain(linear("large", 4, 32, 32), linear("small", 4, 4, 32, input=product(1, 1, 4).output))
    assert [p.lanes for p in plan(network, 9 * 5)] == [8, 1]


def test_of_equally_fast_arrays_the_cheaper_one_is_taken():
    """However large the budget: no chain, lane or element that saves no cycle."""
    layer = TWO.layers[0]
    (chosen,) = plan(chain(layer), 10 ** 6)
    for candidate in (plan(chain(layer), chosen.multipliers)[0], plan(chain(layer), 10 ** 7)[0]):
        assert candidate == chosen


LAYERS = {
    "a GRU": lambda: recurrent("after", k=2, inputs=5, hidden=6, activation_bits=8),
    "a GRU that resets before": lambda: recurrent("before", k=2, inputs=5, hidden=6, activation_bits=8),
    "an LSTM": lambda: recurrent("lstm", k=4, inputs=6, hidden=7, peephole=True, activation_bits=8),
    "a projection": lambda: recurrent("lstm", k=2, inputs=5, hidden=8, projection=3, activation_bits=8),
}


@pytest.mark.parametrize("multipliers", [10, 25, 90])
@pytest.mark.parametrize("name", LAYERS)
def test_the_cycles_of_a_plan_are_those_of_the_simulated_hardware(name, multipliers):
    layer = LAYERS[name]()
    (chosen,) = plan(chain(layer), max(multipliers, 12))
    dut = RecurrentLayer(layer, program=layer_program(layer, chosen.shape, chosen.spacing), elements=chosen.elements)
    x = numbers(layer.input_format, 5, layer.inputs)
    _, went = cycles(dut, blocks([x], layer.gates.block_size), quiet=chosen.cycles + 100)
    ends = np.array(went).reshape(5, -1)[:, -1]
    assert np.diff(ends)[1:].tolist() == [chosen.cycles] * 3


@pytest.mark.parametrize("multipliers", [1, 2, 3, 5])
def test_the_cycles_of_a_linear_layer_are_those_of_the_simulated_hardware(multipliers):
    """While a third of the way through it takes no longer, and its six blocks come in no more cycles."""
    layer = linear("linear", 4, 12, 24)
    (chosen,) = plan(chain(layer), multipliers)
    dut = LinearLayer(layer, program=layer_program(layer, chosen.shape, chosen.spacing))
    _, went = cycles(dut, blocks([numbers(layer.input_format, 6, 24)], 4), quiet=200)
    assert chosen.cycles >= 16
    assert np.diff(went[::3])[1:].tolist() == [chosen.cycles] * 4


@pytest.mark.parametrize("value", [0, -3, 2.5, "64", None, True])
def test_what_is_no_positive_integer_is_refused(value):
    shown = re.escape(repr(value))
    with pytest.raises(Refusal, match=f"^multipliers must be a positive integer, not {shown}; give the budget of the "
                                      "device$"):
        plan(TWO, value)
    with pytest.raises(Refusal, match=f"^streams must be a positive integer, not {shown}; give 1 for the least "
                                      "latency$"):
        plan(TWO, 64, streams=value)


def test_a_budget_below_one_lane_per_layer_is_refused():
    with pytest.raises(Refusal, match=r"^Network 'small' needs at least 7 multipliers, the smallest lane per layer, "
                                      r"not 6; raise hardware\.multipliers or choose a smaller block size$"):
        plan(TWO, 6)


@pytest.mark.parametrize("k", [32, 64])
def test_every_block_size_of_golden_has_hardware(k):
    (chosen,) = plan(chain(linear("wide", k, k, 2 * k)), 10 ** 4)
    wanted = LayerPlan(ArrayShape(1, 1, 1), 0, multiplications(k), chosen.cycles, IN_TURN)
    assert chosen == wanted and chosen.cycles >= 2, "blocks come one by one"
