import pytest

from circulant.hw.kinds.pool.pool import PoolLayer
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.pool import Pool
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks, numbers, unmarked
from tests.hw.simulate import stream

GIVEN, MADE = Format(9, 5), Format(8, 6)


def pool(mode, grid, window, channels=5):
    return Pool("pool", inputs=channels, grid=grid, window=window, mode=mode, input_format=GIVEN,
                output_format=GIVEN if mode == "max" else MADE)


@pytest.mark.parametrize(("mode", "grid", "window", "stalls"), [
    ("max", (4, 6), Window((2, 2), (2, 2)), (0.0, 0.0)), ("max", (5, 7), Window((2, 2), (2, 2)), (0.4, 0.5)),
    ("average", (5, 5), Window((2, 1), (3, 3)), (0.4, 0.5)), ("average", (3, 5), Window((3, 5)), (0.0, 0.5)),
    ("max", (3, 3), Window((2, 2), (2, 2)), (0.5, 0.0)), ("average", (6, 1), Window((2, 1), (2, 1)), (0.0, 0.0))])
def test_equals_golden(mode, grid, window, stalls):
    layer = pool(mode, grid, window)
    x = numbers(GIVEN, 2, *grid, 5)
    given, wanted = ([block for image in images for block in blocks([image.reshape(-1, 5)], 4)]
                     for images in (x, layer(x)))
    assert stream(PoolLayer(layer, k=4), given, stall_i=stalls[0], stall_o=stalls[1]) == wanted


@pytest.mark.parametrize(("mode", "grid", "window"), [
    ("max", (4, 6), Window((2, 2), (2, 2))), ("average", (5, 5), Window((2, 1), (3, 3)))])
def test_without_marks(mode, grid, window):
    layer = pool(mode, grid, window)
    x = numbers(GIVEN, 3, *grid, 5)
    given, wanted = ([block for image in images for block in blocks([image.reshape(-1, 5)], 4)]
                     for images in (x, layer(x)))
    assert stream(PoolLayer(layer, k=4, marked=False), given, stall_i=0.2, stall_o=0.4) == unmarked(wanted)


@pytest.mark.parametrize(("mode", "window", "pixels", "stalls"), [
    ("max", Window((2, 2), (2, 2)), 4, (0.0, 0.0)), ("average", Window((2, 1), (2, 2)), 2, (0.4, 0.5)),
    ("max", Window((3, 4), (3, 4)), 4, (0.0, 0.6))])
def test_pixels_side_by_side(mode, window, pixels, stalls):
    layer = pool(mode, (6, 8), window, channels=3)
    x = numbers(GIVEN, 2, 6, 8, 3)
    given = [block for image in x for block in blocks([image.reshape(-1, 3 * pixels)], 3 * pixels)]
    wanted = [block for image in layer(x) for block in blocks([image.reshape(-1, 3)], 3)]
    got = stream(PoolLayer(layer, k=3 * pixels, pixels=pixels), given, stall_i=stalls[0], stall_o=stalls[1])
    assert got == wanted
