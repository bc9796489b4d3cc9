"""The streams between layers, cycle by cycle, in Python: as blocks come, or through a `WidthConverter`."""
from typing import Protocol

__all__ = ["Direct", "Gather", "Link", "Narrow", "link"]


class Link(Protocol):
    """Stream from one layer to the next one."""

    def step(self, offers: bool, takes: bool) -> tuple[bool, bool]:
        """A cycle: whether the layer before gives a block, and the one behind takes one.

        Parameters:
            offers, takes: whether they would.
        """

    def shown(self, offers: bool) -> bool:
        """Whether the layer behind sees a block; ``offers``: as of ``step``."""

    def state(self) -> tuple[object, ...]:
        """All that what follows depends on."""


class Direct:
    """Blocks as they come."""

    def shown(self, offers: bool) -> bool:
        return offers

    def step(self, offers: bool, takes: bool) -> tuple[bool, bool]:
        return offers and takes, offers and takes

    def state(self) -> tuple[object, ...]:
        return ()


class Narrow(Direct):
    """A block is held while its parts leave.

    Parameters:
        parts: of a block.
        count: of a vector.
    """

    def __init__(self, parts: int, count: int) -> None:
        self._parts, self._count, self._part, self._at = parts, count, 0, 0

    def step(self, offers: bool, takes: bool) -> tuple[bool, bool]:
        moves, ends = offers and takes, self._at == self._count - 1
        whole = ends or self._part == self._parts - 1
        if moves:
            self._part = 0 if whole else self._part + 1
            self._at = 0 if ends else self._at + 1
        return moves and whole, moves

    def state(self) -> tuple[object, ...]:
        return self._part, self._at


class Gather:
    """Blocks are collected until a wide one is full or the vector ends.

    Parameters:
        parts: of a wide block.
        count: of a vector.
    """

    def __init__(self, parts: int, count: int) -> None:
        self._parts, self._count, self._part, self._at, self._full = parts, count, 0, 0, False

    def shown(self, offers: bool) -> bool:
        return self._full

    def step(self, offers: bool, takes: bool) -> tuple[bool, bool]:
        gives, leaves = offers and (not self._full or takes), self._full and takes
        if takes:
            self._full = False
        if gives:
            ends = self._at == self._count - 1
            self._full = ends or self._part == self._parts - 1
            self._part = 0 if self._full else self._part + 1
            self._at = 0 if ends else self._at + 1
        return gives, leaves

    def state(self) -> tuple[object, ...]:
        return self._part, self._at, self._full


def link(size: int, k_in: int, k_out: int) -> Link:
    """The link for vectors of ``size`` values in blocks of ``k_in`` that leave in blocks of ``k_out``."""
    if k_in == k_out:
        return Direct()
    if k_in >= min(k_out, size):
        return Narrow(-(-k_in // k_out), -(-size // k_out))
    return Gather(k_out // k_in, -(-size // k_in))
