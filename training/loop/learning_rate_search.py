"""The search for a learning rate: a short training at each of several, measured on samples that are held out."""
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.loop.loop import NotFinite, exact, forward
from circulant.training.loop.train import BLOCK_SIZE, train
from circulant.training.loop.trainer import Progress
from circulant.training.settings.model import ModelSettings
from circulant.training.settings.training import TrainingSettings
from circulant.training.task.batches import Part
from circulant.training.task.task import Task, task_of

__all__ = ["Tried", "try_rates"]


@dataclass(frozen=True)
class Tried:
    """A rate and what it led to.

    Members:
        loss, score: on the test set of the data; None where the loss did not stay finite.
    """

    rate: float
    loss: float | None
    score: float | None


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
        if dense is None and settings.dense_epochs and (settings.start != "random" or settings.distillation):
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
