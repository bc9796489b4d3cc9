"""The static program of a layer's step: which block products the array computes, in which order.

Computed here, in Python, once; the hardware only counts. The rows of a matrix are interleaved by gate: row r is gate
``r % kinds`` of block ``r // kinds``. A pass computes R rows, row r of the matrix on row ``r % R`` of the array, from
groups of C columns of a vector; one group of one pass is issued per cycle. Sums of several passes grow side by side,
each in a slot of the accumulators. When its last group is in, a pass drains: its row r leaves through chain ``r % I``.

A step has up to three commands. AHEAD needs nothing but the step's input, MAIN waits for the recurrent vector, SECOND
for a vector that the pointwise unit makes: what is to be projected. Where a program is ``early``, MAIN may come before
AHEAD: what each pass begins and ends with is decided when the step begins.
"""
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from circulant.hw.array.order import Item, RowPlaces, arrange, colour
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.arith.circulant import JointProduct, Product, multiplications
from circulant.sim.arith.fixed import Integers

__all__ = ["AHEAD", "MAIN", "SECOND", "ArrayShape", "Issue", "Matrix", "Part", "Pass", "Place", "Program", "parts"]

AHEAD, MAIN, SECOND = range(3)
"""Commands."""


@dataclass(frozen=True)
class ArrayShape:
    """R ``rows`` of C ``columns``, a lane at each place, drained through I ``chains``.

    A block product takes ``fold`` cycles, with that many times fewer multipliers in a lane. Between two registers lie
    ``levels`` levels of logic at the most.

    Raises:
        ValueError: when a number is not positive.
    """

    rows: int
    columns: int
    chains: int
    fold: int = 1
    levels: int = LEVELS

    def __post_init__(self) -> None:
        if min(self.rows, self.columns, self.chains, self.fold) < 1:
            raise ValueError(f"An array must have rows, columns and chains, not {self!r}")

    @property
    def lanes(self) -> int:
        return self.rows * self.columns

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
    """

    parts: tuple[Part, ...]
    kinds: tuple[str, ...]
    completes: bool = True
    stage: int = 0

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

    def places(self, shape: ArrayShape) -> RowPlaces:
        """Where the rows of a gate are kept, of which a pass of so many rows may hold a whole number of blocks only."""
        return RowPlaces(self.blocks, max(1, shape.chains // len(self.kinds)), -(-shape.rows // len(self.kinds)))

    def _interleaved(self, rows: Integers) -> Integers:
        return rows.reshape(len(self.kinds), self.blocks, *rows.shape[1:]).swapaxes(0, 1).reshape(rows.shape)


def parts(product: JointProduct, *columns: int) -> tuple[Part, ...]:
    """The parts of a joint product with vector 0, each from its column on."""
    return tuple(Part(part, 0, column) for part, column in zip(product.parts, columns, strict=True))


@dataclass(frozen=True)
class Pass:
    """R rows of a matrix from ``first_row`` on, summed up in ``slot``."""

    matrix: int
    first_row: int
    slot: int


@dataclass(frozen=True)
class Issue:
    """A cycle's work: a group of C columns for one pass.

    Parameters:
        number: of the pass.
        group: of the columns of the command's vector.
        need: blocks of the recurrent (or second) vector that must have come; of an early program's AHEAD, of the input.
        first, ends: the first and the last group of the pass. Of an early program, of those in this command: the first
            one of the pass only if the command leads, the last one only if it does not, unless ``alone``.
        alone: the pass has no groups in the other one of AHEAD and MAIN.
    """

    number: int
    group: int
    need: int
    first: bool
    ends: bool
    alone: bool = True


@dataclass(frozen=True)
class Place:
    """Where a program begins among those of the layers that share its array: the first of its cycles in the memories of
    weights, of its passes, of its slots, of its matrices."""

    cycles: int = 0
    passes: int = 0
    slots: int = 0
    matrices: int = 0


class Program:
    """The issues of a step, by command.

    Parameters:
        shape: the array.
        matrices: what is computed; all have one block size, and one width of pre-activations in each stage.
        inputs: columns at the head of vector 0 that are the input's.
        order: (matrix, first row) of each pass, in the order in which passes that end in one command do so.
        spacing: for each command, the issues from one end of a pass to the next at the most; see `arrange`.
        early: whether MAIN may come before AHEAD; ``inputs`` then fill whole groups.

    Members:
        commands: the issues of each.
        passes: where they come from, and their slots. Those that sum up in AHEAD and in SECOND have
            ``joined`` ≤ slot < 2 · ``joined``, and in every second step the slot ``joined`` below.
        slots: of the accumulators.
        whole, place: the program of the array, and where this one is in it: itself and its start, unless the array is
            shared, see `circulant.hw.array.shared.merged`.
    """

    whole: "Program"
    place: Place

    def __init__(self, shape: ArrayShape, matrices: Sequence[Matrix], *, inputs: int, order: Sequence[tuple[int, int]],
                 spacing: tuple[int, int, int], early: bool = False) -> None:
        for matrix in matrices:
            if len(matrix.kinds) % shape.chains and shape.chains % len(matrix.kinds):
                raise ValueError("The chains and the gates of a matrix must divide one another, not "
                                 f"{shape.chains} and {len(matrix.kinds)}")
            if shape.rows % shape.chains and (shape.chains % len(matrix.kinds) or shape.rows % len(matrix.kinds)):
                raise ValueError("Rows that are no multiple of the chains must be one of the gates of each matrix, and "
                                 f"so must be the chains, not {shape.rows}, {shape.chains} and {len(matrix.kinds)}")
        self.shape, self.matrices, self._inputs, self.early = shape, list(matrices), inputs, early
        self.whole, self.place = self, Place()
        work = [self._work(self.matrices[index]) for index, _ in order]
        last = [max(command for command in range(3) if groups[command]) for groups in work]
        ending = [[end == command or (early and end < SECOND) for end in last] for command in range(3)]
        arranged = [arrange([groups[command] for groups in work], ending[command], spacing[command])
                    for command in range(3)]
        spanning = [n for n, groups in enumerate(work) if sum(map(bool, groups)) > 1]
        # AHEAD of the next step may come before SECOND of this one: a pass of both has two slots, for steps in turn.
        joined = [n for n in spanning if work[n][SECOND]]
        slots = {n: slot for slot, n in enumerate([*joined, *joined, *(n for n in spanning if n not in joined)])}
        taken = len(spanning) + len(joined)
        for items in arranged:
            local = colour([n for n, _ in items if n not in spanning])
            slots |= {n: taken + slot for n, slot in local.items()}
        self.passes = [Pass(index, row, slots[n]) for n, (index, row) in enumerate(order)]
        self.joined = len(joined)
        self.slots = 1 + max(slots.values())
        self.commands: list[list[Issue]] = []
        for command, items in enumerate(arranged):
            left = {n: len(groups[command]) for n, groups in enumerate(work)}
            issues = []
            for n, item in items:
                before = [] if early and command < SECOND else work[n][:command]
                first = left[n] == len(work[n][command]) and not any(before)
                left[n] -= 1
                alone = not early or command == SECOND or not (work[n][AHEAD] and work[n][MAIN])
                issues.append(Issue(n, item.group, item.need, first=first, ends=ending[command][n] and not left[n],
                                    alone=alone))
            self.commands.append(issues)

    def _work(self, matrix: Matrix) -> list[list[Item]]:
        """For each command the groups of a row of the matrix, those that need least first."""
        c, found = self.shape.columns, [{}, {}]  # type: tuple[int, list[dict[int, int]]]
        for part in matrix.parts:
            for j in part.columns:
                need = j + 1 - (0 if part.vector or (self.early and j < self._inputs) else self._inputs)
                found[part.vector][j // c] = max(need, 0, found[part.vector].get(j // c, 0))
        first = [Item(need, group) for group, need in sorted(found[0].items())]
        ahead = [item for item in first if (item.group * c < self._inputs if self.early else not item.need)]
        return [ahead, first[len(ahead):], [Item(need, group) for group, need in sorted(found[1].items())]]

    @property
    def cycles(self) -> int:
        """Issues of a step."""
        return sum(map(len, self.commands))

    def start(self, command: int) -> int:
        """Address of a command's first issue, in the order of the weight memories."""
        return sum(map(len, self.commands[:command]))

    def weights(self, row: int, column: int) -> Integers:
        """(cycles, k): the spectra that the lane at (row, column) multiplies with, zeros where it is idle."""
        words = np.zeros((self.cycles, self.matrices[0].product.block_size), np.int64)
        cycle = 0
        for command, issues in enumerate(self.commands):
            for issue in issues:
                p = self.passes[issue.number]
                matrix, r = self.matrices[p.matrix], p.first_row + row
                j = issue.group * self.shape.columns + column
                if r < matrix.rows:
                    for part, weights in zip(matrix.parts, matrix.weights, strict=True):
                        if part.vector == (command == SECOND) and j in part.columns:
                            words[cycle] = weights[r, j - part.column]
                cycle += 1
        return words

    def leaving(self, chain: int) -> list[tuple[int, int]]:
        """(matrix, row) that leave through a chain, pass by pass; the row is -1 where the array was idle."""
        rows = []
        for p in self.passes:
            for inside in range(chain, self.shape.slots * self.shape.chains, self.shape.chains):
                row = p.first_row + inside
                rows.append((p.matrix, row if inside < self.shape.rows and row < self.matrices[p.matrix].rows else -1))
        return rows
