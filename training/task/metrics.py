"""Metrics: what each batch adds to a figure, and the figure of all; those of each task by name, and own ones."""
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from circulant.sim.refusal import Refusal, nearest

__all__ = ["METRICS", "Measure", "Metric", "choose_metric"]

Measure = Callable[[Tensor, Tensor], Any]
"""A metric of (outputs, targets) of a whole part: a number."""


@dataclass(frozen=True)
class Metric:
    """A figure that says how good outputs are.

    Members:
        tally: of (outputs, targets) of a batch, tensors of as many rows or symbols of sequences, what it adds.
        figure: of what all batches added.
    """

    name: str
    higher_is_better: bool
    tally: Callable[[Any, Any], Any]
    figure: Callable[[Sequence[Any]], float]


def summed(name: str, higher_is_better: bool, tally: Callable[[Any, Any], Any],
           figure: Callable[[Sequence[float]], float] = lambda sums: sums[0] / sums[1]) -> Metric:
    """A metric of sums over samples, which are the same in any order."""
    return Metric(name, higher_is_better, tally,
                  lambda tallies: figure([math.fsum(column) for column in zip(*tallies, strict=True)]))


def _right(outputs: Tensor, classes: Tensor) -> tuple[float, float]:
    return float((outputs.argmax(-1) == classes).sum()), float(len(classes))


def _labels(outputs: Tensor, labels: Tensor) -> tuple[float, float]:
    return float(((outputs > 0) == (labels > 0)).sum()), float(labels.numel())


def _found(outputs: Tensor, labels: Tensor) -> tuple[float, float]:
    """Twice the labels that are found, and those that were found or are true: the parts of F1."""
    said, true = outputs > 0, labels > 0
    return 2.0 * float((said & true).sum()), float(said.sum() + true.sum())


def _squares(outputs: Tensor, values: Tensor) -> tuple[float, float]:
    return float((outputs.double() - values.double()).square().sum()), float(values.numel())


def _distances(outputs: Tensor, values: Tensor) -> tuple[float, float]:
    return float((outputs.double() - values.double()).abs().sum()), float(values.numel())


def _moments(outputs: Tensor, values: Tensor) -> list[float]:
    """Squared error, number of targets, then sums and sums of squares of each of their values."""
    values = values.double()
    return [_squares(outputs, values)[0], float(len(values)), *values.sum(0).tolist(), *values.square().sum(0).tolist()]


def _determination(sums: Sequence[float]) -> float:
    error, count, *moments = sums
    half = len(moments) // 2
    spread = math.fsum(square - total * total / count for total, square in zip(moments[:half], moments[half:],
                                                                              strict=True))
    if not spread > 1e-12 * math.fsum(moments[half:]):
        raise Refusal("Targets must differ for R² to be defined, but all are the same; choose metric='rmse', or more "
                      "samples")
    return 1 - error / spread


METRICS: dict[str, dict[str, Metric]] = {task: {metric.name: metric for metric in metrics} for task, metrics in {
    "classification": (summed("accuracy", True, _right),),
    "regression": (summed("r2", True, _moments, _determination),
                   summed("rmse", False, _squares, lambda sums: math.sqrt(sums[0] / sums[1])),
                   summed("mse", False, _squares), summed("mae", False, _distances)),
    "multi-label": (summed("f1", True, _found, lambda sums: sums[0] / sums[1] if sums[1] else 1.0),
                    summed("accuracy", True, _labels)),
}.items()}
"""By task its metrics by name; the first is the default.

R² is 1 − Σ(y − ŷ)² / Σ(y − ȳ)² with the mean ȳ of each value over the part. F1 is over all labels together, of outputs
above 0; the accuracy beside it is the part of the labels that are right.
"""


def choose_metric(task: str, metric: str | Measure | None, higher_is_better: bool | None) -> Metric:
    """The metric of a task: its default, one of its names, or a function of (outputs, targets) of the whole part.

    Raises:
        Refusal: a name that the task has not, a function without its direction, or a direction of a named metric.
    """
    known: Mapping[str, Metric] = METRICS[task]
    if callable(metric):
        if higher_is_better is None:
            raise Refusal("A metric of your own must say which way is better, but higher_is_better is not given; give "
                          "higher_is_better=True or False")
        return _own(metric, higher_is_better)
    if higher_is_better is not None:
        raise Refusal("higher_is_better must be given for a metric of your own alone, as named ones have their "
                      "direction; leave it out")
    if metric is None:
        return next(iter(known.values()))
    if metric not in known:
        raise Refusal(f"A metric of a {task} must be one of {', '.join(map(repr, known))}, or a function of (outputs, "
                      f"targets), not {metric!r}{nearest(metric, known)}")
    return known[metric]


def _own(measure: Measure, higher_is_better: bool) -> Metric:
    def figure(tallies: Sequence[tuple[Tensor, Tensor]]) -> float:
        value = measure(*(torch.cat(parts) for parts in zip(*tallies, strict=True)))
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError):
            shape = getattr(value, "shape", None)
            raise Refusal(f"A metric must return a number, not {type(value).__name__}"
                          f"{'' if shape is None else f' of shape {tuple(shape)}'}; reduce it, such as by .mean()"
                          ) from None

    name = getattr(measure, "__name__", type(measure).__name__).strip("<>")
    return Metric(name, higher_is_better, lambda outputs, targets: (outputs.detach().cpu(), targets.detach().cpu()),
                  figure)
