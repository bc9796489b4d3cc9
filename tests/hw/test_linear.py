import numpy as np
import pytest

from circulant.hw.array.program import ArrayShape
from circulant.hw.linear import LinearLayer
from circulant.hw.programs import layer_program
from circulant.sim.linear import Linear
from circulant.sim.quantize import quantize
from tests.hw.golden import blocks, numbers, product
from tests.hw.simulate import stream
from tests.hw.test_top import Beats
from tests.sim import samples


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.4, 0.6)])
def test_a_layer_equals_golden(relu, stalls):
    layer = Linear("linear", 13, 10, product(3, 4, 4), relu)
    dut = LinearLayer(layer, program=layer_program(layer, ArrayShape(2, 2, 1), (1, 1, 1)))
    x = numbers(layer.input_format, 6, 13)
    y = layer(x)
    assert (y == 0).any() == relu and (layer.product(x) < 0).any()
    given, wanted = ([block for row in rows for block in blocks([row[None]], 4)] for rows in (x, y))
    assert stream(dut, given, stall_i=stalls[0], stall_o=stalls[1]) == wanted


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
