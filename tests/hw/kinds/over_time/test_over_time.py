import numpy as np
import pytest

from circulant.hw.array.plans import StreamPlan
from circulant.hw.kinds.over_time.over_time import OverTimeLayer
from circulant.hw.stream.link import values
from circulant.hw.unit import Site, unelaborated, unit
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.over_time import OverTime
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles, stream

GIVEN = Format(7, 4)
LENGTHS = 3, 1, 5, 2, 7, 1, 1


@pytest.mark.parametrize(("mode", "made", "inputs", "k", "stalls"), [
    ("max", GIVEN, 5, 4, (0.0, 0.0)), ("max", GIVEN, 4, 4, (0.4, 0.5)), ("max", GIVEN, 3, 1, (0.0, 0.6)),
    ("last", GIVEN, 5, 2, (0.3, 0.5)),
    ("mean", Format(8, 6), 5, 2, (0.0, 0.0)), ("mean", Format(6, 2), 3, 4, (0.4, 0.5)),
    ("mean", Format(4, 4), 4, 1, (0.0, 0.3)), ("mean", GIVEN, 4, 4, (0.5, 0.0))])
def test_equals_golden(mode, made, inputs, k, stalls):
    """Sequences of several lengths, whole and ragged blocks, binary points to both sides, means that saturate."""
    layer = OverTime("pool", inputs, mode, GIVEN, made)
    x = [numbers(GIVEN, steps, inputs, seed=steps) for steps in LENGTHS]
    given, wanted = ([block for each in some for block in blocks([each], k)]
                     for some in (x, [layer(each[None]) for each in x]))
    assert stream(OverTimeLayer(layer, k=k), given, stall_i=stalls[0], stall_o=stalls[1]) == wanted
    assert len({tuple(block["data"]) for block in wanted}) >= 5


@pytest.mark.parametrize("mode", ["max", "mean", "last"])
def test_streams_take_turns(mode):
    """Two streams, whose sequences end at steps of their own."""
    layer, k = OverTime("pool", 3, mode, GIVEN, GIVEN), 2
    x = numbers(GIVEN, 2, 6, 3)
    given, wanted = [], []
    start = [0, 0]
    for t in range(6):
        for n, ends in enumerate(((1, 5), (0, 3, 5))):
            two = blocks([x[n, t:t + 1]], k)
            given += two if t in ends else [block | {"last": 0} for block in two]
            if t in ends:
                wanted += blocks([layer(x[n][None, start[n]:t + 1])], k)
                start[n] = t + 1
    assert stream(OverTimeLayer(layer, k=k, streams=2), given) == wanted


def test_the_next_sequence_comes_while_a_mean_is_divided():
    """Eight steps of three blocks, and three cycles to read the sums; the division takes 3 · 12 cycles beside them."""
    layer = OverTime("pool", 6, "mean", GIVEN, Format(9, 7))
    came, left = cycles(OverTimeLayer(layer, k=2), blocks(numbers(GIVEN, 4, 8, 6), 2))
    assert (np.diff(came[::24]) == 8 * 3 + 3).sum() >= 2
    assert np.diff(left[::3])[-1] == 3 * 12


@pytest.mark.parametrize(("mode", "k", "wanted", "taken"), [
    ("mean", 1, 8, 8), ("mean", 2, 64, 16), ("mean", 8, 4, 8), ("mean", 3, 8, 3), ("max", 1, 8, 1)])
def test_a_mean_divides_as_many_values_side_by_side_as_are_taken_behind_it(mode, k, wanted, taken):
    with unelaborated():
        made = unit(OverTime("pool", 80, mode, GIVEN, GIVEN), StreamPlan(1), Site(k=k, wanted=wanted))
        assert values(made.i) == values(made.o) == taken
        del made
