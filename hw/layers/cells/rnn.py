"""The cell of a plain recurrent layer."""
from amaranth.hdl import Module

from circulant.hw.arith.activation import activation_latency
from circulant.hw.emit.target import Platform
from circulant.hw.layers.cells.cell import Cell
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.arith.activation import Pwl
from circulant.sim.kinds.rnn import Rnn

__all__ = ["RnnCell"]


class RnnCell(Cell[Rnn]):
    """A plain recurrent layer; y is h, which the engine keeps.

    Members:
        n: pre-activation of the state.
    """

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
