"""Shares of a budget against the rule in words, one candidate and one step at a time."""
import numpy as np
import pytest

from circulant.hw.plan.shares import FULL, shares


def walk(multipliers, cycles, budget):
    """The slowest layer that can still grow moves up by a rung, until none can."""
    chosen, left = [0] * len(multipliers), budget - sum(rungs[0] for rungs in multipliers)
    if left < 0:
        return None
    while True:
        for at in sorted(range(len(chosen)), key=lambda at: -cycles[at][chosen[at]]):
            rungs, n = multipliers[at], chosen[at]
            if n + 1 < len(rungs) and rungs[n + 1] - rungs[n] <= left:
                left -= rungs[n + 1] - rungs[n]
                chosen[at] += 1
                break
        else:
            return chosen, left


@pytest.mark.parametrize("seed", range(6))
def test_many_candidates_at_once_get_what_each_gets_by_itself(seed):
    rng = np.random.default_rng(seed)
    count, layers, most = 50, int(rng.integers(1, 5)), 6
    costs, cycles = np.full((count, layers, most), FULL), np.zeros((count, layers, most), np.int64)
    rungs = rng.integers(1, most + 1, (count, layers))
    for n in range(count):
        for at in range(layers):
            costs[n, at, :rungs[n, at]] = np.sort(rng.choice(40, rungs[n, at], replace=False))
            cycles[n, at, :rungs[n, at]] = -np.sort(-rng.integers(1, 12, rungs[n, at]))  # Some are equal.
    budget = rng.integers(0, 120, count)
    chosen, left = shares(costs, cycles, budget)
    for n in range(count):
        expected = walk([costs[n, at, :rungs[n, at]].tolist() for at in range(layers)],
                        [cycles[n, at, :rungs[n, at]].tolist() for at in range(layers)], int(budget[n]))
        if expected is None:
            assert left[n] < 0
        else:
            assert (chosen[n].tolist(), int(left[n])) == expected
