"""The vectors of earlier steps in front of each new one, for a causal convolution over time.

    i ─────┬────────────────────────► newest tap ─┐
           └─► ring of past vectors ─► older taps ┴─► queue ─► o

Where a product of blocks takes them, the older taps leave before the newest vector comes, and are multiplied early.
"""
from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Memory, Parts, queue_memory
from circulant.hw.array.plans import StreamPlan
from circulant.hw.emit.target import Platform
from circulant.hw.plan.dataflow import early_blocks
from circulant.hw.plan.ladders import Ladder, ladder
from circulant.hw.plan.latency import kept_back, leaving_to
from circulant.hw.plan.shared.controls import Waits, control
from circulant.hw.plan.stream_plan import stream_plan, without_multipliers
from circulant.hw.stream.pipeline import LEVELS, PROMPT, Queue, block, connect
from circulant.hw.unit import Site, WithoutImages, unit
from circulant.sim.kinds.taps import Taps
from circulant.sim.refusal import Refusal

__all__ = ["TapsLayer"]

AGES = 4
"""Cycles for each block of an older tap in which what lies behind takes it, at the most, in an idle circuit."""

DEPTH = 4
"""Blocks that the queue behind the ring holds."""

WIDEST = 64
"""Values of a block at the most, where what lies behind asks for none."""


class TapsLayer(WithoutImages, wiring.Component):
    """Steps in, all taps of each out, the oldest first; equals `sim.kinds.taps.Taps`. A block leaves in each cycle.

    Parameters:
        layer: the golden layer.
        k: values of a block: a tap fills whole ones, and no more than one of them is filled up.
        early: whether the older taps of a step leave before it comes, and so without a step behind the last one.

    Members:
        i: stream of blocks of steps, zero behind their last value.
        o: stream of blocks of taps.
    """

    latency = PROMPT
    """Cycles from a block of the newest vector to the same one."""

    def __init__(self, layer: Taps, *, k: int, early: bool) -> None:
        self._layer, self._k, self._early, self._beats = layer, k, early, layer.width // k
        shape = block(k, layer.output_format.width)
        self._queue = Queue(shape, depth=DEPTH, prompt=True)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    @property
    def _depth(self) -> int:
        """Words of the ring."""
        return self._layer.reach * self._beats

    @property
    def parts(self) -> Parts:
        ring = [Memory(1, self._k * self._layer.output_format.width, self._depth)] if self._depth > 1 else []
        return Parts([*ring, queue_memory(self._queue)])

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, beats, depth, queue = self._layer, self._beats, self._depth, self._queue
        m.submodules.queue = queue
        connect(m, queue.o, wiring.flipped(self.o))

        # A block of an older tap, or of the newest, while the queue has room for it.
        newest = Signal()
        moves = Signal()
        tap = Signal(range(layer.taps))
        beat = Signal(range(max(2, beats)))
        ends = Signal()
        room = queue.i.ready
        m.d.comb += [newest.eq(tap == layer.taps - 1), ends.eq(beat == beats - 1), self.i.ready.eq(room & newest),
                     moves.eq(room & (~newest | self.i.valid if self._early else self.i.valid))]
        with m.If(moves):
            m.d.sync += beat.eq(Mux(ends, 0, beat + 1))
            with m.If(ends):
                m.d.sync += tap.eq(Mux(newest, 0, tap + 1))

        # The ring: the newest vector takes the place of the oldest one, from which a tap is a dilation further on.
        oldest = Signal(range(max(2, depth)))
        first = Signal(range(max(2, depth)))
        further = Signal(range(2 * depth + 1))
        step = Mux(newest, beats, layer.dilation * beats)
        following = Mux(further >= depth, further - depth, further)
        m.d.comb += further.eq(Mux(newest, oldest, first) + step)
        with m.If(moves & ends):
            m.d.sync += first.eq(following)
            with m.If(newest):
                m.d.sync += oldest.eq(following)

        # How many vectors of the sequence are there, and how many steps the tap lies back.
        seen = Signal(range(layer.reach + 1))
        back = Signal(range(layer.reach + 1), init=layer.reach)
        with m.If(moves & ends):
            m.d.sync += back.eq(Mux(newest, layer.reach, back - layer.dilation))
            with m.If(newest):
                m.d.sync += seen.eq(Mux(self.i.payload.last, 0, Mux(seen == layer.reach, seen, seen + 1)))

        # A word is read a cycle ahead. The only one may be written then: it is a register.
        x, keeps = self.i.payload, moves & newest
        if depth == 1:
            old = Signal(len(Value.cast(x.data)), reset_less=True)
            with m.If(keeps):
                m.d.sync += old.eq(x.data)
        else:
            m.submodules.ring = ring = memory.Memory(
                shape=self._k * layer.output_format.width, depth=depth, init=[])
            read = ring.read_port()
            write = ring.write_port()
            old = read.data
            m.d.comb += [write.addr.eq(oldest + beat), write.en.eq(keeps), write.data.eq(x.data), read.en.eq(1),
                         read.addr.eq(Mux(moves, Mux(ends, following, first + beat + 1), first + beat))]
        m.d.comb += [queue.i.valid.eq(moves), queue.i.payload.last.eq(newest & ends & x.last),
                     queue.i.payload.data.eq(Mux(newest, x.data, Mux(seen >= back, old, 0)))]
        return m


@unit.register
def _(layer: Taps, plan: StreamPlan, site: Site) -> TapsLayer:
    if site.config is not None:
        raise Refusal(f"Layer {layer.name!r} keeps vectors of earlier steps, which a reloadable design cannot "
                      "exchange; leave hardware.reloadable out")
    suits = _suits(layer, site.wanted)
    return TapsLayer(layer, k=site.wanted if suits else _widest(layer), early=suits)


def _suits(layer: Taps, wanted: int) -> bool:
    """Whether a tap fills whole blocks of so many values, of which no more than one is filled up."""
    return wanted > 1 and layer.width % wanted == 0 and layer.width - layer.inputs < wanted


def _widest(layer: Taps) -> int:
    """Values of a block of which a tap fills whole ones."""
    return min(WIDEST, layer.width & -layer.width)


without_multipliers(Taps)


def _moves(layer: Taps, comes: list[int], k: int, wanted: int) -> list[int]:
    """The cycles in which blocks leave the ring, those of the newest tap last. Older taps of a step leave when the one
    before has come, and so long before, or else with its first block."""
    older = (layer.taps - 1) * (layer.width // k)
    begin = comes[0] - (AGES * older if _suits(layer, wanted) else 0)
    moves = [begin + n for n in range(older)]
    for come in comes:
        moves.append(max(come, moves[-1] + 1) if moves else come)
    return moves


@leaving_to.register
def _(layer: Taps, plan: StreamPlan, comes: list[int], k: int, wanted: int) -> list[int]:
    return [cycle + TapsLayer.latency for cycle in _moves(layer, comes, k, wanted)]


@early_blocks.register
def _(layer: Taps, wanted: int) -> int:
    return (layer.taps - 1) * (layer.width // wanted) if _suits(layer, wanted) else 0


@kept_back.register
def _(layer: Taps, comes: list[int], k: int, wanted: int) -> int:
    """A block waits while older taps leave that are not early."""
    return _moves(layer, comes, k, wanted)[-1] - comes[-1]


class _Control:
    """The handshakes of taps, see `circulant.hw.plan.shared.controls.Control`."""

    def __init__(self, layer: Taps, beats: int, *, early: bool) -> None:
        self._older, self._beats, self._early = (layer.taps - 1) * beats, beats, early
        self._at, self._queue = 0, Waits.of_depth(DEPTH)

    @property
    def offers(self) -> bool:
        return self._queue.offers

    @property
    def takes(self) -> Sequence[bool]:
        return (self._queue.room and self._at >= self._older,)

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        moves = self._queue.room and (shown[0] or (self._early and self._at < self._older))
        self._at = (self._at + moves) % (self._older + self._beats)
        self._queue.move(moves, leaves)

    def state(self) -> tuple[object, ...]:
        return self._at, *self._queue.state()


@control.register
def _(layer: Taps, plan: StreamPlan, k: int, *, wanted: int, depths: Sequence[int]) -> _Control:
    return _Control(layer, layer.width // k, early=_suits(layer, wanted))


@stream_plan.register
def _(layer: Taps, *, pixels: int = 1) -> StreamPlan:
    """A block in each cycle. What lies behind and takes smaller ones takes as many cycles for them itself."""
    return StreamPlan(layer.outputs // _widest(layer))


@ladder.register
def _(layer: Taps, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    if streams > 1:
        raise Refusal(f"Layer {layer.name!r} keeps the vectors of one sequence, but {streams} are interleaved; set "
                      "hardware.streams to 1")
    return Ladder([(stream_plan(layer),)])
