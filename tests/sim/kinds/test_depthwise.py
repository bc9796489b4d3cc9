"""A depthwise convolution against its definition in Python's integers, and what it refuses."""
import dataclasses

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.depthwise import Depthwise
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window
from tests.sim.definitions import told

RNG = np.random.default_rng(0)


def depthwise(window, *, relu=False):
    return Depthwise("dw", 3, (4, 5), window, weights=RNG.integers(-32, 32, (window.positions, 3)),
                     bias=RNG.integers(-50, 50, 3), factor=Format(6, 4),
                     input_format=Format(8, 5), output_format=Format(8, 4), relu=relu)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("window", [Window((3, 2), (2, 1), (1, 0)), Window((2, 3), (1, 1), (0, 2), (3, 2))])
def test_equals_the_definition(window, relu):
    layer, x = depthwise(window, relu=relu), RNG.integers(-128, 128, (2, 4, 5, 3))
    got = layer(x)
    assert got.shape == (2, *layer.output_grid, 3)
    assert got.tolist() == [told(layer, image) for image in x.tolist()]


def test_refusals():
    layer = depthwise(Window((3, 3)))
    with pytest.raises(Refusal, match=r"^Layer 'dw': the weights must be \(9, 3\) integers of 6 bits, not \(4, 3\)"):
        dataclasses.replace(layer, weights=layer.weights[:4])
    with pytest.raises(Refusal, match=r"^Layer 'dw': the bias must be \(3,\) integers of 8 bits, not \(3,\) from 128"):
        dataclasses.replace(layer, bias=np.full(3, 128))
    with pytest.raises(Refusal, match=r"^Layer 'dw': its sums must fit into 63 bits, but with the argument Format"):
        dataclasses.replace(layer, factor=Format(50, 40))
    with pytest.raises(Refusal, match=r"^Layer 'dw': the kernel must fit into the padded image, but 5 x 1 is larger"):
        dataclasses.replace(layer, window=Window((3, 1), dilation=(2, 1)), weights=layer.weights[:3])
