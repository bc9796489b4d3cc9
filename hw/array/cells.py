"""The pointwise part of an LSTM, one element per cycle: from pre-activations and c to the next c and m."""

from typing import Any

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.activation import Activation
from circulant.hw.fixed import round_shift, saturate
from circulant.hw.pipeline import delay
from circulant.sim.lstm import Lstm

__all__ = ["LstmCell"]


def _register(m: Module, value: Any, width: int, name: str) -> Signal:
    register = Signal(signed(width), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


class LstmCell(wiring.Component):
    """y is m, next is c; both ``latency`` cycles later (c waits for m)."""

    def __init__(self, layer: Lstm, *, name: str) -> None:
        self._layer, self._name = layer, name
        pre, state = signed(layer.pre_format.width), signed(layer.sigmoid.output.width)
        peep = {} if layer.peephole is None else {f"p{g}": In(signed(layer.peephole_format.width)) for g in "ifo"}
        super().__init__(
            {
                **{kind: In(pre) for kind in "ifgo"},
                **peep,
                "state": In(signed(layer.cell.width)),
                "y": Out(state),
                "next": Out(signed(layer.cell.width)),
            }
        )

    @property
    def multiplications(self) -> int:
        return 11 if self._layer.peephole is not None else 8

    @property
    def latency(self) -> int:
        a, p = Activation.latency, 2 * (self._layer.peephole is not None)
        return p + a + 2 + max(a, p + a) + 2

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        layer = self._layer
        width, gate, cell = layer.pre_format.width, layer.sigmoid.output, layer.cell
        a = Activation.latency
        peep = layer.peephole is not None
        p = 2 * peep

        def activation(pwl: Any, x: Any, name: str, table: str) -> Any:
            unit = Activation(pwl, image=f"{self._name}_{table}")
            m.submodules[name] = unit
            m.d.comb += unit.x.eq(x)
            return unit.y

        def peeked(pre: Any, weight: Any, c: Any, name: str) -> Any:
            if not peep:
                return pre
            form = layer.peephole_format
            product = _register(m, weight * c, form.width + cell.width, f"peephole_{name}")
            return _register(
                m,
                saturate(
                    delay(m, pre, 1, name=f"{name}_pre")
                    + round_shift(product, form.frac + cell.frac - layer.pre_format.frac),
                    width,
                ),
                width,
                f"peeked_{name}",
            )

        i = activation(
            layer.sigmoid, peeked(self.i, getattr(self, "pi", None), self.state, "i"), "sigmoid_i", "sigmoid"
        )
        f = activation(
            layer.sigmoid, peeked(self.f, getattr(self, "pf", None), self.state, "f"), "sigmoid_f", "sigmoid"
        )
        g = activation(layer.tanh, delay(m, self.g, p, name="g_late"), "tanh_g", "tanh")
        c = delay(m, self.state, p + a, name="c_late")
        kept = _register(m, f * c, gate.width + cell.width, "kept")
        new = _register(m, i * g, 2 * gate.width, "new")
        c = _register(
            m,
            saturate(round_shift(kept, gate.frac) + round_shift(new, 2 * gate.frac - cell.frac), cell.width),
            cell.width,
            "cell",
        )
        t = p + a + 2
        o_pre = delay(m, self.o, t, name="o_late")
        po = delay(m, self.po, t, name="po_late") if peep else None
        o = activation(layer.sigmoid, peeked(o_pre, po, c, "o"), "sigmoid_o", "sigmoid")
        tc = activation(layer.tanh_cell, c, "tanh_c", "tanh_cell")
        tc = delay(m, tc, p, name="tanh_late")
        product = _register(m, o * tc, 2 * gate.width, "output")
        value = _register(m, saturate(round_shift(product, gate.frac), gate.width), gate.width, "value")
        m.d.comb += [self.y.eq(value), self.next.eq(delay(m, c, p + a + 2, name="c_wait"))]
        return m
