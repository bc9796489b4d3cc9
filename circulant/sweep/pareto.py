"""The Pareto front: points that no other one equals or beats in everything."""
from collections.abc import Mapping, Sequence
from typing import Any

from circulant.sweep.goal import FIGURES, loss

__all__ = ["COSTS", "front", "fronts"]

COSTS = {"memory": FIGURES["weight_memory_bits"], "work": FIGURES["work"]}
"""The costs of an accuracy, by the name that the tables give to the front."""


def front(costs: Sequence[tuple[float, ...]]) -> list[int]:
    """Indices of the points that no other one dominates, in their order; of equal points all are on the front.

    Parameters:
        costs: of each point, all of one length, each the better the lower.
    """
    return [at for at, mine in enumerate(costs)
            if not any(other != mine and all(b <= a for a, b in zip(mine, other, strict=True)) for other in costs)]


def fronts(rows: Sequence[Mapping[str, Any]]) -> dict[str, set[int]]:
    """For each of `COSTS` the indices of the rows on the front of their experiment; failures and
    points beyond a bound of the search are on none.

    Of rows that are equal in it, the one stands that is cheapest in the other costs, then of the narrowest activations.
    """
    found: dict[str, set[int]] = {cost: set() for cost in COSTS}
    for label in dict.fromkeys(row["experiment"] for row in rows):
        mine = [at for at, row in enumerate(rows)
                if row["experiment"] == label and not row["reason"] and not row.get("violates")]
        for cost, figure in COSTS.items():
            first: dict[tuple[float, float], int] = {}
            for at in sorted(mine, key=lambda at: (*_all_costs(rows[at]), rows[at]["activation_bits"], at)):
                first.setdefault((figure.value(rows[at]), loss(rows[at])), at)
            found[cost] |= {list(first.values())[at] for at in front(list(first))}
    return found


def _all_costs(row: Mapping[str, Any]) -> list[float]:
    return [figure.value(row) for figure in COSTS.values()]
