"""The way into a network: whatever comes, the vectors that pass are whole, and zero behind their last value."""
from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import Platform

__all__ = ["FrameGuard"]


class FrameGuard(wiring.Component):
    """Frames whose last beat is where it may be pass as they are, each beat in the cycle in which it comes.

    A frame is a sample of so many vectors (an image; a single vector), or a sequence of any number of them. One that
    ends too early, a sequence in the middle of a vector, is filled up with zeros: a sample to its size, a sequence to
    the end of that vector, which then is its last one. What is too much of a sample that ends too late is dropped. So
    the next frame is right again.

    Parameters:
        shape: of a payload, with ``data`` and ``last``.
        size: values of a vector; the lanes behind them, in its last beat, are zero whatever comes.
        vectors: of a sample; None of a sequence.

    Members:
        i: stream of payloads; the last one of a frame is marked, or not.
        o: stream of payloads; the last one of a frame is marked.
        malformed: a frame ended too early or too late; from the next cycle on until reset.
        busy: zeros are still to pass.
    """

    def __init__(self, shape: data.StructLayout, *, size: int, vectors: int | None) -> None:
        self._size, self._vectors = size, vectors
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "malformed": Out(1),
                          "busy": Out(1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        lanes, sample = len(self.i.payload.data), self._vectors is not None
        beats = -(-self._size // lanes)

        # Where the beat stands: at the end of its vector, of its frame.
        fills = Signal()
        moves = Signal()
        wrong = Signal()
        drops = Signal(name="drops") if sample else Const(0)  # No sequence is too long.
        whole = self._turns(m, "beat", beats, moves)  # The beat ends a vector, or the whole frame.
        ends = whole if self._vectors is None else whole & self._turns(m, "vector", self._vectors, moves & whole)
        marked = self.i.payload.last

        # What passes, with zeros behind the last value of a vector; the mark is where it may be.
        m.d.comb += [
            self.o.valid.eq(fills | (self.i.valid & ~drops)), self.i.ready.eq(drops | (self.o.ready & ~fills)),
            moves.eq(self.o.valid & self.o.ready), self.busy.eq(fills),
            self.o.payload.last.eq(ends if sample else ends & (fills | marked)),
            wrong.eq(marked != ends if sample else marked & ~ends),
        ]
        for j, value in enumerate(self.i.payload.data):
            behind = (beats - 1) * lanes + j >= self._size
            m.d.comb += self.o.payload.data[j].eq(Mux(fills | whole if behind else fills, 0, value))

        # A frame that ends too early is filled up, one that ends too late is dropped to its end.
        with m.If(moves):
            with m.If(ends):
                m.d.sync += fills.eq(0)
            with m.If(~fills & wrong):
                m.d.sync += [self.malformed.eq(1), fills.eq(marked)]
        if sample:
            with m.If(moves & ~fills & ends & ~marked):
                m.d.sync += drops.eq(1)
            with m.Elif(drops & self.i.valid & marked):
                m.d.sync += drops.eq(0)
        return m

    @staticmethod
    def _turns(m: Module, name: str, count: int, moves: Value) -> Value:
        """Whether this is the last one of ``count``, which are counted when they move."""
        if count == 1:
            return Const(1)
        at = Signal(range(count), name=name)
        ends = Signal(name=f"{name}_ends")
        m.d.comb += ends.eq(at == count - 1)
        with m.If(moves):
            m.d.sync += at.eq(Mux(ends, 0, at + 1))
        return ends
