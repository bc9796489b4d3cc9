"""Either vector first: the recurrent one begins with a group of columns of its own, so that AHEAD and MAIN share none,
and each command has one sequence, whichever leads."""
from collections.abc import Sequence
from typing import ClassVar

from circulant.hw.array.issue_order import Item
from circulant.hw.array.matrix import ArrayShape, Matrix, Part
from circulant.hw.array.program import AHEAD, MAIN, SECOND
from circulant.hw.array.schedules.either import Either

__all__ = ["EitherFirst"]


class EitherFirst(Either):
    """A pass begins in the command that leads and ends in the other one; words say which passes are ``alone``."""

    marks: ClassVar[tuple[str, ...]] = ("alone",)

    @classmethod
    def head(cls, matrices: Sequence[Matrix], shape: ArrayShape) -> int:
        return -(-matrices[0].inputs // shape.columns) * shape.columns

    @property
    def last_reader(self) -> int:
        return AHEAD

    def _need(self, part: Part, column: int) -> int:
        return column + 1 if column < self.inputs else super()._need(part, column)

    def _is_ahead(self, item: Item) -> bool:
        return item.group * self.shape.columns < self.inputs

    def _begun(self, groups: Sequence[Sequence[Item]], command: int) -> bool:
        return command == SECOND and super()._begun(groups, command)

    def _ends(self, groups: Sequence[Sequence[Item]], command: int) -> bool:
        return command == SECOND or not groups[SECOND]

    def _apart(self, work: Sequence[list[list[Item]]], command: int) -> list[tuple[bool, bool]]:
        return [(command == SECOND or not (groups[AHEAD] and groups[MAIN]), self._joins(n))
                for n, groups in enumerate(work)]
