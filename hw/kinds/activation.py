"""A function of each value, some values in each cycle."""
from collections.abc import Iterator, Sequence

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.activation import Activation as TableUnit
from circulant.hw.arith.activation import activation_latency, table_image, table_widths
from circulant.hw.arith.straight_lines import StraightLines, straight
from circulant.hw.array.parts import Memory, Parts, Product, queue_memory
from circulant.hw.array.plans import ValuesPlan
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform
from circulant.hw.plan.ladders import Ladder, ladder, layer_entry, layer_multiplications, useful
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.shared.controls import Piped, control
from circulant.hw.plan.stream_plan import one_for_each, values_entry
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import LEVELS, PROMPT, Queue, block, connect, delay
from circulant.hw.unit import Site, loadable, unit
from circulant.sim.design import LayerEntry
from circulant.sim.kinds.activation import Activation

__all__ = ["ActivationLayer", "activation_plans"]

ASIDE = 16
"""Values in a cycle at the most of a function that takes no multipliers."""


class ActivationLayer(wiring.Component):
    """Vectors or pixels in, as many out; equals `sim.kinds.activation.Activation`. A block in each cycle.

    Parameters:
        layer: the golden layer.
        elements: of a block, each with a table and a multiplier, or with neither where the lines are `straight`.
        config: the port of a reloadable design; None otherwise.

    Members:
        i: stream of blocks that come; what lies behind the last value of a vector is not looked at.
        o: stream of blocks that leave; what lies behind the last value of a vector is zero.
        busy: a vector is under way.
    """

    def __init__(self, layer: Activation, *, elements: int, config: Config | None = None) -> None:
        self._layer, self._elements, self._config = layer, elements, config
        self._straight = straight(layer.table)
        self._behind = _behind(layer)
        self._queue = Queue(block(elements, layer.output_format.width), depth=self._behind + 3, prompt=True)
        super().__init__({"i": In(stream.Signature(block(elements, layer.input_format.width))),
                          "o": Out(stream.Signature(block(elements, layer.output_format.width))), "busy": Out(1)})

    @property
    def parts(self) -> Parts:
        pwl, e = self._layer.table, self._elements
        queue = Parts([queue_memory(self._queue)])
        if self._straight:
            return queue
        tables = Parts([Memory(e, sum(table_widths(pwl)), pwl.segments, writable=False)], [
            Product(e, pwl.slope_format.width, pwl.input_bits if pwl.method == "pwl" else pwl.cell_bits + 1)])
        return (tables.loadable if self._config is not None else tables) + queue

    @property
    def latency(self) -> int:
        """Cycles from a block to what leaves: the function, then the queue."""
        return self._behind + PROMPT

    @property
    def images(self) -> list[Image]:
        return [] if self._straight else [table_image(self._layer.table, f"{self._layer.name}_table")]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, e, queue = self._layer, self._elements, self._queue
        groups = -(-layer.inputs // e)
        m.submodules.queue = queue
        connect(m, queue.o, wiring.flipped(self.o))
        promised = Signal(range(queue.depth + 1))
        group = Signal(range(max(2, groups)))
        moves = Signal()
        ends = Signal()
        m.d.comb += [self.i.ready.eq(promised < queue.depth), moves.eq(self.i.valid & self.i.ready),
                     ends.eq(group == groups - 1), self.busy.eq((promised != 0) | (group != 0))]
        m.d.sync += promised.eq(promised + moves - (queue.o.valid & queue.o.ready))
        with m.If(moves):
            m.d.sync += group.eq(Mux(ends, 0, group + 1))
        final = delay(m, ends, self._behind, name="final")
        m.d.comb += [queue.i.valid.eq(delay(m, moves, self._behind, name="valid", reset_less=False)),
                     queue.i.payload.last.eq(delay(m, self.i.payload.last, self._behind, name="last"))]
        for j in range(e):
            m.submodules[f"element_{j}"] = element = StraightLines(layer.table) if self._straight else TableUnit(
                layer.table, image=f"{layer.name}_table", config=self._config)
            behind = (groups - 1) * e + j >= layer.inputs
            m.d.comb += [element.x.eq(self.i.payload.data[j]),
                         queue.i.payload.data[j].eq(Mux(final, 0, element.y) if behind else element.y)]
        return m


@unit.register
def _(layer: Activation, plan: ValuesPlan, site: Site) -> ActivationLayer:
    return ActivationLayer(layer, elements=plan.elements, config=site.config)


@loadable.register
def _(layer: Activation) -> bool:
    return True


def activation_plans(layer: Activation, count: int) -> Iterator[ValuesPlan]:
    """A function takes some values of each of ``count`` vectors or pixels in a cycle, each with a multiplier; one of
    straight lines, which has none, up to `ASIDE`."""
    if straight(layer.table):
        elements = min(ASIDE, 1 << (layer.inputs - 1).bit_length())
        yield ValuesPlan(elements, count * -(-layer.inputs // elements), 0)
        return
    yield from one_for_each(layer, count)


@ladder.register
def _(layer: Activation, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    return Ladder([(each,) for each in useful(list(activation_plans(layer, count)))])


@layer_multiplications.register
def _(layer: Activation, count: int = 1, plan: ValuesPlan | None = None) -> int:
    return 0 if straight(layer.table) else layer.inputs * count


@layer_entry.register
def _(layer: Activation, plan: ValuesPlan) -> LayerEntry:
    return values_entry(layer, plan, "some values in each cycle")


def _behind(layer: Activation) -> int:
    return StraightLines.latency if straight(layer.table) else activation_latency()


@leaving.register
def _(layer: Activation, plan: ValuesPlan, comes: list[int], k: int) -> list[int]:
    return [cycle + _behind(layer) + PROMPT for cycle in comes]


@control.register
def _(layer: Activation, plan: ValuesPlan, k: int, *, wanted: int, depths: Sequence[int]) -> Piped:
    return Piped(_behind(layer), _behind(layer) + 3)
