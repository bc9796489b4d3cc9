"""Optimizers and learning rates of a phase, by name."""
import math
from collections.abc import Callable, Iterable

import torch
from torch import nn, optim

from circulant.sim.refusal import Refusal, nearest
from circulant.training.muon import Muon

__all__ = ["DECAYS", "OPTIMIZERS", "choose", "optimizer", "schedule"]

DECAYS: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
    "step": lambda done: 0.1 ** (int(done * 3)),
    "none": lambda done: 1.0,
}
"""Factor of the learning rate by the fraction of the steps that are done; "step" divides by ten after each third."""

OPTIMIZERS: dict[str, Callable[..., optim.Optimizer]] = {
    "adam": lambda model, lr, decay: optim.Adam(model.parameters(), lr, weight_decay=decay),
    "adamw": lambda model, lr, decay: optim.AdamW(model.parameters(), lr, weight_decay=decay),
    "muon": Muon,
    "sgd": lambda model, lr, decay: optim.SGD(model.parameters(), lr, momentum=0.9, nesterov=True, weight_decay=decay),
}


def choose(what: str, name: str, legal: Iterable[str]) -> None:
    """Refuse a name that is none of the legal ones."""
    if name not in (legal := tuple(legal)):
        raise Refusal(f"{what} must be one of {', '.join(map(repr, legal))}, not {name!r}{nearest(str(name), legal)}")


def optimizer(name: str, model: nn.Module, lr: float, weight_decay: float) -> optim.Optimizer:
    """The optimizer of a name for all parameters of a model.

    Raises:
        Refusal: when there is none of this name.
    """
    choose("An optimizer", name, OPTIMIZERS)
    return OPTIMIZERS[name](model, lr, weight_decay)


def schedule(optimizer: optim.Optimizer, decay: str, steps: int, warmup: int) -> torch.optim.lr_scheduler.LambdaLR:
    """The learning rate over ``steps`` batches: it rises linearly over ``warmup`` of them, and decays over all.

    Raises:
        Refusal: when no decay has the name.
    """
    choose("A decay", decay, DECAYS)
    return optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: DECAYS[decay](step / max(1, steps)) * min(1.0, (step + 1) / max(1, warmup)))
