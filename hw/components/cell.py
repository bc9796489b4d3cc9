"""Ports, activations and registers that the cells share."""
from abc import ABC, abstractmethod
from functools import singledispatch
from typing import Generic, TypeVar

from amaranth.hdl import Module, Signal, Value, ValueLike, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.activation import Activation
from circulant.hw.arith.fixed import saturate
from circulant.hw.reload.config import Config
from circulant.hw.stream.pipeline import LEVELS, steps, when
from circulant.sim.arith.activation import Pwl
from circulant.sim.golden.stages import Stage
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.kinds.rnn import Rnn

__all__ = ["Cell", "cells_of", "register", "registers"]

L = TypeVar("L", Gru, Lstm, Rnn)
"""Kind of the layer that a cell belongs to."""


class Cell(wiring.Component, ABC, Generic[L]):
    """The function that a `Pointwise` unit computes of one element, an element per cycle.

    Products have a register each. Of the steps between them those that are summed up here have one where ``levels`` of
    logic allow one step between two registers: results, and what goes from a sum into an activation or a product.

    Members:
        state: the element's state after the step before.
        y: the element's result.
        next: the element's next state, which the memory ``own`` takes, if there is one.
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

    def _activation(self, m: Module, pwl: Pwl, x: Value, *, name: str, table: str, early: bool = False) -> Activation:
        m.submodules[name] = unit = Activation(pwl, image=f"{self._name}_{table}", config=self._config,
                                               levels=self._levels, width=len(x), early=early)
        m.d.comb += unit.x.eq(x)
        return unit

    def _argument(self, m: Module, total: Value, pwl: Pwl, name: str) -> Value:
        """A sum as the argument of an activation: clipped to its format in a register, or as it is where the activation
        clips it as far."""
        kept, width = registers(self._levels), pwl.input.width
        if not kept and pwl.input_bits <= width:
            return total
        return when(m, saturate(total, width), signed(width), kept=bool(kept), name=name)


def registers(levels: int) -> int:
    """The registers, one or none, of what is rounded or goes from a sum into an activation or a product."""
    return int(steps(levels) < 2)


def register(m: Module, value: ValueLike, width: int, name: str) -> Signal:
    """A signal that follows a value one cycle later, and has no reset."""
    later = Signal(signed(width), name=name, reset_less=True)
    m.d.sync += later.eq(value)
    return later


@singledispatch
def cells_of(layer: Stage) -> list[type[Cell]]:
    """The cells of a layer: what takes the rows of each stage, if it is no projection; none without a state."""
    return []
