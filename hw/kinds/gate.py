"""The product of each step or pixel with one vector, which comes when all of them have been seen.

    x ─► queue of a whole sequence or image ─► product, a multiplier for each value of a block ─► o
    v ─► queue ─► held ─────────────────────────┘

No graph stands still: of the oldest sample that has not left, the queue has room for all that comes, so that whatever
the vector is made of gets the whole sample. A longer sequence is cut before (`circulant.hw.stream.reverse.Limit`).
"""
from collections.abc import Sequence

from amaranth.hdl import Module
from amaranth.lib import wiring

from circulant.hw.array.parts import Parts
from circulant.hw.array.plans import ValuesPlan
from circulant.hw.components.held import Held, held_memory
from circulant.hw.emit.target import Platform
from circulant.hw.kinds.elementwise import PlacesLayer, combined
from circulant.hw.plan.ladders import Ladder, ladder, useful
from circulant.hw.plan.stream_plan import one_for_each, with_one_for_each
from circulant.hw.stream.pipeline import LEVELS, connect
from circulant.hw.unit import Site, unit
from circulant.sim.kinds.gate import Gate
from circulant.sim.refusal import Refusal

__all__ = ["GateLayer"]

class GateLayer(PlacesLayer):
    """Steps or pixels and vectors in, their products out; equals `sim.kinds.gate.Gate`."""

    def __init__(self, layer: Gate, *, k: int, beside: Sequence[int]) -> None:
        super().__init__(layer, k=k, beside=beside)
        self._blocks = -(-layer.inputs // k)

    @property
    def parts(self) -> Parts:
        return super().parts + Parts(held_memory(self._blocks, self.k * self._layer.input_formats[1].width))

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer = self._layer
        assert isinstance(layer, Gate)
        steps, vectors = self._queues(m)
        m.submodules.held = held = Held(k=self.k, width=layer.input_formats[1].width, blocks=self._blocks)
        for source, queue in zip(self.inputs, (steps, vectors), strict=True):
            connect(m, wiring.flipped(source), queue.i)
        connect(m, vectors.o, held.i)
        m.d.comb += held.final.eq(steps.o.payload.last)
        combined(m, [steps.o, held.o], self.o, layer=layer, frac=layer.frac, shifts=layer.shifts)
        return m


@unit.register
def _(layer: Gate, plan: ValuesPlan, site: Site) -> GateLayer:
    return GateLayer(layer, k=plan.elements, beside=site.beside)


with_one_for_each(Gate)


@ladder.register
def _(layer: Gate, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    if streams > 1:
        raise Refusal(f"Layer {layer.name!r} keeps the steps of one sequence, but {streams} are interleaved; set "
                      "hardware.streams to 1")
    return Ladder([(each,) for each in useful(list(one_for_each(layer, count)))])
