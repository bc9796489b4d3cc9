"""A scale and shift of each channel, some channels in each cycle."""
from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import round_shift, saturate
from circulant.hw.array.parts import Memory, Parts, Product, queue_memory
from circulant.hw.array.plans import ValuesPlan
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, packed
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.shared.controls import Piped, control
from circulant.hw.plan.stream_plan import with_one_for_each
from circulant.hw.stream.pipeline import PROMPT, Queue, block, connect, delay
from circulant.hw.unit import Site, unit
from circulant.sim.arith.circulant import pad
from circulant.sim.kinds.scale import Scale

__all__ = ["LATENCY", "ScaleLayer"]

LATENCY = 4
"""Cycles: factors from their memory, product, rounding, sum."""


class ScaleLayer(wiring.Component):
    """Vectors or pixels in, as many out; equals `sim.kinds.scale.Scale`. A block in each cycle.

    Parameters:
        layer: the golden layer.
        elements: of a block, each with a multiplier.

    Members:
        i: stream of blocks of values.
        o: stream of blocks of scaled values.
    """

    def __init__(self, layer: Scale, *, elements: int) -> None:
        self._layer, self._elements = layer, elements
        self._queue = Queue(block(elements, layer.output_format.width), depth=LATENCY + 3, prompt=True)
        super().__init__({"i": In(stream.Signature(block(elements, layer.input_format.width))),
                          "o": Out(stream.Signature(block(elements, layer.output_format.width)))})

    @property
    def parts(self) -> Parts:
        layer, e = self._layer, self._elements
        factors = Memory(1, e * (layer.factor.width + layer.output_format.width), -(-layer.inputs // e), writable=False)
        return Parts([factors, queue_memory(self._queue)],
                     [Product(e, layer.input_format.width, layer.factor.width)])

    @property
    def latency(self) -> int:
        """Cycles from a block to what leaves: `LATENCY`, then the queue."""
        return LATENCY + PROMPT

    @property
    def images(self) -> list[Image]:
        """Factors and shifts of the channels that are taken in a cycle."""
        layer, e = self._layer, self._elements
        groups, factor, width = -(-layer.inputs // e), layer.factor.width, layer.output_format.width
        scales, shifts = (pad(values, groups * e).reshape(groups, e) for values in (layer.scale, layer.shift))
        words = [low | high << e * factor for low, high in zip(
            packed(scales, factor), packed(shifts, width), strict=True)]
        return [Image(words, e * (factor + width), f"{layer.name}_factors")]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, e, queue = self._layer, self._elements, self._queue
        groups = -(-layer.inputs // e)
        factor, width = layer.factor.width, layer.output_format.width
        m.submodules.factors = rom = Rom(**self.images[0]._asdict())
        m.submodules.queue = queue
        connect(m, queue.o, wiring.flipped(self.o))

        # Blocks come while the queue has room for all under way.
        promised = Signal(range(queue.depth + 1))
        group = Signal(range(max(2, groups)))
        moves = Signal()
        m.d.comb += [self.i.ready.eq(promised < queue.depth), moves.eq(self.i.valid & self.i.ready),
                     rom.en.eq(1), rom.addr.eq(group)]
        m.d.sync += promised.eq(promised + moves - (queue.o.valid & queue.o.ready))
        with m.If(moves):
            m.d.sync += group.eq(Mux(group == groups - 1, 0, group + 1))

        # What is known of a block, as late as its values.
        x, ends = (delay(m, value, 1, name=name) for value, name in (
            (self.i.payload, "x"), (group == groups - 1, "ends")))
        late = delay(m, rom.data[e * factor:], 2, name="late")
        final = delay(m, ends, LATENCY - 1, name="final")
        m.d.comb += [queue.i.valid.eq(delay(m, moves, LATENCY, name="valid", reset_less=False)),
                     queue.i.payload.last.eq(delay(m, x.last, LATENCY - 1, name="last"))]

        # Product, rounding, sum with the shift, ReLU; zeros behind the last channel.
        for j in range(e):
            product = Signal(signed(layer.input_format.width + factor), name=f"product_{j}", reset_less=True)
            rounded = Signal(signed(len(product) + 1 + max(0, -layer.rounding)), name=f"rounded_{j}", reset_less=True)
            total = Signal(signed(width), name=f"total_{j}", reset_less=True)
            limited = saturate(rounded + late.word_select(j, width).as_signed(), width)
            m.d.sync += [product.eq(x.data[j] * rom.data.word_select(j, factor).as_signed()),
                         rounded.eq(round_shift(product, layer.rounding)),
                         total.eq(Mux(limited[-1], 0, limited) if layer.relu else limited)]
            # Behind the last channel there is nothing.
            m.d.comb += queue.i.payload.data[j].eq(
                Mux(final, 0, total) if (groups - 1) * e + j >= layer.inputs else total)
        return m


@unit.register
def _(layer: Scale, plan: ValuesPlan, site: Site) -> ScaleLayer:
    return ScaleLayer(layer, elements=plan.elements)


with_one_for_each(Scale)


@leaving.register
def _(layer: Scale, plan: ValuesPlan, comes: list[int], k: int) -> list[int]:
    return [cycle + LATENCY + PROMPT for cycle in comes]


@control.register
def _(layer: Scale, plan: ValuesPlan, k: int, *, wanted: int, depths: Sequence[int]) -> Piped:
    return Piped(LATENCY, LATENCY + 3)
