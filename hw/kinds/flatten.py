"""From the pixels of an image to a vector, or to one for each row.

In the order of the pixels, blocks pass as they are. In any other one, values are kept, then read one by one.
"""
import math
from math import prod

from amaranth.hdl import Array, Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Memory, Parts
from circulant.hw.array.plans import StreamPlan
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, Rom
from circulant.hw.plan.stream_plan import stream_plan, without_multipliers
from circulant.hw.stream.link import into
from circulant.hw.stream.pipeline import Queue, block, connect, delay
from circulant.hw.stream.storage import Ram
from circulant.hw.unit import Site, heeds_marks, unit
from circulant.sim.kinds.flatten import Flatten

__all__ = ["FlattenLayer", "in_order"]

STAGES = 5
"""Cycles from a place that is asked for to its value: the list of places, an address, the memory, a register behind it,
the choice."""

DEPTH = STAGES + 3
"""Blocks that the queue behind it holds: the two that it has while a block comes and one goes in each cycle, and all
that are on their way to it."""


def in_order(layer: Flatten) -> bool:
    """Whether values leave in the order in which they come."""
    return layer.order == "pixels" or math.prod(layer.grid) == 1


class FlattenLayer(wiring.Component):
    """Images in, vectors out; equals `sim.kinds.flatten.Flatten`. Where `in_order`, a block per cycle; else a value,
    and two vectors are kept.

    Parameters:
        layer: the golden layer.
        k: values of a block of pixels.
        k_out: wanted of a block of the vector; where blocks pass, the power of two that a block and a pixel share.
        marked: whether the last block of an image's last vector is marked; where blocks pass, their marks do, too.

    Members:
        i: stream of blocks of pixels.
        o: stream of blocks of the vector, the last one zero-padded.
    """

    def __init__(self, layer: Flatten, *, k: int, k_out: int, marked: bool = True) -> None:
        if in_order(layer):
            k_out = math.gcd(k, layer.inputs)
            k_out &= -k_out  # A power of two, as all blocks behind images.
        self._layer, self._k, self._k_out, self._marked = layer, k, k_out, marked
        width = layer.input_format.width
        super().__init__({"i": In(stream.Signature(block(k, width))), "o": Out(stream.Signature(block(k_out, width)))})

    @property
    def _words(self) -> int:
        """Blocks of a vector that are kept."""
        height, width = self._layer.grid
        return -(-self._layer.inputs // self._k) * width * (1 if self._layer.rows else height)

    @property
    def _order_bits(self) -> tuple[int, int]:
        """Bits of the place of a value in its block, and of that of the block."""
        return max(1, (self._k - 1).bit_length()), max(1, (self._words - 1).bit_length())

    @property
    def parts(self) -> Parts:
        if in_order(self._layer):
            return Parts()
        width = self._layer.input_format.width
        return Parts([Memory(1, self._k * width, 2 * self._words),
                      Memory(1, sum(self._order_bits), len(self._layer.permutation), writable=False),
                      Memory(1, Shape.cast(self.o.payload.shape()).width, DEPTH - 1)])

    @property
    def latency(self) -> int:
        """Cycles from the last block that a block of the vector needs to that one, the first of a vector where values
        are kept: their places, the memory, registers behind both, a cycle for each value, the queue."""
        return 0 if in_order(self._layer) else STAGES + self._k_out + Queue.latency

    @property
    def images(self) -> list[Image]:
        """Where each value of a vector lies: its block, then its place there in the low bits."""
        layer, k, (lane_bits, word_bits) = self._layer, self._k, self._order_bits
        if in_order(layer):
            return []
        beats = -(-layer.inputs // k)
        order = [(pixel * beats + channel // k) << lane_bits | channel % k
                 for pixel, channel in (divmod(at, layer.inputs) for at in layer.permutation)]
        return [Image(order, lane_bits + word_bits, f"{layer.name}_order")]

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer = self._layer
        if in_order(layer):
            into(m, wiring.flipped(self.i), wiring.flipped(self.o), size=layer.inputs, width=layer.input_format.width,
                 name="pixels")
            return m
        m.submodules.ram = ram = Ram(width=self._values.size, depth=2 * self._words)
        m.submodules.order = order = Rom(**self.images[0]._asdict())
        m.submodules.queue = queue = Queue(self.o.payload.shape(), depth=DEPTH)
        connect(m, queue.o, wiring.flipped(self.o))

        # Whole vectors come into the memory, and a value a cycle is read while the queue has room for all under way.
        vectors_held = Signal(range(3))
        vector_read = Signal()
        reads = Signal()
        self._write(m, ram, vectors_held, vector_read)
        m.d.comb += reads.eq((vectors_held != 0) & (queue.level < queue.depth - STAGES))

        # Where each value lies, then its word, then the value; blocks of the vector leave through the queue.
        stages = self._stages(m, self._walk(m, order, reads, vector_read))
        value = self._value(m, ram, order.data, stages[0]["half"])
        self._collect(m, queue, value, stages[-1])
        return m

    @property
    def _values(self) -> data.ArrayLayout:
        """The values of a block that comes."""
        return data.ArrayLayout(signed(self._layer.input_format.width), self._k)

    def _write(self, m: Module, ram: Ram, vectors_held: Signal, vector_read: Value) -> None:
        """Write whole vectors, of which two fit."""
        words = self._words
        write_word = Signal(range(max(2, words)))
        write_half = Signal()
        vector_written = Signal()
        m.d.comb += [
            self.i.ready.eq(vectors_held != 2), ram.w_en.eq(self.i.valid & self.i.ready),
            ram.w_addr.eq(Mux(write_half, words, 0) + write_word), ram.w_data.eq(Value.cast(self.i.payload.data)),
            vector_written.eq(ram.w_en & (write_word == words - 1)),
        ]
        m.d.sync += vectors_held.eq(vectors_held + vector_written - vector_read)
        with m.If(ram.w_en):
            m.d.sync += write_word.eq(Mux(vector_written, 0, write_word + 1))
        with m.If(vector_written):
            m.d.sync += write_half.eq(~write_half)

    def _walk(self, m: Module, order: Rom, reads: Value, vector_read: Signal) -> dict[str, Value]:
        """Walk through the places of a vector's values; returns what is known of the value of this cycle: whether there
        is one, and in which half, and whether it is the last of its vector or of its image."""
        layer = self._layer
        vectors = layer.grid[0] if layer.rows else 1
        read_index = Signal(range(max(2, layer.outputs)))
        read_half = Signal()
        m.d.comb += [
            vector_read.eq(reads & (read_index == layer.outputs - 1)),
            order.en.eq(1), order.addr.eq(read_index),
        ]
        with m.If(reads):
            m.d.sync += read_index.eq(Mux(vector_read, 0, read_index + 1))
        with m.If(vector_read):
            m.d.sync += read_half.eq(~read_half)

        # Marks of the vector, as far as they are needed.
        known: dict[str, Value] = {"valid": reads, "half": read_half}
        if layer.outputs % self._k_out or self._marked:
            known["ends"] = vector_read
        if self._marked and vectors > 1:
            vector = Signal(range(vectors))
            known["final"] = vector_read & (vector == vectors - 1)
            with m.If(vector_read):
                m.d.sync += vector.eq(Mux(vector == vectors - 1, 0, vector + 1))
        return known

    @staticmethod
    def _stages(m: Module, known: dict[str, Value]) -> list[dict[str, Signal]]:
        """Marks of a value, behind each of the stages on its way."""
        stages: list[dict[str, Signal]] = []
        for n in range(STAGES):
            later = {name: Signal(name=f"{name}_{n}", reset_less=name != "valid") for name in known}
            m.d.sync += [later[name].eq(value) for name, value in known.items()]
            stages.append(later)
            known = dict(later)
        return stages

    def _value(self, m: Module, ram: Ram, place: Value, half: Value) -> Value:
        """The value that was asked for: its place, then its block, then the value in it."""
        lane_bits, _ = self._order_bits
        address = Signal.like(ram.r_addr, reset_less=True)
        lane = place[:lane_bits]
        values = Signal(self._values, reset_less=True)
        value = Signal(signed(self._layer.input_format.width), reset_less=True)
        m.d.comb += [ram.r_en.eq(1), ram.r_addr.eq(address)]
        m.d.sync += [address.eq(Mux(half, self._words, 0) + place[lane_bits:]),
                     Value.cast(values).eq(ram.r_data),
                     value.eq(Array([values[j] for j in range(self._k)])[delay(m, lane, STAGES - 2, name="lane")])]
        return value

    def _collect(self, m: Module, queue: Queue, value: Value, marks: dict[str, Signal]) -> None:
        """Collect a block of the vector, whose last value does not wait. A last block that is not full has zeros behind
        its values."""
        k_out, rest = self._k_out, self._layer.outputs % self._k_out
        valid, ends = marks["valid"], marks.get("ends")
        held = Signal(data.ArrayLayout(signed(self._layer.input_format.width), max(1, k_out - 1)), reset_less=True)
        count = Signal(range(max(2, k_out)))
        full = Signal()
        m.d.comb += [full.eq((count == k_out - 1) | (ends if rest else 0)), queue.i.valid.eq(valid & full)]
        if self._marked:
            m.d.comb += queue.i.payload.last.eq(marks.get("final", ends))
        with m.If(valid):
            m.d.sync += count.eq(Mux(full, 0, count + 1))
        for j in range(k_out):
            found: Value = value if j == k_out - 1 else held[j]
            if j < k_out - 1:
                with m.If(valid & (count == j)):
                    m.d.sync += held[j].eq(value)
            if rest and j >= rest - 1:
                found = Mux(ends, value if j == rest - 1 else 0, found)
            m.d.comb += queue.i.payload.data[j].eq(found)


@unit.register
def _(layer: Flatten, plan: StreamPlan, site: Site) -> FlattenLayer:
    return FlattenLayer(layer, k=site.k, k_out=site.wanted, marked=site.marked)


@heeds_marks.register
def _(layer: Flatten, *, single: bool) -> bool:
    return in_order(layer)


without_multipliers(Flatten)


@stream_plan.register
def _(layer: Flatten, *, pixels: int = 1) -> StreamPlan:
    """A block in each cycle in the order of the pixels, else a value."""
    return StreamPlan(prod(layer.grid) if in_order(layer) else layer.outputs * (layer.grid[0] if layer.rows else 1))
