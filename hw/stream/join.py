"""The two ends of a bidirectional layer: one stream to two sinks, and two streams of vectors side by side in one."""
from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import block

__all__ = ["Join", "fork"]


def fork(m: Module, source: stream.Interface, sinks: list[stream.Interface], *, name: str) -> None:
    """Give each payload of ``source`` to all ``sinks``, to each as soon as it takes it."""
    took = [Signal(name=f"{name}_took_{n}") for n in range(len(sinks))]
    ready = Cat(sink.ready | done for sink, done in zip(sinks, took, strict=True)).all()
    m.d.comb += source.ready.eq(ready)
    for sink, done in zip(sinks, took, strict=True):
        m.d.comb += [sink.valid.eq(source.valid & ~done), sink.payload.eq(source.payload)]
        m.d.sync += done.eq(source.valid & ~ready & (sink.ready | done))


class Join(wiring.Component):
    """Vectors of two streams side by side: values of the first one, behind them those of the second, zero-padded.

    A block leaves in every cycle in which what it is made of is there. Where the first vector ends within a block, the
    blocks of the second one are shifted to begin there.

    Parameters:
        sizes: values of the vectors.
        width: of a value.
        k: values of a block, of both inputs and of the output.

    Members:
        first: stream of zero-padded blocks of the first vectors.
        second: stream of zero-padded blocks of the second vectors, as many as the first ones.
        o: stream of blocks of both side by side, marked where ``second`` is.
    """

    def __init__(self, *, sizes: tuple[int, int], width: int, k: int) -> None:
        self._sizes, self._k = sizes, k
        signature = stream.Signature(block(k, width))
        super().__init__({"first": In(signature), "second": In(signature), "o": Out(signature)})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        k, (first_size, second_size) = self._k, self._sizes
        whole, shift = divmod(first_size, k)  # blocks of the first vector alone, values of it in the block behind them
        stop, total = whole + -(-second_size // k), -(-(first_size + second_size) // k)

        # The block that leaves: of the first vector, of both, of the second one.
        block_index = Signal(range(max(2, total)))
        ends = Signal()
        moves = Signal()
        takes_first = Signal()
        takes_second = Signal()
        second_begun = Signal()
        held = Signal.like(self.o.payload.data)
        marked = Signal()
        first, second = self.first.payload, self.second.payload
        m.d.comb += [
            ends.eq(block_index == total - 1), second_begun.eq(block_index >= whole),
            takes_first.eq(block_index < whole + bool(shift)), takes_second.eq(second_begun & (block_index < stop)),
            self.o.valid.eq((self.first.valid | ~takes_first) & (self.second.valid | ~takes_second)),
            moves.eq(self.o.valid & self.o.ready),
            self.first.ready.eq(moves & takes_first), self.second.ready.eq(moves & takes_second),
            self.o.payload.last.eq(ends & Mux(takes_second, second.last, marked)),
        ]

        # Its values: the second vector begins behind the last value of the first one.
        for j in range(k):
            own: ValueLike = Mux(takes_first, first.data[j], held[j]) if j < shift else 0
            if j >= shift:
                own = Mux(takes_second, second.data[j - shift], 0)
            m.d.comb += self.o.payload.data[j].eq(Mux(second_begun, own, first.data[j]) if whole else own)

        # What is left of a block of the second vector is held for the next one.
        with m.If(moves):
            m.d.sync += block_index.eq(Mux(ends, 0, block_index + 1))
            with m.If(takes_second):
                m.d.sync += [marked.eq(second.last),
                             *(held[j].eq(Value.cast(second.data[k - shift + j])) for j in range(shift))]
        return m
