"""A range of the values of vectors: blocks outside it are dropped, those within are cut anew from its first value."""
from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Parts, queue_memory
from circulant.hw.array.plans import StreamPlan
from circulant.hw.emit.target import Platform
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.shared.controls import Waits, control
from circulant.hw.plan.stream_plan import without_multipliers
from circulant.hw.stream.pipeline import PROMPT, Queue, block, connect
from circulant.hw.unit import Site, WithoutImages, unit
from circulant.sim.kinds.slice import Slice

__all__ = ["Cut", "SliceLayer"]


class Cut:
    """Which blocks of ``k`` values of a vector make those of a range of it.

    Members:
        blocks, total: of a vector that comes, and of one that leaves.
        shift: values of a block before the first one of the range.
        first, behind: places of the blocks with which the first whole block of the range leaves, and behind the last.
        end: that of the block with which the last one is complete.
        both: whether another one leaves with it, so that the last one leaves a cycle later.
    """

    def __init__(self, layer: Slice, k: int) -> None:
        whole, self.shift = divmod(layer.first, k)
        self.blocks, self.total = -(-layer.inputs // k), -(-layer.size // k)
        self.first = whole + bool(self.shift)
        self.behind = self.first + self.total - 1
        self.end = (layer.first + layer.size - 1) // k
        self.both = self.behind == self.blocks and self.total > 1
        self.alone = self.end < whole + self.total  # The last block needs none behind that with its first value.

    @property
    def depth(self) -> int:
        """Blocks that the queue holds."""
        return max(4, self.total)

    @property
    def leaving(self) -> list[int]:
        """For each block that leaves the place of the one with which it does, counted on behind the vector's end."""
        return [*range(self.first, self.behind), self.blocks - 1 + self.both]


class SliceLayer(WithoutImages, wiring.Component):
    """Vectors in, a range of each out; equals `sim.kinds.slice.Slice`. A block is taken in each cycle.

    The last block of a range leaves with the last one of the vector, which is marked where the sequence ends.

    Parameters:
        k: values of a block.

    Members:
        i: stream of blocks of the vectors.
        o: stream of blocks of the ranges.
    """

    latency = PROMPT
    """Cycles from the last block of a vector to the first one of its range, where that leaves with it."""

    def __init__(self, layer: Slice, *, k: int) -> None:
        self._layer, self._k, self._cut = layer, k, Cut(layer, k)
        # A range that is held up would hold up what is beside it, behind one fork: its queue takes all of it.
        self._queue = Queue(block(k, layer.output_format.width), depth=self._cut.depth, prompt=True)
        signature = stream.Signature(block(k, layer.output_format.width))
        super().__init__({"i": In(signature), "o": Out(signature)})

    @property
    def parts(self) -> Parts:
        return Parts([queue_memory(self._queue)])

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        k, cut, queue = self._k, self._cut, self._queue
        m.submodules.queue = queue
        connect(m, queue.o, wiring.flipped(self.o))

        # The place of the block in its vector, and what leaves with it.
        place = Signal(range(max(2, cut.blocks)))
        ends = Signal()
        gives = Signal()
        waits = Signal()
        moves = Signal()
        inner = (place >= cut.first) & (place < cut.behind)
        m.d.comb += [
            ends.eq(place == cut.blocks - 1), gives.eq(inner if cut.both else inner | ends),
            self.i.ready.eq(~gives | (queue.i.ready & ~waits)), moves.eq(self.i.valid & self.i.ready),
            queue.i.valid.eq(waits | (self.i.valid & gives))]
        with m.If(moves):
            m.d.sync += place.eq(Mux(ends, 0, place + 1))

        # Behind what is left of the block before stands the beginning of this one.
        now = self.i.payload.data
        before = Signal.like(now, reset_less=True)
        with m.If(moves):
            m.d.sync += before.eq(now)
        spread = [(before if cut.shift else now)[cut.shift + j] if cut.shift + j < k else now[cut.shift + j - k]
                  for j in range(k)]

        # The last block: zeros behind the range. It is kept until the vector ends, and where another one leaves then,
        # a cycle longer.
        left = self._layer.size - (cut.total - 1) * k
        alone = [now[cut.shift + j] if cut.shift + j < k else 0 for j in range(k)]
        last = [value if j < left else 0 for j, value in enumerate(alone if cut.alone else spread)]
        if cut.end < cut.blocks - 1 or cut.both:
            kept = Signal.like(now, reset_less=True)
            with m.If(moves & (place == cut.end)):
                m.d.sync += [kept[j].eq(value) for j, value in enumerate(last)]
            last = [kept[j] for j in range(k)]
        final: Value = ends
        mark: Value = ends & self.i.payload.last
        if cut.both:
            marked = Signal(reset_less=True)
            with m.If(queue.i.ready):
                m.d.sync += waits.eq(0)
            with m.If(moves & ends):
                m.d.sync += [waits.eq(1), marked.eq(self.i.payload.last)]
            final, mark = waits, waits & marked
        m.d.comb += queue.i.payload.last.eq(mark)
        for j in range(k):
            m.d.comb += queue.i.payload.data[j].eq(Mux(final, last[j], spread[j]))
        return m


@unit.register
def _(layer: Slice, plan: StreamPlan, site: Site) -> SliceLayer:
    return SliceLayer(layer, k=site.k)


without_multipliers(Slice)


@leaving.register
def _(layer: Slice, plan: StreamPlan, comes: list[int], k: int) -> list[int]:
    return [(comes[at] if at < len(comes) else comes[-1] + 1) + PROMPT for at in Cut(layer, k).leaving]


class _Control:
    """The handshakes of a range, see `circulant.hw.plan.shared.controls.Control`."""

    def __init__(self, cut: Cut) -> None:
        self._cut, self._queue, self._place, self._late = cut, Waits.of_depth(cut.depth), 0, False

    @property
    def offers(self) -> bool:
        return self._queue.offers

    @property
    def _gives(self) -> bool:
        cut, place = self._cut, self._place
        return cut.first <= place < cut.behind or (place == cut.blocks - 1 and not cut.both)

    @property
    def takes(self) -> Sequence[bool]:
        return (not self._gives or (self._queue.room and not self._late),)

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        moves, ends, room = shown[0] and self.takes[0], self._place == self._cut.blocks - 1, self._queue.room
        self._queue.move(room and (self._late or (shown[0] and self._gives)), leaves)
        self._late = self._cut.both and ((moves and ends) or (self._late and not room))
        self._place = (self._place + moves) % self._cut.blocks

    def state(self) -> tuple[object, ...]:
        return self._place, self._late, *self._queue.state()


@control.register
def _(layer: Slice, plan: StreamPlan, k: int, *, wanted: int, depths: Sequence[int]) -> _Control:
    return _Control(Cut(layer, k))
