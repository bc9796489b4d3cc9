"""An end of a link over a carrier of frames, such as Ethernet: words and an answer go as a frame over AXI4-Stream.

A frame has a number, an answer, some words, and a check (CRC-32) as its last beat. One that is spoilt, cut or longer is
not taken; nor is one that is older than another that came, once the link is up, so that the link's end meets neither
reordered nor doubled frames, only lost ones. Frames are made at a pace; one that the carrier does not take in time is
lost, too.
"""
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.link import LinkEnd, around
from circulant.hw.chips.words import NUMBER, LinkShape, check_of
from circulant.hw.emit.target import Platform

__all__ = ["FRAME_CHECK", "FrameEnd", "checked"]

FRAME_CHECK, FRAME_POLYNOMIAL = 32, 0x04C11DB7
"""Bits of the check of a frame, and its generator, that of IEEE 802.3."""


def checked(check: Value, beat: Value) -> Value:
    """The check of a frame with one more beat."""
    return check_of(beat ^ Cat(Const(0, len(beat) - FRAME_CHECK), check), FRAME_CHECK, FRAME_POLYNOMIAL)


class FrameEnd(wiring.Component):
    """An end of a link whose words go in frames.

    Parameters, other members: as `circulant.hw.chips.link.LinkEnd`.

    Members:
        tx_tdata, tx_tvalid, tx_tready, tx_tlast: AXI4-Stream of frames that go out.
        rx_tdata, rx_tvalid, rx_tlast: of frames that come in, which are always taken.
    """

    def __init__(self, out: LinkShape, into: LinkShape, *, named: int) -> None:
        assert out.carrier is not None, "frames have a carrier"
        self._out, self._into, self._end, self._beat = out, into, LinkEnd(out, into, named=named), out.carrier.beat
        self._words = out.carrier.words
        super().__init__({
            **{name: member for name, member in self._end.signature.members.items() if name.startswith(("i_", "o_"))},
            "tx_tdata": Out(self._beat), "tx_tvalid": Out(1), "tx_tready": In(1), "tx_tlast": Out(1),
            "rx_tdata": In(self._beat), "rx_tvalid": In(1), "rx_tlast": In(1), "up": Out(1), "fault": Out(1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.end = end = self._end
        around(m, self, end)
        self._sends(m, end)
        self._takes(m, end)
        return m

    def _sends(self, m: Module, end: LinkEnd) -> None:
        """At each turn the sender makes a word, which is there two cycles later; the last one of a frame lets it go."""
        beat, length, words = self._beat, self._out.frame, self._words
        turn = Signal(range(max(2, self._out.beats)))
        makes = Signal()
        there = Signal()
        at = Signal(range(max(2, words)))
        word = Value.cast(end.tx)
        before = Signal(len(word) * words)
        gathered = Cat(before, word)[len(word):]
        m.d.comb += end.step.eq(turn == 0)
        m.d.sync += [turn.eq(Mux(turn == self._out.beats - 1, 0, turn + 1)), makes.eq(end.step), there.eq(makes)]
        with m.If(there):
            m.d.sync += [before.eq(gathered), at.eq(Mux(at == words - 1, 0, at + 1))]

        number = Signal(NUMBER)
        frame = Signal(beat * (length - 1))
        left = Signal(range(length + 1))
        check = Signal(FRAME_CHECK)
        goes = self.tx_tvalid & self.tx_tready
        m.d.comb += [self.tx_tvalid.eq(left != 0), self.tx_tlast.eq(left == 1),
                     self.tx_tdata.eq(Mux(self.tx_tlast, check, frame[:beat]))]
        with m.If(goes):
            m.d.sync += [left.eq(left - 1), frame.eq(frame >> beat), check.eq(checked(check, frame[:beat]))]
        with m.If(there & (at == words - 1) & ((left == 0) | (goes & self.tx_tlast))):
            m.d.sync += [frame.eq(Cat(number, Value.cast(end.tx_answer), gathered)), left.eq(length),
                         number.eq(number + 1), check.eq(0)]

    def _takes(self, m: Module, end: LinkEnd) -> None:
        """A frame is held as a whole; then its words are there, one in each cycle, with the first one its answer."""
        beat, length, words = self._beat, self._into.frame, self._words
        came = Signal(beat * (length - 1))
        count = Signal(range(length + 1))
        check = Signal(FRAME_CHECK)
        whole = Signal()
        with m.If(self.rx_tvalid):
            m.d.sync += [came.eq(Cat(came, self.rx_tdata)[beat:]), check.eq(checked(check, self.rx_tdata)),
                         count.eq(count + (count != length))]
            with m.If(self.rx_tlast):
                m.d.sync += [count.eq(0), check.eq(0), came.eq(came)]
                m.d.comb += whole.eq((count == length - 1) & (self.rx_tdata == check))

        word, answer = Value.cast(end.rx), Value.cast(end.rx_answer)
        held = Signal(NUMBER + len(answer) + len(word) * words)
        number = held[:NUMBER]
        follow = held[NUMBER + len(answer):]
        fresh = Signal()
        seen = Signal(NUMBER)
        later = Signal(NUMBER)
        left = Signal(range(words + 1))
        m.d.comb += later.eq(number - seen)
        m.d.sync += fresh.eq(whole)
        with m.If(fresh):
            m.d.sync += left.eq(0)
            with m.If(~end.up | ((later != 0) & ~later[-1])):
                m.d.sync += [seen.eq(number), left.eq(words)]
        with m.Elif(left != 0):
            m.d.comb += [word.eq(follow[:len(word)]),
                         answer.eq(Mux(left == words, held[NUMBER:NUMBER + len(answer)], 0))]
            m.d.sync += [left.eq(left - 1), follow.eq(follow >> len(word))]
        with m.If(whole):
            m.d.sync += held.eq(came)
