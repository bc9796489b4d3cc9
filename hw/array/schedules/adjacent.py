"""Either vector first, and the recurrent one follows the input within a group of columns, where that saves a group.

The group of both is issued by the command that follows, whichever it is: both commands have two sequences of issues,
one for leading and one for following. If the input fills no group, a step whose input is there is one command, MAIN.
"""
from collections.abc import Sequence
from typing import ClassVar

from circulant.hw.array.issue_order import Item
from circulant.hw.array.matrix import ArrayShape, Matrix, Part
from circulant.hw.array.program import AHEAD, MAIN, SECOND, Issue, issued
from circulant.hw.array.schedules.abreast import Abreast
from circulant.hw.array.schedules.either import Either

__all__ = ["Adjacent"]


class Adjacent(Either):
    """AHEAD that leads and MAIN that follows as where the input is first; behind them AHEAD that follows, with the
    group of both, and MAIN that leads, without it: its vector is there as a whole."""

    turned: ClassVar[tuple[tuple[int, bool], ...]] = (AHEAD, False), (MAIN, True)

    @classmethod
    def serves(cls, matrices: Sequence[Matrix], shape: ArrayShape) -> bool:
        """Whether a group is saved: not where gates are side by side, nor where all of the recurrent vector has room in
        the last group of the input."""
        for matrix in () if Abreast.serves(matrices, shape) else matrices:
            if len(matrix.parts) == 2 and not any(part.vector for part in matrix.parts):
                x, h = (len(part.columns) for part in matrix.parts)
                head, whole = -(-x // shape.columns), -(-(x + h) // shape.columns)
                return head < whole < head + -(-h // shape.columns)
        return False

    @classmethod
    def groups(cls, parts: Sequence[Part], shape: ArrayShape) -> int:
        return len({(part.vector, j // shape.columns) for part in parts for j in part.columns})

    @property
    def last_reader(self) -> None:
        return None

    @property
    def addresses(self) -> list[list[int]]:
        """Weights lie where the commands' own sequences have them."""
        found = super().addresses
        known = {(issue.number, issue.group): address for n in (AHEAD, MAIN)
                 for issue, address in zip(self.commands[n], found[n], strict=True)}
        return [*found, *([known[issue.number, issue.group] for issue in issues]
                          for issues in self.sequences[SECOND + 1:])]

    def _spans(self, groups: Sequence[Sequence[Item]]) -> bool:
        return super()._spans(groups) or not groups[SECOND]

    def _turned(self, work: Sequence[list[list[Item]]], spacing: tuple[int, int, int]) -> list[list[Issue]]:
        c, both = self.shape.columns, [self._both(self.matrices[index]) for index, _ in self._order]
        leading = [[item for item in groups[MAIN] if item.group not in own]
                   for groups, own in zip(work, both, strict=True)]
        following = [[*(Item(min((item.group + 1) * c, self.inputs), item.group) for item in groups[AHEAD]),
                      *(Item(self.inputs, group) for group in sorted(own))]
                     for groups, own in zip(work, both, strict=True)]
        ends = [not groups[SECOND] for groups in work]
        alone = [end and not behind for end, behind in zip(ends, following, strict=True)]
        return [issued(following, ends, list(map(bool, leading)), spacing[AHEAD]),
                [issue._replace(need=0) for issue in issued(leading, alone, [False] * len(work), spacing[MAIN])]]

    def _both(self, matrix: Matrix) -> set[int]:
        """The groups in which a matrix has columns of the input and of the recurrent vector."""
        columns = [j for part in self._parts(matrix) if not part.vector for j in part.columns]
        of_input, own = ({j // self.shape.columns for j in columns if (j < self.inputs) is here}
                         for here in (True, False))
        return of_input & own
