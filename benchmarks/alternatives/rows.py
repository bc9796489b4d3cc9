"""Rows of the comparison: a GRU of some width with matrices of some structure, of equal cost in each table."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.alternatives.structures import Circulant, Dense, LowRank, Monarch, Pruned, Structure

__all__ = ["INPUTS", "ROWS", "TABLES", "TEACHER", "Row"]

INPUTS = 128

Make = Callable[[int, int, float], Structure]


@dataclass(frozen=True)
class Row:
    """
    Parameters:
        tables: comparisons in which it stands, of `TABLES`.
        make: gives a matrix from hidden units, columns and the deviation of its entries.
    """

    label: str
    tables: tuple[str, ...]
    hidden: int
    make: Make


TABLES = {"bits": "equal bits of weights: at most 56,000, with indices",
          "multiplications": "equal multiplications: at most 6,600 a step"}

TEACHER = Row("dense 64, 12 bits", (), 64, Dense)
BOTH, FEW_BITS, FEW_PRODUCTS = tuple(TABLES), ("bits",), ("multiplications",)

ROWS = (
    TEACHER,
    Row("dense 11, 12 bits", FEW_BITS, 11, Dense),
    Row("dense 16, 8 bits", FEW_BITS, 16, partial(Dense, bits=8)),
    Row("dense 29, 4 bits", FEW_BITS, 29, partial(Dense, bits=4)),
    Row("dense 15, 12 bits", FEW_PRODUCTS, 15, Dense),
    Row("low rank 8 of 64", FEW_BITS, 64, partial(LowRank, rank=8)),
    Row("low rank 11 of 64", FEW_PRODUCTS, 64, partial(LowRank, rank=11)),
    Row("2:4 of 16", FEW_BITS, 16, partial(Pruned, kept=(2, 4), index=2)),
    Row("1:4 of 32", FEW_BITS, 32, partial(Pruned, kept=(1, 4), index=2)),
    Row("2:4 of 28", FEW_PRODUCTS, 28, partial(Pruned, kept=(2, 4), index=2)),
    Row("1:4 of 48", FEW_PRODUCTS, 48, partial(Pruned, kept=(1, 4), index=2)),
    Row("unstructured 9.3 % of 64", FEW_BITS, 64, partial(Pruned, kept=0.093, index=4)),
    Row("unstructured 17 % of 64", FEW_PRODUCTS, 64, partial(Pruned, kept=0.17, index=4)),
    Row("Monarch 8 × 4 of 48", FEW_BITS, 48, partial(Monarch, blocks=8, groups=4)),
    Row("Monarch 8 × 7 of 56", FEW_PRODUCTS, 56, partial(Monarch, blocks=8, groups=7)),
    Row("circulant k = 4 of 36", BOTH, 36, partial(Circulant, k=4)),
    Row("circulant k = 8 of 64", BOTH, 64, partial(Circulant, k=8)),
    Row("circulant k = 16 of 64", BOTH, 64, partial(Circulant, k=16)),
    Row("circulant k = 16 of 96", BOTH, 96, partial(Circulant, k=16)),
    Row("circulant k = 32 of 160", BOTH, 160, partial(Circulant, k=32)),
    Row("circulant k = 8 of 64, 4 bits", BOTH, 64, partial(Circulant, k=8, bits=4)),
    Row("circulant k = 8 of 128, 4 bits", FEW_BITS, 128, partial(Circulant, k=8, bits=4)),
)
"""Sizes are those that come nearest to the budget from below; rows of both tables keep both."""
