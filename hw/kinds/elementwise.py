"""Several streams value by value: sums, differences, products, maxima and minima."""
from collections.abc import Sequence
from functools import reduce, singledispatch
from operator import and_

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring

from circulant.hw.arith.fixed import requantize
from circulant.hw.array.parts import Memory, Parts
from circulant.hw.array.parts import Product as Multiplier
from circulant.hw.array.plans import StreamPlan
from circulant.hw.components.joins import JoinLayer
from circulant.hw.emit.target import Platform
from circulant.hw.plan.dataflow import Cycles, in_turn, joined
from circulant.hw.plan.shared.controls import Waits, control
from circulant.hw.plan.stream_plan import without_multipliers
from circulant.hw.stream.pipeline import PROMPT, Queue, connect
from circulant.hw.unit import Site, unit
from circulant.sim.golden.residual import Residual
from circulant.sim.kinds.add import Add
from circulant.sim.kinds.elementwise import Elementwise
from circulant.sim.kinds.maximum import Maximum
from circulant.sim.kinds.minimum import Minimum
from circulant.sim.kinds.product import Product

__all__ = ["PlacesLayer", "combined", "exact"]

DEPTH = 4
"""Blocks that the queue behind a sum, or its like, holds."""


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
    """Add the logic of a sum, or its like, of one block of each, in front of a prompt queue: that of a product is there
    a cycle later, and is taken when the queue has room for the one before.

    Parameters:
        ends: streams of blocks of what is combined.
        o: stream of blocks of the result.
        frac: fraction bits of the result, before it is rounded.
        shifts: places by which the values of each stream are shifted to the left before.
    """
    output, relu, multiplies = layer.output_format, layer.relu, _multiplies(layer)
    m.submodules.queue = queue = Queue(o.payload.shape(), depth=DEPTH, prompt=True)
    connect(m, queue.o, wiring.flipped(o))
    moves = Signal()
    valid = reduce(and_, [end.valid for end in ends])
    last: Value = ends[0].payload.last
    if multiplies:
        held = Signal()
        marked = Signal(reset_less=True)
        with m.If(queue.i.ready):
            m.d.sync += held.eq(0)
        with m.If(moves):
            m.d.sync += [held.eq(1), marked.eq(last)]
        m.d.comb += [moves.eq(valid & (~held | queue.i.ready)), queue.i.valid.eq(held)]
        last = marked
    else:
        m.d.comb += [moves.eq(valid & queue.i.ready), queue.i.valid.eq(valid)]
    m.d.comb += [*(end.ready.eq(moves) for end in ends), queue.i.payload.last.eq(last)]

    # Brought to one binary point, added, rounded, and ReLU; a product is a register before it is rounded.
    for j in range(len(queue.i.payload.data)):
        value = exact(layer, [end.payload.data[j] << shift for end, shift in zip(ends, shifts, strict=True)])
        if multiplies:
            product = Signal(value.shape(), name=f"product_{j}", reset_less=True)
            with m.If(moves):
                m.d.sync += product.eq(value)
            value = product
        total: Value = requantize(value, frac - output.frac, output.width)
        m.d.comb += queue.i.payload.data[j].eq(Mux(total[-1], 0, total) if relu else total)


class PlacesLayer(JoinLayer):
    """The sum of several streams of vectors, their maximum, or the difference, product or minimum of two; equals
    `sim.kinds.elementwise.Elementwise`."""

    @property
    def parts(self) -> Parts:
        widths = [form.width for form in self._layer.input_formats]
        return super().parts + Parts([Memory(1, self.k * self._layer.output_format.width + 1, DEPTH - 1)],
                                     [Multiplier(self.k, *widths)] if _multiplies(self._layer) else [])

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer = self._layer
        assert isinstance(layer, Elementwise)
        queues = self._queues(m)
        for source, queue in zip(self.inputs, queues, strict=True):
            connect(m, wiring.flipped(source), queue.i)
        combined(m, [queue.o for queue in queues], self.o, layer=layer, frac=layer.frac, shifts=layer.shifts)
        return m


def _multiplies(layer: object) -> bool:
    return isinstance(layer, Product)


@unit.register
def _(layer: Elementwise, plan: StreamPlan, site: Site) -> PlacesLayer:
    return PlacesLayer(layer, k=site.k, beside=site.beside)


without_multipliers(Elementwise)


@joined.register
def _(layer: Elementwise, comes: list[Cycles], k: int) -> tuple[Cycles, list[int], int]:
    there = [max(cycles) + PROMPT for cycles in zip(*comes, strict=True)]
    return in_turn(there), [0] * len(comes), _multiplies(layer) + PROMPT


class _Control:
    """The handshakes of a sum, or its like, see `circulant.hw.plan.shared.controls.Control`."""

    def __init__(self, depths: Sequence[int], *, multiplies: bool) -> None:
        self._queues, self._behind = [Waits(depth) for depth in depths], Waits.of_depth(DEPTH)
        self._multiplies, self._held = multiplies, False

    @property
    def offers(self) -> bool:
        return self._behind.offers

    @property
    def takes(self) -> Sequence[bool]:
        return [each.room for each in self._queues]

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        room, held = self._behind.room, self._held
        moves = all(each.offers for each in self._queues) and (room or (self._multiplies and not held))
        for each, come in zip(self._queues, shown, strict=True):
            each.move(come and each.room, moves)
        self._behind.move(held and room if self._multiplies else moves, leaves)
        self._held = self._multiplies and (moves or (held and not room))

    def state(self) -> tuple[object, ...]:
        return self._held, *self._behind.state(), *(each.state() for each in self._queues)


@control.register
def _(layer: Elementwise, plan: StreamPlan, k: int, *, wanted: int, depths: Sequence[int]) -> _Control:
    return _Control(depths, multiplies=_multiplies(layer))
