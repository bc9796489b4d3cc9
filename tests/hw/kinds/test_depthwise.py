"""A depthwise convolution equals golden, whatever stalls, in the cycles that its plan says."""
import numpy as np
import pytest

from circulant.hw.kinds.depthwise import DepthwiseLayer, DepthwiseShape
from circulant.hw.plan.ladders import ladder, layer_entry
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.depthwise import Depthwise
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks, numbers, unmarked
from tests.hw.simulate import cycles, stream

GRID = (5, 6)
WINDOWS = [Window((3, 3), (1, 1), (1, 1)), Window((3, 2), (2, 1)), Window((2, 3), (1, 2), (0, 2)), Window((1, 1)),
           Window((2, 3), (1, 1), (1, 2), (3, 2)), Window((2, 1), (1, 1), (2, 0)), Window((3, 2), padding=(2, 0),
                                                                                         dilation=(2, 4))]
WIDE = Format(10, 4)


def depthwise(window, inputs=5, *, relu=False, output=WIDE):
    weights = numbers(Format(6, 4), window.positions, inputs, seed=1)
    bias = numbers(Format(7, 4), inputs, seed=2)
    return Depthwise("dw", inputs, GRID, window, weights=weights, bias=bias, factor=Format(6, 4),
                     input_format=Format(8, 5), output_format=output, relu=relu)


def images(layer, k, count=3):
    x = numbers(layer.input_format, count, *GRID, layer.inputs)
    return ([block for image in each for block in blocks([image.reshape(-1, layer.inputs)], k)]
            for each in (x, layer(x)))


@pytest.mark.parametrize(("k", "positions", "stalls"), [(4, 9, (0.0, 0.0)), (4, 2, (0.3, 0.5)), (1, 1, (0.0, 0.7)),
                                                        (8, 3, (0.6, 0.0))])
@pytest.mark.parametrize("window", WINDOWS)
def test_equals_golden(window, k, positions, stalls):
    layer = depthwise(window, relu=k == 4, output=WIDE if k > 1 else Format(7, 5))
    shape = DepthwiseShape(layer, k, min(positions, window.positions))
    given, wanted = images(layer, k)
    assert stream(DepthwiseLayer(shape), given, stall_i=stalls[0], stall_o=stalls[1]) == wanted
    assert stream(DepthwiseLayer(shape, marked=False), given, stall_i=0.2) == unmarked(wanted)


@pytest.mark.parametrize("window", [*WINDOWS[:2], *WINDOWS[4:6]])
def test_images_take_the_planned_cycles(window):
    layer = depthwise(window)
    for plan in [each for (each,) in ladder(layer, streams=1, count=1).rungs][::2]:
        shape = DepthwiseShape(layer, plan.elements, plan.positions)
        given, wanted = images(layer, plan.elements, 6)
        _, left = cycles(DepthwiseLayer(shape), given)
        each = len(wanted) // 6
        ends = left[each - 1::each]
        assert set(np.diff(ends[-3:])) == {plan.cycles}, plan
        assert plan.multipliers == plan.elements * plan.positions
        assert layer_entry(layer, plan)["floor"] <= plan.cycles
