"""A vector repeated for as many steps as a sequence has.

    steps ─► counted ─► queue of the lengths of those that have ended
    v ─► queue ─► held ─► o, as often as there were steps

No graph stands still, however long a sequence is, as a count takes no room for each step. Steps are taken until the
queue is full of lengths. Then the vector of the oldest of these sequences is made of what has passed: it comes, leaves
as often as its length says, and makes room. A step leaves as soon as it has been counted, so that a vector which is not
made of a sequence passes beside the steps of one.
"""
from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Memory, Parts, queue_memory
from circulant.hw.array.plans import StreamPlan
from circulant.hw.components.held import Held, held_memory
from circulant.hw.components.joins import waiting
from circulant.hw.emit.target import Platform
from circulant.hw.plan.ladders import Ladder, ladder
from circulant.hw.plan.stream_plan import without_multipliers
from circulant.hw.stream.pipeline import LEVELS, Queue, block, connect
from circulant.hw.stream.storage import DeepQueue
from circulant.hw.unit import Site, WithoutImages, unit
from circulant.sim.kinds.repeat import Repeat

__all__ = ["RepeatLayer"]

COUNT = unsigned(32)
"""The shape of a count of steps."""

LENGTHS = 4
"""Sequences that have ended while an earlier one is still repeated."""


class RepeatLayer(WithoutImages, wiring.Component):
    """Steps and vectors in, the vectors as often as there were steps out; equals `sim.kinds.repeat.Repeat`.

    Parameters:
        k: values of a block, of all streams.
        beside: for each source the stages on the longest other way.
        streams: sequences that are interleaved, a step of each in turn; they are of one length.

    Members:
        i_0: stream of blocks of steps, of at most 2^32 − 1 for a sequence.
        i_1: stream of blocks of vectors.
        o: stream of blocks of steps.
    """

    def __init__(self, layer: Repeat, *, k: int, beside: Sequence[int], streams: int = 1) -> None:
        self._layer, self.k, self._streams = layer, k, streams
        self._counted, self._blocks = (-(-size // k) for size in layer.sizes)
        self.depths = [LENGTHS, streams * waiting(self._blocks, beside[1])]
        self._lengths = Queue(COUNT, depth=LENGTHS)
        super().__init__({
            "i_0": In(stream.Signature(block(k, layer.counted_format.width))),
            "i_1": In(stream.Signature(block(k, layer.input_format.width))),
            "o": Out(stream.Signature(block(k, layer.output_format.width)))})

    @property
    def inputs(self) -> list[stream.Interface]:
        """The streams of its sources."""
        return [self.i_0, self.i_1]

    @property
    def parts(self) -> Parts:
        bits = self.k * self._layer.input_format.width
        return Parts([queue_memory(self._lengths), Memory(1, bits + 1, self.depths[1]),
                      *held_memory(self._streams * self._blocks, bits)])

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, lengths = self._layer, self._lengths
        m.submodules.lengths = lengths
        m.submodules.waits = queue = DeepQueue(block(self.k, layer.input_format.width), depth=self.depths[1])
        m.submodules.held = held = Held(k=self.k, width=layer.input_format.width, blocks=self._streams * self._blocks)
        connect(m, wiring.flipped(self.i_1), queue.i)
        connect(m, queue.o, held.i)

        # Steps of the sequence that comes; those of all streams count as one.
        came = Signal(COUNT)
        step_ends = self._ends(m, "step", self._counted * self._streams, self.i_0.valid & self.i_0.ready)
        ended = Signal()
        m.d.comb += [ended.eq(step_ends & self.i_0.payload.last), self.i_0.ready.eq(~ended | lengths.i.ready),
                     lengths.i.valid.eq(ended & self.i_0.valid), lengths.i.payload.eq(came + 1)]
        with m.If(self.i_0.valid & self.i_0.ready & step_ends):
            m.d.sync += came.eq(Mux(self.i_0.payload.last, 0, came + 1))

        # Steps of the one that is repeated. Has none ended that is not repeated whole, it is the one that comes.
        gone = Signal(COUNT)
        there = Signal()
        shown = Signal()
        final = Signal()
        moves = Signal()
        m.d.comb += [
            there.eq(shown | lengths.o.valid | ((lengths.level == 0) & (gone != came))),
            final.eq(lengths.o.valid & (lengths.o.payload == gone + 1)),
            self.o.valid.eq(held.o.valid & there), held.o.ready.eq(self.o.ready & there),
            moves.eq(self.o.valid & self.o.ready), held.final.eq(final), lengths.o.ready.eq(moves & final & held.ends),
            self.o.payload.data.eq(held.o.payload.data),
            self.o.payload.last.eq(final & self._ends(m, "block", self._blocks, moves)),
        ]
        m.d.sync += shown.eq(self.o.valid & ~self.o.ready)
        with m.If(moves & held.ends):
            m.d.sync += gone.eq(Mux(final, 0, gone + 1))
        return m

    def _ends(self, m: Module, name: str, blocks: int, moves: Signal) -> Signal:
        """Whether a block is the last one of so many."""
        at = Signal(range(max(2, blocks)), name=f"{name}_at")
        ends = Signal(name=f"{name}_ends")
        m.d.comb += ends.eq(at == blocks - 1)
        with m.If(moves):
            m.d.sync += at.eq(Mux(ends, 0, at + 1))
        return ends


@unit.register
def _(layer: Repeat, plan: StreamPlan, site: Site) -> RepeatLayer:
    return RepeatLayer(layer, k=site.k, beside=site.beside, streams=plan.streams)


without_multipliers(Repeat)


@ladder.register
def _(layer: Repeat, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    return Ladder([(StreamPlan(1, streams=streams),)])
