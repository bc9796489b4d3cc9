"""The input first: a step begins with it, and it has come as a whole; the recurrent vector follows it in the banks."""
from collections.abc import Sequence
from typing import Self

from circulant.hw.array.matrix import ArrayShape, Matrix
from circulant.hw.array.program import Program

__all__ = ["InputFirst"]


class InputFirst(Program):
    """AHEAD, MAIN, SECOND; passes of the same blocks side by side, and the completing one behind the others."""

    @classmethod
    def of(cls, matrices: Sequence[Matrix], shape: ArrayShape, spacing: tuple[int, int, int]) -> Self:
        order = [(matrix.stage, -(-min(row + shape.rows, matrix.rows) // len(matrix.kinds)), index, row)
                 for index, matrix in enumerate(matrices) for row in range(0, matrix.rows, shape.rows)]
        return cls(shape, matrices, inputs=matrices[0].inputs, order=[entry[2:] for entry in sorted(order)],
                   spacing=spacing)
