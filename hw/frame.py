"""The way into a network over images: every image that passes has its size, whatever came."""
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Frame"]


class Frame(wiring.Component):
    """Images whose mark comes where it should pass as they are.

    What is missing of one whose mark comes early is filled up with zeros, and what is too much of one whose mark comes
    late is dropped, so that the next image is right again. What comes of such an image has no meaning.

    Parameters:
        shape: of a payload, with ``data`` and ``last``.
        blocks: of an image.

    Members:
        i, o: streams of payloads; the last one of an image is marked.
        malformed: an image had another size; stays set until reset.
    """

    def __init__(self, shape: data.StructLayout, *, blocks: int) -> None:
        self._blocks = blocks
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "malformed": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        at, ends = Signal(range(max(2, self._blocks))), Signal()
        fills, drops = Signal(), Signal()
        m.d.comb += [
            ends.eq(at == self._blocks - 1), self.o.payload.last.eq(ends),
            self.o.payload.data.eq(Mux(fills, 0, self.i.payload.data.as_value())),
            self.o.valid.eq(fills | (self.i.valid & ~drops)), self.i.ready.eq(drops | (self.o.ready & ~fills)),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += at.eq(Mux(ends, 0, at + 1))
            with m.If(ends):
                m.d.sync += fills.eq(0)
            with m.If(~fills & (self.i.payload.last != ends)):
                m.d.sync += [self.malformed.eq(1), fills.eq(self.i.payload.last), drops.eq(~self.i.payload.last)]
        with m.If(drops & self.i.valid & self.i.payload.last):
            m.d.sync += drops.eq(0)
        return m
