"""The pointwise parts of the cells, one element per cycle: from pre-activations and state to the next state and y."""
from abc import ABC, abstractmethod
from functools import singledispatch
from typing import Generic, TypeVar

from amaranth.hdl import Module, Signal, Value, ValueLike, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.activation import Activation
from circulant.hw.arith.fixed import round_shift, saturate
from circulant.hw.emit.target import Platform
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import delay
from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.layers import Layer
from circulant.sim.golden.lstm import GATES, Lstm

__all__ = ["CandidateCell", "Cell", "GruCell", "LstmCell", "ResetCell", "cells_of"]


L = TypeVar("L", Gru, Lstm)
"""Kind of the layer that a cell belongs to."""


class Cell(wiring.Component, ABC, Generic[L]):
    """The function that a `Pointwise` unit computes of one element, an element per cycle.

    Members:
        those of ``rows``, ``memories`` and ``outputs``; ``next``, what the memory ``own`` takes, if there is one.
    """

    rows: tuple[str, ...]
    """Pre-activations."""
    own = "state"
    """The memory that takes ``next``; "" without one."""

    def __init__(self, layer: L, *, name: str, config: Config | None = None) -> None:
        self._layer: L = layer
        self._name, self._config = name, config
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
    def latency(layer: L) -> int:
        """Cycles from the operands to all outputs."""

    @staticmethod
    def memories(layer: L) -> dict[str, int]:
        """Operands that are kept from earlier, with their widths."""
        return {"state": layer.output_format.width}

    @staticmethod
    def outputs(layer: L) -> dict[str, int]:
        """Results, with their widths; the layer's or the second vector is ``y``."""
        return {"y": layer.sigmoid.output.width}

    @staticmethod
    def _more(layer: L) -> dict[str, wiring.Member]:
        return {}

    def _activation(self, m: Module, pwl: Pwl, x: ValueLike, *, name: str, table: str) -> Signal:
        m.submodules[name] = unit = Activation(pwl, image=f"{self._name}_{table}", config=self._config)
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


def _register(m: Module, value: ValueLike, width: int, name: str) -> Signal:
    register = Signal(signed(width), name=name, reset_less=True)
    m.d.sync += register.eq(value)
    return register


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
    def latency(layer: Gru) -> int:
        """Reset gate, its product, the sum; candidate, difference, update, sum."""
        return 2 * Activation.latency + 5

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, a = self._layer, Activation.latency
        width, state = layer.pre_format.width, layer.output_format

        # The gates.
        r, z = (self._activation(m, layer.sigmoid, x, name=f"sigmoid_{gate}", table="sigmoid")
                for gate, x in (("r", self.r), ("z", self.z)))

        # The candidate: n = tanh(nx + r · nh).
        reset = _register(m, r * delay(m, self.nh, a, name="nh_late"), state.width + width, "reset")
        pre = _register(m, saturate(delay(m, self.nx, a + 1, name="nx_late") + round_shift(reset, state.frac), width),
                        width, "pre")
        n = self._activation(m, layer.tanh, pre, name="tanh_n", table="tanh")

        # The update: h' = n + z · (h - n).
        value = _updated(m, n, delay(m, z, a + 2, name="z_wait"), delay(m, self.state, 2 * a + 2, name="h_late"), state)
        m.d.comb += [self.y.eq(value), self.next.eq(value)]
        return m


def _updated(m: Module, n: Value, z: Value, h: Value, state: Format) -> Signal:
    """n + z (h - n), three cycles later."""
    difference = _register(m, h - n, state.width + 1, "difference")
    update = _register(m, delay(m, z, 1, name="z_late") * difference, 2 * state.width + 1, "update")
    total = delay(m, n, 2, name="n_late") + round_shift(update, state.frac)
    return _register(m, saturate(total, state.width), state.width, "value")


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
    def latency(layer: Gru) -> int:
        """Gate, product, rounding."""
        return Activation.latency + 2

    @staticmethod
    def outputs(layer: Gru) -> dict[str, int]:
        return {"y": layer.output_format.width, "gate": layer.output_format.width}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, state = self._layer, self._layer.output_format
        r, z = (self._activation(m, layer.sigmoid, x, name=f"sigmoid_{gate}", table="sigmoid")
                for gate, x in (("r", self.r), ("z", self.z)))
        product = _register(m, r * delay(m, self.state, Activation.latency, name="h_late"), 2 * state.width, "product")
        value = _register(m, saturate(round_shift(product, state.frac), state.width), state.width, "value")
        m.d.comb += [self.y.eq(value), self.gate.eq(delay(m, z, 2, name="z_late"))]
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
    def latency(layer: Gru) -> int:
        """Candidate, difference, update, sum."""
        return Activation.latency + 3

    @staticmethod
    def memories(layer: Gru) -> dict[str, int]:
        return {"state": layer.output_format.width, "gate": layer.output_format.width}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, a = self._layer, Activation.latency
        n = self._activation(m, layer.tanh, self.n, name="tanh_n", table="tanh")
        z, h = delay(m, self.gate, a, name="z_wait"), delay(m, self.state, a, name="h_late")
        value = _updated(m, n, z, h, layer.output_format)
        m.d.comb += [self.y.eq(value), self.next.eq(value)]
        return m


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
    def latency(layer: Lstm) -> int:
        """Peephole, gates, two products and the sum; peephole, o and tanh(c), product and rounding."""
        peek = 0 if layer.peephole is None else 2
        return 2 * (peek + Activation.latency) + 4

    @staticmethod
    def memories(layer: Lstm) -> dict[str, int]:
        return {"state": layer.cell.width}

    @staticmethod
    def _more(layer: Lstm) -> dict[str, wiring.Member]:
        return {} if layer.peephole is None else {f"p{g}": In(signed(layer.peephole_format.width)) for g in "ifo"}

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        layer, a = self._layer, Activation.latency
        gate, cell = layer.sigmoid.output, layer.cell
        peek = 0 if layer.peephole is None else 2
        # Gates and candidate.
        i = self._sigmoid(m, "i", self.i, self.state, 0)
        f = self._sigmoid(m, "f", self.f, self.state, 0)
        g = self._activation(m, layer.tanh, delay(m, self.g, peek, name="g_late"), name="tanh_g", table="tanh")

        # The new cell: c' = f · c + i · g.
        kept = _register(m, f * delay(m, self.state, peek + a, name="c_late"), gate.width + cell.width, "kept")
        new = _register(m, i * g, 2 * gate.width, "new")
        total = round_shift(kept, gate.frac) + round_shift(new, 2 * gate.frac - cell.frac)
        c = _register(m, saturate(total, cell.width), cell.width, "cell")

        # The output: m = o · tanh(c'), the peephole of o sees c'.
        o = self._sigmoid(m, "o", delay(m, self.o, peek + a + 2, name="o_late"), c, peek + a + 2)
        t = self._activation(m, layer.tanh_cell, c, name="tanh_c", table="tanh_cell")
        product = _register(m, o * delay(m, t, peek, name="tanh_late"), 2 * gate.width, "output")
        value = _register(m, saturate(round_shift(product, gate.frac), gate.width), gate.width, "value")
        m.d.comb += [self.y.eq(value), self.next.eq(delay(m, c, peek + a + 2, name="c_wait"))]
        return m

    def _sigmoid(self, m: Module, gate: str, pre: Value, c: Value, late: int) -> Signal:
        """Sigmoid of the pre-activation and what the gate sees of c; its peephole comes ``late`` cycles before it."""
        layer = self._layer
        if layer.peephole is not None:
            form, width = layer.peephole_format, layer.pre_format.width
            weight = delay(m, getattr(self, f"p{gate}"), late, name=f"p{gate}_late")
            product = _register(m, weight * c, form.width + layer.cell.width, f"peephole_{gate}")
            seen = round_shift(product, form.frac + layer.cell.frac - layer.pre_format.frac)
            pre = _register(m, saturate(delay(m, pre, 1, name=f"{gate}_pre") + seen, width), width, f"peeked_{gate}")
        return self._activation(m, layer.sigmoid, pre, name=f"sigmoid_{gate}", table="sigmoid")
