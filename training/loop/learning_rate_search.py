"""The search for a learning rate: a short training at each of several, measured on samples that are held out."""
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.training.blocks.clone import clone
from circulant.training.data import Dataset
from circulant.training.loop.loop import NotFinite, exact, fit, forward
from circulant.training.loop.metrics import scored
from circulant.training.loop.train import BLOCK_SIZE, train
from circulant.training.loop.trainer import Progress
from circulant.training.settings.model import ModelSettings
from circulant.training.settings.training import TrainingSettings
from circulant.training.task.batches import Part
from circulant.training.task.losses import Loss
from circulant.training.task.samples import Given, samples
from circulant.training.task.task import Task, task_of

__all__ = ["FACTORS", "PART", "Rates", "Tried", "find_rate", "try_rates"]

FACTORS = (0.25, 0.5, 1, 2, 4, 8)
"""Multiples of a learning rate that are tried."""

PART = 10
"""One of so many training samples is held out."""


@dataclass(frozen=True)
class Tried:
    """A rate and what it led to.

    Members:
        loss, score: on the test set of the data; None where the loss did not stay finite.
    """

    rate: float
    loss: float | None
    score: float | None


@dataclass(frozen=True)
class Rates:
    """Learning rates that were tried.

    Members:
        tried: one for each rate, in their order.
    """

    tried: tuple[Tried, ...]

    @property
    def best(self) -> float:
        """The rate with the least loss."""
        return min((each for each in self.tried if each.loss is not None), key=lambda each: each.loss or 0.0).rate


@public
def find_rate(model: nn.Module, data: Given, *, loss: str | Loss | None = None,
              rates: Sequence[float] = tuple(TrainingSettings.learning_rate * factor for factor in FACTORS),
              epochs: int = 4, batch: int = TrainingSettings.batch_size, seed: int = TrainingSettings.seed) -> Rates:
    """The learning rate of a model, by a short training at each of several, judged by the loss on samples held out.

    Parameters:
        model: with dense weights, for the rate of `train_admm`, or with those of `initialise`, for that of
            `train_direct`; it stays as it is.
        data: a `Dataset`, arrays (x, y) or (x, y, lengths). A tenth of the training set is held out, which the seed
            chooses; a test set is not looked at.
        loss, batch, seed: as for `train_admm`.

    Raises:
        Refusal: as `samples` and `task_of`; data that come in batches; when no rate keeps the loss finite.
    """
    held = _held_out(data, loss, seed)
    task = task_of(held, loss=loss)
    tried = []
    for rate in rates:
        copy = clone(model)
        try:
            score = scored(fit(copy, held, task=task, epochs=epochs, lr=rate, batch=batch, seed=seed)[-1], task.metric)
        except NotFinite:
            tried.append(Tried(rate, None, None))
        else:
            tried.append(Tried(rate, _loss(copy, held, task), score))
    if all(each.loss is None for each in tried):
        raise Refusal(f"A learning rate must keep the loss finite, but none from {min(rates):g} to {max(rates):g} "
                      "does; give lower rates")
    return Rates(tuple(tried))


def _held_out(data: Given, loss: str | Loss | None, seed: int) -> Dataset:
    """A data set of training samples alone, of which a tenth is the test set."""
    given = data if isinstance(data, Dataset) else samples(data, data, loss=loss, seed=seed)
    if not isinstance(given, Dataset):
        raise Refusal("find_rate must hold samples out, which it can of a Dataset or of arrays (x, y), not of a "
                      f"{type(data).__name__}; give those")
    count = len(given.train_x)
    mixed = np.random.RandomState(seed).permutation(count)
    parts = {"train": np.sort(mixed[count // PART or 1:]), "test": np.sort(mixed[:count // PART or 1])}
    fields: dict[str, Any] = {
        f"{part}_{name}": None if (whole := getattr(given, f"train_{name}")) is None else whole[some]
        for part, some in parts.items() for name in ("x", "y", "lengths", "target_lengths")}
    return replace(given, **fields)


def try_rates(data: Dataset, settings: TrainingSettings, rates: Iterable[float], *,
              model: ModelSettings | None = None, block_size: int | Mapping[str, int] = BLOCK_SIZE,
              dense: Mapping[str, Tensor] | None = None, epochs: int = 4, progress: Progress | None = None
              ) -> list[Tried]:
    """Train at each rate, from the same weights: directly, or where the method is ADMM its dense baseline.

    Parameters:
        data: its test set is what judges, and so has to be held out of the training set (`data.held_out`).
        dense: state dict of the dense baseline; without it one is trained where direct training needs one.
        epochs: of each training; the rate falls over them as it would over all.

    Raises:
        Refusal: as `train`, and with the method "search".
    """
    if settings.method == "search":
        raise Refusal("rates can be tried with training.method = 'admm' or 'direct', not with 'search', which has "
                      "several trainings of its own; find the dense baseline's rate with --set training.method=admm")
    baseline = replace(settings, method="admm", admm_epochs=0, retrain_epochs=0, distillation=0.0, hints=0.0)
    if settings.method == "admm":
        short, block_size, dense = replace(baseline, dense_epochs=epochs), 1, None
    else:
        if dense is None and settings.dense_epochs and (settings.start != "projected" or settings.distillation):
            dense = train(data, baseline, model=model, block_size=1, progress=progress).dense
        short = replace(settings, dense_epochs=0, direct_epochs=epochs, stages=1)
    task = task_of(data, loss=None if settings.loss == "auto" else settings.loss, smoothing=settings.label_smoothing)
    tried = []
    for rate in rates:
        try:
            trained = train(data, replace(short, learning_rate=rate, evaluate_epochs=epochs), model=model,
                            block_size=block_size, dense=dense, progress=progress)
        except NotFinite:
            tried.append(Tried(rate, None, None))
        else:
            tried.append(Tried(rate, _loss(trained.model, data, task), trained.scores["circulant"]))
    return tried


@torch.no_grad()
def _loss(model: nn.Module, data: Dataset, task: Task, batch: int = 1024) -> float:
    """The mean loss over the test set."""
    part = Part(data, "test", torch.device("cpu"), exact=exact(model, task))
    model.eval()
    total = 0.0
    with parametrize.cached():
        for chosen in part.order(batch):
            samples = part.take(chosen)
            total += float(task.loss(forward(model, samples), samples)) * len(chosen)
    return total / len(part)
