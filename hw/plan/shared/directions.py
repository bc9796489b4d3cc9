"""Both directions of a bidirectional layer, cycle by cycle, in Python: two layers between a fork and a join.

Queues around them stand for the memories that turn sequences round and those in which results wait, whose vectors are
of other sequences: a direction never waits for the other one's block, only for its pace.
"""
from circulant.hw.plan.shared.layer_counters import SharedLayer

__all__ = ["SharedPair"]

VECTORS = 2
"""Vectors that a queue holds."""


class SharedPair:
    """Two layers that take the same blocks, and give theirs side by side; members as those of `SharedLayer`."""

    def __init__(self, forward: SharedLayer, backward: SharedLayer) -> None:
        self._members, self.k, self.gives = (forward, backward), forward.k, forward.k
        self.outputs = forward.outputs + backward.outputs
        self.x_blocks, self.blocks = forward.x_blocks, -(-self.outputs // self.k)
        self._whole, self._shift = divmod(forward.outputs, self.k)
        self._come, self._given = [0, 0], [0, 0]
        self._at, self._accepts, self._leaves = 0, False, False

    @property
    def takes(self) -> bool:
        return max(self._come) < VECTORS * self.x_blocks

    @property
    def accepts(self) -> bool:
        return self._accepts

    @accepts.setter
    def accepts(self, value: bool) -> None:
        self._accepts = value
        for n, member in enumerate(self._members):
            self._come[n] += value
            member.accepts = self._come[n] > 0 and member.takes
            self._come[n] -= member.accepts

    @property
    def _from(self) -> tuple[bool, bool]:
        """Whether the next block has values of a new block of each direction; the last one may have none."""
        return (self._at < self._whole + bool(self._shift),
                self._whole <= self._at < self._whole + self._members[1].blocks)

    @property
    def offers(self) -> bool:
        return all(given > 0 or not wanted for given, wanted in zip(self._given, self._from, strict=True))

    @property
    def leaves(self) -> bool:
        """Whether a block leaves."""
        return self._leaves

    @leaves.setter
    def leaves(self, value: bool) -> None:
        self._leaves, wanted = value, self._from
        for n, member in enumerate(self._members):
            self._given[n] -= value and wanted[n]
            member.leaves = member.offers and self._given[n] < VECTORS * member.blocks
            self._given[n] += member.leaves
        if value:
            self._at = (self._at + 1) % self.blocks

    def state(self) -> tuple[object, ...]:
        """All that what follows depends on, besides the layers."""
        return *self._come, *self._given, self._at
