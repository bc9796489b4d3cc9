"""The matrices of a layer as an array sees them, and the shape of the array."""
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from circulant.hw.array.issue_order import RowPlaces
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.arith.circulant import JointProduct, Product, multiplications
from circulant.sim.arith.fixed import Integers

__all__ = ["ArrayShape", "Matrix", "Part", "beats", "blocks_aside", "parts", "resets_after"]


@dataclass(frozen=True)
class ArrayShape:
    """R ``rows`` of C ``columns``, a lane at each place, drained through I ``chains``.

    A block product takes ``fold`` cycles, with that many times fewer multipliers in a lane. Between two registers lie
    ``levels`` levels of logic at the most. ``ports`` are bits of the factors of a DSP block that may make two products,
    see `circulant.hw.arith.packed_product`; None where each product has its own. ``protection`` is that of its
    memories, one of `circulant.sim.arith.codes.PROTECTIONS`. In a cycle ``takes`` blocks of the input come and
    ``gives`` of the output leave, at the most; a layer with a state takes one, and gives as many as its pointwise unit.

    Raises:
        ValueError: when a number is not positive, or blocks that come or leave side by side do not divide the columns
            or the chains.
    """

    rows: int
    columns: int
    chains: int
    fold: int = 1
    levels: int = LEVELS
    ports: tuple[int, int] | None = None
    protection: str = "none"
    takes: int = 1
    gives: int = 1

    def __post_init__(self) -> None:
        if min(self.rows, self.columns, self.chains, self.fold) < 1:
            raise ValueError(f"An array must have rows, columns and chains, not {self!r}")
        if self.columns % self.takes or self.chains % self.gives or (self.gives > 1 and self.rows % self.chains):
            raise ValueError("Blocks that come side by side must divide the columns, those that leave so the chains, "
                             f"and these the rows, not {self!r}")

    @property
    def shared(self) -> list[int]:
        """The rows that share lanes, two by two, behind each other."""
        return []

    @property
    def lane_rows(self) -> list[int]:
        """The rows that have lanes, those of two rows at the second one."""
        return list(range(self.rows))

    @property
    def couples(self) -> list[tuple[int, int]]:
        """The rows that can share DSP blocks: two by two, but none that share lanes."""
        return [(row, row + 1) for row in range(0, self.rows - 1, 2)]

    def served(self, row: int) -> tuple[int, ...]:
        """The rows for which the lanes of one multiply."""
        return (row,)

    @property
    def lanes(self) -> int:
        return len(self.lane_rows) * self.columns

    def multipliers(self, k: int) -> int:
        """Multipliers of all lanes, for block size k."""
        return self.lanes * -(-multiplications(k) // self.fold)

    @property
    def slots(self) -> int:
        """Cycles that the rows of a pass take to leave."""
        return -(-self.rows // self.chains)


@dataclass(frozen=True, eq=False)
class Part:
    """A product with a stretch of a vector.

    Parameters:
        vector: 0 for the input and behind it the recurrent vector, 1 for the second one.
        column: of the vector, in blocks, with which it begins.
    """

    product: Product
    vector: int
    column: int

    @property
    def columns(self) -> range:
        return range(self.column, self.column + self.product.columns // self.product.block_size)


@dataclass(frozen=True, eq=False)
class Matrix:
    """A product as the array sees it.

    Parameters:
        parts: their sum is rounded as the first one says. Their rows are whole gates, one behind the other.
        kinds: names of the gates.
        completes: whether a block's last row means that the block is whole; other matrices have come before it.
        stage: 0 when the pointwise unit takes the rows, 1 for the rows of what it gave.
        beside: a matrix whose gates are in the passes of this one, before its own, block by block. The matrices of the
            input and of the state can have the same one beside them.
        abreast: gates of a block that are side by side in a pass, where they are more than those of this matrix.
    """

    parts: tuple[Part, ...]
    kinds: tuple[str, ...]
    completes: bool = True
    stage: int = 0
    beside: "Matrix | None" = None
    abreast: int = 0

    @property
    def product(self) -> Product:
        """The part that has the formats and the bias."""
        return self.parts[0].product

    @property
    def rows(self) -> int:
        return self.product.rows // self.product.block_size

    @property
    def columns(self) -> int:
        """Block products of a row."""
        return sum(len(part.columns) for part in self.parts)

    @property
    def inputs(self) -> int:
        """Blocks of the layer's input, where the matrix is the first one of a layer."""
        return len(self.parts[0].columns)

    @property
    def blocks(self) -> int:
        return self.rows // len(self.kinds)

    @cached_property
    def weights(self) -> list[Integers]:
        """For each part (rows, columns, k), interleaved by gate."""
        return [self._interleaved(part.product.weights) for part in self.parts]

    @cached_property
    def bias(self) -> Integers:
        """(rows, k), interleaved by gate."""
        return self._interleaved(self.product.bias.reshape(self.rows, -1))

    @cached_property
    def scales(self) -> list[int]:
        """For each row, interleaved by gate, by how many bits it is shifted before its last rounding."""
        scales = np.array(self.product.grid.row_scales or (0,) * self.rows)
        return [int(each) for each in self._interleaved(scales)]

    @property
    def gates(self) -> int:
        """Gates of a block in a pass."""
        return self.abreast or len(self.kinds)

    @property
    def first_gate(self) -> int:
        """The place of its first gate among them."""
        return 0 if self.beside is None else self.beside.first_gate + len(self.beside.kinds)

    @property
    def together(self) -> list["Matrix"]:
        """The matrices whose gates are in its passes, the own one first."""
        return [self, *(self.beside.together if self.beside is not None else ())]

    def places(self, shape: ArrayShape) -> RowPlaces:
        """Where the rows of a gate are kept, of which a pass of so many rows may hold a whole number of blocks only."""
        return RowPlaces(self.blocks, max(1, shape.chains // self.gates), -(-shape.rows // self.gates))

    def _interleaved(self, rows: Integers) -> Integers:
        return rows.reshape(len(self.kinds), self.blocks, *rows.shape[1:]).swapaxes(0, 1).reshape(rows.shape)


def parts(product: JointProduct, *columns: int) -> tuple[Part, ...]:
    """The parts of a joint product with vector 0, each from its column on."""
    return tuple(Part(part, 0, column) for part, column in zip(product.parts, columns, strict=True))


def resets_after(matrices: Sequence[Matrix]) -> bool:
    """Whether matrices are those of a GRU that resets after its matrix: the input's share of the candidate, the other
    gates, the state's share."""
    return [matrix.kinds for matrix in matrices] == [("nx",), ("r", "z"), ("nh",)]


def blocks_aside(found: Sequence[Matrix], shape: ArrayShape) -> int:
    """Blocks of the input that come side by side: as many as the array takes; values of a dense layer without a state,
    so many that the array waits for none, and that its banks take them."""
    only = found[0]
    if only.product.block_size > 1 or len(found) > 1 or len(only.parts) > 1:
        return shape.takes
    issue = -(-only.rows // shape.rows) * -(-only.columns // shape.columns) * shape.fold
    aside = 1
    while only.columns // aside > issue and not shape.columns % (2 * aside) and not only.columns % (2 * aside):
        aside *= 2
    return aside


def beats(found: Sequence[Matrix], shape: ArrayShape) -> tuple[int, int]:
    """The values that come to a layer with such an array in a cycle, and those that leave it."""
    k = found[0].product.block_size
    return k * blocks_aside(found, shape), k * shape.gives
