"""A convolution in hardware equals golden, whatever its window, its array and the stalls; and it leaves no gap."""
import math
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.array.line_shape import LineBufferShape
from circulant.hw.kinds.conv.conv import ConvLayer
from circulant.hw.kinds.conv.plan import conv_plans
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks, numbers, unmarked
from tests.hw.simulate import cycles, stream
from tests.sim.kinds.test_conv import conv

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
    "padding before a pixel": (conv(1, 1, 1, (4, 1), Window((1, 1), padding=(1, 0))), (1, 1, 1, 1)),
    "padding beside it": (conv(1, 1, 1, (3, 4), Window((1, 2), padding=(0, 2))), (2, 1, 1, 1)),
    "strides of padding": (conv(1, 1, 1, (3, 1), Window((2, 1), (2, 1), (2, 0))), (1, 1, 1, 1)),
    "padding far beyond the kernel": (conv(3, 3, 2, (2, 3), Window((2, 1), (1, 2), (4, 5)), relu=True), (2, 1, 2, 1)),
    "a pixel far from its kernel": (conv(2, 3, 1, (1, 1), Window((1, 1), (2, 3), (2, 3))), (1, 2, 3, 3)),
    "gaps": (conv(6, 10, 4, (7, 8), Window((2, 3), (2, 1), (1, 2), (3, 2))), (4, 1, 2, 1)),
    "gaps as large as the image": (conv(3, 2, 1, (4, 3), Window((2, 2), (1, 1), (3, 1), (4, 3))), (2, 2, 2, 2)),
    "gaps wider than the padding": (conv(2, 2, 2, (3, 4), Window((3, 2), (1, 2), (4, 3), (4, 5))), (2, 1, 1, 1)),
    "the whole image": (conv(4, 4, 2, (3, 2), Window((3, 2))), (2, 2, 2, 1)),
}


def approximate(layer, multiplier):
    return replace(layer, product=replace(layer.product, multiplier=multiplier))


CASES |= {name: (approximate(conv(6, 10, 4, (5, 5), STRIDED), name), (4, 1, 2, 1))
          for name in ("truncated:3", "mitchell")}


def made(name, images=2):
    layer, array = CASES[name]
    shape = LineBufferShape(layer, *array)
    x = numbers(layer.input_format, images, *layer.grid, layer.inputs)
    y = layer(x)
    k = layer.product.block_size
    given = [block for image in x for block in blocks([image.reshape(-1, layer.inputs)], k)]
    wanted = [block for image in y for block in blocks([image.reshape(-1, layer.outputs)], k * shape.chains)]
    return shape, given, wanted


STALLS = [(0.0, 0.0), (0.4, 0.4), (0.0, 0.8)]


@pytest.mark.parametrize("number", range(len(CASES)), ids=list(CASES))
def test_equals_golden(number):
    shape, given, wanted = made(list(CASES)[number])
    stall_i, stall_o = STALLS[number % len(STALLS)]
    assert stream(ConvLayer(shape), given, stall_i=stall_i, stall_o=stall_o, quiet=100 + 4 * shape.cycles,
                  count=len(wanted)) == wanted


def test_without_marks():
    shape, given, wanted = made("blocks, in turns")
    got = stream(ConvLayer(shape, marked=False), given, stall_i=0.2, stall_o=0.2, quiet=100)
    assert got == unmarked(wanted)


def test_right_images_after_a_reset():
    shape, given, wanted = made("blocks, in turns")
    assert stream(ConvLayer(shape), given, stall_i=0.2, stall_o=0.2, reset_at=61, quiet=100) == wanted


@pytest.mark.parametrize("name", ["dense, all at once", "blocks, all at once", "lines that nobody sees"])
def test_an_image_takes_the_cycles_of_its_pixels_or_of_its_input(name):
    """Behind each other, without a gap between them; what the plan says is that."""
    shape, given, wanted = made(name, images=4)
    _, went = cycles(ConvLayer(shape), given, quiet=100)
    ends = went[len(wanted) // 4 - 1::len(wanted) // 4]
    due = max(math.prod(shape.layer.output_grid) * shape.cycles, len(given) // 4)
    assert np.diff(ends)[-2:].tolist() == [due, due]
    assert due in {plan.cycles for plan in conv_plans(shape.layer)}
