"""A convolution in hardware equals golden, whatever its window, its array and the stalls; and it leaves no gap."""
import numpy as np
import pytest

from circulant.hw.conv import ConvLayer
from circulant.hw.convplan import conv_plans
from circulant.hw.lines import LineShape
from circulant.sim.window import Window
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles, stream
from tests.sim.test_conv import conv

SAME, STRIDED, APART = Window((3, 3), padding=(1, 1)), Window((3, 2), (2, 1), (1, 1)), Window((2, 2), (3, 2))

CASES = {  # layer, and its array: positions, blocks, rows, chains, fold
    "dense, all at once": (conv(1, 6, 1, (7, 6), SAME, relu=True), (9, 1, 6, 6)),
    "dense, in turns": (conv(3, 6, 1, (5, 4), SAME), (5, 2, 4, 2)),
    "blocks, all at once": (conv(6, 10, 4, (5, 5), STRIDED, relu=True), (6, 2, 3, 3)),
    "blocks, in turns": (conv(6, 10, 4, (5, 5), STRIDED), (4, 1, 2, 1)),
    "folded": (conv(6, 10, 4, (4, 5), STRIDED), (1, 1, 1, 1, 3)),
    "lines that nobody sees": (conv(9, 10, 4, (7, 5), APART), (2, 2, 3, 1)),
    "one axis": (conv(8, 3, 2, (9, 1), Window((3, 1), (2, 1), (1, 0))), (3, 2, 2, 1)),
    "one pixel": (conv(4, 4, 4, (1, 1), Window((1, 1))), (1, 1, 1, 1)),
    "the whole image": (conv(4, 4, 2, (3, 2), Window((3, 2))), (2, 2, 2, 1)),
}


def made(name, images=3):
    layer, array = CASES[name]
    shape = LineShape(layer, *array)
    x = numbers(layer.input_format, images, *layer.grid, layer.inputs)
    y = layer(x)
    k = layer.product.block_size
    given = [block for image in x for block in blocks([image.reshape(-1, layer.inputs)], k)]
    wanted = [block for image in y for block in blocks([image.reshape(-1, layer.outputs)], k * shape.chains)]
    return shape, given, wanted


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.4, 0.4), (0.0, 0.9)])
@pytest.mark.parametrize("name", CASES)
def test_equals_golden(name, stalls):
    shape, given, wanted = made(name)
    assert stream(ConvLayer(shape), given, stall_i=stalls[0], stall_o=stalls[1], quiet=600) == wanted


def test_right_images_after_a_reset():
    shape, given, wanted = made("blocks, in turns")
    assert stream(ConvLayer(shape), given, stall_i=0.2, stall_o=0.2, reset_at=61, quiet=600) == wanted


@pytest.mark.parametrize("name", ["dense, all at once", "dense, in turns", "blocks, in turns", "folded"])
def test_an_image_takes_the_cycles_that_the_plan_says(name):
    shape, given, wanted = made(name, images=4)
    _, went = cycles(ConvLayer(shape), given, quiet=600)
    ends = went[len(wanted) // 4 - 1::len(wanted) // 4]
    (plan,) = {plan.cycles for plan in conv_plans(shape.layer) if plan.shape.array == shape.array
               and plan.shape.positions == shape.positions} or {shape.cycles * len(wanted) // 4}
    assert np.diff(ends)[-2:].tolist() == [plan, plan]
