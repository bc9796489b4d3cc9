"""A vector that is held for all steps of a sequence, or pixels of an image: what gates and repeated vectors share."""
from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Memory
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import block
from circulant.hw.stream.storage import Ram

__all__ = ["Held", "held_memory"]


def held_memory(blocks: int, bits: int) -> list[Memory]:
    """The memory of a `Held`: none for a single block, which is a register."""
    return [Memory(1, bits, blocks)] if blocks > 1 else []


class Held(wiring.Component):
    """Vectors in, each over and over again out, until it is taken for the last time.

    The first time its blocks leave as they come, and are written beside; then they are read. Nothing takes a cycle, so
    that a block is taken in each.

    Parameters:
        k: values of a block.
        width: of a value.
        blocks: of a vector; of interleaved streams of those of all, one behind the other.

    Members:
        i: stream of blocks of vectors.
        o: stream of blocks; ``last`` of it marks nothing.
        final: whether the block that is taken ends a step or pixel behind which there is none; only looked at with the
            last block of a vector.
        ends: whether the block is the last one of a vector.
    """

    def __init__(self, *, k: int, width: int, blocks: int) -> None:
        self._k, self._width, self._blocks = k, width, blocks
        signature = stream.Signature(block(k, width))
        super().__init__({"i": In(signature), "o": Out(signature), "final": In(1), "ends": Out(1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        blocks = self._blocks
        came = Value.cast(self.i.payload.data)
        fresh = Signal(init=1)
        at = Signal(range(max(2, blocks)))
        following = Signal.like(at)
        moves = Signal()
        kept = Signal(came.shape().width, reset_less=True)
        m.d.comb += [
            self.o.valid.eq(~fresh | self.i.valid), moves.eq(self.o.valid & self.o.ready),
            self.i.ready.eq(moves & fresh), self.ends.eq(at == blocks - 1),
            following.eq(Mux(moves, Mux(self.ends, 0, at + 1), at)),
            Value.cast(self.o.payload.data).eq(Mux(fresh, came, kept)),
        ]
        m.d.sync += at.eq(following)
        with m.If(moves & self.ends):
            m.d.sync += fresh.eq(self.final)

        # The block of the next cycle is read in this one; it was written before.
        if blocks == 1:
            with m.If(moves & fresh):
                m.d.sync += kept.eq(came)
            return m
        m.submodules.ram = ram = Ram(width=came.shape().width, depth=blocks)
        m.d.comb += [ram.w_en.eq(moves & fresh), ram.w_addr.eq(at), ram.w_data.eq(came),
                     ram.r_en.eq(1), ram.r_addr.eq(following), kept.eq(ram.r_data)]
        return m
