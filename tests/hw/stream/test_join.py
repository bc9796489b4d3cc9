from functools import cache

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.stream.join import Join, fork
from circulant.hw.stream.pipeline import block
from circulant.sim.arith.fixed import Format
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import Transfers, run, sink, source

STALLS = [(0.0, 0.0, 0.0), (0.6, 0.0, 0.0), (0.0, 0.6, 0.0), (0.0, 0.0, 0.6), (0.4, 0.4, 0.4)]
CASES = [  # values of the first vector, of the second, of a block
    (8, 4, 4), (4, 8, 4),           # whole blocks
    (6, 4, 4), (6, 2, 4), (7, 3, 4),  # a part in the middle, which the second one fills or not
    (3, 9, 4), (1, 1, 4), (1, 3, 4), (1, 4, 4), (9, 11, 8),
    (2, 3, 1), (1, 1, 1),
]


@cache
def join(first, second, k):
    """Compiled once for all tests."""
    return Join(sizes=(first, second), width=5, k=k)


def transfers(dut, first, second, stalls, quiet=60):
    passed = [Transfers() for _ in range(3)]
    run(dut, source("first", first, passed[0], stall=stalls[0], seed=1),
        source("second", second, passed[1], stall=stalls[1], seed=2),
        sink("o", passed[2], passed[:2], stall=stalls[2], seed=3, quiet=quiet))
    return passed


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("case", CASES)
def test_vectors_side_by_side(case, stalls):
    first, second, k = case
    xs, ys = ([numbers(Format(5, 0), t, size, seed=t) for t in (2, 1, 3, 1)] for size in (first, second))
    expected = blocks([np.concatenate(pair, axis=-1) for pair in zip(xs, ys, strict=True)], k)
    assert transfers(join(*case), blocks(xs, k), blocks(ys, k), stalls)[2].payloads == expected


@pytest.mark.parametrize(("case", "per_vector"), [((8, 4, 4), 3), ((6, 2, 4), 2), ((7, 3, 4), 3)])
def test_a_block_leaves_in_every_cycle(case, per_vector):
    xs, ys = (blocks([numbers(Format(5, 0), 4, size)], case[2]) for size in case[:2])
    assert transfers(join(*case), xs, ys, (0, 0, 0))[2].cycles == list(range(4 * per_vector))


class Forked(wiring.Component):
    def __init__(self):
        word = stream.Signature(block(1, 5))
        super().__init__({"i": In(word), "a": Out(word), "b": Out(word)})

    def elaborate(self, platform):
        m = Module()
        fork(m, wiring.flipped(self.i), [wiring.flipped(self.a), wiring.flipped(self.b)], name="i")
        return m


@pytest.mark.parametrize("stalls", STALLS)
def test_both_sinks_get_everything_once(stalls):
    given = blocks([numbers(Format(5, 0), t, 1, seed=t) for t in (3, 1, 9, 20)], 1)
    came, a, b = Transfers(), Transfers(), Transfers()
    run(Forked(), source("i", given, came, stall=stalls[0], seed=1),
        sink("a", a, [came], stall=stalls[1], seed=2), sink("b", b, [came], stall=stalls[2], seed=3))
    assert a.payloads == b.payloads == given
    assert any(stalls) or a.cycles == b.cycles == list(range(len(given)))


def test_a_sink_that_stands_still_holds_back_no_more_than_the_next_payload():
    dut, given, came, a = Forked(), blocks([numbers(Format(5, 0), 3, 1)], 1), Transfers(), Transfers()

    def still():
        for _ in range(10):
            yield {"b.ready": 0}
        assert (a.payloads, came.payloads) == (given[:1], [])
        yield {"b.ready": 1}

    run(dut, source("i", given, came), still(), sink("a", a, [came], quiet=20))
    assert a.payloads == given
