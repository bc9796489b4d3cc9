"""The cell of a plain recurrent layer."""

from amaranth.hdl import Module

from circulant.hw.arith.activation import activation_latency
from circulant.hw.array.layer_programs import matrices
from circulant.hw.array.program import Matrix, parts
from circulant.hw.components.cell import Cell, cells_of
from circulant.hw.emit.target import Platform
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
        m.d.comb += self.y.eq(self._activation(m, self._layer.tanh, self.n, name="tanh_n", table="tanh").y)
        return m


@matrices.register
def _(layer: Rnn) -> list[Matrix]:
    return [Matrix(parts(layer.gates, 0, layer.gates.parts[0].columns // layer.gates.block_size), ("n",))]


@cells_of.register
def _(layer: Rnn) -> list[type[Cell]]:
    return [RnnCell]
