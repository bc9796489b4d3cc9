"""Rows in fours for the gates r, z, nx and nh of a block of a GRU, with adjacent vectors: no column belongs to both nx
and nh, so that these two rows share their lanes; the columns of the input are summed up for nx, all others for nh."""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from circulant.hw.array.matrix import ArrayShape, Matrix, Part, resets_after
from circulant.hw.array.schedules.adjacent import Adjacent
from circulant.hw.array.split_row import divides

__all__ = ["SplitRows", "SplitShape"]


@dataclass(frozen=True)
class SplitShape(ArrayShape):
    """An array in which the last two of four rows share their lanes.

    Raises:
        ValueError: when rows or chains are no multiple of 4.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows % 4 or self.chains % 4:
            raise ValueError("Rows and chains of a split array must be multiples of the 4 gates, not "
                             f"{self.rows} and {self.chains}")

    @property
    def shared(self) -> list[int]:
        return [row for row in range(self.rows) if row % 4 > 1]

    @property
    def lane_rows(self) -> list[int]:
        return [row for row in range(self.rows) if row % 4 != 2]

    @property
    def couples(self) -> list[tuple[int, int]]:
        return [(row, row + 1) for row in range(0, self.rows, 4)]

    def served(self, row: int) -> tuple[int, ...]:
        return (row - 1, row) if row % 4 == 3 else (row,)


class SplitRows(Adjacent):
    """Schedule of a GRU that resets after its matrix: all its gates in one pass, in a `SplitShape`."""

    def __init__(self, shape: ArrayShape, matrices: Sequence[Matrix], **form: Any) -> None:
        super().__init__(shape, matrices, **form)
        self.parted_at = self.inputs % shape.columns

    @classmethod
    def serves(cls, matrices: Sequence[Matrix], shape: ArrayShape) -> bool:
        return bool(shape.shared and resets_after(matrices) and super().serves(matrices, shape)
                    and divides(shape.columns, matrices[0].inputs % shape.columns))

    @classmethod
    def shapes(cls, each: Sequence[Sequence[Matrix]], levels: int) -> Iterator[ArrayShape]:
        """Arrays worth a try, of the largest gates."""
        gates = max((matrix for found in each for matrix in found), key=lambda matrix: matrix.columns)
        for blocks in {-(-gates.blocks // n) for n in range(1, gates.blocks + 1)}:
            for columns in {-(-gates.columns // n) for n in range(1, gates.columns + 1)}:
                for chains in (4, 8)[:blocks]:
                    shape = SplitShape(4 * blocks, columns, chains, levels=levels)
                    if all(cls.serves(found, shape) for found in each):
                        yield shape

    @classmethod
    def arranged(cls, made: list[Matrix], shape: ArrayShape) -> tuple[list[Matrix], list[tuple[int, int]]]:
        x, gates, h = (replace(matrix, abreast=4) for matrix in made)
        x = replace(x, beside=gates)
        return [x, gates, replace(h, beside=x)], [(2, block) for block in range(0, x.rows, shape.rows // 4)]

    @classmethod
    def estimate(cls, matrices: Sequence[Matrix], shape: ArrayShape, *, late: bool) -> int:
        columns = matrices[0].inputs if late else matrices[1].columns
        return -(-4 * matrices[0].rows // shape.rows) * max(-(-columns // shape.columns), shape.slots)

    def _parts(self, matrix: Matrix) -> Sequence[Part]:
        return [part for each in matrix.together for part in each.parts]
