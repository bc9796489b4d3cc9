"""Shares of a budget of multipliers: whichever layer is the slowest gets the next one, over many candidates at once."""
import numpy as np
from numpy.typing import NDArray

__all__ = ["FULL", "shares"]

FULL = 1 << 40
"""Multipliers of a rung that is not there."""


def shares(multipliers: NDArray[np.int64], cycles: NDArray[np.int64], budget: NDArray[np.int64]
           ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rung of each layer (N, L) that its share of the budget allows, and what is left (N,); below 0 where not even
    the lowest rungs can be had.

    Starts with the lowest rungs, and moves the slowest layer that can still grow up by one, again and again.

    Parameters:
        multipliers, cycles: (N, L, R) of each candidate's ladders, from the lowest rung to the highest; `FULL`
            multipliers behind the last one.
        budget: (N,) of multipliers.
    """
    count, layers, _ = multipliers.shape
    top = np.concatenate([multipliers, np.full((count, layers, 1), FULL)], axis=2)
    chosen = np.zeros((count, layers), np.int64)
    left = budget - multipliers[:, :, 0].sum(axis=1)
    active = np.flatnonzero(left >= 0)
    every = np.arange(layers)
    while len(active):
        at = active[:, None], every, chosen[active]
        more = top[at[0], every, at[2] + 1] - top[at]
        slowness = np.where(more <= left[active, None], cycles[at], -1)
        slowest = slowness.argmax(axis=1)  # The first one of equals.
        grows = slowness[np.arange(len(active)), slowest] >= 0
        active, slowest = active[grows], slowest[grows]
        left[active] -= more[grows, slowest]
        chosen[active, slowest] += 1
    return chosen, left
