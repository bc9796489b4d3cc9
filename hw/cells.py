"""The pointwise parts of the cells, one element per cycle: from pre-activations and state to the next state and y."""
from typing import Any

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.activation import Activation
from circulant.hw.fixed import round_shift, saturate
from circulant.hw.pipeline import delay
from circulant.sim.activation import Pwl
from circulant.sim.fixed import Format
from circulant.sim.gru import Gru
from circulant.sim.lstm import GATES, Lstm

__all__ = ["GruCell", "LstmCell", "cell_of"]


def cell_of(layer: Gru | Lstm) -> type["GruCell"] | type["LstmCell"]:
    """The cell of a layer."""
    return LstmCell if isinstance(layer, Lstm) else GruCell


def _register(m: Module, value: Any, width: int, name: str) -> Signal:
    register = Signal(signed(width), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


def _activation(m: Module, pwl: Pwl, x: Any, *, name: str, image: str) -> Any:
    m.submodules[name] = unit = Activation(pwl, image=image)
    m.d.comb += unit.x.eq(x)
    return unit.y


class GruCell(wiring.Component):
    """A GRU with the reset gate after the matrix; y and next are both h, ``latency`` cycles later."""

    rows = ("r", "z", "nx", "nh")
    """Pre-activations: of the gates, and of the candidate over x and over h."""

    @staticmethod
    def multiplications(layer: Gru) -> int:
        """Three activations, the reset gate, the update gate."""
        return 5

    @staticmethod
    def latency(layer: Gru) -> int:
        """Reset gate, its product, the sum; candidate, difference, update, sum."""
        return 2 * Activation.latency + 5

    @staticmethod
    def state_format(layer: Gru) -> Format:
        return layer.output_format

    def __init__(self, layer: Gru, *, name: str) -> None:
        self._layer, self._name = layer, name
        pre, state = signed(layer.pre_format.width), signed(layer.output_format.width)
        super().__init__({
            **{row: In(pre) for row in self.rows}, "state": In(state), "y": Out(state), "next": Out(state)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        layer, a, name = self._layer, Activation.latency, self._name
        width, state = layer.pre_format.width, layer.output_format
        r, z = (_activation(m, layer.sigmoid, x, name=f"sigmoid_{gate}", image=f"{name}_sigmoid")
                for gate, x in (("r", self.r), ("z", self.z)))
        reset = _register(m, r * delay(m, self.nh, a, name="nh_late"), state.width + width, "reset")
        pre = _register(m, saturate(delay(m, self.nx, a + 1, name="nx_late") + round_shift(reset, state.frac), width),
                        width, "pre")
        n = _activation(m, layer.tanh, pre, name="tanh_n", image=f"{name}_tanh")
        h = delay(m, self.state, 2 * a + 2, name="h_late")
        difference = _register(m, h - n, state.width + 1, "difference")
        update = _register(m, delay(m, z, a + 3, name="z_late") * difference, 2 * state.width + 1, "update")
        value = _register(m, saturate(delay(m, n, 2, name="n_late") + round_shift(update, state.frac), state.width),
                          state.width, "value")
        m.d.comb += [self.y.eq(value), self.next.eq(value)]
        return m


class LstmCell(wiring.Component):
    """An LSTM; y is m, next is c, both ``latency`` cycles later (c waits for m)."""

    rows = GATES

    @staticmethod
    def multiplications(layer: Lstm) -> int:
        """Five activations, three products of gates, three peepholes."""
        return 8 if layer.peephole is None else 11

    @staticmethod
    def latency(layer: Lstm) -> int:
        """Peephole, gates, two products and the sum; peephole, o and tanh(c), product and rounding."""
        peek = 0 if layer.peephole is None else 2
        return 2 * (peek + Activation.latency) + 4

    @staticmethod
    def state_format(layer: Lstm) -> Format:
        return layer.cell

    def __init__(self, layer: Lstm, *, name: str) -> None:
        self._layer, self._name = layer, name
        pre, cell = signed(layer.pre_format.width), signed(layer.cell.width)
        peep = {} if layer.peephole is None else {f"p{g}": In(signed(layer.peephole_format.width)) for g in "ifo"}
        super().__init__({
            **{row: In(pre) for row in self.rows}, **peep, "state": In(cell),
            "y": Out(signed(layer.sigmoid.output.width)), "next": Out(cell)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        layer, a, image = self._layer, Activation.latency, self._name
        gate, cell = layer.sigmoid.output, layer.cell
        peek = 0 if layer.peephole is None else 2
        i = self._sigmoid(m, "i", self.i, self.state, 0)
        f = self._sigmoid(m, "f", self.f, self.state, 0)
        g = _activation(m, layer.tanh, delay(m, self.g, peek, name="g_late"), name="tanh_g", image=f"{image}_tanh")
        kept = _register(m, f * delay(m, self.state, peek + a, name="c_late"), gate.width + cell.width, "kept")
        new = _register(m, i * g, 2 * gate.width, "new")
        total = round_shift(kept, gate.frac) + round_shift(new, 2 * gate.frac - cell.frac)
        c = _register(m, saturate(total, cell.width), cell.width, "cell")
        o = self._sigmoid(m, "o", delay(m, self.o, peek + a + 2, name="o_late"), c, peek + a + 2)
        t = _activation(m, layer.tanh_cell, c, name="tanh_c", image=f"{image}_tanh_cell")
        product = _register(m, o * delay(m, t, peek, name="tanh_late"), 2 * gate.width, "output")
        value = _register(m, saturate(round_shift(product, gate.frac), gate.width), gate.width, "value")
        m.d.comb += [self.y.eq(value), self.next.eq(delay(m, c, peek + a + 2, name="c_wait"))]
        return m

    def _sigmoid(self, m: Module, gate: str, pre: Any, c: Any, late: int) -> Any:
        """Sigmoid of the pre-activation and what the gate sees of c; its peephole comes ``late`` cycles before it."""
        layer = self._layer
        if layer.peephole is not None:
            form, width = layer.peephole_format, layer.pre_format.width
            weight = delay(m, getattr(self, f"p{gate}"), late, name=f"p{gate}_late")
            product = _register(m, weight * c, form.width + layer.cell.width, f"peephole_{gate}")
            seen = round_shift(product, form.frac + layer.cell.frac - layer.pre_format.frac)
            pre = _register(m, saturate(delay(m, pre, 1, name=f"{gate}_pre") + seen, width), width, f"peeked_{gate}")
        return _activation(m, layer.sigmoid, pre, name=f"sigmoid_{gate}", image=f"{self._name}_sigmoid")
