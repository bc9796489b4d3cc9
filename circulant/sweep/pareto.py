"""The Pareto front: points that no other one equals or beats in everything; of several seeds by their means."""
import statistics
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, cast

from circulant.sweep.goal import FIGURES, loss
from circulant.sweep.rows import Row

__all__ = ["COSTS", "SCORES", "front", "fronts", "grouped", "mean", "over_seeds"]

COSTS = {"memory": FIGURES["weight_memory_bits"], "work": FIGURES["work"]}
"""The costs of an accuracy, by the name that the tables give to the front."""

SETTINGS = ("experiment", "block_size", "weight_bits", "activation_bits", "budget", "measure")

SCORES = ("dense", "circulant", "quantized")


def front(costs: Sequence[tuple[float, ...]]) -> list[int]:
    """Indices of the points that no other one dominates, in their order; of equal points all are on the front.

    Parameters:
        costs: of each point, all of one length, each the better the lower.
    """
    return [at for at, mine in enumerate(costs)
            if not any(other != mine and all(b <= a for a, b in zip(mine, other, strict=True)) for other in costs)]


def fronts(rows: Sequence[Row]) -> dict[str, set[int]]:
    """For each of `COSTS` the indices of the rows on the front of their experiment; failures and
    points beyond a bound of the search are on none. A point of several seeds is there, with all its rows, by its means.

    Of rows that are equal in it, the one stands that is cheapest in the other costs, then of the narrowest activations.
    """
    found: dict[str, set[int]] = {cost: set() for cost in COSTS}
    groups = grouped(rows)
    rows = over_seeds(rows)
    for label in dict.fromkeys(row["experiment"] for row in rows):
        mine = [at for at, row in enumerate(rows)
                if row["experiment"] == label and not row["reason"] and not row.get("violates")]
        for cost, figure in COSTS.items():
            first: dict[tuple[float, float], int] = {}
            for at in sorted(mine, key=lambda at: (*_all_costs(rows[at]), rows[at]["activation_bits"], at)):
                first.setdefault((figure.value(rows[at]), loss(rows[at])), at)
            best = [list(first.values())[at] for at in front(list(first))]
            found[cost] |= {at for point in best for at in groups[point]}
    return found


def _all_costs(row: Row) -> list[float]:
    return [figure.value(row) for figure in COSTS.values()]


def grouped(rows: Sequence[Row]) -> list[list[int]]:
    """Indices of the rows of each point, in the order of the first. One that failed stands alone, and so do rows of one
    seed that differ in something else."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        point = *(str(row.get(name)) for name in SETTINGS), at if row["reason"] else None
        groups.setdefault(point, []).append(at)
    found: list[list[int]] = []
    for group in groups.values():
        seeds = {rows[at].get("seed", 0) for at in group}
        found += [group] if len(seeds) == len(group) else [[at] for at in group]
    return sorted(found)


def over_seeds(rows: Sequence[Row]) -> list[Row]:
    """A row for each point: where it has several seeds their means, ``seeds`` and for each score ``…_deviation``."""
    return [mean([rows[at] for at in group]) for group in grouped(rows)]


def mean(rows: Sequence[Row]) -> Row:
    """One row for those of a point, see `over_seeds`."""
    if len(rows) == 1:
        return rows[0]
    first: MutableMapping[str, Any] = dict(rows[0])
    every: Sequence[Mapping[str, Any]] = rows
    for name in [name for name in first if name != "seed" and type(first[name]) in (int, float)]:
        values = [row[name] for row in every if name in row]
        if len(values) < len(rows):
            del first[name]
        elif len(set(values)) > 1:
            first[name] = statistics.fmean(values)
    return cast(Row, {**first, "seed": " ".join(str(row.get("seed", 0)) for row in rows), "seeds": len(rows)} | {
        f"{name}_deviation": statistics.stdev(row[name] for row in every) for name in SCORES if name in first})
