"""The handshakes of units without an array, cycle by cycle, in Python: what lies between layers that share one.

Each kind registers its own beside its unit. All that a unit shows is known from its registers.
"""
from collections.abc import Hashable, Sequence
from functools import singledispatch
from typing import ClassVar, Protocol

from circulant.hw.array.plans import Plan
from circulant.sim.golden.stages import Stage

__all__ = ["Control", "Piped", "Swallows", "Waits", "control"]


class Control(Protocol):
    """Unit.

    Members:
        takes: whether a block of each source is taken when it comes.
        offers: whether a block waits to leave.
    """

    @property
    def offers(self) -> bool: ...

    @property
    def takes(self) -> Sequence[bool]: ...

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        """A cycle.

        Parameters:
            shown: whether a block of each source is there; of those that are taken it comes.
            leaves: whether the one that is offered does.
        """

    def state(self) -> Hashable:
        """All that what follows depends on."""


@singledispatch
def control(layer: Stage, plan: Plan, k: int, *, wanted: int, depths: Sequence[int]) -> Control | None:
    """The handshakes of a layer's unit; None where a kind has none.

    Parameters:
        k: values of a block that comes.
        wanted: see `circulant.hw.array.plans.wanted`.
        depths: words of each queue of a join.
    """
    return None


class Waits:
    """A `Queue`, or a `DeepQueue`.

    Parameters:
        words: of its memory; see `of_depth`.
    """

    def __init__(self, words: int, *, prompt: bool = True) -> None:
        self._words, self._prompt, self._level, self.offers = words, prompt, 0, False

    @classmethod
    def of_depth(cls, depth: int, *, prompt: bool = True) -> "Waits":
        """A `Queue` of this depth, of which a word is at the output."""
        return cls(max(depth, 3) - 1, prompt=prompt)

    @property
    def room(self) -> bool:
        return self._level < self._words

    @property
    def takes(self) -> Sequence[bool]:
        return (self.room,)

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        self.move(shown[0] and self.room, leaves)

    def move(self, comes: bool, leaves: bool) -> None:
        """A cycle in which a word comes, for which there is room."""
        free = not self.offers or leaves
        reads = free and self._level > 0
        passes = free and comes and self._prompt and not self._level
        self._level += comes - passes - reads
        self.offers = reads or passes or not free

    def state(self) -> tuple[object, ...]:
        return self._level, self.offers


class Piped:
    """A unit that takes a block in each cycle for which its prompt queue has room.

    Parameters:
        latency: from a block to the queue, one at the least.
        depth: of the queue.
    """

    def __init__(self, latency: int, depth: int) -> None:
        self._queue, self._depth = Waits.of_depth(depth), max(depth, 3)
        self._latency, self._way, self._promised = latency, 0, 0

    @property
    def offers(self) -> bool:
        return self._queue.offers

    @property
    def room(self) -> bool:
        return self._promised < self._depth

    @property
    def takes(self) -> Sequence[bool]:
        return (self.room,)

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        comes = shown[0] and self.room
        self._queue.move(bool(self._way >> self._latency - 1), leaves)
        self._way = (self._way << 1 | comes) & (1 << self._latency) - 1
        self._promised += comes - leaves

    def state(self) -> tuple[object, ...]:
        return self._way, self._promised, *self._queue.state()


class Swallows:
    """A unit that takes every block, and gives none before a sequence ends, or none that is ever held up."""

    offers: ClassVar[bool] = False
    takes: ClassVar[Sequence[bool]] = (True,)

    def edge(self, shown: Sequence[bool], leaves: bool) -> None:
        """Nothing changes."""

    def state(self) -> tuple[object, ...]:
        return ()
