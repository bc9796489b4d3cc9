"""The steps of a sequence from its last to its first, where no two directions stand side by side."""
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Memory, Parts
from circulant.hw.array.plans import StreamPlan
from circulant.hw.emit.target import Platform
from circulant.hw.plan.ladders import Ladder, ladder
from circulant.hw.plan.stream_plan import without_multipliers
from circulant.hw.stream.pipeline import LEVELS, block, connect
from circulant.hw.stream.reverse import Reverse as Turned
from circulant.hw.unit import Site, WithoutImages, unit
from circulant.sim.kinds.reverse import Reverse
from circulant.sim.refusal import Refusal

__all__ = ["ReverseLayer"]


class ReverseLayer(WithoutImages, wiring.Component):
    """Sequences in, the same in the opposite order out; equals `sim.kinds.reverse.Reverse`. A block in each cycle.

    Parameters:
        k: values of a block.
        steps: of a sequence at the most, of which two are kept.

    Members:
        i: stream of blocks of steps.
        o: stream of blocks of steps.
    """

    def __init__(self, layer: Reverse, *, k: int, steps: int) -> None:
        self._width, self._blocks, self._steps = k * layer.input_format.width, -(-layer.inputs // k), steps
        signature = stream.Signature(block(k, layer.input_format.width))
        super().__init__({"i": In(signature), "o": Out(signature)})

    @property
    def parts(self) -> Parts:
        return Parts([Memory(1, self._width, 2 * self._steps * self._blocks)])

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.submodules.turned = turned = Turned(self.i.payload.shape(), blocks=self._blocks, steps=self._steps)
        connect(m, wiring.flipped(self.i), turned.i)
        connect(m, turned.o, wiring.flipped(self.o))
        return m


@unit.register
def _(layer: Reverse, plan: StreamPlan, site: Site) -> ReverseLayer:
    return ReverseLayer(layer, k=site.k, steps=site.count)


without_multipliers(Reverse)


@ladder.register
def _(layer: Reverse, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    if streams > 1:
        raise Refusal(f"Layer {layer.name!r} turns one sequence round, but {streams} are interleaved; set "
                      "hardware.streams to 1")
    return Ladder([(StreamPlan(1),)])
