"""Between two layers of different block sizes: the same vectors in other blocks."""
from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import block, connect

__all__ = ["WidthConverter", "serialize"]


class WidthConverter(wiring.Component):
    """Vectors of ``size`` values in blocks of ``k_in`` become vectors in blocks of ``k_out``, zero-padded at the end.

    A wide block is held while its parts leave, parts that hold nothing but padding are dropped; narrow blocks are
    collected until a wide one is full or the vector ends.

    Members:
        i: stream of blocks of ``k_in`` values.
        o: stream of blocks of ``k_out`` values.
    """

    def __init__(self, *, size: int, width: int, k_in: int, k_out: int) -> None:
        if k_in < size and k_out < size and k_in % k_out and k_out % k_in:
            raise ValueError(f"Blocks that a vector of {size} values has several of must divide one another, not "
                             f"{k_in} and {k_out}")
        self._size, self._k_in, self._k_out = size, k_in, k_out
        self._blocks_in, self._blocks_out = -(-size // k_in), -(-size // k_out)
        super().__init__({
            "i": In(stream.Signature(block(k_in, width))), "o": Out(stream.Signature(block(k_out, width)))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        if self._k_in >= min(self._k_out, self._size):
            self._split(m)
        else:
            self._gather(m)
        return m

    def _split(self, m: Module) -> None:
        parts, k = -(-self._k_in // self._k_out), self._k_out

        # The part of the block that leaves, of those that hold values of the vector.
        part = Signal(range(max(2, parts)))
        block_index = Signal(range(max(2, self._blocks_out)))
        ends_block = Signal()
        ends_vector = Signal()
        moves = self.o.valid & self.o.ready
        m.d.comb += [
            ends_vector.eq(block_index == self._blocks_out - 1), ends_block.eq((part == parts - 1) | ends_vector),
            self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready & ends_block),
            self.o.payload.last.eq(self.i.payload.last & ends_vector),
        ]
        for j in range(k):
            m.d.comb += self.o.payload.data[j].eq(Array([
                self.i.payload.data[p * k + j] if p * k + j < self._k_in else 0 for p in range(parts)])[part])
        if self._blocks_out > 1:  # Else both stay zero.
            with m.If(moves):
                m.d.sync += block_index.eq(Mux(ends_vector, 0, block_index + 1))
                if parts > 1:
                    m.d.sync += part.eq(Mux(ends_block, 0, part + 1))

    def _gather(self, m: Module) -> None:
        parts, k = self._k_out // self._k_in, self._k_in

        # The part of the block that is filled, which leaves when it is full or the vector ends.
        part = Signal(range(parts))
        block_index = Signal(range(max(2, self._blocks_in)))
        full = Signal()
        ends_vector = Signal()
        held = Signal(self.o.payload.shape())
        m.d.comb += [
            ends_vector.eq(block_index == self._blocks_in - 1), self.i.ready.eq(~full | self.o.ready),
            self.o.payload.eq(held), self.o.valid.eq(full),
        ]
        with m.If(self.o.ready):
            m.d.sync += full.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                part.eq(Mux((part == parts - 1) | ends_vector, 0, part + 1)),
                block_index.eq(Mux(ends_vector, 0, block_index + 1)),
                full.eq((part == parts - 1) | ends_vector), held.last.eq(self.i.payload.last),
            ]
            for p in range(parts):
                for j in range(k):
                    with m.If(part == p):
                        m.d.sync += held.data[p * k + j].eq(self.i.payload.data[j])
                    if p:
                        with m.Elif(part == 0):
                            m.d.sync += held.data[p * k + j].eq(0)


def serialize(m: Module, source: stream.Interface, sink: stream.Interface) -> None:
    """Join two streams of which the first one has some pixels side by side where the second one has one."""
    (values, width), k_out = (source.payload.shape().members["data"].length,
                              source.payload.data.shape().elem_shape.width), sink.payload.data.shape().length
    if values != k_out:
        m.submodules.serialize = width_converter = WidthConverter(size=values, width=width, k_in=values, k_out=k_out)
        connect(m, source, width_converter.i)
        source = width_converter.o
    connect(m, source, sink)
