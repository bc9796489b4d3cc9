"""The static program of a layer's step: which block products the array computes, in which order.

Computed here, in Python, once; the hardware only counts. The rows of a matrix are interleaved by gate: row r is gate
``r % kinds`` of block ``r // kinds``. A pass computes R rows, row r of the matrix on row ``r % R`` of the array, from
groups of C columns of a vector; one group of one pass is issued per cycle. Sums of several passes grow side by side,
each in a slot of the accumulators. When its last group is in, a pass drains: its row r leaves through chain ``r % I``.

A step has up to three commands. AHEAD needs nothing but the step's input, MAIN waits for the recurrent vector, SECOND
for a vector that the pointwise unit makes: what is to be projected. Where a program is ``early``, MAIN may come before
AHEAD: what each pass begins and ends with is decided when the step begins. Its recurrent vector begins with a group of
its own; or it is ``adjacent`` to the input, so that a group has columns of both. Such a group is issued by the command
that follows, whichever it is: both commands then have two sequences of issues.

Where the gates of a GRU are abreast, row r of the array has gate ``r % 3``: r, z, or n, whose shares of the
input and of the state are two rows. In either command a pass of its own drains, and shares its slot with the other one:
of the command that leads only rows of n leave, as the sums of r and z go on in the other one.
"""
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from circulant.hw.array.passes.matrix import ArrayShape, Matrix, Part, parts
from circulant.hw.array.passes.order import Item, arrange, colour
from circulant.sim.arith.fixed import Integers

__all__ = ["AHEAD", "MAIN", "SECOND", "ArrayShape", "Issue", "Matrix", "Part", "Pass", "Place", "Program", "parts"]

AHEAD, MAIN, SECOND = range(3)
"""Commands."""


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
        joins: beside its own rows the pass has some whose sums go on from the command that leads to the other one.
    """

    number: int
    group: int
    need: int
    first: bool
    ends: bool
    alone: bool = True
    joins: bool = False


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
        early: whether MAIN may come before AHEAD; ``inputs`` then fill whole groups, unless the program is
            ``adjacent``.

    Members:
        commands: the issues of each.
        sequences: those of the commands, and of an adjacent program behind them AHEAD that follows and MAIN that leads.
        passes: where they come from, and their slots. Those that sum up in AHEAD and in SECOND have
            ``joined`` ≤ slot < 2 · ``joined``, and in every second step the slot ``joined`` below.
        slots: of the accumulators.
        whole, place: the program of the array, and where this one is in it: itself and its start, unless the array is
            shared, see `circulant.hw.array.shared.merged`.
    """

    whole: "Program"
    place: Place

    def __init__(self, shape: ArrayShape, matrices: Sequence[Matrix], *, inputs: int, order: Sequence[tuple[int, int]],
                 spacing: tuple[int, int, int], early: bool = False, adjacent: bool = False) -> None:
        for matrix in matrices:
            gates = matrix.gates
            if gates % shape.chains and shape.chains % gates:
                raise ValueError("The chains and the gates of a matrix must divide one another, not "
                                 f"{shape.chains} and {gates}")
            if (shape.rows % shape.chains or matrix.abreast) and (shape.chains % gates or shape.rows % gates):
                raise ValueError("Rows that are no multiple of the chains must be one of the gates of each matrix, and "
                                 f"so must be the chains, not {shape.rows}, {shape.chains} and {gates}")
        self.shape, self.matrices, self._inputs, self.early = shape, list(matrices), inputs, early
        self.adjacent, either = adjacent, early and not adjacent
        self.whole, self.place = self, Place()
        work = [self._work(self.matrices[index]) for index, _ in order]
        last = [max(command for command in range(3) if groups[command]) for groups in work]
        ending = [[end == command or (either and end < SECOND) for end in last] for command in range(3)]
        arranged = [arrange([groups[command] for groups in work], ending[command], spacing[command])
                    for command in range(3)]
        spanning = [n for n, groups in enumerate(work)
                    if sum(map(bool, groups)) > 1 or (adjacent and not groups[SECOND])]
        # AHEAD of the next step may come before SECOND of this one: a pass of both has two slots, for steps in turn.
        joined = [n for n in spanning if work[n][SECOND]]
        slots = {n: slot for slot, n in enumerate([*joined, *joined, *(n for n in spanning if n not in joined)])}
        taken = len(spanning) + len(joined)
        # Passes of the same rows in AHEAD and in MAIN sum up in one slot.
        pairs = sorted({row for index, row in order if self._joins(self.matrices[index])})
        slots |= {n: taken + pairs.index(row) for n, (index, row) in enumerate(order)
                  if self._joins(self.matrices[index])}
        taken, kept = taken + len(pairs), set(slots)
        for items in arranged:
            local = colour([n for n, _ in items if n not in kept])
            slots |= {n: taken + slot for n, slot in local.items()}
        self.passes = [Pass(index, row, slots[n]) for n, (index, row) in enumerate(order)]
        self.joined = len(joined)
        self.slots = 1 + max(slots.values())
        self.commands: list[list[Issue]] = []
        for command, items in enumerate(arranged):
            left = {n: len(groups[command]) for n, groups in enumerate(work)}
            issues = []
            for n, item in items:
                before = [] if either and command < SECOND else work[n][:command]
                first = left[n] == len(work[n][command]) and not any(before)
                left[n] -= 1
                alone = not either or command == SECOND or not (work[n][AHEAD] and work[n][MAIN])
                issues.append(Issue(n, item.group, item.need, first=first, ends=ending[command][n] and not left[n],
                                    alone=alone, joins=self._joins(self.matrices[order[n][0]])))
            self.commands.append(issues)
        self.sequences = [*self.commands, *(self._turned(work, spacing) if adjacent else ())]

    def _turned(self, work: Sequence[list[list[Item]]], spacing: tuple[int, int, int]) -> list[list[Issue]]:
        """The issues of AHEAD where it follows, with the groups that have columns of both vectors, and of MAIN where it
        leads, without them: its vector is there as a whole."""
        c, inputs = self.shape.columns, self._inputs
        both = [self._both(self.matrices[p.matrix]) for p in self.passes]
        leading = [[item for item in groups[MAIN] if item.group not in own]
                   for groups, own in zip(work, both, strict=True)]
        following = [[*(Item(min((item.group + 1) * c, inputs), item.group) for item in groups[AHEAD]),
                      *(Item(inputs, group) for group in sorted(own))] for groups, own in zip(work, both, strict=True)]
        ends = [not groups[SECOND] for groups in work]
        alone = [end and not behind for end, behind in zip(ends, following, strict=True)]
        found = []
        for these, before, last, space in ((following, leading, ends, spacing[AHEAD]),
                                           (leading, [()] * len(work), alone, spacing[MAIN])):
            left, issues = [len(items) for items in these], list[Issue]()
            for n, item in arrange(these, last, space):
                first = left[n] == len(these[n]) and not before[n]
                left[n] -= 1
                issues.append(Issue(n, item.group, item.need if these is following else 0, first=first,
                                    ends=last[n] and not left[n]))
            found.append(issues)
        return found

    def _joins(self, matrix: Matrix) -> bool:
        """Whether passes of a matrix have rows whose sums go on in those of another one."""
        return matrix.beside is not None and not self.shape.split

    def _parts(self, matrix: Matrix) -> list[Part]:
        """The products that its passes compute."""
        return [part for each in (matrix.together if self.shape.split else (matrix,)) for part in each.parts]

    def _both(self, matrix: Matrix) -> set[int]:
        """The groups in which a matrix has columns of the input and of the recurrent vector."""
        columns = [j for part in self._parts(matrix) if not part.vector for j in part.columns]
        of_input, own = ({j // self.shape.columns for j in columns if (j < self._inputs) is here}
                         for here in (True, False))
        return of_input & own

    def _work(self, matrix: Matrix) -> list[list[Item]]:
        """For each command the groups of a row of the matrix, those that need least first."""
        c, found = self.shape.columns, [{}, {}]  # type: tuple[int, list[dict[int, int]]]
        either = self.early and not self.adjacent
        for part in self._parts(matrix):
            for j in part.columns:
                need = j + 1 - (0 if part.vector or (either and j < self._inputs) else self._inputs)
                found[part.vector][j // c] = max(need, 0, found[part.vector].get(j // c, 0))
        first = [Item(need, group) for group, need in sorted(found[0].items())]
        ahead = [item for item in first if (item.group * c < self._inputs if either else not item.need)]
        return [ahead, first[len(ahead):], [Item(need, group) for group, need in sorted(found[1].items())]]

    @property
    def given(self) -> list[int]:
        """The commands that are ever given: those of a sequence that has issues."""
        return [n for n in range(SECOND + 1) if any(self.sequences[n::SECOND + 1])]

    @property
    def cycles(self) -> int:
        """Issues of a step."""
        return sum(map(len, self.commands))

    @property
    def addresses(self) -> list[list[int]]:
        """For each of the ``sequences`` where the weights of its issues are, in the order of the weight memories."""
        known: dict[tuple[int, int], int] = {}
        found, at = list[list[int]](), 0
        for n, issues in enumerate(self.sequences):
            if n <= SECOND:
                found.append(list(range(at, at + len(issues))))
                at += len(issues)
                known |= {(issue.number, issue.group): address for issue, address in zip(issues, found[-1], strict=True)
                          if n < SECOND}
            else:
                found.append([known[issue.number, issue.group] for issue in issues])
        return found

    def start(self, command: int) -> int:
        """Address of the first issue of a command, or another one of the ``sequences``, in the memory of issues."""
        return sum(map(len, self.sequences[:command]))

    @property
    def joint_gates(self) -> tuple[int, int]:
        """Gates abreast in passes with rows of two matrices: how many of them go on from the command that leads
        to the other one, and how many there are; (0, 1) without such passes."""
        return next(((matrix.first_gate, matrix.gates) for matrix in self.matrices if self._joins(matrix)), (0, 1))

    @property
    def split(self) -> int:
        """The columns at the head of the group of both vectors that are the input's, of a split array; else 0."""
        return self._inputs % self.shape.columns if self.shape.split else 0

    @property
    def input_groups(self) -> int:
        """Groups of columns that are the input's alone."""
        return self._inputs // self.shape.columns

    def row_of(self, number: int, row: int) -> tuple[int, int]:
        """(matrix, row of it) that a pass computes on a row of the array; the row is -1 where there is none."""
        p = self.passes[number]
        index, matrix, at = p.matrix, self.matrices[p.matrix], p.first_row + row
        if matrix.beside is not None:
            block, gate = divmod(row, matrix.gates)
            matrix = next(each for each in matrix.together if gate >= each.first_gate)
            index = self.matrices.index(matrix)
            at = (p.first_row + block) * len(matrix.kinds) + gate - matrix.first_gate
        return index, at if row < self.shape.rows and at < matrix.rows else -1

    def weights(self, row: int, column: int) -> Integers:
        """(cycles, k): the spectra that the lane at (row, column) multiplies with, zeros where it is idle; for both
        rows where they share it."""
        words = np.zeros((self.cycles, self.matrices[0].product.block_size), np.int64)
        rows = (row - 1, row) if self.shape.split and row % 4 == 3 else (row,)
        cycle = 0
        for command, issues in enumerate(self.commands):
            for issue in issues:
                j = issue.group * self.shape.columns + column
                for index, r in (self.row_of(issue.number, each) for each in rows):
                    matrix = self.matrices[index]
                    for part, weights in zip(matrix.parts, matrix.weights, strict=True):
                        if r >= 0 and part.vector == (command == SECOND) and j in part.columns:
                            words[cycle] = weights[r, j - part.column]
                cycle += 1
        return words

    def leaving(self, chain: int) -> list[tuple[int, int]]:
        """(matrix, row) that leave through a chain, pass by pass; the row is -1 where the array was idle."""
        inside = range(chain, self.shape.slots * self.shape.chains, self.shape.chains)
        return [self.row_of(number, row) for number in range(len(self.passes)) for row in inside]
