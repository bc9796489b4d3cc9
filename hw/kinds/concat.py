"""Vectors side by side, each brought to one format."""
from collections.abc import Sequence
from itertools import accumulate

from amaranth.hdl import Module
from amaranth.lib import wiring

from circulant.hw.arith.fixed import requantize
from circulant.hw.array.plans import StreamPlan
from circulant.hw.components.joins import JoinLayer
from circulant.hw.emit.target import Platform
from circulant.hw.plan.dataflow import Cycles, in_turn, joined
from circulant.hw.plan.shared.controls import Waits, control
from circulant.hw.plan.stream_plan import without_multipliers
from circulant.hw.stream.join import Join
from circulant.hw.stream.pipeline import PROMPT, connect
from circulant.hw.unit import Site, unit
from circulant.sim.kinds.concat import Concat

__all__ = ["ConcatLayer"]


class ConcatLayer(JoinLayer):
    """Several streams of vectors side by side, each brought to one format; equals `sim.kinds.concat.Concat`."""

    @property
    def widths(self) -> list[int]:
        return [self._layer.output_format.width] * len(self._layer.input_formats)

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, form = self._layer, self._layer.output_format
        queues = self._queues(m)

        # Values are brought to the output's format before they wait.
        for source, queue, given in zip(self.inputs, queues, layer.input_formats, strict=True):
            m.d.comb += [queue.i.valid.eq(source.valid), source.ready.eq(queue.i.ready),
                         queue.i.payload.last.eq(source.payload.last)]
            for j in range(self.k):
                value = source.payload.data[j]
                m.d.comb += queue.i.payload.data[j].eq(
                    value if given == form else requantize(value, given.frac - form.frac, form.width))

        # The first two side by side, behind them the third, and so on.
        before, size = queues[0].o, layer.sizes[0]
        for n, (queue, more) in enumerate(zip(queues[1:], layer.sizes[1:], strict=True), start=1):
            m.submodules[f"join_{n}"] = join = Join(sizes=(size, more), width=form.width, k=self.k)
            connect(m, before, join.first)
            connect(m, queue.o, join.second)
            before, size = join.o, size + more
        connect(m, before, wiring.flipped(self.o))
        return m


@unit.register
def _(layer: Concat, plan: StreamPlan, site: Site) -> ConcatLayer:
    return ConcatLayer(layer, k=site.k, beside=site.beside)


without_multipliers(Concat)


@joined.register
def _(layer: Concat, comes: list[Cycles], k: int) -> tuple[Cycles, list[int], int]:
    """A block leaves when all are there that begin in it: see `circulant.hw.stream.join.Join`."""
    total, begins = -(-sum(layer.sizes) // k), [sum(layer.sizes[:n]) // k for n in range(len(comes))]
    due = [comes[0][0] + PROMPT] * total
    for begin, cycles in zip(begins, comes, strict=True):
        for n, cycle in enumerate(cycles, begin):
            due[n] = max(due[n], cycle + PROMPT)
    return in_turn(due), begins, 0


class _Control:
    """The handshakes of vectors side by side, see `circulant.hw.plan.shared.controls.Control`; those of the `Join` of
    all but the last vector come first."""

    def __init__(self, sizes: Sequence[int], k: int, depths: Sequence[int]) -> None:
        self._queues, self._joins, self._at = [Waits(depth) for depth in depths], list[tuple[int, int, int, int]](), [
            0] * (len(sizes) - 1)
        for first, second in zip(accumulate(sizes), sizes[1:], strict=False):
            whole, shift = divmod(first, k)
            self._joins.append((whole + bool(shift), whole, whole + -(-second // k), -(-(first + second) // k)))

    def _wants(self) -> list[tuple[bool, bool]]:
        """Whether each join takes a block of its first stream and of its second one."""
        return [(at < of_first, begins <= at < stops)
                for at, (of_first, begins, stops, _) in zip(self._at, self._joins, strict=True)]

    @property
    def offers(self) -> bool:
        there = self._queues[0].offers
        for queue, (first, second) in zip(self._queues[1:], self._wants(), strict=True):
            there = (there or not first) and (queue.offers or not second)
        return there

    @property
    def takes(self) -> Sequence[bool]:
        return [each.room for each in self._queues]

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        went = [False] * len(self._queues)
        for n, (first, second) in reversed(list(enumerate(self._wants()))):
            went[n + 1] = leaves and second
            self._at[n] = (self._at[n] + leaves) % self._joins[n][3]
            leaves = leaves and first
        went[0] = leaves
        for each, come, gone in zip(self._queues, shown, went, strict=True):
            each.move(come and each.room, gone)

    def state(self) -> tuple[object, ...]:
        return *self._at, *(each.state() for each in self._queues)


@control.register
def _(layer: Concat, plan: StreamPlan, k: int, *, wanted: int, depths: Sequence[int]) -> _Control:
    return _Control(layer.sizes, k, depths)
