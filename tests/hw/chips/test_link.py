"""Both ends of a link with pins between them that lose, double and spoil words: every block comes, once, in order."""
import numpy as np
import pytest
from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from benchmarks.formal.check import available, prove
from circulant.hw.chips.channel import Pins
from circulant.hw.chips.link import Aside, LinkEnd, Receiver, Sender
from circulant.hw.chips.words import Channel, LinkShape
from circulant.hw.stream.pipeline import block, connect
from circulant.sim.chips import SLOWER
from tests.hw.chips.exchange import BACK, OUT, exchanged, words
from tests.hw.simulate import Transfers, run, sink, source, trace


class Between(wiring.Component):
    """Two ends.

    Members:
        silent: no pins of ``b`` come to ``a``.
        restart: ``b`` is reset.
    """

    def __init__(self, bits=8, latency=4, faults=0, names=(0xAB, 0xAB), slower=0):
        there, back = LinkShape(bits, latency, OUT), LinkShape(bits, latency, BACK)
        self.a, self.b = LinkEnd(there, back, named=names[0]), LinkEnd(back, there, named=names[1])
        self._latency, self._faults = latency + slower, faults
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
            m.submodules += (way := Pins(len(sends), self._latency))
            m.d.comb += [way.latency.eq(self._latency), way.seed.eq(seed * 40_503), way.i.eq(sends),
                         takes.eq(Mux(self.silent, 0, way.o) if end is a else way.o)]
            seed += bool(seed)
        m.d.comb += [self.up.eq(a.up | b.up << 1), self.fault.eq(a.fault | b.fault << 1)]
        return m


def played(dut, count, stalls, quiet=900):
    sent, went, _ = exchanged(dut, (("i_0", "o_0"), ("i_1", "o_1"), ("back_i", "back_o")), count, stalls, quiet=quiet)
    return sent, went


@pytest.mark.parametrize("latency", [0, 1, 9])
@pytest.mark.parametrize("stalls", [(0, 0), (0.6, 0), (0, 0.8)])
def test_blocks_come_in_order(latency, stalls):
    sent, went = played(Between(latency=latency), 60, stalls)
    assert went == sent


@pytest.mark.parametrize("faults", [0, 5])
def test_pins_that_are_slower_than_planned_change_nothing(faults):
    sent, went = played(Between(latency=0, slower=SLOWER, faults=faults), 40, (0.1, 0.1), quiet=3000)
    assert went == sent


@pytest.mark.parametrize("bits", [1, 8, 40])
@pytest.mark.parametrize("seed", [1, 77])
def test_lost_doubled_and_spoilt_words_change_nothing(bits, seed):
    sent, went = played(Between(bits=bits, faults=seed), 80 if bits > 1 else 20, (0.1, 0.1), quiet=2000)
    assert went == sent


def test_a_block_takes_as_long_as_it_says():
    shape, alone, close = LinkShape(8, 4, OUT), *([Transfers(), Transfers()] for _ in range(2))
    for (came, went), stall in ((alone, 0.8), (close, 0)):
        run(Between(bits=8, latency=4), source("i_0", words(OUT[0], 60, 1), came, stall=stall, seed=1),
            sink("o_0", went, [came]))
    late = [n for n in range(30, 60) if alone[0].cycles[n] - alone[0].cycles[n - 1] > 2 * shape.words(0)]
    assert len(late) > 3 and {alone[1].cycles[n] - alone[0].cycles[n] for n in late} == {shape.delay(0)}
    assert set(np.diff(close[1].cycles[20:])) == {shape.words(0)}


def test_a_stream_that_waits_holds_up_no_other():
    came, went = [Transfers(), Transfers()], Transfers()
    run(Between(), source("i_0", words(OUT[0], 8, 1), came[0]), source("i_1", words(OUT[1], 50, 2), came[1]),
        sink("o_1", went, [came[1]], quiet=300))
    assert went.payloads == words(OUT[1], 50, 2), "the first stream is never taken from"


def test_ends_of_different_networks_say_so_and_take_nothing():
    shown = trace(Between(names=(0xAB, 0xAC)), {"i_0.valid": [1] * 300, "o_0.ready": [1] * 300})
    assert shown["fault"][-1] == 3 and shown["up"][-1] == 0 and not any(shown["o_0.valid"])


def test_an_end_whose_neighbour_falls_silent_says_so():
    shown = trace(Between(), {"silent": [0] * 150 + [1] * 300})
    assert shown["up"][149] == 3 and shown["fault"][149] == 0
    assert shown["fault"][-1] & 1 and not shown["fault"][170] & 1
    assert shown["fault"][-1] == 3, "the other end is told"


class Troubled(wiring.Component):
    """Numbered blocks from ``b`` to ``a``.

    Members:
        silent, restarted, other: nothing comes from ``b``; it alone is reset; an end of another network is in its
            place.
        both: both ends are reset, and the numbers begin again.
        takes: a block comes out; ``wrong``: it is not the one that is due.
    """

    def __init__(self):
        super().__init__({**dict.fromkeys(("silent", "restarted", "other", "both"), In(1)),
                          **dict.fromkeys(("takes", "wrong", "fault", "up"), Out(1))})

    def elaborate(self, platform):
        m = Module()
        shape, none = LinkShape(8, 4, (Channel(1, 9, 5),)), LinkShape(8, 4, ())
        a, *others = LinkEnd(none, shape, named=0xAB), LinkEnd(shape, none, named=0xAB), LinkEnd(
            shape, none, named=0xAC)
        m.submodules.a = ResetInserter(self.both)(a)
        sent, due = Signal(8), Signal(8)
        for b, mine in zip(others, (~self.other, self.other), strict=True):
            m.submodules += ResetInserter(self.both | self.restarted)(b)
            m.d.comb += [Value.cast(b.i_0.payload.data).eq(sent), b.i_0.valid.eq(mine)]
            with m.If(mine & b.i_0.ready):
                m.d.sync += sent.eq(sent + 1)
            for pin, its in (("tx", "rx"), ("tx_answer", "rx_answer")):
                given = Value.cast(getattr(b, pin))
                with m.If(mine & ~self.silent):
                    m.d.comb += Value.cast(getattr(a, its)).eq(given)
                m.d.comb += Value.cast(getattr(b, its)).eq(Mux(mine, Value.cast(getattr(a, pin)), 0))
        m.d.comb += [a.o_0.ready.eq(1), self.takes.eq(a.o_0.valid), self.fault.eq(a.fault), self.up.eq(a.up),
                     self.wrong.eq(a.o_0.valid & (Value.cast(a.o_0.payload.data) != due))]
        m.d.sync += due.eq(due + a.o_0.valid)
        with m.If(self.both):
            m.d.sync += [sent.eq(0), due.eq(0)]
        return m


@pytest.mark.parametrize(("trouble", "cycles"), [("silent", 200), ("restarted", 3), ("other", 40)])
def test_an_end_in_trouble_says_so_gives_nothing_wrong_and_recovers_when_both_are_reset(trouble, cycles):
    """It is there, the trouble comes and goes, more of it shows, then both are reset."""
    begins, ends, resets = 200, 200 + cycles, 500
    shown = trace(Troubled(), {trouble: [0] * begins + [1] * cycles + [0] * (700 - ends),
                               "both": [0] * resets + [1] * 2 + [0] * (198)})
    takes, fault = shown["takes"], shown["fault"]
    assert sum(takes[:begins]) > 50 and not any(fault[:begins]), "all is well at first"
    assert all(fault[resets - 100:resets]) and not any(takes[resets - 100:resets])
    assert not any(shown["wrong"])
    assert sum(takes[resets + 2:]) > 50 and not any(fault[resets + 2:]) and shown["up"][-1], "all is well again"


def test_what_waits_beside_a_link_leaves_without_a_gap():
    """Blocks that come in a row, each of which is taken in the second cycle that shows it, as two words go."""
    shown = trace(Aside(8, depth=8), {"i.valid": [1] * 6 + [0] * 10, "i.payload": [*range(1, 17)],
                                      "o.ready": [0, 1] * 8})
    assert shown["o.valid"] == [1] * 12 + [0] * 4
    assert shown["o.payload"][:12] == [n for n in range(1, 7) for _ in range(2)]


@pytest.mark.parametrize("stalls", [(0, 0), (0.5, 0), (0, 0.7), (0.3, 0.6)])
def test_a_queue_beside_a_stream_keeps_it_as_it_is(stalls):
    words, passed = np.random.default_rng(1).integers(0, 256, 200).tolist(), [Transfers(), Transfers()]
    run(Aside(8, depth=4), source("i", words, passed[0], stall=stalls[0], seed=1),
        sink("o", passed[1], passed[:1], stall=stalls[1], seed=2))
    assert passed[1].payloads == words


NUMBER = 3
"""Bits of a block's number."""


class Way(wiring.Component):
    """A direction of a link, whose blocks are numbered; a word that is spoilt is lost, as its check says so.

    Members:
        offers, takes: blocks go in and come out.
        loses, doubles: a word, an answer is lost, or the one before comes again in its place.
    """

    def __init__(self, shape, *, heeds=True):
        self._shape, self._heeds = shape, heeds
        super().__init__({"offers": In(1), "takes": In(1), "loses": In(2), "doubles": In(2),
                          "ok_order": Out(1), "ok_credit": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.sender, m.submodules.receiver = sender, receiver = Sender(self._shape), Receiver(self._shape)
        m.d.comb += [sender.run.eq(1), receiver.run.eq(1)]
        for n, (given, taken) in enumerate(((sender.word, receiver.word), (receiver.answer, sender.answer))):
            word, before = Value.cast(given), Signal(len(Value.cast(given)), name=f"before_{n}")
            m.d.sync += before.eq(word)
            m.d.comb += Value.cast(taken).eq(Mux(self.doubles[n], before, Mux(
                self.loses[n], Cat(Const(0, 1), word[1:]), word)))

        entered, left = Signal(NUMBER), Signal(NUMBER)
        under_way = Signal(range(2 * self._shape.depth(0) + 2))
        goes, comes = Signal(), Signal()
        m.d.comb += [
            sender.i_0.valid.eq(self.offers), Value.cast(sender.i_0.payload.data).eq(entered),
            receiver.o_0.ready.eq(self.takes), goes.eq(sender.i_0.valid & sender.i_0.ready),
            comes.eq(receiver.o_0.valid & receiver.o_0.ready),
            self.ok_order.eq(~comes | (Value.cast(receiver.o_0.payload.data) == left)),
            self.ok_credit.eq(under_way <= self._shape.depth(0) - (not self._heeds))]
        m.d.sync += [entered.eq(entered + goes), left.eq(left + comes), under_way.eq(under_way + goes - comes)]
        return m


class Short(LinkShape):
    """A link that goes back after some cycles, with two blocks under way: what it promises depends on neither."""

    window, seq_bits, patience = 4, 3, 5

    def depth(self, channel):
        return 2


SHORT = Short(NUMBER, 0, (Channel(1, NUMBER, 1),))


@pytest.mark.soak
@pytest.mark.skipif(not available(), reason="ABC comes with pyosys")
def test_blocks_come_once_and_in_order_and_have_room():
    found = prove(Way(SHORT), seconds=100, cycles=30)
    assert found.broken is None and (found.depth == "induction" or found.depth >= 16), found


@pytest.mark.skipif(not available(), reason="ABC comes with pyosys")
def test_a_bound_that_is_one_too_small_is_seen():
    assert prove(Way(SHORT, heeds=False), seconds=60, cycles=30).broken
