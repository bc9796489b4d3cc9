"""A range of vectors equals golden, is cut in a block a cycle, and leaves in the cycles that are planned."""
import numpy as np
import pytest

from circulant.hw.array.plans import StreamPlan
from circulant.hw.kinds.slice import SliceLayer
from circulant.hw.plan.latency import leaving
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.slice import Slice
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles, stream

FORM = Format(9, 4)

SHAPES = [(7, 0, 7, 4), (7, 0, 3, 4), (12, 4, 4, 4), (12, 5, 6, 4), (13, 5, 8, 4), (13, 3, 7, 4), (16, 13, 3, 4),
          (16, 2, 14, 4), (16, 1, 9, 4), (15, 6, 9, 4), (9, 2, 5, 1), (9, 8, 1, 2), (5, 1, 3, 8), (5, 0, 5, 8)]
"""Values of a vector, the first one of the range, its size, values of a block: the last block of the range leaves with
the block that completes it, is kept until the vector ends, or leaves a cycle behind its end."""


def made(inputs, first, size):
    layer = Slice("part", inputs, first, size, FORM)
    x = numbers(FORM, 6, inputs)
    return layer, [x[:2], x[2:3], x[3:]]


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.6), (0.4, 0.5)])
@pytest.mark.parametrize(("inputs", "first", "size", "k"), SHAPES)
def test_a_range_equals_golden(inputs, first, size, k, stalls):
    layer, xs = made(inputs, first, size)
    given, wanted = (blocks(each, k) for each in (xs, [layer(x) for x in xs]))
    assert sum(block["last"] for block in wanted) == 3
    assert stream(SliceLayer(layer, k=k), given, stall_i=stalls[0], stall_o=stalls[1]) == wanted


@pytest.mark.parametrize(("inputs", "first", "size", "k"), SHAPES)
def test_a_block_is_taken_in_each_cycle_and_leaves_when_it_is_planned(inputs, first, size, k):
    layer, xs = made(inputs, first, size)
    came, went = cycles(SliceLayer(layer, k=k), blocks(xs, k))
    assert np.diff(came).tolist() == [1] * (len(came) - 1)
    each, gives = -(-inputs // k), -(-size // k)
    for n in range(6):
        comes = came[n * each:(n + 1) * each]
        assert went[n * gives:(n + 1) * gives] == leaving(layer, StreamPlan(1), comes, k)


def test_a_range_of_pixels_equals_golden():
    layer = Slice("part", 5, 1, 3, FORM)
    x = numbers(FORM, 2, 6, 5)
    given, wanted = ([block for image in images for block in blocks([image], 2)] for images in (x, layer(x)))
    assert stream(SliceLayer(layer, k=2), given, stall_i=0.3, stall_o=0.3) == wanted
