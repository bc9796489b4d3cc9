"""LayerNorm and RMSNorm: sums of each vector while it comes, 1/√v, then its values again.

    i ─┬─► squares, sums ─► v ─► 1/√v ─► queue of results ─┐
       └─► queue of blocks ───────────────────────────────► u · r ─► shift ─► z · g ─► round, + b ─► queue ─► o
"""
from amaranth.hdl import Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import constant_product, round_shift, saturate
from circulant.hw.array.parts import Memory, Parts, Product, queue_memory
from circulant.hw.array.plans import ValuesPlan
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, packed
from circulant.hw.layers.rsqrt import InverseRoot
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.passes import Ladder, ladder, layer_entry, layer_multiplications, useful
from circulant.hw.plan.stream_plan import one_for_each, values_entry
from circulant.hw.stream.pipeline import LEVELS, PROMPT, Queue, block, connect, delay
from circulant.hw.unit import Site, unit
from circulant.sim.arith.circulant import pad
from circulant.sim.arith.rsqrt import ROOT
from circulant.sim.design import LayerEntry
from circulant.sim.kinds.norm import Norm

__all__ = ["NormLayer", "norm_latency"]

BEHIND = 7
"""Cycles from a block and its result to what leaves: u, its product, shift, rounding, product, rounding, sum."""

OWN = 3
"""Multipliers of 1/√v, and of the square of a sum."""


def norm_latency(elements: int) -> int:
    """Cycles from the last block of a vector to the first one of its result: squares and their sum, v, its 1/√v."""
    return 1 + (elements - 1).bit_length() + 3 + InverseRoot.latency + PROMPT + BEHIND + PROMPT


class NormLayer(wiring.Component):
    """Vectors in, as many out; equals `sim.kinds.norm.Norm`. A block in each cycle.

    Parameters:
        layer: the golden layer.
        elements: of a block, each with three multipliers.

    Members:
        i: stream of blocks of values, zero behind the last one of a vector.
        o: stream of blocks of normalised values.
    """

    def __init__(self, layer: Norm, *, elements: int) -> None:
        self._layer, self._elements, self._beats = layer, elements, -(-layer.inputs // elements)
        self._sums = (layer.most + layer.epsilon).bit_length()
        self._inverse = InverseRoot(width=max(2, self._sums), name=f"{layer.name}_roots")
        given = block(elements, layer.input_format.width)
        made = block(elements, layer.output_format.width)
        depth = self._beats + self.latency
        self._blocks = Queue(given, depth=depth)
        self._results = Queue(data.StructLayout({
            "root": unsigned(ROOT + 2), "places": self._inverse.places.shape(), "total": signed(self._total)}),
            depth=depth // self._beats + 3, prompt=True)
        self._queue = Queue(made, depth=BEHIND + 3, prompt=True)
        super().__init__({"i": In(stream.Signature(given)), "o": Out(stream.Signature(made))})

    @property
    def latency(self) -> int:
        return norm_latency(self._elements)

    @property
    def _total(self) -> int:
        """Bits of the sum of a vector."""
        return self._layer.input_format.width + self._layer.inputs.bit_length()

    @property
    def parts(self) -> Parts:
        layer, e = self._layer, self._elements
        gains = Memory(1, e * (layer.factor.width + layer.output_format.width), self._beats, writable=False)
        width, centred = layer.input_format.width, [Product(1, self._total, self._total)] if layer.centred else []
        return self._inverse.parts + Parts(
            [gains, *map(queue_memory, (self._blocks, self._results, self._queue))],
            [Product(e, width, width), Product(e, layer.value_bits, ROOT + 2),
             Product(e, layer.normal.width, layer.factor.width), *centred])

    @property
    def images(self) -> list[Image]:
        """The table of 1/√v; gains and shifts of the values that are taken in a cycle."""
        layer, e = self._layer, self._elements
        gain, width = layer.factor.width, layer.output_format.width
        gains, shifts = (pad(values, self._beats * e).reshape(self._beats, e) for values in (layer.gain, layer.shift))
        words = [low | high << e * gain for low, high in zip(packed(gains, gain), packed(shifts, width), strict=True)]
        return [*self._inverse.images, Image(words, e * (gain + width), f"{layer.name}_gains")]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.blocks, m.submodules.results, m.submodules.queue = self._blocks, self._results, self._queue
        connect(m, wiring.flipped(self.i), self._blocks.i)
        connect(m, self._queue.o, wiring.flipped(self.o))
        self._sum(m)
        self._scale(m)
        return m

    def _sum(self, m: Module) -> None:
        """Sums of the blocks that come, and behind each vector its 1/√v."""
        layer, e, beats = self._layer, self._elements, self._beats
        moves = Signal()
        beat = Signal(range(max(2, beats)))
        m.d.comb += moves.eq(self.i.valid & self.i.ready)
        with m.If(moves):
            m.d.sync += beat.eq(Mux(beat == beats - 1, 0, beat + 1))

        # Squares, and pairs of them in each cycle; the values as late.
        values: list[Value] = [self.i.payload.data[j] for j in range(e)]
        squares: list[Value] = [value * value for value in values]
        levels = (e - 1).bit_length()
        for level in range(levels + 1):
            for name, line in (("square", squares), ("value", values)):
                line[:] = [line[n] + line[n + 1] if level and n + 1 < len(line) else line[n]
                           for n in range(0, len(line), 2 if level else 1)]
                for n, each in enumerate(line):
                    line[n] = later = Signal.like(each, name=f"{name}_{level}_{n}", reset_less=True)
                    m.d.sync += later.eq(each)
        late = 1 + levels
        starts, ends, comes = (delay(m, value, late, name=name, reset_less=False) for name, value in (
            ("starts", beat == 0), ("ends", moves & (beat == beats - 1)), ("comes", moves)))

        # Sums of the vector so far, and what becomes of them at its end.
        square = Signal(signed(self._sums + 1), reset_less=True)
        total = Signal(signed(self._total), reset_less=True)
        with m.If(comes):
            m.d.sync += [square.eq(Mux(starts, 0, square) + squares[0]), total.eq(Mux(starts, 0, total) + values[0])]
        m.submodules.inverse = inverse = self._inverse
        many = Signal(signed(self._sums + 1), reset_less=True)
        other = Signal(signed(2 * self._total), reset_less=True)
        v = Signal(unsigned(self._sums), reset_less=True)
        m.d.sync += v.eq(many - other + layer.epsilon)
        if layer.centred:
            m.d.sync += [many.eq(constant_product(square, layer.inputs)), other.eq(total * total)]
        else:
            m.d.sync += many.eq(square)
        m.d.comb += inverse.v.eq(v)
        behind = 3 + inverse.latency
        result = self._results.i
        m.d.comb += [result.valid.eq(delay(m, ends, behind, name="found", reset_less=False)),
                     result.payload.root.eq(inverse.root), result.payload.places.eq(inverse.places),
                     result.payload.total.eq(delay(m, total, behind - 1, name="total_late"))]

    def _scale(self, m: Module) -> None:
        """The values again, times 1/√v and the gains."""
        layer, e, beats = self._layer, self._elements, self._beats
        gain, width = layer.factor.width, layer.output_format.width
        blocks, result, queue = self._blocks.o, self._results.o, self._queue
        promised = Signal(range(queue.depth + 1))
        moves = Signal()
        beat = Signal(range(max(2, beats)))
        final = beat == beats - 1
        m.d.comb += [moves.eq(blocks.valid & result.valid & (promised < queue.depth)), blocks.ready.eq(moves),
                     result.ready.eq(moves & final)]
        m.d.sync += promised.eq(promised + moves - (queue.o.valid & queue.o.ready))
        with m.If(moves):
            m.d.sync += beat.eq(Mux(final, 0, beat + 1))
        m.submodules.gains = rom = Rom(**self.images[-1]._asdict())
        m.d.comb += [rom.en.eq(1), rom.addr.eq(delay(m, beat, 3, name="beat_late"))]

        # u, its product with r, and the shift that the places say, but for a bit.
        root = delay(m, result.payload.root, 1, name="root")
        amount = Signal(range(ROOT + self._inverse._places), reset_less=True)
        m.d.sync += amount.eq(result.payload.places + (ROOT - 1 - layer.normal.frac))
        amount = delay(m, amount, 1, name="amount_late")
        late = delay(m, rom.data[e * gain:], 2, name="late")
        behind = delay(m, final, BEHIND, name="final")
        m.d.comb += [queue.i.valid.eq(delay(m, moves, BEHIND, name="valid", reset_less=False)),
                     queue.i.payload.last.eq(delay(m, blocks.payload.last, BEHIND, name="last"))]
        for j in range(e):
            x: Value = blocks.payload.data[j]
            u = constant_product(x, layer.inputs) - result.payload.total if layer.centred else x

            def kept(value: Value, bits: int, name: str, j: int = j) -> Signal:
                signal = Signal(signed(bits), name=f"{name}_{j}", reset_less=True)
                m.d.sync += signal.eq(value)
                return signal

            value = kept(u, layer.value_bits, "u")
            product = kept(value * root, layer.value_bits + ROOT + 2, "product")
            shifted = kept(product >> amount, len(product), "shifted")
            z = kept(saturate((shifted + 1)[1:].as_signed(), layer.normal.width), layer.normal.width, "z")
            scaled = kept(z * rom.data.word_select(j, gain).as_signed(), layer.normal.width + gain, "scaled")
            rounded = kept(round_shift(scaled, layer.rounding), len(scaled) + 1 + max(0, -layer.rounding), "rounded")
            y = kept(saturate(rounded + late.word_select(j, width).as_signed(), width), width, "y")
            m.d.comb += queue.i.payload.data[j].eq(Mux(behind, 0, y) if (beats - 1) * e + j >= layer.inputs else y)


@unit.register
def _(layer: Norm, plan: ValuesPlan, site: Site) -> NormLayer:
    return NormLayer(layer, elements=plan.elements)


@ladder.register
def _(layer: Norm, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    """Some values in a cycle, each with three multipliers; a few for each vector besides."""
    own = OWN - (not layer.centred)
    return Ladder([(ValuesPlan(each.elements, each.cycles, 3 * each.elements + own),)
                   for each in useful(list(one_for_each(layer, count)))])


@layer_multiplications.register
def _(layer: Norm, count: int = 1, plan: ValuesPlan | None = None) -> int:
    return (3 * layer.inputs + OWN - (not layer.centred)) * count


@layer_entry.register
def _(layer: Norm, plan: ValuesPlan) -> LayerEntry:
    return values_entry(layer, plan, "some values in each cycle")


@leaving.register
def _(layer: Norm, plan: ValuesPlan, comes: list[int], k: int) -> list[int]:
    first = comes[-1] + norm_latency(plan.elements)
    return [first + n for n in range(len(comes))]
