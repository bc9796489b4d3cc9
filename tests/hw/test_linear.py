from functools import cache

import numpy as np
import pytest

from circulant.hw.linear import LinearLayer
from circulant.sim.linear import Linear
from tests.hw.golden import blocks, numbers, product
from tests.hw.simulate import cycles, stream

STALLS = [(0.0, 0.0), (0.6, 0.0), (0.0, 0.8), (0.3, 0.5)]


@cache
def layer(k, outputs, inputs):
    return Linear("linear", inputs, outputs, product(-(-outputs // k), -(-inputs // k), k))


def sequences(linear, lengths=(1, 3, 1, 2, 5, 1, 1)):
    return [numbers(linear.input_format, t, linear.inputs, seed=n) for n, t in enumerate(lengths)]


@cache
def hardware(linear, lanes):
    """Compiled once for all tests."""
    return LinearLayer(linear, lanes=lanes)


def golden(linear, xs):
    return blocks([linear(x) for x in xs], linear.product.block_size)


@pytest.mark.parametrize(("k", "outputs", "inputs", "lanes"), [
    (1, 3, 2, 2), (2, 6, 4, 3), (4, 8, 12, 1), (8, 16, 8, 2), (16, 16, 32, 1), (4, 4, 4, 1)])
def test_layer_equals_golden(k, outputs, inputs, lanes):
    linear = layer(k, outputs, inputs)
    xs = sequences(linear)
    assert stream(LinearLayer(linear, lanes=lanes), blocks(xs, k)) == golden(linear, xs)


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize(("outputs", "inputs", "lanes"), [(4, 4, 1), (12, 4, 3), (12, 8, 2), (4, 12, 1)])
def test_gaps_and_back_pressure_change_nothing(outputs, inputs, lanes, stall_i, stall_o):
    linear = layer(4, outputs, inputs)
    xs = sequences(linear, (1, 3, 1, 2, 5, 1, 1, 4))
    assert stream(hardware(linear, lanes), blocks(xs, 4), stall_i=stall_i, stall_o=stall_o) == golden(linear, xs)


@pytest.mark.parametrize(("k", "outputs", "inputs"), [(4, 5, 3), (4, 3, 9), (8, 9, 1), (2, 1, 1)])
def test_sizes_that_do_not_fill_their_blocks(k, outputs, inputs):
    """What lies behind the last output is zero, though the matrix has rows and biases there."""
    linear = layer(k, outputs, inputs)
    xs = sequences(linear)
    assert stream(LinearLayer(linear, lanes=1), blocks(xs, k), stall_o=0.3) == golden(linear, xs)


@pytest.mark.parametrize("reset_at", [1, 12, 25, 40])
def test_right_answers_after_a_reset_in_the_middle_of_a_sequence(reset_at):
    linear = layer(4, 8, 8)
    xs = sequences(linear)
    assert stream(hardware(linear, 2), blocks(xs, 4), stall_o=0.4, reset_at=reset_at) == golden(linear, xs)


@pytest.mark.parametrize(("outputs", "inputs", "lanes", "step"), [
    (12, 8, 1, 6), (16, 20, 2, 10), (16, 28, 2, 14), (24, 12, 1, 18)])
def test_a_vector_takes_as_many_cycles_as_its_products(outputs, inputs, lanes, step):
    """However long the way through the engine is, enough vectors are under way."""
    linear = layer(4, outputs, inputs)
    payloads = blocks([numbers(linear.input_format, 20, inputs)], 4)
    _, went = cycles(LinearLayer(linear, lanes=lanes), payloads)
    assert set(np.diff(went[::outputs // 4]).tolist()) == {step}
