"""Figures of an epoch, for histories and for displays, which need no torch."""
from collections.abc import Mapping
from typing import TypedDict, cast

__all__ = ["Metrics", "scored"]


class Metrics(TypedDict, total=False):
    """Figures of an epoch, as a history has them; the task's metric stands under its own name, see `scored`."""

    phase: str
    epoch: int
    loss: float
    sent: int
    rho: float
    primal: float
    dual: float
    matrices: dict[str, dict[str, float]]
    expected_cost: float
    paths: dict[str, dict[int, float]]


def scored(metrics: Metrics, metric: str) -> float | None:
    """The metric of an epoch on the test set; None where it was not measured."""
    return cast("Mapping[str, float]", metrics).get(metric)
