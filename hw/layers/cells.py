"""The pointwise parts of the cells, one element per cycle: from pre-activations and state to the next state and y."""
from abc import ABC, abstractmethod
from functools import singledispatch
from typing import Generic, TypeVar

from amaranth.hdl import Module, Signal, Value, ValueLike, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.activation import Activation, activation_latency
from circulant.hw.arith.fixed import round_shift, saturate
from circulant.hw.emit.target import Platform
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import LEVELS, delay, steps, when
from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.layers import Layer
from circulant.sim.golden.lstm import GATES, Lstm
from circulant.sim.golden.rnn import Rnn

__all__ = ["CandidateCell", "Cell", "GruCell", "LstmCell", "ResetCell", "RnnCell", "cells_of"]


L = TypeVar("L", Gru, Lstm, Rnn)
"""Kind of the layer that a cell belongs to."""


class Cell(wiring.Component, ABC, Generic[L]):
    """The function that a `Pointwise` unit computes of one element, an element per cycle.

    Products have a register each. Of the steps between them those that are summed up here have one as ``levels`` of
    logic between two registers allow: results, and what goes from a sum into an activation or a product.

    Members:
        those of ``rows``, ``memories`` and ``outputs``; ``next``, what the memory ``own`` takes, if there is one.
    """

    rows: tuple[str, ...]
    """Pre-activations."""
    own = "state"
    """The memory that takes ``next``; "" without one."""

    def __init__(self, layer: L, *, name: str, config: Config | None = None, levels: int = LEVELS) -> None:
        self._layer: L = layer
        self._name, self._config, self._levels = name, config, levels
        pre, memories = signed(layer.pre_format.width), self.memories(layer)
        super().__init__({
            **{row: In(pre) for row in self.rows}, **{memory: In(signed(width)) for memory, width in memories.items()},
            **{output: Out(signed(width)) for output, width in self.outputs(layer).items()},
            **({"next": Out(signed(memories[self.own]))} if self.own else {}), **self._more(layer)})

    private = False
    """Whether ``own`` is a state beside what the layer gives, which nobody else keeps."""

    @classmethod
    def multiplications(cls, layer: L) -> int:
        """Products of two variables of an element: one in each activation, and those of gates and peepholes."""
        return len(cls.tables(layer)) + len(cls.factors(layer))

    @staticmethod
    @abstractmethod
    def tables(layer: L) -> list[tuple[str, Pwl]]:
        """Name of the table and function of each activation."""

    @staticmethod
    @abstractmethod
    def factors(layer: L) -> list[tuple[int, int]]:
        """Bits of both factors of each product beside those of activations."""

    @staticmethod
    @abstractmethod
    def latency(layer: L, levels: int = LEVELS) -> int:
        """Cycles from the operands to all outputs, for so many levels of logic between two registers."""

    @staticmethod
    def memories(layer: L) -> dict[str, int]:
        """Operands that are kept from earlier, with their widths."""
        return {"state": layer.output_format.width}

    @staticmethod
    def outputs(layer: L) -> dict[str, int]:
        """Results, with their widths; the layer's or the second vector is ``y``."""
        return {"y": layer.tanh.output.width}

    @staticmethod
    def _more(layer: L) -> dict[str, wiring.Member]:
        return {}

    def _activation(self, m: Module, pwl: Pwl, x: ValueLike, *, name: str, table: str) -> Signal:
        m.submodules[name] = unit = Activation(pwl, image=f"{self._name}_{table}", config=self._config,
                                               levels=self._levels)
        m.d.comb += unit.x.eq(x)
        return unit.y


@singledispatch
def cells_of(layer: Layer) -> list[type[Cell]]:
    """The cells of a layer: what takes the rows of each stage, if it is no projection; none without a state."""
    return []


@cells_of.register
def _(layer: Lstm) -> list[type[Cell]]:
    return [LstmCell]


@cells_of.register
def _(layer: Gru) -> list[type[Cell]]:
    return [GruCell] if layer.reset == "after" else [ResetCell, CandidateCell]


@cells_of.register
def _(layer: Rnn) -> list[type[Cell]]:
    return [RnnCell]


def _kept(levels: int) -> tuple[int, int]:
    """Registers, one or none, of what is rounded at once, such as a result, and of what goes into another activation or
    product."""
    return int(steps(levels) < 2), int(steps(levels) < 3)


def _register(m: Module, value: ValueLike, width: int, name: str) -> Signal:
    register = Signal(signed(width), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


class RnnCell(Cell[Rnn]):
    """A plain recurrent layer; y is h, which the engine keeps."""

    rows = ("n",)
    own = ""

    @staticmethod
    def tables(layer: Rnn) -> list[tuple[str, Pwl]]:
        return [("tanh", layer.tanh)]

    @staticmethod
    def factors(layer: Rnn) -> list[tuple[int, int]]:
        """None."""
        return []

    @staticmethod
    def latency(layer: Rnn, levels: int = LEVELS) -> int:
        """Cycles of the function."""
        return activation_latency(levels)

    @staticmethod
    def memories(layer: Rnn) -> dict[str, int]:
        """None."""
        return {}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.d.comb += self.y.eq(self._activation(m, self._layer.tanh, self.n, name="tanh_n", table="tanh"))
        return m


class GruCell(Cell[Gru]):
    """A GRU with the reset gate after the matrix; y and next are both h, ``latency`` cycles later."""

    rows = ("r", "z", "nx", "nh")
    """Pre-activations: of the gates, and of the candidate over x and over h."""

    @staticmethod
    def tables(layer: Gru) -> list[tuple[str, Pwl]]:
        return [("sigmoid", layer.sigmoid)] * 2 + [("tanh", layer.tanh)]

    @staticmethod
    def factors(layer: Gru) -> list[tuple[int, int]]:
        """The reset gate, the update gate."""
        gate = layer.sigmoid.output.width
        return [(gate, layer.pre_format.width), (gate, gate + 1)]

    @staticmethod
    def latency(layer: Gru, levels: int = LEVELS) -> int:
        """Reset gate, its product, the sum; candidate, difference, update, sum."""
        few, some = _kept(levels)
        return 2 * activation_latency(levels) + 2 + few + 2 * some

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, a, some = self._layer, activation_latency(self._levels), _kept(self._levels)[1]
        width, state = layer.pre_format.width, layer.output_format

        # The gates.
        r, z = (self._activation(m, layer.sigmoid, x, name=f"sigmoid_{gate}", table="sigmoid")
                for gate, x in (("r", self.r), ("z", self.z)))

        # The candidate: n = tanh(nx + r · nh).
        reset = _register(m, r * delay(m, self.nh, a, name="nh_late"), state.width + width, "reset")
        total = delay(m, self.nx, a + 1, name="nx_late") + round_shift(reset, state.frac)
        pre = when(m, saturate(total, width), signed(width), kept=bool(some), name="pre")
        n = self._activation(m, layer.tanh, pre, name="tanh_n", table="tanh")

        # The update: h' = n + z · (h - n).
        wait = a + 1 + some
        value = _updated(m, n, delay(m, z, wait, name="z_wait"), delay(m, self.state, a + wait, name="h_late"),
                         state=state, levels=self._levels)
        m.d.comb += [self.y.eq(value), self.next.eq(value)]
        return m


def _updated(m: Module, n: Value, z: Value, h: Value, *, state: Format, levels: int) -> Signal:
    """n + z (h - n), as many cycles later as there are registers: of the difference, the product, the sum."""
    few, some = _kept(levels)
    difference = when(m, h - n, signed(state.width + 1), kept=bool(some), name="difference")
    update = _register(m, delay(m, z, some, name="z_late") * difference, 2 * state.width + 1, "update")
    total = delay(m, n, some + 1, name="n_late") + round_shift(update, state.frac)
    return when(m, saturate(total, state.width), signed(state.width), kept=bool(few), name="value")


class ResetCell(Cell[Gru]):
    """The gates of a GRU with the reset gate before the matrix: y is r * h; gate is z, for the candidate."""

    rows = ("r", "z")
    own = ""

    @staticmethod
    def tables(layer: Gru) -> list[tuple[str, Pwl]]:
        return [("sigmoid", layer.sigmoid)] * 2

    @staticmethod
    def factors(layer: Gru) -> list[tuple[int, int]]:
        """The reset gate."""
        gate = layer.sigmoid.output.width
        return [(gate, gate)]

    @staticmethod
    def latency(layer: Gru, levels: int = LEVELS) -> int:
        """Gate, product, rounding."""
        return activation_latency(levels) + 1 + _kept(levels)[0]

    @staticmethod
    def outputs(layer: Gru) -> dict[str, int]:
        return {"y": layer.output_format.width, "gate": layer.output_format.width}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, state = self._layer, self._layer.output_format
        a, few = activation_latency(self._levels), _kept(self._levels)[0]
        r, z = (self._activation(m, layer.sigmoid, x, name=f"sigmoid_{gate}", table="sigmoid")
                for gate, x in (("r", self.r), ("z", self.z)))
        product = _register(m, r * delay(m, self.state, a, name="h_late"), 2 * state.width, "product")
        value = when(m, saturate(round_shift(product, state.frac), state.width), signed(state.width), kept=bool(few),
                     name="value")
        m.d.comb += [self.y.eq(value), self.gate.eq(delay(m, z, 1 + few, name="z_late"))]
        return m


class CandidateCell(Cell[Gru]):
    """Candidate and update of a GRU with the reset gate before the matrix; y and next are both h."""

    rows = ("n",)

    @staticmethod
    def tables(layer: Gru) -> list[tuple[str, Pwl]]:
        return [("tanh", layer.tanh)]

    @staticmethod
    def factors(layer: Gru) -> list[tuple[int, int]]:
        """The update gate."""
        gate = layer.sigmoid.output.width
        return [(gate, gate + 1)]

    @staticmethod
    def latency(layer: Gru, levels: int = LEVELS) -> int:
        """Candidate, difference, update, sum."""
        return activation_latency(levels) + 1 + sum(_kept(levels))

    @staticmethod
    def memories(layer: Gru) -> dict[str, int]:
        return {"state": layer.output_format.width, "gate": layer.output_format.width}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, a = self._layer, activation_latency(self._levels)
        n = self._activation(m, layer.tanh, self.n, name="tanh_n", table="tanh")
        z, h = delay(m, self.gate, a, name="z_wait"), delay(m, self.state, a, name="h_late")
        value = _updated(m, n, z, h, state=layer.output_format, levels=self._levels)
        m.d.comb += [self.y.eq(value), self.next.eq(value)]
        return m


def _peek(layer: Lstm, levels: int) -> int:
    """Cycles of a peephole: its product, the sum."""
    return 0 if layer.peephole is None else 1 + _kept(levels)[1]


class LstmCell(Cell[Lstm]):
    """An LSTM; y is m, next is c, both ``latency`` cycles later (c waits for m)."""

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
        return 2 * (_peek(layer, levels) + activation_latency(levels)) + 2 + sum(_kept(levels))

    @staticmethod
    def memories(layer: Lstm) -> dict[str, int]:
        return {"state": layer.cell.width}

    @staticmethod
    def _more(layer: Lstm) -> dict[str, wiring.Member]:
        return {} if layer.peephole is None else {f"p{g}": In(signed(layer.peephole_format.width)) for g in "ifo"}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, a, (few, some) = self._layer, activation_latency(self._levels), _kept(self._levels)
        gate, cell = layer.sigmoid.output, layer.cell
        peek = _peek(layer, self._levels)
        # Gates and candidate.
        i = self._sigmoid(m, "i", self.i, self.state, 0)
        f = self._sigmoid(m, "f", self.f, self.state, 0)
        g = self._activation(m, layer.tanh, delay(m, self.g, peek, name="g_late"), name="tanh_g", table="tanh")

        # The new cell: c' = f · c + i · g.
        kept = _register(m, f * delay(m, self.state, peek + a, name="c_late"), gate.width + cell.width, "kept")
        new = _register(m, i * g, 2 * gate.width, "new")
        total = round_shift(kept, gate.frac) + round_shift(new, 2 * gate.frac - cell.frac)
        c = when(m, saturate(total, cell.width), signed(cell.width), kept=bool(some), name="cell")

        # The output: m = o · tanh(c'), the peephole of o sees c'.
        late = peek + a + 1 + some
        o = self._sigmoid(m, "o", delay(m, self.o, late, name="o_late"), c, late)
        t = self._activation(m, layer.tanh_cell, c, name="tanh_c", table="tanh_cell")
        product = _register(m, o * delay(m, t, peek, name="tanh_late"), 2 * gate.width, "output")
        value = when(m, saturate(round_shift(product, gate.frac), gate.width), signed(gate.width), kept=bool(few),
                     name="value")
        m.d.comb += [self.y.eq(value), self.next.eq(delay(m, c, peek + a + 1 + few, name="c_wait"))]
        return m

    def _sigmoid(self, m: Module, gate: str, pre: Value, c: Value, late: int) -> Signal:
        """Sigmoid of the pre-activation and what the gate sees of c; its peephole comes ``late`` cycles before it."""
        layer = self._layer
        if layer.peephole is not None:
            form, width = layer.peephole_format, layer.pre_format.width
            weight = delay(m, getattr(self, f"p{gate}"), late, name=f"p{gate}_late")
            product = _register(m, weight * c, form.width + layer.cell.width, f"peephole_{gate}")
            seen = round_shift(product, form.frac + layer.cell.frac - layer.pre_format.frac)
            pre = when(m, saturate(delay(m, pre, 1, name=f"{gate}_pre") + seen, width), signed(width),
                       kept=bool(_kept(self._levels)[1]), name=f"peeked_{gate}")
        return self._activation(m, layer.sigmoid, pre, name=f"sigmoid_{gate}", table="sigmoid")
