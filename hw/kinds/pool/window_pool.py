"""Pooling whose windows overlap or reach beyond the image: lines are kept, and a window is read in each cycle."""
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from operator import add
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.arith.fixed import constant_product, requantize
from circulant.hw.array.issue import SPECTRA
from circulant.hw.array.line_shape import Walk
from circulant.hw.array.parts import Parts, queue_memory
from circulant.hw.components.lines import LineBuffer
from circulant.hw.emit.target import Platform
from circulant.hw.stream.pipeline import Queue, block, connect, delay, tree
from circulant.hw.unit import WithoutImages
from circulant.sim.kinds.depthwise import Depthwise
from circulant.sim.kinds.pool import Pool, reciprocal

__all__ = ["ChannelShape", "WindowPoolLayer", "WindowShape", "joined", "rounded"]


class ChannelShape:
    """How a layer that works on each channel by itself walks over an image; in place of a `LineBufferShape`.

    Members:
        layer: the golden layer.
        k: channels of a block.
    """

    layer: Depthwise | Pool
    k: int
    blocks: int = 1
    fold: int = 1
    passes: int = 1

    @property
    def beats(self) -> int:
        """Blocks of a pixel."""
        return -(-self.layer.inputs // self.k)

    @property
    def lines(self) -> int:
        return 2 * self.layer.window.extent[0] + self.layer.window.stride[0]

    @property
    def block(self) -> data.StructLayout:
        return block(self.k, self.layer.input_format.width)

    @property
    def spectrum(self) -> data.ArrayLayout:
        return data.ArrayLayout(signed(self.layer.input_format.width), self.k)

    def between(self, m: Module, unit: Any, lines: LineBuffer, queue: Queue) -> None:
        """Lines behind the input of a unit, and a queue in front of its output: a pixel is started while the queue has
        room for all under way."""
        m.submodules.lines, m.submodules.queue = lines, queue
        connect(m, wiring.flipped(unit.i), lines.i)
        connect(m, queue.o, wiring.flipped(unit.o))
        promised = Signal(range(queue.depth + self.beats + 1))
        m.d.comb += lines.room.eq(promised <= queue.depth - self.beats)
        m.d.sync += promised.eq(promised + Mux(lines.starts, self.beats, 0) - (queue.o.valid & queue.o.ready))

    def mark(self, m: Module, queue: Queue, comes: Value) -> None:
        """The last block of an image is marked, as blocks come into the queue."""
        count = prod(self.layer.output_grid) * self.beats
        at = Signal(range(max(2, count)))
        m.d.comb += queue.i.payload.last.eq(at == count - 1)
        with m.If(comes):
            m.d.sync += at.eq(Mux(at == count - 1, 0, at + 1))


@dataclass(frozen=True)
class WindowShape(ChannelShape):
    """How a pooling walks over an image; in place of a `LineBufferShape`.

    Parameters:
        layer: the golden layer.
        k: values of a block.
    """

    layer: Pool
    k: int

    @property
    def positions(self) -> int:
        return self.layer.window.positions

    @property
    def turns(self) -> tuple[int, int]:
        return 1, self.beats

    @property
    def cycles(self) -> int:
        """Cycles per output pixel."""
        return self.beats

    @property
    def walk(self) -> Walk:
        return Walk(self.layer.grid, self.layer.output_grid, self.layer.window, self.beats)

    def transform(self, m: Module, platform: Platform) -> "Passing":
        m.submodules.passing = passing = Passing(self.spectrum, flip=self.layer.mode == "max")
        return passing


class Passing(wiring.Component):
    """Values as they are or, with ``flip``, their highest bit inverted: then what is outside, zero, is the least.

    Members:
        i: stream of blocks as they come.
        o: stream of the same blocks.
    """

    def __init__(self, layout: data.ArrayLayout, *, flip: bool) -> None:
        self._flip = flip
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.d.comb += [self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready), *(
            self.o.payload[j].eq(flipped(self.i.payload[j]) if self._flip else self.i.payload[j])
            for j in range(self.i.payload.shape().length))]
        return m


def joined(layer: Pool) -> Callable[[Value, Value], Value]:
    """The join of two values of a window: the greater one, or their sum."""
    return (lambda a, b: Mux(a > b, a, b)) if layer.mode == "max" else add


def rounded(layer: Pool, value: Value) -> Value:
    """The result of a window's greatest value or sum: the value itself, or the mean."""
    if layer.mode == "max":
        return value
    factor, bits = reciprocal(layer.window.positions)
    return requantize(constant_product(value, factor), layer.input_format.frac + bits - layer.output_format.frac,
                      layer.output_format.width)


def flipped(value: Value) -> Value:
    value = Value.cast(value)
    return (value ^ (1 << len(value) - 1))[:len(value)].as_signed()


class WindowPoolLayer(WithoutImages, wiring.Component):
    """Images in, images out; equals `sim.kinds.pool.Pool`. A block of an output pixel in each cycle.

    Parameters:
        layer: the golden layer.
        k: values of a block.
        marked: whether the last block of an image is marked.

    Members:
        i: stream of blocks of the image's pixels.
        o: stream of blocks of the smaller image's pixels.
    """

    def __init__(self, layer: Pool, *, k: int, marked: bool = True) -> None:
        self._shape, self._marked = WindowShape(layer, k), marked
        self._lines = LineBuffer(self._shape)
        payload = block(k, layer.output_format.width)
        self._queue = Queue(payload, depth=self._behind + 4 + 2 * self._shape.beats)
        super().__init__({"i": self._lines.signature.members["i"], "o": Out(stream.Signature(payload))})

    @property
    def _behind(self) -> int:
        """Cycles from an issue of the lines to the queue: the lines, levels of the tree, the rounding."""
        return SPECTRA + ceil_log2(self._shape.positions) + 1

    @property
    def latency(self) -> int:
        """Cycles from the last block of the last pixel that a window needs to the first block of its pixel."""
        return self._lines.latency + self._behind + self._queue.latency

    @property
    def parts(self) -> Parts:
        return Parts([self._lines.memory, queue_memory(self._queue)])

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        shape, layer, lines, queue = self._shape, self._shape.layer, self._lines, self._queue
        shape.between(m, self, lines, queue)

        # What comes out of the tree, counted where the last block of an image is marked.
        comes = delay(m, lines.issue.valid, self._behind, name="comes", reset_less=False)
        m.d.comb += queue.i.valid.eq(comes)
        if self._marked:
            shape.mark(m, queue, comes)

        # The greatest value or the sum of each window, then the mean.
        for j in range(shape.k):
            level: list[Value] = [lines.spectra[n][j] for n in range(shape.positions)]
            if layer.mode == "max":
                level = [flipped(value) for value in level]
            best = tree(m, level, name=f"tree_{j}", join=joined(layer))
            value = Signal(signed(layer.output_format.width), name=f"value_{j}", reset_less=True)
            m.d.sync += value.eq(rounded(layer, best))
            m.d.comb += queue.i.payload.data[j].eq(value)
        return m
