"""The pointwise part of a GRU: from pre-activations and state to the next state, one element per cycle."""
from typing import Any

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.activation import Activation
from circulant.hw.fixed import round_shift, saturate
from circulant.hw.pipeline import delay
from circulant.sim.gru import Gru

__all__ = ["GruPointwise"]


class GruPointwise(wiring.Component):
    """One element per cycle, ``latency`` cycles, no stalls; equals `sim.gru.Gru.step` behind its products.

    Parameters:
        layer: gives the formats and the activation tables.
        name: names the images of the tables.

    Members:
        xr, xz, xn: pre-activations of the input.
        hr, hz, hn: pre-activations of the state.
        h: state.
        y: next state.
    """

    multiplications = 5
    """Real multiplications per element: three activations, the reset gate, the update gate."""

    latency = 1 + Activation.latency + 2 + Activation.latency + 3
    """Cycles: r and z; their sigmoid; r·hn and n; its tanh; difference, product and sum."""

    def __init__(self, layer: Gru, *, name: str) -> None:
        self._layer = layer
        self._name = name
        pre, state = signed(layer.pre_format.width), signed(layer.output_format.width)
        super().__init__({
            **{f"{source}{gate}": In(pre) for source in "xh" for gate in "rzn"}, "h": In(state), "y": Out(state)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        layer = self._layer
        width, state = layer.pre_format.width, layer.output_format
        m.submodules.sigmoid_r = sigmoid_r = Activation(layer.sigmoid, image=f"{self._name}_sigmoid")
        m.submodules.sigmoid_z = sigmoid_z = Activation(layer.sigmoid, image=f"{self._name}_sigmoid")
        m.submodules.tanh_n = tanh_n = Activation(layer.tanh, image=f"{self._name}_tanh")
        gates = 1 + Activation.latency
        candidate = gates + 2 + Activation.latency

        pre_r, pre_z, pre_n = (Signal(signed(width), name=f"pre_{gate}", reset_less=True) for gate in "rzn")
        reset = Signal(signed(state.width + width), reset_less=True)
        m.d.comb += [sigmoid_r.x.eq(pre_r), sigmoid_z.x.eq(pre_z), tanh_n.x.eq(pre_n)]
        m.d.sync += [
            pre_r.eq(saturate(self.xr + self.hr, width)),
            pre_z.eq(saturate(self.xz + self.hz, width)),
            reset.eq(sigmoid_r.y * delay(m, self.hn, gates, name="hn")),
            pre_n.eq(saturate(delay(m, self.xn, gates + 1, name="xn") + round_shift(reset, state.frac), width)),
        ]

        z = delay(m, sigmoid_z.y, candidate - gates + 1, name="z")
        h, n = delay(m, self.h, candidate, name="h"), delay(m, tanh_n.y, 2, name="n")
        difference = Signal(signed(state.width + 1), reset_less=True)
        update = Signal(signed(2 * state.width + 1), reset_less=True)
        value = Signal(signed(state.width), reset_less=True)
        m.d.comb += self.y.eq(value)
        m.d.sync += [
            difference.eq(h - tanh_n.y),
            update.eq(z * difference),
            value.eq(saturate(n + round_shift(update, state.frac), state.width)),
        ]
        return m
