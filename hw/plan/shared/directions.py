"""Both directions of a bidirectional layer, cycle by cycle, in Python: fork and join around two layers."""
from circulant.hw.plan.shared.layer_counters import SharedLayer

__all__ = ["SharedPair"]


class SharedPair:
    """Two layers that take the same blocks, and give theirs side by side; members as those of `SharedLayer`."""

    def __init__(self, forward: SharedLayer, backward: SharedLayer) -> None:
        self._forward, self._backward, self.k = forward, backward, forward.k
        self.outputs = forward.outputs + backward.outputs
        self.x_blocks, self.blocks = forward.x_blocks, -(-self.outputs // self.k)
        self._whole, self._shift = divmod(forward.outputs, self.k)
        self._at = 0

    @property
    def takes(self) -> bool:
        return self._forward.takes and self._backward.takes

    @property
    def accepts(self) -> bool:
        return self._forward.accepts

    @accepts.setter
    def accepts(self, value: bool) -> None:
        self._forward.accepts = self._backward.accepts = value

    @property
    def _from_forward(self) -> bool:
        """Whether the next block has values of the forward direction."""
        return self._at < self._whole + bool(self._shift)

    @property
    def _from_backward(self) -> bool:
        return self._whole <= self._at < self._whole + self._backward.blocks

    @property
    def offers(self) -> bool:
        return (self._forward.offers or not self._from_forward) and (self._backward.offers or not self._from_backward)

    @property
    def leaves(self) -> bool:
        """Whether a block leaves; `Join` counts on in the next cycle."""
        return self._forward.leaves or self._backward.leaves

    @leaves.setter
    def leaves(self, value: bool) -> None:
        self._forward.leaves, self._backward.leaves = value and self._from_forward, value and self._from_backward
        if value:
            self._at = (self._at + 1) % self.blocks

    @property
    def done(self) -> int:
        """Steps whose results are there in both directions."""
        return min(self._forward.done, self._backward.done)
