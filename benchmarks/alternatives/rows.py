"""Rows of the comparison: a network of some width with matrices of some structure, of equal cost in each table."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.alternatives.structures import Circulant, Dense, LowRank, Monarch, Pruned, Structure

__all__ = ["DIGITS", "IMAGES", "SENTENCES", "Row"]

Make = Callable[..., Structure]


@dataclass(frozen=True)
class Row:
    """
    Parameters:
        tables: those in which it stands, "bits" and "multiplications".
        hidden: units, or channels of the first convolution.
        make: gives a matrix from rows of a gate, columns, the deviation of its entries, and the number of gates.
    """

    label: str
    tables: tuple[str, ...]
    hidden: int
    make: Make


BOTH, FEW_BITS, FEW_PRODUCTS = ("bits", "multiplications"), ("bits",), ("multiplications",)

# Sizes are those that come nearest to the budget from below; rows of both tables keep both. The first row is the
# dense network, from whose outputs all others learn.
DIGITS = (
    Row("dense 64, 12 bits", (), 64, Dense),
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

IMAGES = (
    Row("dense 32, 12 bits", (), 32, Dense),
    Row("dense 11, 12 bits", FEW_BITS, 11, Dense),
    Row("dense 13, 8 bits", BOTH, 13, partial(Dense, bits=8)),
    Row("dense 19, 4 bits", FEW_BITS, 19, partial(Dense, bits=4)),
    Row("dense 13, 12 bits", FEW_PRODUCTS, 13, Dense),
    Row("low rank 6 of 32", BOTH, 32, partial(LowRank, rank=6)),
    Row("2:4 of 12", FEW_BITS, 12, partial(Pruned, kept=(2, 4), index=2)),
    Row("2:4 of 16", FEW_PRODUCTS, 16, partial(Pruned, kept=(2, 4), index=2)),
    Row("1:4 of 20", FEW_BITS, 20, partial(Pruned, kept=(1, 4), index=2)),
    Row("1:4 of 24", FEW_PRODUCTS, 24, partial(Pruned, kept=(1, 4), index=2)),
    Row("unstructured 9.3 % of 32", FEW_BITS, 32, partial(Pruned, kept=0.093, index=4)),
    Row("unstructured 18 % of 32", FEW_PRODUCTS, 32, partial(Pruned, kept=0.18, index=4)),
    Row("Monarch 8 × 4 of 32", BOTH, 32, partial(Monarch, blocks=8, groups=4)),
    Row("circulant k = 4 of 20", BOTH, 20, partial(Circulant, k=4)),
    Row("circulant k = 8 of 32", BOTH, 32, partial(Circulant, k=8)),
    Row("circulant k = 16 of 32", BOTH, 32, partial(Circulant, k=16)),
    Row("circulant k = 32 of 64", BOTH, 64, partial(Circulant, k=32)),
    Row("circulant k = 8 of 32, 4 bits", BOTH, 32, partial(Circulant, k=8, bits=4)),
    Row("circulant k = 16 of 64, 4 bits", FEW_BITS, 64, partial(Circulant, k=16, bits=4)),
)

SENTENCES = (
    Row("dense 96, 12 bits", (), 96, Dense),
    Row("dense 18, 12 bits", FEW_BITS, 18, Dense),
    Row("dense 26, 8 bits", FEW_BITS, 26, partial(Dense, bits=8)),
    Row("dense 46, 4 bits", FEW_BITS, 46, partial(Dense, bits=4)),
    Row("dense 24, 12 bits", FEW_PRODUCTS, 24, Dense),
    Row("low rank 10 of 96", FEW_BITS, 96, partial(LowRank, rank=10)),
    Row("low rank 13 of 96", FEW_PRODUCTS, 96, partial(LowRank, rank=13)),
    Row("2:4 of 28", FEW_BITS, 28, partial(Pruned, kept=(2, 4), index=2)),
    Row("1:4 of 48", FEW_BITS, 48, partial(Pruned, kept=(1, 4), index=2)),
    Row("2:4 of 40", FEW_PRODUCTS, 40, partial(Pruned, kept=(2, 4), index=2)),
    Row("1:4 of 72", FEW_PRODUCTS, 72, partial(Pruned, kept=(1, 4), index=2)),
    Row("unstructured 9.3 % of 96", FEW_BITS, 96, partial(Pruned, kept=0.093, index=4)),
    Row("unstructured 17 % of 96", FEW_PRODUCTS, 96, partial(Pruned, kept=0.17, index=4)),
    Row("Monarch 8 × 4 of 96", FEW_BITS, 96, partial(Monarch, blocks=8, groups=4)),
    Row("Monarch 8 × 8 of 96", FEW_PRODUCTS, 96, partial(Monarch, blocks=8, groups=8)),
    Row("circulant k = 4 of 56", BOTH, 56, partial(Circulant, k=4)),
    Row("circulant k = 8 of 96", BOTH, 96, partial(Circulant, k=8)),
    Row("circulant k = 16 of 144", BOTH, 144, partial(Circulant, k=16)),
    Row("circulant k = 32 of 224", BOTH, 224, partial(Circulant, k=32)),
    Row("circulant k = 8 of 96, 4 bits", BOTH, 96, partial(Circulant, k=8, bits=4)),
)
