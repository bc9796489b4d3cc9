"""Both directions of a bidirectional layer, cycle by cycle, in Python: `circulant.hw.kinds.bidirectional`, whose
sequences are all as long as its memories allow. The names are those of the units."""
from circulant.hw.plan.shared.controls import Waits
from circulant.hw.plan.shared.layer_counters import SharedLayer

__all__ = ["SLACK", "SharedPair"]

SLACK = 2
"""Vectors in the queue beside those of two sequences: what leaves the forward layer while the join gets under way."""


class _Turned:
    """The handshakes of `circulant.hw.stream.reverse.Reverse`.

    Parameters:
        blocks: of a sequence.
    """

    def __init__(self, blocks: int) -> None:
        self._blocks, self._full, self.offers = blocks, [False, False], False
        self._write, self._count, self._read, self._at = 0, 0, 0, 0

    @property
    def takes(self) -> bool:
        return not self._full[self._write]

    def move(self, comes: bool, leaves: bool) -> None:
        """A cycle in which a block comes, for which there is room."""
        reads = self._full[self._read] and (not self.offers or leaves)
        self.offers = reads or (self.offers and not leaves)
        if comes:
            self._count = (self._count + 1) % self._blocks
            if not self._count:
                self._full[self._write], self._write = True, 1 - self._write
        if reads:
            self._at = (self._at + 1) % self._blocks
            if not self._at:
                self._full[self._read], self._read = False, 1 - self._read

    def state(self) -> tuple[object, ...]:
        """All that what follows depends on."""
        return *self._full, self.offers, self._write, self._count, self._read, self._at


class SharedPair:
    """Two layers that take the same blocks, and give theirs side by side; members as those of `SharedLayer`.

    Parameters:
        steps: of each sequence; 0 where none ends, which is played with memories for a vector.

    Members:
        shown: a block is there.
    """

    def __init__(self, forward: SharedLayer, backward: SharedLayer, *, steps: int, returns: str) -> None:
        self._forward, self._backward, self.k, self.gives = forward, backward, forward.k, forward.k
        self.outputs = forward.outputs + backward.outputs
        self.x_blocks, self.blocks = forward.x_blocks, -(-self.outputs // self.k)
        steps = max(1, steps)
        self._turned, self._took = _Turned(steps * self.x_blocks), [False, False]
        self._waiting = self._again = None
        if returns == "sequence":
            self._waiting = Waits((2 * steps + SLACK) * forward.blocks, prompt=False)
            self._again = _Turned(steps * backward.blocks)
        self._whole, self._shift = divmod(forward.outputs, self.k)
        self._at, self.shown, self.accepts, self.leaves = 0, False, False, False

    @property
    def _sinks(self) -> tuple[bool, bool]:
        """Whether each side of the fork has taken the block, or would."""
        return self._took[0] or self._forward.takes, self._took[1] or self._turned.takes

    @property
    def takes(self) -> bool:
        return all(self._sinks)

    @property
    def _from(self) -> tuple[bool, bool]:
        """Whether the next block has values of a new block of each direction; the last one may have none."""
        return (self._at < self._whole + bool(self._shift),
                self._whole <= self._at < self._whole + self._backward.blocks)

    @property
    def offers(self) -> bool:
        there = (self._waiting or self._forward).offers, (self._again or self._backward).offers
        return all(given or not wanted for given, wanted in zip(there, self._from, strict=True))

    def move(self) -> None:
        """A cycle of all but the layers themselves, which are told what they take and give."""
        first, second = (self.leaves and wanted for wanted in self._from)
        forward, backward, sinks = self._forward, self._backward, self._sinks

        # The fork, and the input of the backward layer.
        comes = self.shown and not self._took[1] and self._turned.takes
        forward.accepts = self.shown and not self._took[0] and forward.takes
        backward.accepts = self._turned.offers and backward.takes
        self._turned.move(comes, backward.accepts)
        self._took = [self.shown and not all(sinks) and taken for taken in sinks]

        # Results, in the memories where there are some, and side by side.
        forward.leaves, backward.leaves = first, second
        if self._waiting is not None and self._again is not None:
            forward.leaves = forward.offers and self._waiting.room
            backward.leaves = backward.offers and self._again.takes
            self._waiting.move(forward.leaves, first)
            self._again.move(backward.leaves, second)
        if self.leaves:
            self._at = (self._at + 1) % self.blocks

    def state(self) -> tuple[object, ...]:
        """All that what follows depends on, besides the layers."""
        memories = [each.state() for each in (self._turned, self._waiting, self._again) if each is not None]
        return *self._took, self._at, *memories
