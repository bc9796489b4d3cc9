"""The static program of a layer's step: which block products the array computes, in which order.

Computed here, in Python, once; the hardware only counts. The rows of a matrix are interleaved by gate: row r is gate
``r % kinds`` of block ``r // kinds``. A pass computes R rows, row r of the matrix on row ``r % R`` of the array, from
groups of C columns of a vector; one group of one pass is issued per cycle. Sums of several passes grow side by side,
each in a slot of the accumulators. When its last group is in, a pass drains: its row r leaves through chain ``r % I``.

A step has up to three commands. AHEAD needs nothing but the step's input, MAIN waits for the recurrent vector, SECOND
for a vector that the pointwise unit makes: what is to be projected. In which order they come, what each pass begins and
ends with, and which rows are together is what the schedules say, a class each in `circulant.hw.array.schedules`.
"""
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple, Self

import numpy as np

from circulant.hw.array.issue_order import Item, arrange, colour
from circulant.hw.array.matrix import ArrayShape, Matrix, Part, parts
from circulant.sim.arith.fixed import Integers

__all__ = ["AHEAD", "MAIN", "SECOND", "ArrayShape", "Issue", "Matrix", "Part", "Pass", "Place", "Program", "issued",
           "parts"]

AHEAD, MAIN, SECOND = range(3)
"""Commands."""


@dataclass(frozen=True)
class Pass:
    """R rows of a matrix from ``first_row`` on, summed up in ``slot``."""

    matrix: int
    first_row: int
    slot: int


class Issue(NamedTuple):
    """A cycle's work: a group of C columns for one pass.

    Parameters:
        number: of the pass.
        group: of the columns of the command's vector.
        need: blocks of the vector that the command waits for that must have come.
        first, ends: the first and the last group of the pass; where a word has an ``alone``, of those in this command:
            the first one of the pass only if the command leads, the last one only if it does not, unless ``alone``.
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
    """The issues of a step, which an array plays, by command. A subclass is a schedule, see `of`.

    Parameters:
        shape: the array.
        matrices: what is computed; all have one block size, and one width of pre-activations in each stage.
        inputs: columns of vector 0 before the recurrent vector.
        order: (matrix, first row) of each pass, in the order in which passes that end in one command do so.
        spacing: for each command, the issues from one end of a pass to the next at the most; see `arrange`.

    Members:
        waits: the vector for whose blocks each command waits, as `circulant.hw.array.banks.Banks` counts them; None of
            a command whose vector has come as a whole.
        turned: the command that another sequence is played for instead of its own, and whether that is where it leads
            its step or where it follows.
        marks: fields of an `Issue` that its words have besides those of every program.
        joint_gates: gates abreast in passes with rows of two matrices: how many of them go on from the command that
            leads to the other one, and how many there are; (0, 1) without such passes.
        parted_at: the columns at the head of the group of both vectors that are the input's, where rows share lanes.
        commands: the issues of each.
        sequences: those of the commands, and behind them of ``turned``.
        passes: where they come from, and their slots. Those that sum up in AHEAD and in SECOND have
            ``joined`` ≤ slot < 2 · ``joined``, and in every second step the slot ``joined`` below.
        slots: of the accumulators.
        whole, place: the program of the array, and where this one is in it: itself and its start, unless the array is
            shared, see `circulant.hw.array.schedules.merged`.
    """

    waits: ClassVar[tuple[int | None, int, int]] = (None, 0, 1)
    turned: ClassVar[tuple[tuple[int, bool], ...]] = ()
    marks: ClassVar[tuple[str, ...]] = ()
    joint_gates: tuple[int, int] = 0, 1
    parted_at: int = 0
    whole: "Program"
    place: Place

    def __init__(self, shape: ArrayShape, matrices: Sequence[Matrix], *, inputs: int, order: Sequence[tuple[int, int]],
                 spacing: tuple[int, int, int]) -> None:
        for matrix in matrices:
            gates = matrix.gates
            if gates % shape.chains and shape.chains % gates:
                raise ValueError("The chains and the gates of a matrix must divide one another, not "
                                 f"{shape.chains} and {gates}")
            if (shape.rows % shape.chains or matrix.abreast) and (shape.chains % gates or shape.rows % gates):
                raise ValueError("Rows that are no multiple of the chains must be one of the gates of each matrix, and "
                                 f"so must be the chains, not {shape.rows}, {shape.chains} and {gates}")
        self.shape, self.matrices, self.inputs, self._order = shape, list(matrices), inputs, list(order)
        self.whole, self.place = self, Place()
        works = [self._work(matrix) for matrix in self.matrices]
        work = [works[index] for index, _ in order]
        self.commands = self._commands(work, spacing)
        self.sequences = [*self.commands, *self._turned(work, spacing)]
        self.joined, slots = self._slots(work)
        self.passes = [Pass(index, row, slots[n]) for n, (index, row) in enumerate(order)]
        self.slots = 1 + max(slots.values())

    @classmethod
    def serves(cls, matrices: Sequence[Matrix], shape: ArrayShape) -> bool:
        """Whether a layer with these matrices can have the schedule on an array of a shape."""
        return True

    @classmethod
    def of(cls, matrices: Sequence[Matrix], shape: ArrayShape, spacing: tuple[int, int, int]) -> Self:
        """The program of a layer with these matrices, see `circulant.hw.array.layer_programs.matrices`."""
        raise NotImplementedError

    def _work(self, matrix: Matrix) -> list[list[Item]]:
        """For each command the groups of a row of the matrix, those that need least first."""
        c, found = self.shape.columns, [{}, {}]  # type: tuple[int, list[dict[int, int]]]
        for part in self._parts(matrix):
            for j in part.columns:
                found[part.vector][j // c] = max(self._need(part, j), found[part.vector].get(j // c, 0))
        first, second = ([Item(need, group) for group, need in sorted(each.items())] for each in found)
        ahead = [item for item in first if self._is_ahead(item)]
        return [ahead, first[len(ahead):], second]

    def _parts(self, matrix: Matrix) -> Sequence[Part]:
        """The products that the passes of a matrix compute."""
        return matrix.parts

    def _need(self, part: Part, column: int) -> int:
        """Blocks of the vector that its command waits for which a column needs."""
        return max(0, column + 1 - (0 if part.vector else self.inputs))

    def _is_ahead(self, item: Item) -> bool:
        """Whether a group of vector 0 is one of AHEAD: all of it is the input's."""
        return not item.need

    def _begun(self, groups: Sequence[Sequence[Item]], command: int) -> bool:
        """Whether a pass has groups in commands that always come before one."""
        return any(groups[:command])

    def _ends(self, groups: Sequence[Sequence[Item]], command: int) -> bool:
        """Whether the last group of a pass can be in a command."""
        return command == max(n for n in range(3) if groups[n])

    def _spans(self, groups: Sequence[Sequence[Item]]) -> bool:
        """Whether the sums of a pass go on from one command to another."""
        return sum(map(bool, groups)) > 1

    def _joins(self, number: int) -> bool:
        """Whether a pass has rows whose sums go on in those of another one."""
        return False

    def _apart(self, work: Sequence[list[list[Item]]], command: int) -> list[tuple[bool, bool]] | None:
        """Whether the issues of each pass are alone, and join, in a command; None where all are, and none does."""
        return None

    def _commands(self, work: Sequence[list[list[Item]]], spacing: tuple[int, int, int]) -> list[list[Issue]]:
        return [issued([groups[n] for groups in work], [self._ends(groups, n) for groups in work],
                       [self._begun(groups, n) for groups in work], spacing[n], self._apart(work, n)) for n in range(3)]

    def _turned(self, work: Sequence[list[list[Item]]], spacing: tuple[int, int, int]) -> list[list[Issue]]:
        """The sequences of ``turned``."""
        return []

    def _slots(self, work: Sequence[list[list[Item]]]) -> tuple[int, dict[int, int]]:
        """How many passes have another slot in every second step, and the slot of each."""
        spanning = [n for n, groups in enumerate(work) if self._spans(groups)]
        # AHEAD of the next step may come before SECOND of this one: a pass of both has two slots, for steps in turn.
        joined = [n for n in spanning if work[n][SECOND]]
        slots = {n: slot for slot, n in enumerate([*joined, *joined, *(n for n in spanning if n not in joined)])}
        taken = len(spanning) + len(joined)
        # Passes of the same rows in AHEAD and in MAIN sum up in one slot.
        joining = {n: row for n, (_, row) in enumerate(self._order) if self._joins(n)}
        pairs = sorted(set(joining.values()))
        slots |= {n: taken + pairs.index(row) for n, row in joining.items()}
        taken, kept = taken + len(pairs), set(slots)
        for issues in self.commands:
            local = colour([issue.number for issue in issues if issue.number not in kept])
            slots |= {n: taken + slot for n, slot in local.items()}
        return len(joined), slots

    @property
    def either(self) -> bool:
        """Whether either of AHEAD and MAIN can lead a step: which one does is said with the command."""
        return self.waits[AHEAD] is not None

    @property
    def counts(self) -> int:
        """Vectors whose blocks are counted, as a command waits for them."""
        return 1 + max(vector for vector in self.waits if vector is not None)

    @property
    def given(self) -> list[int]:
        """The commands that are ever given: those of a sequence that has issues."""
        return sorted({command for command, issues in zip(self.readers, self.sequences, strict=True) if issues})

    @property
    def readers(self) -> list[int]:
        """The command of each of the ``sequences``."""
        return [AHEAD, MAIN, SECOND, *(command for command, _ in self.turned)]

    @property
    def last_reader(self) -> int | None:
        """The command at whose end the input of a step has been read; None: the one that follows, whichever it is."""
        return MAIN if self.commands[MAIN] else AHEAD

    @property
    def cycles(self) -> int:
        """Issues of a step."""
        return sum(map(len, self.commands))

    @property
    def addresses(self) -> list[list[int]]:
        """For each of the ``sequences`` where the weights of its issues are, in the order of the weight memories."""
        starts = [self.start(n) for n in range(SECOND + 1)]
        return [list(range(at, at + len(issues))) for at, issues in zip(starts, self.commands, strict=True)]

    def start(self, sequence: int) -> int:
        """Address of the first issue of one of the ``sequences`` in the memory of issues."""
        return sum(map(len, self.sequences[:sequence]))

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
        """(cycles, k): the spectra that the lane at (row, column) multiplies with, zeros where it is idle; for all rows
        that it serves."""
        words = np.zeros((self.cycles, self.matrices[0].product.block_size), np.int64)
        cycle = 0
        for command, issues in enumerate(self.commands):
            for issue in issues:
                j = issue.group * self.shape.columns + column
                for index, r in (self.row_of(issue.number, each) for each in self.shape.served(row)):
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


def issued(work: Sequence[Sequence[Item]], ends: Sequence[bool], begun: Sequence[bool], spacing: int,
           apart: Sequence[tuple[bool, bool]] | None = None) -> list[Issue]:
    """The issues of a sequence, in the order of `arrange`.

    Parameters:
        work, ends, spacing: see `arrange`.
        begun: whether a pass has groups in sequences before this one.
        apart: ``alone`` and ``joins`` of the issues of a pass.
    """
    rows = {id(items): items for items in work}  # Passes of a matrix have the same.
    places = {identity: n for n, identity in enumerate(rows)}
    passes = zip((places[id(items)] for items in work), ends, begun, apart or [(True, False)] * len(work), strict=True)
    return list(_issued(tuple(map(tuple, rows.values())), tuple(passes), spacing))


@lru_cache(maxsize=64)  # Arrays that a planner compares have few orders: 55 of 486 for a GRU of 1,024.
def _issued(rows: tuple[tuple[Item, ...], ...], passes: tuple[tuple[int, bool, bool, tuple[bool, bool]], ...],
            spacing: int) -> tuple[Issue, ...]:
    work, issues = [rows[place] for place, *_ in passes], list[Issue]()
    left = list(map(len, work))
    for n, item in arrange(work, [ends for _, ends, *_ in passes], spacing):
        _, ends, begun, apart = passes[n]
        first = left[n] == len(work[n]) and not begun
        left[n] -= 1
        issues.append(Issue(n, item.group, item.need, first, ends and not left[n], *apart))
    return tuple(issues)
