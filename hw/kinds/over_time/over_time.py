"""The maximum, the mean or the last of the steps of a sequence: what the steps so far make of each block is kept, and
leaves behind the last one.

    i ─► join with what is kept ─► (behind the last step) ─► queue ─► (a mean: divider) ─► o

The blocks of the last step are not marked before the last of them comes; so a whole vector is read once more then, a
block in each cycle. The queue holds it, and the next sequence begins at once.
"""
from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Memory, Parts, queue_memory
from circulant.hw.array.plans import StreamPlan
from circulant.hw.emit.target import Platform
from circulant.hw.kinds.over_time.divider import Divider, quotient_bits, sums
from circulant.hw.plan.ladders import Ladder, ladder
from circulant.hw.plan.latency import held_up, leaving
from circulant.hw.plan.shared.controls import Swallows, control
from circulant.hw.plan.stream_plan import without_multipliers
from circulant.hw.stream.pipeline import LEVELS, QUEUE, Queue, block, connect
from circulant.hw.unit import Site, WithoutImages, unit
from circulant.sim.kinds.over_time import COUNT_BITS, STEPS, OverTime

__all__ = ["OverTimeLayer"]

BESIDE = 16
"""Means at the most that are divided side by side because what lies behind takes as many, where less come at once."""


class OverTimeLayer(WithoutImages, wiring.Component):
    """Sequences in, vectors out; equals `sim.kinds.over_time.OverTime`. Takes a block in each cycle, but for
    those in which a sequence's vector is read.

    Parameters:
        layer: the golden layer.
        k: values of a block.
        streams: sequences that are interleaved, a step of each in turn.

    Members:
        i: stream of blocks of steps.
        o: stream of blocks of one vector for each sequence, zero behind its last value; its last block is marked.
    """

    def __init__(self, layer: OverTime, *, k: int, streams: int = 1) -> None:
        self._layer, self._k, self._streams = layer, k, streams
        self._beats, self._mean = -(-layer.inputs // k), layer.mode == "mean"
        value = unsigned(layer.sum_bits) if self._mean else signed(layer.sum_bits)
        self._kept = data.ArrayLayout(value, k)
        self._payload = sums(layer, k) if self._mean else block(k, layer.output_format.width)
        self._queue = Queue(self._payload, depth=self._beats + 1)
        super().__init__({"i": In(stream.Signature(block(k, layer.input_format.width))),
                          "o": Out(stream.Signature(block(k, layer.output_format.width)))})

    @property
    def parts(self) -> Parts:
        return Parts([Memory(1, self._kept.size, self._depth, asynchronous=True), queue_memory(self._queue)])

    @property
    def _depth(self) -> int:
        return max(2, self._streams * self._beats)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, streams, beats, queue = self._layer, self._streams, self._beats, self._queue
        m.submodules.queue = queue
        m.submodules.kept = kept = memory.Memory(shape=self._kept, depth=self._depth, init=[])
        read = kept.read_port(domain="comb")
        write = kept.write_port()

        # The block that comes, or that is read behind the last step; the stream whose turn it is.
        leaving = Signal()
        moves = Signal()
        ends = Signal()
        beat = Signal(range(max(2, beats)))
        stream_index = Signal(range(max(2, streams)))
        base = Signal(range(self._depth))
        m.d.comb += [
            self.i.ready.eq(~leaving), moves.eq(Mux(leaving, queue.i.ready, self.i.valid)), ends.eq(beat == beats - 1),
            read.addr.eq(base + beat), write.addr.eq(base + beat),
        ]
        with m.If(moves):
            m.d.sync += beat.eq(Mux(ends, 0, beat + 1))
            with m.If(ends):
                m.d.sync += leaving.eq(~leaving & self.i.payload.last)
        with m.If(moves & ends & (leaving | ~self.i.payload.last)):
            m.d.sync += [stream_index.eq(Mux(stream_index == streams - 1, 0, stream_index + 1)),
                         base.eq(Mux(stream_index == streams - 1, 0, base + beats))]

        # Steps of each stream's sequence: none, or how many of those that count.
        steps = Array([Signal(COUNT_BITS, name=f"steps_{n}") for n in range(streams)])
        count = Signal(COUNT_BITS)
        counts = Signal()
        m.d.comb += [count.eq(steps[stream_index]), counts.eq(count != STEPS)]
        with m.If(moves & ends):
            m.d.sync += steps[stream_index].eq(Mux(leaving, 0, count + counts))

        # A mean sums up values plus half their range, which are those with the highest bit inverted.
        m.d.comb += [write.en.eq(self.i.valid & ~leaving & counts if self._mean else self.i.valid & ~leaving),
                     queue.i.valid.eq(leaving), queue.i.payload.last.eq(ends)]
        if self._mean:
            m.d.comb += queue.i.payload.steps.eq(count)
        for j in range(self._k):
            came: Value = Value.cast(self.i.payload.data[j])
            if self._mean:
                came = Cat(came[:-1], ~came[-1])
                joined: Value = read.data[j] + came
            else:
                joined = came if layer.mode == "last" else Mux(came > read.data[j], came, read.data[j])
            behind = not self._mean and (beats - 1) * self._k + j >= layer.inputs  # Those of a mean are divided.
            m.d.comb += [write.data[j].eq(Mux(count == 0, came, joined)),
                         queue.i.payload.data[j].eq(Mux(ends, 0, read.data[j]) if behind else read.data[j])]

        if not self._mean:
            connect(m, queue.o, wiring.flipped(self.o))
            return m
        m.submodules.divider = divider = Divider(layer, k=self._k)
        connect(m, queue.o, divider.i)
        connect(m, divider.o, wiring.flipped(self.o))
        return m


@unit.register
def _(layer: OverTime, plan: StreamPlan, site: Site) -> OverTimeLayer:
    gathers = layer.mode == "mean" and not (wanted := min(site.wanted, BESIDE)) % site.k
    return OverTimeLayer(layer, k=wanted if gathers else site.k, streams=plan.streams)


without_multipliers(OverTime)


@ladder.register
def _(layer: OverTime, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    """Each block in the cycle in which it comes. The division, behind a queue, limits none but short sequences."""
    return Ladder([(StreamPlan(1, streams=streams),)])


@leaving.register
def _(layer: OverTime, plan: StreamPlan, comes: list[int], k: int) -> list[int]:
    """A vector is read behind the last step's last block; of a mean, its blocks are divided one after the other."""
    first = comes[-1] + 1 + QUEUE
    if layer.mode != "mean":
        return list(range(first, first + len(comes)))
    each = quotient_bits(layer) + 1
    return [first + each * (n + 1) for n in range(len(comes))]


@held_up.register
def _(layer: OverTime, leaves: list[int], parts: int) -> list[int]:
    """A mean divides the next block when all of one has been taken."""
    return leaves if layer.mode != "mean" else [cycle + n * (parts - 1) for n, cycle in enumerate(leaves)]


@control.register
def _(layer: OverTime, plan: StreamPlan, k: int, *, wanted: int, depths: Sequence[int]) -> Swallows:
    return Swallows()
