"""The order of a command's issues, which slots of the accumulators its passes take, and where their rows are kept."""
import heapq
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Item", "RowPlaces", "arrange", "colour"]


class Item(NamedTuple):
    """A group of columns, and how many blocks of the vector that is still to come it needs."""

    need: int
    group: int


def arrange(work: Sequence[Sequence[Item]], ends: Sequence[bool], spacing: int) -> list[tuple[int, Item]]:
    """(pass, item) of all passes' items, in the order in which they are issued.

    Planned from the end: the passes that end here do so in their order, ``spacing`` issues apart or less, and as late
    as that allows; everything else fills the gaps, what needs most last. With a spacing of 1 the columns lead: nothing
    is issued before all that needs less. With the length of a row or more, the rows lead: pass after pass. In between
    the first passes can wait for the vector, and the last ones do not all drain at once.

    Parameters:
        work: for each pass its items, those that need least first.
        ends: whether a pass ends in this command.
    """
    left = [list(items) for items in work]
    ending = [n for n, items in enumerate(left) if items and ends[n]]
    open_passes = [(-items[-1].need, -items[-1].group, -n) for n, items in enumerate(left) if items and not ends[n]]
    heapq.heapify(open_passes)
    issues: list[tuple[int, Item]] = []
    due = 0
    while ending or open_passes:
        if ending and (len(issues) >= due or not open_passes):
            n = ending.pop()
            due = len(issues) + spacing
        else:
            n = -heapq.heappop(open_passes)[2]
        issues.append((n, left[n].pop()))
        if left[n]:
            heapq.heappush(open_passes, (-left[n][-1].need, -left[n][-1].group, -n))
    return issues[::-1]


def colour(numbers: Sequence[int]) -> dict[int, int]:
    """A slot for each number, from its first to its last place in the sequence for itself; as few slots as can be."""
    last = {n: place for place, n in enumerate(numbers)}
    slots: dict[int, int] = {}
    free: list[int] = []
    used = 0
    for place, n in enumerate(numbers):
        if n not in slots:
            if free:
                slots[n] = heapq.heappop(free)
            else:
                slots[n], used = used, used + 1
        if last[n] == place:
            heapq.heappush(free, slots[n])
    return slots


class RowPlaces(NamedTuple):
    """Where the rows of a gate are kept: in banks, a row of each block.

    Parameters:
        blocks: of the gate.
        banks: chains that carry rows of it.
        passed: blocks of a pass, each of which begins with the first bank; of the last pass there may be fewer.
    """

    blocks: int
    banks: int
    passed: int

    @property
    def depth(self) -> int:
        """Addresses of a bank."""
        return self.place(self.blocks - 1)[1] + 1

    def place(self, block: int) -> tuple[int, int]:
        """The bank and the address of a block."""
        passes, inside = divmod(block, self.passed)
        return inside % self.banks, passes * -(-self.passed // self.banks) + inside // self.banks

    @property
    def even(self) -> bool:
        """Whether each bank takes as many blocks of a pass, and bits of a block's number say which it is."""
        return not self.passed % self.banks and not self.banks & self.banks - 1
