"""The cell of an LSTM."""

import numpy as np
from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from circulant.hw.arith.activation import activation_latency
from circulant.hw.arith.fixed import round_shift, rounded_sum, saturate
from circulant.hw.array.layer_programs import matrices
from circulant.hw.array.program import Matrix, Part, parts
from circulant.hw.components.cell import Cell, cells_of, register, registers
from circulant.hw.components.pointwise import peephole_image
from circulant.hw.emit.image import Image
from circulant.hw.emit.target import Platform, packed
from circulant.hw.stream.pipeline import LEVELS, delay, steps, when
from circulant.sim.arith.activation import Pwl
from circulant.sim.kinds.lstm import GATES, Lstm

__all__ = ["LstmCell"]


def _peek(layer: Lstm, levels: int) -> int:
    """Cycles of a peephole: its product, the sum."""
    return 0 if layer.peephole is None else 1 + registers(levels)


def _kept(layer: Lstm, levels: int) -> int:
    """Registers, one or none, of the new cell: it goes into an activation, and to a peephole as an operand."""
    return int(layer.peephole is not None and steps(levels) < 3) or registers(levels)


class LstmCell(Cell[Lstm]):
    """An LSTM; y is m, next is c, both ``latency`` cycles later (c waits for m).

    Members:
        i: pre-activation of the input gate.
        f: pre-activation of the forget gate.
        g: pre-activation of the candidate.
        o: pre-activation of the output gate.
        pi: peephole weight of the input gate.
        pf: peephole weight of the forget gate.
        po: peephole weight of the output gate.
    """

    rows = GATES
    private = True

    @staticmethod
    def tables(layer: Lstm) -> list[tuple[str, Pwl]]:
        return [("sigmoid", layer.sigmoid)] * 3 + [("tanh", layer.tanh), ("tanh_cell", layer.tanh_cell)]

    @staticmethod
    def factors(layer: Lstm) -> list[tuple[int, int]]:
        """Three products of gates, three peepholes."""
        gate, cell = layer.sigmoid.output.width, layer.cell.width
        peepholes = [] if layer.peephole is None else [(layer.peephole_format.width, cell)] * 3
        return [(gate, cell), (gate, gate), (gate, gate), *peepholes]

    @staticmethod
    def latency(layer: Lstm, levels: int = LEVELS) -> int:
        """Peephole, gates, two products and the sum; peephole, o and tanh(c), product and rounding."""
        return 2 * (_peek(layer, levels) + activation_latency(levels)) + 2 + registers(levels) + _kept(layer, levels)

    @staticmethod
    def memories(layer: Lstm) -> dict[str, int]:
        return {"state": layer.cell.width}

    @staticmethod
    def _more(layer: Lstm) -> dict[str, wiring.Member]:
        return {} if layer.peephole is None else {f"p{g}": In(signed(layer.peephole_format.width)) for g in "ifo"}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, a, few = self._layer, activation_latency(self._levels), registers(self._levels)
        some = _kept(layer, self._levels)
        gate, cell = layer.sigmoid.output, layer.cell
        peek = _peek(layer, self._levels)
        # Gates and candidate.
        i = self._sigmoid(m, "i", self.i, self.state, 0)
        f = self._sigmoid(m, "f", self.f, self.state, 0)
        g = self._activation(m, layer.tanh, delay(m, self.g, peek, name="g_late"), name="tanh_g", table="tanh").y

        # The new cell: c' = f · c + i · g.
        kept = register(m, f * delay(m, self.state, peek + a, name="c_late"), gate.width + cell.width, "kept")
        new = register(m, i * g, 2 * gate.width, "new")
        total = round_shift(kept, gate.frac) + round_shift(new, 2 * gate.frac - cell.frac)
        c = when(m, saturate(total, cell.width), signed(cell.width), kept=bool(some), name="cell")

        # The output: m = o · tanh(c'), the peephole of o sees c'.
        late = peek + a + 1 + some
        o = self._sigmoid(m, "o", delay(m, self.o, late, name="o_late"), c, late)
        seen = c if some else self._argument(m, total, layer.tanh_cell, "cell_seen")
        t = self._activation(m, layer.tanh_cell, seen, name="tanh_c", table="tanh_cell").y
        product = register(m, o * delay(m, t, peek, name="tanh_late"), 2 * gate.width, "output")
        value = when(m, saturate(round_shift(product, gate.frac), gate.width), signed(gate.width), kept=bool(few),
                     name="value")
        m.d.comb += [self.y.eq(value), self.next.eq(delay(m, c, peek + a + 1 + few, name="c_wait"))]
        return m

    def _sigmoid(self, m: Module, gate: str, pre: Value, c: Value, late: int) -> Signal:
        """Sigmoid of the pre-activation and what the gate sees of c; its peephole comes ``late`` cycles before it."""
        layer = self._layer
        if layer.peephole is not None:
            form = layer.peephole_format
            weight = delay(m, getattr(self, f"p{gate}"), late, name=f"p{gate}_late")
            product = register(m, weight * c, form.width + layer.cell.width, f"peephole_{gate}")
            total = rounded_sum(product, form.frac + layer.cell.frac - layer.pre_format.frac,
                                delay(m, pre, 1, name=f"{gate}_pre"))
            pre = self._argument(m, total, layer.sigmoid, f"peeked_{gate}")
        return self._activation(m, layer.sigmoid, pre, name=f"sigmoid_{gate}", table="sigmoid").y


@matrices.register
def _(layer: Lstm) -> list[Matrix]:
    x = layer.gates.parts[0].columns // layer.gates.block_size
    gates = [Matrix(parts(layer.gates, 0, x), GATES)]
    return gates if layer.projection is None else [
        *gates, Matrix((Part(layer.projection, 1, 0),), ("y",), stage=1)]


@cells_of.register
def _(layer: Lstm) -> list[type[Cell]]:
    return [LstmCell]


@peephole_image.register
def _(layer: Lstm, gives: int = 1) -> Image | None:
    if layer.peephole is None:
        return None
    k, width = layer.gates.block_size * gives, layer.peephole_format.width
    blocks = -(-layer.hidden // k)
    table = np.pad(layer.peephole, ((0, 0), (0, blocks * k - layer.hidden))).reshape(3, blocks, k)
    return Image(packed(table.swapaxes(0, 1).reshape(blocks, -1), width), 3 * k * width, f"{layer.name}_peephole")
