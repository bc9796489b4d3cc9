"""Schedules in which either of AHEAD and MAIN leads a step, which is decided when it begins: what they have in common.

A block is whole with those of its rows that have both an input's and a recurrent share, since they always come last.
"""
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Self

from circulant.hw.array.matrix import ArrayShape, Matrix, Part
from circulant.hw.array.program import Program

__all__ = ["Either"]


class Either(Program):
    """A schedule in which what has come whole leads."""

    waits: ClassVar[tuple[int | None, int, int]] = 2, 0, 1

    @classmethod
    def of(cls, matrices: Sequence[Matrix], shape: ArrayShape, spacing: tuple[int, int, int]) -> Self:
        head = cls.head(matrices, shape)
        inputs = matrices[0].inputs
        joint = [[n for n, matrix in enumerate(matrices) if matrix.stage == stage and len(matrix.parts) > 1]
                 for stage in range(2)]
        made = [replace(matrix, completes=n in joint[matrix.stage][-1:] or not joint[matrix.stage], parts=tuple(
            replace(part, column=head) if not part.vector and part.column == inputs else part
            for part in matrix.parts)) for n, matrix in enumerate(matrices)]
        made, order = cls.arranged(made, shape)
        return cls(shape, made, inputs=head, order=order, spacing=spacing)

    @classmethod
    def head(cls, matrices: Sequence[Matrix], shape: ArrayShape) -> int:
        """Columns before the recurrent vector."""
        return matrices[0].inputs

    @classmethod
    def arranged(cls, made: list[Matrix], shape: ArrayShape) -> tuple[list[Matrix], list[tuple[int, int]]]:
        """The matrices with what is beside them, and the order of the passes: that of the last blocks that they make
        whole, or of the first ones that need them."""
        def place(index: int, row: int) -> tuple[int, int, int, int]:
            matrix = made[index]
            kinds = len(matrix.kinds)
            block = 2 * -(-min(row + shape.rows, matrix.rows) // kinds) - 1 if matrix.completes else 2 * (row // kinds)
            return matrix.stage, block, index, row

        return made, sorted(((index, row) for index, matrix in enumerate(made)
                             for row in range(0, matrix.rows, shape.rows)), key=lambda each: place(*each))

    @classmethod
    def estimate(cls, matrices: Sequence[Matrix], shape: ArrayShape, *, late: bool) -> int:
        """Cycles in which an array issues all block products of a layer once, roughly, to rank shapes; those that are
        ``late`` wait for the input, or for what comes of it."""
        total = 0
        for matrix in matrices:
            found = [part for part in matrix.parts if not late or part.vector or not part.column]
            groups = cls.groups(found, shape)
            total += -(-matrix.rows // shape.rows) * max(groups * shape.fold, shape.slots if groups else 0)
        return total

    @classmethod
    def groups(cls, parts: Sequence[Part], shape: ArrayShape) -> int:
        """Groups of columns in which an array takes parts of a matrix."""
        return sum(-(-len(part.columns) // shape.columns) for part in parts)
