"""Vectors side by side, each brought to one format."""

from amaranth.hdl import Module
from amaranth.lib import wiring

from circulant.hw.arith.fixed import requantize
from circulant.hw.array.plans import StreamPlan
from circulant.hw.components.joins import JoinLayer
from circulant.hw.emit.target import Platform
from circulant.hw.plan.dataflow import Cycles, in_turn, joined
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
