"""The gain in hardware: its binary point moves, so that its blocks pass as they are."""
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.array.parts import Parts
from circulant.hw.array.plans import StreamPlan
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.stream_plan import without_multipliers
from circulant.hw.stream.pipeline import block, connect
from circulant.hw.unit import Site, unit
from tests.sample_kind.gain import Gain


class GainLayer(wiring.Component):
    """Vectors in, vectors out, block by block."""

    parts, images = Parts(), ()

    def __init__(self, layer, *, k):
        signature = stream.Signature(block(k, layer.input_format.width))
        super().__init__({"i": In(signature), "o": Out(signature)})

    def elaborate(self, platform):
        m = Module()
        connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


@unit.register
def _(layer: Gain, plan: StreamPlan, site: Site) -> GainLayer:
    return GainLayer(layer, k=site.k)


without_multipliers(Gain)


@leaving.register
def _(layer: Gain, plan: StreamPlan, comes: list, k: int) -> list:
    return comes
