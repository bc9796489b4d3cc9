"""Averages of the weights over the steps of a phase, by `torch.optim.swa_utils`."""
from collections.abc import Iterable
from typing import TypedDict

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

from circulant.training.loop.optimize import choose
from circulant.training.models.cells import Recurrent
from circulant.training.task.batches import Batch

__all__ = ["AVERAGES", "Average", "average"]

AVERAGES = ("none", "ema", "swa")

MEMORY = 1 / 20
"""Part of a phase's steps that a moving average remembers."""

LEAST = 2.0
"""Steps that it remembers at least."""

TAIL = 1 / 4
"""Part of a phase, its last, over which weights have the same share in a mean."""


class AverageState(TypedDict):
    """The state of an average, as a checkpoint has it."""

    done: int
    average: dict[str, Tensor]


class Average:
    """The average of a model's weights: first columns are averaged where a matrix is block-circulant.

    "ema" is the exponential moving average (Polyak and Juditsky 1992), "swa" the mean over the last quarter of the
    phase (Izmailov et al. 2018, "Averaging Weights Leads to Wider Optima"); before that it is the model as it is.

    Parameters:
        steps: of the phase.

    Members:
        model: with the averaged weights.
    """

    def __init__(self, kind: str, model: nn.Module, steps: int) -> None:
        self._source, self._done = model, 0
        self._begin = int(steps * (1 - TAIL)) if kind == "swa" else 0
        memory = {"multi_avg_fn": get_ema_multi_avg_fn(1 - 1 / max(LEAST, MEMORY * steps))} if kind == "ema" else {}
        self._average = AveragedModel(model, **memory)
        self.model: nn.Module = self._average.module
        for module in self.model.modules():
            if isinstance(module, Recurrent):
                module.tap = None  # Hints are of the model itself.

    def step(self) -> None:
        """Add the weights as they are."""
        self._done += 1
        if self._done <= self._begin + 1:
            self._average.n_averaged.zero_()  # So that it is a copy, up to the first weights of a mean.
        self._average.update_parameters(self._source)

    @torch.no_grad()
    def measure_batches(self, batches: Iterable[Batch]) -> None:
        """Measure the means and variances that batch normalisation uses once more, with the averaged weights."""
        if any(isinstance(module, _BatchNorm) for module in self.model.modules()):
            update_bn((batch.x for batch in batches), self.model)

    def state_dict(self) -> AverageState:
        """The state, to go on from."""
        return {"done": self._done, "average": self._average.state_dict()}

    def load_state_dict(self, state: AverageState) -> None:
        """Go on from a state."""
        self._done = state["done"]
        self._average.load_state_dict(state["average"])


def average(kind: str, model: nn.Module, steps: int) -> Average | None:
    """The average of that name; None for none.

    Raises:
        Refusal: when there is none of this name.
    """
    choose("An averaging", kind, AVERAGES)
    return None if kind == "none" else Average(kind, model, steps)
