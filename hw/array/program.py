"""The static order of a layer's step: which rows the array computes together, from which columns, and where they go.

Computed here, in Python, once; the hardware only counts. The rows of a matrix are interleaved by gate: row r is gate
``r % kinds`` of block ``r // kinds``. A pass computes R rows, row r of the matrix on row ``r % R`` of the array, whose
sums leave through chain ``r % I``; so a chain carries rows of one gate, or of a few that take turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from circulant.sim.circulant import JointProduct
from circulant.sim.fixed import Integers

__all__ = ["ArrayShape", "Matrix", "Pass", "Program"]


@dataclass(frozen=True)
class ArrayShape:
    """R ``rows`` of C ``columns``, a lane at each place, drained through I ``chains``.

    Raises:
        ValueError: when the rows are no multiple of the chains.
    """

    rows: int
    columns: int
    chains: int

    def __post_init__(self) -> None:
        if min(self.rows, self.columns, self.chains) < 1 or self.rows % self.chains:
            raise ValueError(f"An array must have rows that are a multiple of its chains, not {self!r}")

    @property
    def lanes(self) -> int:
        return self.rows * self.columns

    @property
    def slots(self) -> int:
        """Cycles that the rows of a pass take to leave."""
        return self.rows // self.chains


@dataclass(frozen=True, eq=False)
class Matrix:
    """A product as the array sees it.

    Parameters:
        product: its rows are whole gates, one behind the other.
        kinds: names of the gates.
        command: by which it is computed: 0 reads the input and the recurrent vector, 1 the vector to be projected.
    """

    product: JointProduct
    kinds: tuple[str, ...]
    command: int = 0

    @property
    def rows(self) -> int:
        return self.product.rows // self.product.block_size

    @property
    def columns(self) -> int:
        return sum(part.columns for part in self.product.parts) // self.product.block_size

    @property
    def blocks(self) -> int:
        return self.rows // len(self.kinds)

    @cached_property
    def weights(self) -> Integers:
        """(rows, columns, k), interleaved by gate."""
        kinds, k = len(self.kinds), self.product.block_size
        return (
            self.product.weights.reshape(kinds, self.blocks, self.columns, k)
            .swapaxes(0, 1)
            .reshape(-1, self.columns, k)
        )

    @cached_property
    def bias(self) -> Integers:
        """(rows, k), interleaved by gate."""
        kinds, k = len(self.kinds), self.product.block_size
        return self.product.parts[0].bias.reshape(kinds, self.blocks, k).swapaxes(0, 1).reshape(-1, k)

    def banks(self, chains: int) -> int:
        """Chains that carry rows of one and the same gate."""
        return max(1, chains // len(self.kinds))


@dataclass(frozen=True)
class Pass:
    """R rows of a matrix from ``first_row`` on, over ``groups`` groups of C columns each."""

    command: int
    matrix: int
    first_row: int
    groups: int


class Program:
    """The passes of a step, in their order.

    Parameters:
        shape: the array.
        matrices: what is computed; all have one block size, and one width of pre-activations.
        order: (matrix, first row) of each pass; those of one command stand together, command 0 first.
    """

    def __init__(self, shape: ArrayShape, matrices: Sequence[Matrix], order: Sequence[tuple[int, int]]) -> None:
        for matrix in matrices:
            if len(matrix.kinds) % shape.chains and shape.chains % len(matrix.kinds):
                raise ValueError(
                    f"The chains and the gates of a matrix must divide one another, not {shape.chains} and "
                    f"{len(matrix.kinds)}"
                )
        self.shape = shape
        self.matrices = list(matrices)
        self.passes = []
        for index, row in order:
            matrix, c = matrices[index], shape.columns
            self.passes.append(Pass(matrix.command, index, row, -(-matrix.columns // c)))
        self.commands = 1 + max(p.command for p in self.passes)

    @property
    def cycles(self) -> int:
        """Cycles in which block products are issued."""
        return sum(p.groups for p in self.passes)

    def first_pass(self, command: int) -> int:
        return next(n for n, p in enumerate(self.passes) if p.command == command)

    def first_cycle(self, command: int) -> int:
        """Block product with which a command begins, in the order of the weight memories."""
        return sum(p.groups for p in self.passes[: self.first_pass(command)])

    def weights(self, row: int, column: int) -> Integers:
        """(cycles, k): the spectra that the lane at (row, column) multiplies with, zeros where it is idle."""
        words = np.zeros((self.cycles, self.matrices[0].product.block_size), np.int64)
        cycle = 0
        for p in self.passes:
            matrix, r = self.matrices[p.matrix], p.first_row + row
            for group in range(p.groups):
                j = group * self.shape.columns + column
                if r < matrix.rows and j < matrix.columns:
                    words[cycle] = matrix.weights[r, j]
                cycle += 1
        return words

    def leaving(self, chain: int) -> list[tuple[int, int]]:
        """(matrix, row) in the order in which they leave through a chain; the row is -1 where the array was idle."""
        rows = []
        for p in self.passes:
            for slot in range(self.shape.slots):
                row = p.first_row + slot * self.shape.chains + chain
                rows.append((p.matrix, row if row < self.matrices[p.matrix].rows else -1))
        return rows
