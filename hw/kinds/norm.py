"""LayerNorm and RMSNorm: sums of each vector while it comes, 1/√v, then its values again.

    i ─┬─► squares, sums ─► v ─► 1/√v ─► queue of results ─┐
       └─► queue of blocks ───────────────────────────────► u · r ─► shift ─► z · g ─► round, + b ─► queue ─► o
"""
from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.arith.fixed import digits, round_shift, saturate
from circulant.hw.array.parts import Memory, Parts, Product, queue_memory
from circulant.hw.array.plans import ValuesPlan
from circulant.hw.components.rsqrt import InverseRoot, root_latency
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom, packed
from circulant.hw.plan.ladders import Ladder, ladder, layer_entry, layer_multiplications, useful
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.shared.controls import Piped, Waits, control
from circulant.hw.plan.stream_plan import one_for_each, values_entry
from circulant.hw.stream.pipeline import (
    LEVELS,
    PROMPT,
    Queue,
    block,
    connect,
    delay,
    difference,
    difference_steps,
    registers,
    steps,
    tree,
    when,
)
from circulant.hw.unit import Site, unit
from circulant.sim.arith.circulant import pad
from circulant.sim.arith.rsqrt import ROOT
from circulant.sim.design import LayerEntry
from circulant.sim.kinds.norm import Norm

__all__ = ["NormLayer"]

OWN = 3
"""Multipliers of 1/√v, and of the square of a sum."""


@dataclass(frozen=True)
class _Timing:
    """Cycles of a norm's units; products have a register each, and sums as the levels of logic allow.

    Parameters:
        found: from the first sums of a block to v.
        takes: from a block and its result to the factors u and r.
        behind: from there to what leaves: product, shift, rounding and clipping, product, rounding and sum.
    """

    layer: Norm
    elements: int
    levels: int

    @property
    def plus(self) -> int:
        """Digits of n that count as they are."""
        return sum(digit > 0 for digit, _ in digits(self.layer.inputs))

    @property
    def minus(self) -> int:
        return sum(digit < 0 for digit, _ in digits(self.layer.inputs))

    @property
    def sums(self) -> int:
        """From a block to its sums: squares, pairs of them, and the sum of the vector so far."""
        return 1 + registers(ceil_log2(self.elements) + 1, self.levels)

    @property
    def found(self) -> int:
        """From these sums to v; beside n Σx² + e there is a product."""
        if not self.layer.centred:
            return 1
        return max(2, registers(difference_steps(self.plus + 1, self.minus) + 1, self.levels))

    @property
    def takes(self) -> int:
        """From a block and its result to the factors u and r."""
        if not self.layer.centred:
            return int(steps(self.levels) == 1)
        return registers(difference_steps(self.plus, self.minus + 1), self.levels)

    @property
    def clips(self) -> int:
        """From the product u · r to z: shift, rounding, clipping."""
        return registers(3, self.levels)

    @property
    def ends(self) -> int:
        """From the product z · g to y: rounding, then shift and clipping."""
        return registers(2, self.levels)

    @property
    def behind(self) -> int:
        """From a block and its result to what leaves."""
        return self.takes + 1 + self.clips + 1 + self.ends

    @property
    def latency(self) -> int:
        """From the last block of a vector to the first one of its result."""
        return self.sums + self.found + root_latency(self.levels) + PROMPT + self.behind + PROMPT


class NormLayer(wiring.Component):
    """Vectors in, as many out; equals `sim.kinds.norm.Norm`. A block in each cycle.

    Parameters:
        layer: the golden layer.
        elements: of a block, each with three multipliers.
        levels: of logic between two registers.

    Members:
        i: stream of blocks of values, zero behind the last one of a vector.
        o: stream of blocks of normalised values.
    """

    def __init__(self, layer: Norm, *, elements: int, levels: int = LEVELS) -> None:
        self._layer, self._elements, self._beats = layer, elements, -(-layer.inputs // elements)
        self._sums = (layer.most + layer.epsilon).bit_length()
        self._timing, self._levels = _Timing(layer, elements, levels), levels
        self._inverse = InverseRoot(width=max(2, self._sums), name=f"{layer.name}_roots", levels=levels)
        given = block(elements, layer.input_format.width)
        made = block(elements, layer.output_format.width)
        depth, results = _depths(layer, elements, levels)
        self._blocks = Queue(given, depth=depth)
        self._results = Queue(data.StructLayout({
            "root": unsigned(ROOT + 2), "places": self._inverse.places.shape(), "total": signed(self._total)}),
            depth=results, prompt=True)
        self._queue = Queue(made, depth=self._timing.behind + 3, prompt=True)
        super().__init__({"i": In(stream.Signature(given)), "o": Out(stream.Signature(made))})

    @property
    def latency(self) -> int:
        return self._timing.latency

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
        sums = [tree(m, [when(m, value, value.shape(), kept=True, name=f"{name}_{j}") for j, value in enumerate(line)],
                     name=name, levels=self._levels, more=1)
                for name, line in (("square", [value * value for value in values]), ("value", values))]
        starts, ends, comes = (delay(m, value, self._timing.sums - 1, name=name, reset_less=False) for name, value in (
            ("starts", beat == 0), ("ends", moves & (beat == beats - 1)), ("comes", moves)))

        # Sums of the vector so far, and what becomes of them at its end.
        first = 0 if layer.centred else layer.epsilon
        square = Signal(signed(self._sums + 1), reset_less=True)
        total = Signal(signed(self._total), reset_less=True)
        with m.If(comes):
            m.d.sync += [square.eq(Mux(starts, first, square) + sums[0]), total.eq(Mux(starts, 0, total) + sums[1])]
        m.submodules.inverse = inverse = self._inverse
        v = Signal(unsigned(self._sums), reset_less=True)
        m.d.sync += v.eq(self._variance(m, square, total) if layer.centred else square)
        m.d.comb += inverse.v.eq(v)
        behind = self._timing.found + inverse.latency
        result = self._results.i
        m.d.comb += [result.valid.eq(delay(m, ends, behind + 1, name="found", reset_less=False)),
                     result.payload.root.eq(inverse.root), result.payload.places.eq(inverse.places),
                     result.payload.total.eq(delay(m, total, behind, name="total_late"))]

    def _variance(self, m: Module, square: Value, total: Value) -> Value:
        """n Σx² + e without (Σx)², in front of its register."""
        cycles = self._timing.found - 1
        plus, minus = self._times(square)
        count = difference_steps(len(plus) + 1, len(minus))
        many = difference(m, [*plus, Const(self._layer.epsilon, signed(self._layer.epsilon.bit_length() + 1))], minus,
                          name="many", levels=self._levels, more=1)
        other = when(m, total * total, signed(2 * self._total), kept=True, name="other")
        many = delay(m, many, cycles - registers(count + 1, self._levels) + 1, name="many_late")
        return many - delay(m, other, cycles - 1, name="other_late")

    def _times(self, x: Value) -> tuple[list[Value], list[Value]]:
        """n · x, as values whose sum it is without that of others."""
        found = list(digits(self._layer.inputs))
        plus, minus = ([x << place for digit, place in found if digit == sign] for sign in (1, -1))
        return plus, minus

    def _scale(self, m: Module) -> None:
        """The values again, times 1/√v and the gains."""
        layer, e, beats = self._layer, self._elements, self._beats
        gain, width = layer.factor.width, layer.output_format.width
        blocks, result, queue = self._blocks.o, self._results.o, self._queue
        timing = self._timing
        promised = Signal(range(queue.depth + 1))
        room = Signal(init=1)
        moves = Signal()
        grows = Signal()
        shrinks = Signal()
        beat = Signal(range(max(2, beats)))
        final = beat == beats - 1
        leaves = queue.o.valid & queue.o.ready
        m.d.comb += [moves.eq(blocks.valid & result.valid & room), blocks.ready.eq(moves),
                     result.ready.eq(moves & final), grows.eq(moves & ~leaves), shrinks.eq(leaves & ~moves)]
        with m.If(grows):
            m.d.sync += [promised.eq(promised + 1), room.eq(promised != queue.depth - 1)]
        with m.If(shrinks):
            m.d.sync += [promised.eq(promised - 1), room.eq(1)]
        with m.If(moves):
            m.d.sync += beat.eq(Mux(final, 0, beat + 1))
        m.submodules.gains = rom = Rom(**self.images[-1]._asdict())
        m.d.comb += [rom.en.eq(1), rom.addr.eq(delay(m, beat, timing.takes + timing.clips, name="beat_late"))]

        # u, its product with r, and the shift that the places say, but for a bit.
        levels = self._levels
        root = delay(m, result.payload.root, timing.takes, name="root")
        amount = Signal(range(ROOT + self._inverse._places), reset_less=True)
        m.d.sync += amount.eq(result.payload.places + (ROOT - 1 - layer.normal.frac))
        amount = delay(m, amount, timing.takes, name="amount_late")
        late = delay(m, rom.data[e * gain:], timing.ends, name="late")
        behind = delay(m, final, timing.behind, name="final")
        m.d.comb += [queue.i.valid.eq(delay(m, moves, timing.behind, name="valid", reset_less=False)),
                     queue.i.payload.last.eq(delay(m, blocks.payload.last, timing.behind, name="last"))]
        keeps = [(3 - step) % steps(levels) == 0 for step in (1, 2, 3)]  # Of shift, rounding, clipping.
        for j in range(e):
            x: Value = blocks.payload.data[j]
            if layer.centred:
                plus, minus = self._times(x)
                u = difference(m, plus, [*minus, result.payload.total], name=f"factor_{j}", levels=levels)
            else:
                u = delay(m, x, timing.takes, name=f"factor_{j}")

            def signal(value: Value, bits: int, name: str, kept: bool = True, j: int = j) -> Signal:
                return when(m, value, signed(bits), kept=kept, name=f"{name}_{j}")

            u = signal(u, layer.value_bits, "u", kept=False)
            product = signal(u * root, layer.value_bits + ROOT + 2, "product")
            shifted = signal(product >> amount, len(product), "shifted", keeps[0])
            whole = signal((shifted + 1)[1:].as_signed(), len(product), "whole", keeps[1])
            z = signal(saturate(whole, layer.normal.width), layer.normal.width, "z", keeps[2])
            scaled = signal(z * rom.data.word_select(j, gain).as_signed(), layer.normal.width + gain, "scaled")
            rounded = signal(round_shift(scaled, layer.rounding), len(scaled) + 1 + max(0, -layer.rounding), "rounded",
                             timing.ends > 1)
            y = signal(saturate(rounded + late.word_select(j, width).as_signed(), width), width, "y")
            m.d.comb += queue.i.payload.data[j].eq(Mux(behind, 0, y) if (beats - 1) * e + j >= layer.inputs else y)


@unit.register
def _(layer: Norm, plan: ValuesPlan, site: Site) -> NormLayer:
    return NormLayer(layer, elements=plan.elements, levels=plan.levels)


@ladder.register
def _(layer: Norm, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    """Some values in a cycle, each with three multipliers; a few for each vector besides."""
    own = OWN - (not layer.centred)
    return Ladder([(ValuesPlan(each.elements, each.cycles, 3 * each.elements + own, levels=levels),)
                   for each in useful(list(one_for_each(layer, count)))])


@layer_multiplications.register
def _(layer: Norm, count: int = 1, plan: ValuesPlan | None = None) -> int:
    return (3 * layer.inputs + OWN - (not layer.centred)) * count


@layer_entry.register
def _(layer: Norm, plan: ValuesPlan) -> LayerEntry:
    return values_entry(layer, plan, "some values in each cycle")


@leaving.register
def _(layer: Norm, plan: ValuesPlan, comes: list[int], k: int) -> list[int]:
    first = comes[-1] + _Timing(layer, plan.elements, plan.levels).latency
    return [first + n for n in range(len(comes))]


def _depths(layer: Norm, elements: int, levels: int) -> tuple[int, int]:
    """The depths of the queues of blocks and of results."""
    beats = -(-layer.inputs // elements)
    depth = beats + _Timing(layer, elements, levels).latency
    return depth, depth // beats + 3


class _Control:
    """The handshakes of a norm, see `circulant.hw.plan.shared.controls.Control`."""

    def __init__(self, layer: Norm, elements: int, levels: int) -> None:
        timing, (blocks, results) = _Timing(layer, elements, levels), _depths(layer, elements, levels)
        self._blocks, self._results = Waits.of_depth(blocks, prompt=False), Waits.of_depth(results)
        self._scaled = Piped(timing.behind, timing.behind + 3)
        self._beats, self._came, self._beat = -(-layer.inputs // elements), 0, 0
        self._latency, self._way = timing.sums + timing.found + root_latency(levels), 0

    @property
    def offers(self) -> bool:
        return self._scaled.offers

    @property
    def takes(self) -> Sequence[bool]:
        return self._blocks.takes

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        comes, ends = shown[0] and self._blocks.room, self._came == self._beats - 1
        moves = self._blocks.offers and self._results.offers and self._scaled.room
        final = self._beat == self._beats - 1
        self._results.move(bool(self._way >> self._latency - 1), moves and final)
        self._way = (self._way << 1 | (comes and ends)) & (1 << self._latency) - 1
        self._blocks.move(comes, moves)
        self._scaled.edge((moves,), leaves)
        self._came = (self._came + comes) % self._beats
        self._beat = (self._beat + moves) % self._beats

    def state(self) -> tuple[object, ...]:
        return (self._came, self._beat, self._way, *self._blocks.state(), *self._results.state(),
                *self._scaled.state())


@control.register
def _(layer: Norm, plan: ValuesPlan, k: int, *, wanted: int, depths: Sequence[int]) -> _Control:
    return _Control(layer, plan.elements, plan.levels)
