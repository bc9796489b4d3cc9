"""Optimizers and learning rates of a phase, by name."""
import math
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import nn, optim

from circulant.sim.refusal import Refusal, nearest
from circulant.training.blocks.matrices import constraint_of, matrices
from circulant.training.loop.muon import Muon

__all__ = ["DECAYS", "OPTIMIZERS", "SCALED", "SCALINGS", "choose", "optimizer", "schedule"]

DECAYS: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
    "step": lambda done: 0.1 ** (int(done * 3)),
    "none": lambda done: 1.0,
}
"""Factor of the learning rate by the fraction of the steps that are done; "step" divides by ten after each third."""

SCALED: dict[str, type[optim.Adam]] = {"adam": optim.Adam, "adamw": optim.AdamW}
"""Optimizers whose steps have the size of the rate, whatever the gradient."""

OPTIMIZERS: dict[str, Callable[..., optim.Optimizer]] = {
    **{name: lambda model, lr, decay, kind=kind: kind(model.parameters(), lr, weight_decay=decay)
       for name, kind in SCALED.items()},
    "muon": Muon,
    "sgd": lambda model, lr, decay: optim.SGD(model.parameters(), lr, momentum=0.9, nesterov=True, weight_decay=decay),
}

SCALINGS: dict[str, Callable[[int, int], float]] = {
    "none": lambda k, inputs: 1.0,
    "block": lambda k, inputs: math.sqrt(k),
    "block-inputs": lambda k, inputs: math.sqrt(k) * INPUTS / inputs,
}
"""Factor of a matrix' rate by its block size and the number of its inputs.

A step of Adam moves every entry by about the rate, in a dense matrix along with the input, so that an output moves by
rate · inputs (hence 1 / inputs: Yang et al. 2021, "Tensor Programs V"). A first-column entry obeys the sum of k
gradients that do not agree, and goes along with each of the k inputs by 1/√k only, which √k makes up for.
"""

INPUTS = 256
"""Inputs of the matrix to which "block-inputs" gives the rate that it would have by "block"."""


def choose(what: str, name: str, legal: Iterable[str]) -> None:
    """Refuse a name that is none of the legal ones."""
    if name not in (legal := tuple(legal)):
        raise Refusal(f"{what} must be one of {', '.join(map(repr, legal))}, not {name!r}{nearest(str(name), legal)}")


def optimizer(name: str, model: nn.Module, lr: float, weight_decay: float, scaling: str = "none") -> optim.Optimizer:
    """The optimizer of a name for all parameters of a model.

    Parameters:
        scaling: name of a rule of `SCALINGS` for the matrices; what is none of them has the rate itself.

    Raises:
        Refusal: when there is none of this name, or the rule is not of its steps.
    """
    choose("An optimizer", name, OPTIMIZERS)
    choose("A scaling of rates", scaling, SCALINGS)
    if scaling == "none":
        return OPTIMIZERS[name](model, lr, weight_decay)
    choose("An optimizer with scaled rates", name, SCALED)
    factors = dict(_factors(model, SCALINGS[scaling]))
    groups: dict[float, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        groups.setdefault(factors.get(id(parameter), 1.0), []).append(parameter)
    return SCALED[name]([{"params": each, "lr": lr * factor} for factor, each in groups.items()], lr,
                        weight_decay=weight_decay)


def _factors(model: nn.Module, rule: Callable[[int, int], float]) -> Iterator[tuple[int, float]]:
    """The factor of each matrix' rate, by the id of its parameter."""
    for matrix in matrices(model).values():
        constraint = constraint_of(matrix)
        k, parameter = (constraint.block_size, matrix.first) if constraint else (1, matrix.weight)
        yield id(parameter), rule(k, matrix.columns * math.prod(matrix.kernel))


def schedule(optimizer: optim.Optimizer, decay: str, steps: int, warmup: int) -> torch.optim.lr_scheduler.LambdaLR:
    """The learning rate over ``steps`` batches: it rises linearly over ``warmup`` of them, and decays over all.

    Raises:
        Refusal: when no decay has the name.
    """
    choose("A decay", decay, DECAYS)
    return optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: DECAYS[decay](step / max(1, steps)) * min(1.0, (step + 1) / max(1, warmup)))
