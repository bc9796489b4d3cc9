"""The gates of a GRU side by side: row r of the array has gate ``r % 3``, r, z, or n, whose shares of the input and of
the state are two rows. In either command a pass of its own drains, and shares its slot with the other one: of the
command that leads only rows of n leave, as the sums of r and z go on in the other one."""
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import ClassVar

from circulant.hw.array.matrix import ArrayShape, Matrix, resets_after
from circulant.hw.array.schedules.either_first import EitherFirst

__all__ = ["Abreast"]


class Abreast(EitherFirst):
    """Schedule of a GRU that resets after its matrix, where the chains are a multiple of its three gates."""

    marks: ClassVar[tuple[str, ...]] = ("alone", "joins")
    joint_gates = 2, 3

    @classmethod
    def serves(cls, matrices: Sequence[Matrix], shape: ArrayShape) -> bool:
        return resets_after(matrices) and not shape.chains % 3 and not shape.shared

    @classmethod
    def shapes(cls, each: Sequence[Sequence[Matrix]], levels: int) -> Iterator[ArrayShape]:
        """Arrays worth a try for layers with these matrices; none where another layer's gates do not fit them."""
        fit = [cls.serves(some, ArrayShape(3, 1, 3)) for some in each]
        found = list(compress(each, fit))
        if any(len(matrix.kinds) > 1 for some, fits in zip(each, fit, strict=True) if not fits for matrix in some):
            return
        rows = {-(-x.rows // n) * 3 for x, _, _ in found for n in range(1, x.rows + 1)}
        columns = {-(-matrix.columns // n) for x, _, h in found for matrix in (x, h)
                   for n in range(1, matrix.columns + 1)}
        yield from (ArrayShape(r, c, chains, levels=levels)
                    for chains in (3, 6) for r in rows if r >= chains for c in columns)

    @classmethod
    def arranged(cls, made: list[Matrix], shape: ArrayShape) -> tuple[list[Matrix], list[tuple[int, int]]]:
        x, gates, h = made
        gates = replace(gates, abreast=3)
        order = [(index, block) for block in range(0, x.rows, shape.rows // 3) for index in (0, 2)]
        return [replace(x, beside=gates, abreast=3), gates, replace(h, beside=gates, abreast=3)], order

    @classmethod
    def estimate(cls, matrices: Sequence[Matrix], shape: ArrayShape, *, late: bool) -> int:
        shares = [-(-matrix.columns // shape.columns) for matrix in (matrices[0], matrices[2])[:1 if late else 2]]
        return -(-3 * matrices[0].rows // shape.rows) * max(sum(shares), shape.slots * len(shares))

    def _joins(self, number: int) -> bool:
        return True
