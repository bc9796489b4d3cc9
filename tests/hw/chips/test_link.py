"""Both ends of a link with pins between them that lose, double and spoil words: every block comes, once, in order."""
import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, Mux, ResetInserter, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.link import LinkEnd
from circulant.hw.chips.system import Pins
from circulant.hw.chips.words import Channel, LinkShape
from circulant.hw.stream.pipeline import block, connect
from tests.hw.simulate import Transfers, run, sink, source, trace

OUT = Channel(2, 9, 5), Channel(1, 5, 3)
BACK = (Channel(1, 12, 4),)


class Between(wiring.Component):
    """Two ends.

    Members:
        silent: no pins of ``b`` come to ``a``.
        restart: ``b`` is reset.
    """

    def __init__(self, bits=8, latency=4, faults=0, names=(0xAB, 0xAB)):
        there, back = LinkShape(bits, latency, OUT), LinkShape(bits, latency, BACK)
        self.a, self.b = LinkEnd(there, back, named=names[0]), LinkEnd(back, there, named=names[1])
        self._latency, self._faults = latency, faults
        self.shape = there
        super().__init__({
            **{f"i_{n}": In(stream.Signature(block(each.k, each.width))) for n, each in enumerate(OUT)},
            **{f"o_{n}": Out(stream.Signature(block(each.k, each.width))) for n, each in enumerate(OUT)},
            "back_i": In(stream.Signature(block(1, 12))), "back_o": Out(stream.Signature(block(1, 12))),
            "silent": In(1), "up": Out(2), "fault": Out(2)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.a, m.submodules.b = a, b = self.a, self.b
        for n in range(len(OUT)):
            connect(m, wiring.flipped(getattr(self, f"i_{n}")), getattr(a, f"i_{n}"))
            connect(m, getattr(b, f"o_{n}"), wiring.flipped(getattr(self, f"o_{n}")))
        connect(m, wiring.flipped(self.back_i), b.i_0)
        connect(m, a.o_0, wiring.flipped(self.back_o))
        seed = self._faults
        for start, end, pins in ((a, b, ("tx", "rx")), (a, b, ("tx_answer", "rx_answer")), (b, a, ("tx", "rx")),
                                 (b, a, ("tx_answer", "rx_answer"))):
            sends, takes = Value.cast(getattr(start, pins[0])), Value.cast(getattr(end, pins[1]))
            m.submodules += (way := Pins(len(sends), self._latency, seed))
            seed += bool(seed)
            m.d.comb += [way.i.eq(sends), takes.eq(Mux(self.silent, 0, way.o) if end is a else way.o)]
        m.d.comb += [self.up.eq(a.up | b.up << 1), self.fault.eq(a.fault | b.fault << 1)]
        return m


def words(channel, count, seed):
    rng = np.random.default_rng(seed)
    top = 1 << channel.width - 1
    return [{"data": [int(each) for each in rng.integers(-top, top, channel.k)], "last": int(rng.random() < 0.2)}
            for _ in range(count)]


def played(dut, count, stalls, quiet=900):
    sent = [words(channel, count, n) for n, channel in enumerate((*OUT, *BACK))]
    ways = ("i_0", "o_0"), ("i_1", "o_1"), ("back_i", "back_o")
    came, went = [Transfers() for _ in ways], [Transfers() for _ in ways]
    run(dut, *(source(way[0], each, passed, stall=stalls[0], seed=n)
               for n, (way, each, passed) in enumerate(zip(ways, sent, came, strict=True))),
        *(sink(way[1], passed, came, stall=stalls[1], seed=n, quiet=quiet)
          for n, (way, passed) in enumerate(zip(ways, went, strict=True))))
    return sent, went


@pytest.mark.parametrize("latency", [0, 1, 9])
@pytest.mark.parametrize("stalls", [(0, 0), (0.6, 0), (0, 0.8)])
def test_blocks_come_in_order(latency, stalls):
    sent, went = played(Between(latency=latency), 60, stalls)
    assert [each.payloads for each in went] == sent


@pytest.mark.parametrize("bits", [1, 8, 40])
@pytest.mark.parametrize("seed", [1, 77])
def test_lost_doubled_and_spoilt_words_change_nothing(bits, seed):
    sent, went = played(Between(bits=bits, faults=seed), 80 if bits > 1 else 20, (0.1, 0.1), quiet=2000)
    assert [each.payloads for each in went] == sent


def test_a_block_takes_as_long_as_it_says():
    dut = Between(bits=8, latency=4)
    came, went = Transfers(), Transfers()
    run(dut, source("i_0", words(OUT[0], 30, 1), came), sink("o_0", went, [came]))
    taken_late = dut.shape.words(0) - 1  # A block is taken with its last word.
    assert {b - a + taken_late for a, b in zip(came.cycles[5:], went.cycles[5:], strict=True)} == {dut.shape.delay(0)}
    assert {b - a for a, b in zip(went.cycles[5:], went.cycles[6:], strict=False)} == {dut.shape.words(0)}


def test_a_stream_that_waits_holds_up_no_other():
    came, went = [Transfers(), Transfers()], Transfers()
    run(Between(), source("i_0", words(OUT[0], 8, 1), came[0]), source("i_1", words(OUT[1], 50, 2), came[1]),
        sink("o_1", went, [came[1]], quiet=300))
    assert went.payloads == words(OUT[1], 50, 2), "the first stream is never taken from"


def test_ends_of_different_networks_say_so_and_take_nothing():
    shown = trace(Between(names=(0xAB, 0xAC)), {"i_0.valid": [1] * 200, "o_0.ready": [1] * 200})
    assert shown["fault"][-1] == 3 and shown["up"][-1] == 0 and not any(shown["o_0.valid"])


def test_an_end_whose_neighbour_falls_silent_says_so():
    shown = trace(Between(), {"silent": [0] * 100 + [1] * 300})
    assert shown["up"][99] == 3 and shown["fault"][99] == 0
    assert shown["fault"][-1] & 1 and not shown["fault"][120] & 1
    assert shown["fault"][-1] == 3, "the other end is told"


class Restarted(Between):
    """A link of which the end ``b`` alone is reset while ``silent`` is set."""

    def elaborate(self, platform):
        self.b = _Facade(self.b, ResetInserter(self.silent)(self.b))
        return super().elaborate(platform)


class _Facade(Elaboratable):
    """A component and what it is elaborated as."""

    def __init__(self, component, inner):
        self._component, self._inner = component, inner

    def __getattr__(self, name):
        return getattr(self._component, name)

    def elaborate(self, platform):
        return self._inner


def test_an_end_whose_neighbour_was_reset_says_so_and_nothing_wrong_comes():
    shown = trace(Restarted(), {"silent": [0] * 100 + [1] * 3 + [0] * 200,
                                "i_0.valid": [0] * 120 + [1] * 183, "o_0.ready": [1] * 303})
    assert shown["up"][99] == 3 and shown["fault"][-1] & 1 and not any(shown["o_0.valid"])
