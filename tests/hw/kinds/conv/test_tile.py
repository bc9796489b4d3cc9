"""Fast FIR filters equal the definition; a convolution in tiles equals golden and leaves no gap."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.kinds.conv.tile import TileShape, fast_fir, tiles_fit
from circulant.hw.kinds.conv.tile_conv import TileConvLayer
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks, numbers, unmarked
from tests.hw.simulate import cycles, stream
from tests.sim.kinds.test_conv import conv


@pytest.mark.parametrize("outputs", [1, 2, 4, 8])
@pytest.mark.parametrize("taps", range(1, 8))
def test_fast_filters_equal_the_definition(outputs, taps):
    """All weights against all pixels: the identity for each of both is a complete basis of a bilinear map."""
    x, w, y = fast_fir(outputs, taps)
    found = np.einsum("op,pt,pi->oti", y, w, x)
    wanted = np.array([[[i == o + t for i in range(outputs + taps - 1)] for t in range(taps)] for o in range(outputs)])
    assert np.array_equal(found, wanted)
    assert len(x) <= outputs * taps


def test_fast_filters_take_fewer_products():
    assert [len(fast_fir(n, 5)[0]) for n in (1, 2, 4)] == [5, 8, 13]


def finer(layer, *row_shifts):
    return replace(layer, product=replace(layer.product, row_shifts=row_shifts))


CASES = {  # layer, and pixels, positions, rows
    "all at once": (conv(1, 3, 1, (5, 8), Window((3, 3), padding=(1, 1)), relu=True), (2, 3, 3)),
    "passes and turns": (conv(2, 3, 1, (4, 8), Window((3, 5), padding=(1, 2))), (4, 2, 2)),
    "no padding": (conv(1, 2, 1, (4, 8), Window((2, 5))), (4, 1, 2)),
    "padding beyond the kernel": (conv(1, 2, 1, (3, 4), Window((1, 3), padding=(2, 1))), (2, 1, 2)),
    "rows of filters with scales": (finer(conv(1, 3, 1, (4, 6), Window((3, 3), padding=(1, 1))), 3, 0, 1), (2, 3, 2)),
    "lines apart": (conv(1, 2, 1, (6, 8), Window((3, 3), (1, 1), (2, 1), (2, 1))), (2, 2, 1)),
    "rows apart": (conv(3, 2, 1, (6, 6), Window((2, 3), (2, 1), (1, 1))), (2, 2, 1)),
}


def made(name, images=3):
    layer, array = CASES[name]
    assert tiles_fit(layer, array[0])
    shape = TileShape(layer, *array)
    x = numbers(layer.input_format, images, *layer.grid, layer.inputs)
    y = layer(x)
    given, wanted = ([each for image in values for each in blocks(
        [image.reshape(-1, channels * shape.pixels)], channels * shape.pixels)]
        for values, channels in ((x, layer.inputs), (y, layer.outputs)))
    return shape, given, wanted


@pytest.mark.parametrize("number", range(len(CASES)), ids=list(CASES))
def test_equals_golden(number):
    shape, given, wanted = made(list(CASES)[number])
    stall_i, stall_o = ((0.0, 0.0), (0.4, 0.4), (0.0, 0.8), (0.0, 0.0), (0.3, 0.3), (0.5, 0.0))[number % 6]
    assert stream(TileConvLayer(shape), given, stall_i=stall_i, stall_o=stall_o, quiet=100) == wanted


@pytest.mark.parametrize(("spectrum", "bits"), [((17, 15), 16), ((17, 17), 17), ((20, 17), 18), ((17, 14), 16),
                                                ((17, 12), 14), ((12, 12), 12)])
def test_operands_have_the_bits_that_pixels_fill(spectrum, bits):
    """Pixels of 16 bits, 15 of them behind the point; their extremes lose nothing."""
    layer = conv(1, 2, 1, (3, 8), Window((3, 3), padding=(1, 1)), spectrum=spectrum)
    shape = TileShape(layer, 2, 3, 2)
    assert (shape.pixel_width, shape.data_width) == (bits, bits + 1)
    x = np.random.default_rng(0).choice([-2 ** 15, 2 ** 15 - 1], (3, *layer.grid, 1))
    given, wanted = ([each for image in values for each in blocks([image.reshape(-1, 2 * channels)], 2 * channels)]
                     for values, channels in ((x, 1), (layer(x), 2)))
    assert stream(TileConvLayer(shape), given, quiet=100) == wanted


def test_without_marks():
    shape, given, wanted = made("passes and turns")
    got = stream(TileConvLayer(shape, marked=False), given, stall_i=0.2, stall_o=0.2, quiet=100)
    assert got == unmarked(wanted)


def test_an_image_takes_the_cycles_of_its_tiles():
    shape, given, wanted = made("passes and turns", images=4)
    _, went = cycles(TileConvLayer(shape), given, quiet=100)
    ends = went[len(wanted) // 4 - 1::len(wanted) // 4]
    assert np.diff(ends)[-2:].tolist() == [shape.tiles * shape.cycles] * 2
