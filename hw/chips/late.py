"""Vectors a step late: the state of a neighbour, as the next step takes it."""
from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import block
from circulant.hw.stream.storage import DeepQueue

__all__ = ["Late", "Marks"]

KNOWN = 64
"""Steps whose ends are known before their vectors come."""


class Marks(wiring.Component):
    """Whether each vector of a stream is the last one of its sequence.

    Members:
        i: stream of blocks.
        o: stream of a bit for each vector.
    """

    def __init__(self, *, k: int, width: int, blocks: int) -> None:
        self._blocks = blocks
        super().__init__({"i": In(stream.Signature(block(k, width))), "o": Out(stream.Signature(1))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        index = Signal(range(max(2, self._blocks)))
        ends = index == self._blocks - 1
        m.d.comb += [self.o.valid.eq(self.i.valid & ends), self.o.payload.eq(self.i.payload.last),
                     self.i.ready.eq(~ends | self.o.ready)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += index.eq(Mux(ends, 0, index + 1))
        return m


class Late(wiring.Component):
    """A vector of zeros in front of each sequence, which loses its last vector; as many vectors come out as go in. The
    vectors that are lost need not have come when the next sequence begins.

    Parameters:
        marked: whether the last vector of a sequence is marked, so that the last block of each waits for the mark of
            its step. Else none is marked, and each waits for the mark of the step before alone.

    Members:
        i: stream of blocks of a sequence's vectors.
        ends: stream that says of each step whether it is the last one of its sequence.
        o: stream of blocks.
    """

    def __init__(self, *, k: int, width: int, blocks: int, marked: bool) -> None:
        self._blocks, self._marked = blocks, marked
        signature = stream.Signature(block(k, width))
        super().__init__({"i": In(signature), "ends": In(stream.Signature(1)), "o": Out(signature)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.known = known = DeepQueue(1, depth=KNOWN)
        wiring.connect(m, wiring.flipped(self.ends), known.i)

        # What leaves: zeros, or a vector that has come, if none is to be dropped before it.
        fresh = Signal(init=1)
        index = Signal(range(max(2, self._blocks)))
        owed = Signal(range(KNOWN + 1))
        ends = index == self._blocks - 1
        moves = Signal()
        drops = Signal()
        told = Signal()  # Whether the step is the last one is told in this cycle.
        there = Mux(fresh, owed != KNOWN, (owed == 0) & self.i.valid)
        m.d.comb += [
            moves.eq(self.o.valid & self.o.ready), told.eq(known.o.valid & known.o.ready),
            Value.cast(self.o.payload.data).eq(Mux(fresh, 0, Value.cast(self.i.payload.data))),
            drops.eq(self.i.valid & (owed != 0)), self.i.ready.eq(drops | (moves & ~fresh))]
        if self._marked:
            m.d.comb += [self.o.valid.eq(there & (~ends | known.o.valid)), known.o.ready.eq(moves & ends),
                         self.o.payload.last.eq(ends & known.o.payload)]
        else:
            m.d.comb += self.o.valid.eq(there & ~known.o.ready)
            with m.If(moves | told):
                m.d.sync += known.o.ready.eq(moves & ends)
        with m.If(moves):
            m.d.sync += index.eq(Mux(ends, 0, index + 1))
        with m.If(told):
            m.d.sync += fresh.eq(known.o.payload)

        # Behind the last step of a sequence one more is to be dropped.
        lost = Signal.like(index)
        done = Signal()
        more = Signal()
        m.d.comb += [done.eq(drops & (lost == self._blocks - 1)), more.eq(told & known.o.payload)]
        with m.If(drops):
            m.d.sync += lost.eq(Mux(done, 0, lost + 1))
        m.d.sync += owed.eq(owed + more - done)
        return m
