"""Which points nothing beats: not worse in anything, and better in something."""
from collections.abc import Sequence

__all__ = ["front"]


def front(costs: Sequence[tuple[float, ...]]) -> list[int]:
    """Indices of the points that no other one dominates, in their order; of equal points all are on the front.

    Parameters:
        costs: of each point, all of one length, each the better the lower.
    """
    return [at for at, mine in enumerate(costs)
            if not any(other != mine and all(b <= a for a, b in zip(mine, other, strict=True)) for other in costs)]
