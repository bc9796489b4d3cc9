"""An end of a link over few pins: a word and an answer go as a frame of beats, with a strobe and the sender's clock.

Data leave at the rising edge of the clock, of which the other half goes beside them, so that they are taken in the
middle of a beat, whatever the phase of the other chip's clock. Frames follow each other without a pause. What comes is
held in registers of the sender's clock for a whole frame, and a bit that changes with each one says so to this chip's:
a frame that two oscillators lose or double now and then is one that the link's numbers catch.
"""
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.link import LinkEnd, around
from circulant.hw.chips.words import LinkShape
from circulant.hw.emit.target import Platform

__all__ = ["NarrowEnd", "beat"]


def beat(shape: LinkShape) -> data.StructLayout:
    """A beat, which goes over the pins in a cycle: ``start`` marks the first one of a frame."""
    return data.StructLayout({"start": 1, "data": shape.pins})


class NarrowEnd(wiring.Component):
    """An end of a link whose words go in beats.

    Parameters, members: as `circulant.hw.chips.link.LinkEnd`, but ``tx`` and ``rx`` are beats, and ``tx_answer`` and
    ``rx_answer`` the clocks beside them.
    """

    def __init__(self, out: LinkShape, into: LinkShape, *, named: int) -> None:
        self._out, self._into, self._end = out, into, LinkEnd(out, into, named=named)
        super().__init__({
            **{name: member for name, member in self._end.signature.members.items() if name.startswith(("i_", "o_"))},
            "tx": Out(beat(out)), "tx_answer": Out(1), "rx": In(beat(into)), "rx_answer": In(1), "up": Out(1),
            "fault": Out(1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.end = end = self._end
        around(m, self, end)
        m.d.comb += self.tx_answer.eq(~ClockSignal())

        # What goes: a frame of the word that the sender makes for its last cycle, and of the answer of now.
        pins, beats = self._out.pins, self._out.beats
        at = Signal(range(beats))
        frame = Signal(pins * beats)
        m.d.comb += [end.step.eq(at == beats - 3), self.tx.data.eq(frame[:pins])]
        m.d.sync += [at.eq(at + 1), frame.eq(frame >> pins), self.tx.start.eq(0)]
        with m.If(at == beats - 1):
            m.d.sync += [at.eq(0), frame.eq(Cat(Value.cast(end.tx), Value.cast(end.tx_answer))), self.tx.start.eq(1)]

        # What comes, by the sender's clock.
        pins, beats = self._into.pins, self._into.beats
        m.domains.there = ClockDomain(local=True, reset_less=True)
        m.d.comb += ClockSignal("there").eq(self.rx_answer)
        came = Signal(pins * beats)
        held = Signal(pins * beats)
        count = Signal(range(beats + 1))
        turn = Signal()
        following = Cat(came, self.rx.data)[pins:]
        m.d.there += [came.eq(following), count.eq(Mux(self.rx.start, 1, count + (count != beats)))]
        with m.If(~self.rx.start & (count == beats - 1)):
            m.d.there += [held.eq(following), turn.eq(~turn)]

        # By the clock of this chip: a frame that is held is there for a cycle.
        seen = Signal()
        before = Signal()
        m.submodules.seen = FFSynchronizer(turn, seen)
        m.d.sync += before.eq(seen)
        word, answer = Value.cast(end.rx), Value.cast(end.rx_answer)
        with m.If(seen != before):
            m.d.comb += [word.eq(held[:len(word)]), answer.eq(held[len(word):len(word) + len(answer)])]
        return m
