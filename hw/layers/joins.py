"""Joins of several streams: sums, products and their like, and vectors side by side.

What one branch gives waits in a queue until the others have come. A queue that holds a whole vector is enough against
a deadlock: each layer gives a vector, or a step, from those that came up to it, so the oldest one under way is never
kept back. So that nothing stalls either, it holds as many as the longest other way has under way.
"""
from collections.abc import Sequence
from functools import reduce, singledispatch

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import requantize
from circulant.hw.array.parts import Memory, Parts
from circulant.hw.array.parts import Product as Multiplier
from circulant.hw.array.plans import ScalePlan, StreamPlan
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform
from circulant.hw.stream.join import Join
from circulant.hw.stream.pipeline import Queue, block, connect
from circulant.hw.stream.storage import DeepQueue
from circulant.hw.unit import FLYING, SLACK, Site, unit
from circulant.sim.golden.residual import Residual
from circulant.sim.kinds.add import Add
from circulant.sim.kinds.concat import Concat
from circulant.sim.kinds.elementwise import Elementwise
from circulant.sim.kinds.maximum import Maximum
from circulant.sim.kinds.minimum import Minimum
from circulant.sim.kinds.product import Product

__all__ = ["ConcatLayer", "PlacesLayer", "combined", "exact", "waiting"]

DEPTH = 4
"""Blocks that the queue behind a sum, or its like, holds."""


def waiting(beats: int, beside: int) -> int:
    """Blocks that wait in front of a join at the most, of vectors of so many ``beats``.

    Parameters:
        beside: stages on the longest other way.
    """
    return (2 + FLYING * beside) * beats + SLACK * beside + DeepQueue.latency


@singledispatch
def exact(layer: Elementwise | Residual, values: Sequence[Value]) -> Value:
    """The value of a kind for those of its sources, before it is rounded."""
    found: Value = (layer.combined if isinstance(layer, Elementwise) else Add.combined)(values)
    return found


@exact.register
def _(layer: Maximum, values: Sequence[Value]) -> Value:
    return reduce(lambda one, other: Mux(one > other, one, other), values)


@exact.register
def _(layer: Minimum, values: Sequence[Value]) -> Value:
    return reduce(lambda one, other: Mux(one < other, one, other), values)


def combined(m: Module, ends: Sequence[stream.Interface], o: stream.Interface, *, layer: Elementwise | Residual,
             frac: int, shifts: Sequence[int]) -> None:
    """Add the logic of a sum, or its like: taken when all have a block, and the queue behind it room for the one
    before.

    Parameters:
        ends: streams of blocks of what is combined.
        o: stream of blocks of the result.
        frac: fraction bits of the result, before it is rounded.
        shifts: places by which the values of each stream are shifted to the left before.
    """
    output, relu, multiplies = layer.output_format, layer.relu, isinstance(layer, Product)
    m.submodules.queue = queue = Queue(o.payload.shape(), depth=DEPTH)
    connect(m, queue.o, wiring.flipped(o))
    moves = Signal()
    sums = Signal(queue.i.payload.shape(), reset_less=True)
    held = Signal()
    valid: Value = ends[0].valid
    for end in ends[1:]:
        valid = valid & end.valid
    m.d.comb += [moves.eq(valid & (~held | queue.i.ready)), *(end.ready.eq(moves) for end in ends),
                 queue.i.valid.eq(held), queue.i.payload.eq(sums)]
    with m.If(queue.i.ready):
        m.d.sync += held.eq(0)
    with m.If(moves):
        m.d.sync += [held.eq(1), sums.last.eq(ends[0].payload.last)]

    # Brought to one binary point, added, rounded, and ReLU; a product is a register before it is rounded.
    for j in range(len(sums.data)):
        value = exact(layer, [end.payload.data[j] << shift for end, shift in zip(ends, shifts, strict=True)])
        if multiplies:
            product = Signal(value.shape(), name=f"product_{j}", reset_less=True)
            with m.If(moves):
                m.d.sync += product.eq(value)
            value = product
        total: Value = requantize(value, frac - output.frac, output.width)
        total = Mux(total[-1], 0, total) if relu else total
        if multiplies:
            m.d.comb += sums.data[j].eq(total)
        else:
            with m.If(moves):
                m.d.sync += sums.data[j].eq(total)


class _JoinLayer(wiring.Component):
    """Several streams in, one out; each waits in a queue of its own.

    Parameters:
        k: values of a block, of all streams.
        beside: for each source the stages on the longest other way.

    Members:
        k: values of a block.
        depths: blocks that each queue holds.
        i_0, i_1, …: streams of blocks of the sources, in their order.
        o: stream of blocks of the join.
    """

    def __init__(self, layer: Elementwise | Concat, *, k: int, beside: Sequence[int]) -> None:
        self._layer, self.k = layer, k
        self.depths = [waiting(-(-size // k), stages) for size, stages in zip(layer.sizes, beside, strict=True)]
        super().__init__({
            **{f"i_{n}": In(stream.Signature(block(k, form.width))) for n, form in enumerate(layer.input_formats)},
            "o": Out(stream.Signature(block(k, layer.output_format.width)))})

    @property
    def inputs(self) -> list[stream.Interface]:
        """The streams of its sources."""
        return [getattr(self, f"i_{n}") for n in range(len(self.depths))]

    @property
    def images(self) -> list[Image]:
        return []

    @property
    def widths(self) -> list[int]:
        """Bits of a value that waits, source by source."""
        return [form.width for form in self._layer.input_formats]

    @property
    def parts(self) -> Parts:
        return Parts([Memory(1, self.k * width + 1, depth)
                      for width, depth in zip(self.widths, self.depths, strict=True)])

    def _queues(self, m: Module) -> list[DeepQueue]:
        found = []
        for n, (width, depth) in enumerate(zip(self.widths, self.depths, strict=True)):
            m.submodules[f"waits_{n}"] = queue = DeepQueue(block(self.k, width), depth=depth)
            found.append(queue)
        return found


class PlacesLayer(_JoinLayer):
    """The sum of several streams of vectors, their maximum, or the difference, product or minimum of two; equals
    `sim.kinds.elementwise.Elementwise`."""

    @property
    def parts(self) -> Parts:
        widths = [form.width for form in self._layer.input_formats]
        return super().parts + Parts([Memory(1, self.k * self._layer.output_format.width + 1, DEPTH - 1)],
                                     [Multiplier(self.k, *widths)] if isinstance(self._layer, Product) else [])

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer = self._layer
        assert isinstance(layer, Elementwise)
        queues = self._queues(m)
        for source, queue in zip(self.inputs, queues, strict=True):
            connect(m, wiring.flipped(source), queue.i)
        combined(m, [queue.o for queue in queues], self.o, layer=layer, frac=layer.frac, shifts=layer.shifts)
        return m


class ConcatLayer(_JoinLayer):
    """Several streams of vectors side by side, each brought to one format; equals `sim.kinds.concat.Concat`."""

    @property
    def widths(self) -> list[int]:
        return [self._layer.output_format.width] * len(self._layer.input_formats)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, form = self._layer, self._layer.output_format
        queues = self._queues(m)

        # Values are brought to the output's format before they wait.
        for source, queue, given in zip(self.inputs, queues, layer.input_formats, strict=True):
            m.d.comb += [queue.i.valid.eq(source.valid), source.ready.eq(queue.i.ready),
                         queue.i.payload.last.eq(source.payload.last)]
            for j in range(self.k):
                value = source.payload.data[j]
                m.d.comb += queue.i.payload.data[j].eq(
                    value if given == form else requantize(value, given.frac - form.frac, form.width))

        # The first two side by side, behind them the third, and so on.
        before, size = queues[0].o, layer.sizes[0]
        for n, (queue, more) in enumerate(zip(queues[1:], layer.sizes[1:], strict=True), start=1):
            m.submodules[f"join_{n}"] = join = Join(sizes=(size, more), width=form.width, k=self.k)
            connect(m, before, join.first)
            connect(m, queue.o, join.second)
            before, size = join.o, size + more
        connect(m, before, wiring.flipped(self.o))
        return m


@unit.register
def _(layer: Elementwise, plan: StreamPlan, site: Site) -> PlacesLayer:
    return PlacesLayer(layer, k=site.k, beside=site.beside)


@unit.register
def _(layer: Product, plan: ScalePlan, site: Site) -> PlacesLayer:
    return PlacesLayer(layer, k=plan.elements, beside=site.beside)


@unit.register
def _(layer: Concat, plan: StreamPlan, site: Site) -> ConcatLayer:
    return ConcatLayer(layer, k=site.k, beside=site.beside)
