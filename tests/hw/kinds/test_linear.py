import numpy as np
import pytest

from circulant.hw.array.layer_programs import IN_TURN, layer_program, matrices_of
from circulant.hw.array.matrix import blocks_aside
from circulant.hw.array.plans import LayerPlan
from circulant.hw.array.program import ArrayShape
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.kinds.linear import LinearLayer, vector_cycles
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.shared.cost import period
from circulant.sim.kinds.linear import Linear
from circulant.sim.quantize.quantize import quantize
from tests.hw.golden import blocks, numbers, product
from tests.hw.simulate import cycles, stream
from tests.hw.test_top import Beats
from tests.sim import samples


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.4, 0.6)])
def test_a_layer_equals_golden(relu, single, stalls):
    """Each vector is a sequence of its own, whether the layer knows that or not."""
    layer = Linear("linear", 13, 10, product(3, 4, 4), relu)
    dut = LinearLayer(layer, program=layer_program(layer, ArrayShape(2, 2, 1), (1, 1, 1)), single=single)
    x = numbers(layer.input_format, 6, 13)
    y = layer(x)
    assert (y == 0).any() == relu and (layer.product(x) < 0).any()
    given, wanted = ([block for row in rows for block in blocks([row[None]], 4)] for rows in (x, y))
    assert stream(dut, given, stall_i=stalls[0], stall_o=stalls[1]) == wanted


def test_ends_of_sequences_pass_a_layer_that_looks_at_them():
    layer = Linear("linear", 13, 10, product(3, 4, 4), False)
    dut = LinearLayer(layer, program=layer_program(layer, ArrayShape(2, 2, 1), (1, 1, 1)))
    x = numbers(layer.input_format, 6, 13)
    given, wanted = (blocks([rows[:4], rows[4:]], 4) for rows in (x, layer(x)))
    assert stream(dut, given, stall_i=0.3, stall_o=0.3) == wanted


@pytest.mark.parametrize(("shape", "aside"), [
    (ArrayShape(10, 4, 2), 4), (ArrayShape(10, 2, 1), 2), (ArrayShape(10, 3, 2), 1), (ArrayShape(5, 4, 1), 2)])
def test_a_dense_layer_takes_values_side_by_side_at_the_pace_of_its_array(shape, aside):
    """As many as its columns and those of the matrix can be divided by; a vector takes what `vector_cycles` says."""
    layer = Linear("linear", 120, 10, product(10, 120, 1), False)
    assert blocks_aside(matrices_of(layer), shape) == aside
    dut = LinearLayer(layer, program=layer_program(layer, shape, IN_TURN))
    x = numbers(layer.input_format, 10, 120)
    given, wanted = ([block for row in rows for block in blocks([row[None]], size)]
                     for rows, size in ((x, aside), (layer(x), 1)))
    assert stream(dut, given, stall_i=0.3, stall_o=0.3) == wanted
    left = cycles(dut, given)[1][9::10]
    assert (left[-1] - left[4]) / 5 == vector_cycles(layer, shape)


@pytest.mark.parametrize(("sizes", "k", "shape"), [
    ((6, 8), 1, ArrayShape(2, 3, 1)), ((8, 8), 4, ArrayShape(2, 1, 1)), ((16, 16), 4, ArrayShape(2, 1, 1)),
    ((5, 9), 1, ArrayShape(3, 5, 1)), ((16, 64), 1, ArrayShape(16, 4, 1)), ((24, 8), 8, ArrayShape(1, 3, 1))])
def test_vectors_come_in_the_period_that_is_played(sizes, k, shape):
    """Short ones wait for a bank, longer than their array would take them."""
    inputs, outputs = sizes
    layer = Linear("linear", inputs, outputs, product(-(-outputs // k), -(-inputs // k), k), False)
    plan = LayerPlan(shape, 0, shape.multipliers(k), 0, IN_TURN)
    dut = LinearLayer(layer, program=layer_program(layer, shape, IN_TURN))
    given = [block for row in numbers(layer.input_format, 34, inputs) for block in blocks([row[None]], k)]
    left = cycles(dut, given)[1][-(-outputs // k) - 1::-(-outputs // k)]
    played, _, turn = period([plan.alone(layer)], [0])
    assert played >= vector_cycles(layer, shape) and 12 % turn == 0
    assert (left[-1] - left[-13]) / 12 == played


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.4, 0.4)])
def test_a_perceptron_equals_golden(stalls):
    """Vectors that are each a sample of their own, through layers of different block sizes."""
    model = samples.perceptron(24, 12, 6, 3, shape=(2, 3, 4))
    images = np.random.default_rng(0).uniform(-1, 1, (5, 2, 3, 4))
    network = quantize(model, images, activation_bits=9, weight_bits=7, twiddle_bits=8)
    dut, vectors = Beats(network, 40), network.vectors(images)
    given, wanted = ([beat for row in rows for beat in blocks([row[None]], k)] for rows, k in (
        (vectors.inputs, dut.top.input_block), (vectors.outputs, dut.top.output_block)))
    assert stream(dut, given, stall_i=stalls[0], stall_o=stalls[1], quiet=200) == wanted


BEATS = [ArrayShape(2, 2, 2, takes=2, gives=2), ArrayShape(4, 2, 4, takes=2, gives=2),
         ArrayShape(4, 4, 4, takes=1, gives=4), ArrayShape(6, 4, 2, takes=4, gives=1)]
"""Arrays for 5 x 5 blocks, of which no number of them in a beat is a divisor."""


@pytest.mark.parametrize("schedule", [InputFirst, EitherFirst])
@pytest.mark.parametrize("spacing", [(1, 1, 1), IN_TURN])
@pytest.mark.parametrize("shape", BEATS)
def test_several_blocks_come_and_leave_in_a_cycle(shape, spacing, schedule):
    """Results equal golden with stalls; period and latency are those that are played."""
    layer, k = Linear("linear", 19, 18, product(5, 5, 4), True), 4
    plan = LayerPlan(shape, 0, shape.multipliers(k), 0, spacing, schedule=schedule)
    x = numbers(layer.input_format, 30, 19)
    given, wanted = ([block for row in rows for block in blocks([row[None]], k * size)]
                     for rows, size in ((x, shape.takes), (layer(x), shape.gives)))
    comes, leaves = len(given) // 30, len(wanted) // 30
    assert stream(LinearLayer(layer, program=plan.program(layer)), given[:6 * comes], stall_i=0.3, stall_o=0.4
                  ) == wanted[:6 * leaves]
    dut = LinearLayer(layer, program=plan.program(layer), single=True)
    left = cycles(dut, given)[1][leaves - 1::leaves]
    assert (left[-1] - left[-13]) / 12 == period([plan.alone(layer)], [0])[0]
    taken, left = cycles(dut, given[:comes])
    assert [cycle - taken[-1] for cycle in left] == leaving(layer, plan, list(range(1 - comes, 1)), k * shape.takes)


def test_blocks_side_by_side_divide_columns_and_chains():
    for wrong in ({"columns": 3, "takes": 2}, {"chains": 2, "gives": 4}, {"rows": 3, "gives": 2}):
        with pytest.raises(ValueError, match="Blocks that come side by side must divide the columns"):
            ArrayShape(**{"rows": 4, "columns": 4, "chains": 2} | wrong)
