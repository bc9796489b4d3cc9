"""Units for a layer that goes backward: sequences in the opposite order, and none that is too long for that."""
from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import Platform
from circulant.hw.stream.storage import Ram

__all__ = ["Limit", "Reverse"]


class Reverse(wiring.Component):
    """The vectors of a sequence in the opposite order, the blocks of a vector in their own.

    A sequence is written into one half of a memory while the one before is read from the other half, a block in every
    cycle each, so that sequences of equal lengths follow each other without a pause. The first block leaves two cycles
    after the last one came. A sequence of more than ``steps`` vectors is cut behind each ``steps`` of them, and every
    part is reversed on its own.

    Parameters:
        shape: of a block, see `circulant.hw.stream.pipeline.block`.
        blocks: of a vector.
        steps: vectors of a sequence at the most.

    Members:
        i: stream of blocks in their order; the last one of a sequence is marked.
        o: stream of blocks in the opposite order of vectors; the last one of a sequence is marked.
    """

    def __init__(self, shape: data.StructLayout, *, blocks: int, steps: int) -> None:
        self._shape, self._blocks, self._half = shape, blocks, steps * blocks
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.ram = ram = Ram(width=Value.cast(self.i.payload.data).shape().width, depth=2 * self._half)
        full = Signal(2)
        final = Array(Signal(range(2 * self._half), name=f"final_{n}", reset_less=True) for n in range(2))
        self._write(m, ram, full, final)
        self._read(m, ram, full, final)
        return m

    def _write(self, m: Module, ram: Ram, full: Signal, final: Array) -> None:
        """Fill the halves in turns; ``full`` tells which of them hold a sequence, ``final`` where its last block is."""
        half = Signal()
        write_address = Signal(range(2 * self._half))
        count = Signal(range(self._half))
        ends = Signal()
        m.d.comb += [
            self.i.ready.eq(~full.bit_select(half, 1)),
            ends.eq(self.i.payload.last | (count == self._half - 1)),
            ram.w_en.eq(self.i.valid & self.i.ready), ram.w_addr.eq(write_address),
            ram.w_data.eq(Value.cast(self.i.payload.data)),
        ]
        with m.If(ram.w_en):
            m.d.sync += [write_address.eq(write_address + 1), count.eq(count + 1)]
            with m.If(ends):
                m.d.sync += [half.eq(~half), write_address.eq(Mux(half, 0, self._half)), count.eq(0),
                             full.bit_select(half, 1).eq(1), final[half].eq(write_address)]

    def _read(self, m: Module, ram: Ram, full: Signal, final: Array) -> None:
        """Read the vectors of a half from the last to the first, then leave it to be filled again."""
        k = self._blocks
        half = Signal()
        fresh = Signal(init=1)
        read_address = Signal(range(2 * self._half))
        block = Signal(range(max(2, k)))
        base = Signal.like(read_address)
        ends_vector = Signal()
        ends = Signal()
        m.d.comb += [
            base.eq(Mux(half, self._half, 0)),
            ram.r_addr.eq(Mux(fresh, final[half] - (k - 1), read_address)),
            ends_vector.eq(block == k - 1), ends.eq(ends_vector & (ram.r_addr == base + (k - 1))),
            ram.r_en.eq(full.bit_select(half, 1) & (~self.o.valid | self.o.ready)),
            Value.cast(self.o.payload.data).eq(ram.r_data),
        ]
        m.d.sync += self.o.valid.eq(ram.r_en | (self.o.valid & ~self.o.ready))
        with m.If(ram.r_en):
            m.d.sync += [
                self.o.payload.last.eq(ends), fresh.eq(ends),
                block.eq(Mux(ends_vector, 0, block + 1)),
                read_address.eq(Mux(ends_vector, ram.r_addr - (2 * k - 1), ram.r_addr + 1)),
            ]
            with m.If(ends):
                m.d.sync += [half.eq(~half), full.bit_select(half, 1).eq(0)]


class Limit(wiring.Component):
    """Cuts a sequence of more than ``steps`` vectors behind each ``steps`` of them: the last block there is marked.

    What comes behind a cut is a sequence of its own. Nothing else changes, and nothing takes a cycle.

    Parameters:
        shape: of a block, see `circulant.hw.stream.pipeline.block`.
        blocks: of a vector.
        steps: vectors of a sequence at the most.

    Members:
        i: stream of blocks; the last one of a sequence is marked.
        o: stream of blocks; the last one of a sequence, or of a part of it, is marked.
        overflow: a sequence has been cut; stays set until reset.
    """

    def __init__(self, shape: data.StructLayout, *, blocks: int, steps: int) -> None:
        self._most = steps * blocks
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "overflow": Out(1)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        count = Signal(range(self._most))
        cut = Signal()
        m.d.comb += [
            cut.eq(count == self._most - 1),
            self.o.payload.data.eq(self.i.payload.data), self.o.payload.last.eq(self.i.payload.last | cut),
            self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [count.eq(Mux(self.o.payload.last, Const(0), count + 1)),
                         self.overflow.eq(self.overflow | (cut & ~self.i.payload.last))]
        return m
