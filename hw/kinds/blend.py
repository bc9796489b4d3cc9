"""h + z · (x − h), value by value: the states of minGRU and minLSTM, a block of both sources in each cycle."""
from collections.abc import Sequence

from amaranth.hdl import Module, Value
from amaranth.lib import wiring

from circulant.hw.arith.fixed import round_shift, saturate
from circulant.hw.array.parts import Parts, Product
from circulant.hw.array.plans import ValuesPlan
from circulant.hw.components.joins import JoinLayer
from circulant.hw.emit.target import Platform
from circulant.hw.kinds.scan import ScanControl, State, require_fixed, with_a_state
from circulant.hw.plan.dataflow import Cycles, in_turn, joined
from circulant.hw.plan.shared.controls import control
from circulant.hw.stream.pipeline import PROMPT, connect, delay, kept
from circulant.hw.unit import Site, unit
from circulant.sim.kinds.blend import Blend

__all__ = ["LATENCY", "BlendLayer"]

LATENCY = 4
"""Cycles: state, difference, product, sum."""


class BlendLayer(JoinLayer):
    """Gates z and values x in, states out; equals `sim.kinds.blend.Blend`."""

    def __init__(self, layer: Blend, *, k: int, beside: Sequence[int]) -> None:
        super().__init__(layer, k=k, beside=beside)
        self._blend = layer
        self._state = State(layer, k=k, latency=LATENCY)

    @property
    def parts(self) -> Parts:
        gate, apart = self._layer.input_formats[0].width, self._apart
        return super().parts + self._state.parts + Parts([], [Product(self.k, gate, apart)])

    @property
    def _apart(self) -> int:
        """Bits of the difference."""
        layer = self._blend
        return 1 + max(form.width + shift for form, shift in zip(
            (layer.input_formats[1], layer.output_format), layer.shifts, strict=True))

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer = self._blend
        queues = self._queues(m)
        for source, queue in zip(self.inputs, queues, strict=True):
            connect(m, wiring.flipped(source), queue.i)
        z, x = (delay(m, queue.o.payload.data, cycles, name=name)
                for queue, cycles, name in zip(queues, (2, 1), "zx", strict=True))

        def follow(j: int, states: Sequence[Value]) -> Value:
            state = states[j]
            apart = kept(m, (x[j] << layer.shifts[0]) - (state << layer.shifts[1]), f"apart_{j}")
            product = kept(m, z[j] * apart, f"product_{j}")
            moved = round_shift(product, layer.rounding)
            return saturate(delay(m, state, 2, name=f"before_{j}") + moved, layer.output_format.width)

        self._state.add(m, [queue.o for queue in queues], follow)
        connect(m, self._state.queue.o, wiring.flipped(self.o))
        return m


@unit.register
def _(layer: Blend, plan: ValuesPlan, site: Site) -> BlendLayer:
    require_fixed(layer, site)
    return BlendLayer(layer, k=plan.elements, beside=site.beside)


with_a_state(Blend, LATENCY)


@joined.register
def _(layer: Blend, comes: list[Cycles], k: int) -> tuple[Cycles, list[int], int]:
    there = [max(cycles) + PROMPT for cycles in zip(*comes, strict=True)]
    return in_turn(there), [0] * len(comes), LATENCY - 1 + PROMPT


@control.register
def _(layer: Blend, plan: ValuesPlan, k: int, *, wanted: int, depths: Sequence[int]) -> ScanControl:
    return ScanControl(layer, k=k, latency=LATENCY, depths=depths)
