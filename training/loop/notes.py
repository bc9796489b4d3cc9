"""Sentences on a training that ended: a projection from far away, tied rows, a network that only guesses."""
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from circulant.sim.metrics import shown, words
from circulant.training.blocks.matrices import constraint_of, matrices
from circulant.training.task.loaded import part_of
from circulant.training.task.samples import Samples
from circulant.training.task.task import Task

__all__ = ["FAR", "chance", "guess", "notes", "tied"]

FAR = 0.2
"""ADMM's residual above which the projection changes what the network does."""

DIGITS = 9
"""Behind the point of a metric: an R² of 0 is not exact in floats."""

BEHIND = 0.01
"""Part of the dense model's score by which a network is worse without doubt."""

ERRORS = 2
"""Standard errors by which an accuracy must exceed that of guessing."""


def guess(data: Samples, task: Task) -> float | None:
    """The metric on the test set of one output for all samples, the best that targets alone tell: the most frequent
    class, the mean of numbers, all labels, no symbol. None where loss and metric are functions of the user, whose
    outputs may be anything."""
    return _guess(data, task)[0]


def chance(score: float, data: Samples, task: Task) -> str:
    """A score and that of guessing, in words, where it is no better; else nothing. An accuracy must be better by two
    standard errors."""
    least, count = _guess(data, task)
    if least is None:
        return ""
    margin = ERRORS * math.sqrt(least * (1 - least) / count) if task.metric == "accuracy" else 0.0
    if (score - least if task.higher_is_better else least - score) > margin:
        return ""
    return f"{words(task.metric)} {shown(task.metric, score)} where guessing has {shown(task.metric, least)}"


@torch.no_grad()
def _guess(data: Samples, task: Task) -> tuple[float | None, int]:
    """`guess`, and the number of samples. The set is read once, and its inputs are not kept."""
    with torch.random.fork_rng(devices=[]):  # A loader may draw.
        batches = [batch._replace(x=batch.x[..., :0].clone())
                   for batch in part_of(data, "test", torch.device("cpu")).batches(1024)]
    count = sum(len(batch.x) for batch in batches)
    constant = task.constant(batches)
    if constant is None:
        return None, count
    axes = [(*batch.x.shape[:2 if task.per_step or task.kind == "ctc" else 1], len(constant)) for batch in batches]
    found = task.figure([task.tally(constant.expand(shape), batch) for shape, batch in zip(axes, batches, strict=True)])
    return round(found, DIGITS) + 0.0, count


def tied(model: nn.Module, scores: Mapping[str, float], task: Task) -> list[str]:
    """A sentence on matrices with fewer outputs than their blocks have rows, where the model is behind the dense one.

    The rows of such a matrix are the same numbers, turned: a classifier of three classes in blocks of eight has one
    row of parameters.
    """
    dense = scores.get("dense", math.nan)
    lost = (dense - scores["circulant"]) * (1 if task.higher_is_better else -1)
    found = [f"{name} has {matrix.rows} rows in blocks of {constraint.block_size}"
             for name, matrix in matrices(model).items()
             if (constraint := constraint_of(matrix)) is not None and matrix.rows < constraint.block_size]
    if not found or not lost > BEHIND * abs(dense):
        return []
    return [f"The {words(task.metric)} is behind that of the dense model, and {', '.join(found)}: such rows are the "
            "same numbers, turned. Leave it dense by a table of block sizes, or by model.dense in an experiment"]


def notes(history: Sequence[Mapping[str, Any]], guessed: str, epochs: int, search: int = 0) -> list[str]:
    """Sentences on a training that ended.

    Parameters:
        history: of its epochs.
        guessed: what `chance` says of its end.
        epochs: of ADMM at most.
        search: epochs of a search of block sizes; 0 where there was none.
    """
    said = []
    residuals = [epoch["primal"] for epoch in history if epoch["phase"] == "admm" and "primal" in epoch]
    if residuals and residuals[-1] > FAR:
        said.append(f"ADMM ends with a residual of {residuals[-1]:.2g}, above {FAR:g}: the projection changes the "
                    f"weights by that part. Give it more than {epochs} epochs, or a greater rho_max")
    if guessed:
        way = (f"search longer, --set training.search_epochs={max(2 * search, 40)}" if search else
               "take a lower learning rate, or warmup_epochs, or more epochs")
        said.append(f"The training ends at chance, {guessed}: {way}")
    return said
