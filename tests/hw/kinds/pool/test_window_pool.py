"""Poolings whose windows overlap or reach beyond the image equal golden."""
import pytest

from circulant.hw.kinds.pool.pool import side_by_side
from circulant.hw.kinds.pool.window_pool import WindowPoolLayer
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks, numbers, unmarked
from tests.hw.kinds.pool.test_pool import GIVEN, pool
from tests.hw.simulate import stream


@pytest.mark.parametrize(("mode", "window", "stalls"), [
    ("max", Window((3, 3), (2, 2), (1, 1)), (0.0, 0.0)), ("average", Window((3, 2), (1, 1)), (0.4, 0.5)),
    ("max", Window((2, 2), (1, 1), (1, 1)), (0.0, 0.0)),  # The most padding that there is: half of the kernel.
    ("max", Window((2, 2), (2, 2), (1, 0)), (0.0, 0.7)), ("average", Window((2, 3), (2, 3), (1, 1)), (0.5, 0.0))])
def test_equals_golden(mode, window, stalls):
    layer = pool(mode, (5, 6), window)
    assert not side_by_side(layer)
    x = numbers(GIVEN, 3, 5, 6, 5)
    given, wanted = ([block for image in images for block in blocks([image.reshape(-1, 5)], 4)]
                     for images in (x, layer(x)))
    assert stream(WindowPoolLayer(layer, k=4), given, stall_i=stalls[0], stall_o=stalls[1]) == wanted
    assert stream(WindowPoolLayer(layer, k=4, marked=False), given, stall_i=0.2) == unmarked(wanted)
