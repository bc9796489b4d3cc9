"""Checks of a part of a data set, or of a batch of it: types, shapes, values, lengths."""
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal
from circulant.training.data.targets import per_step

__all__ = ["BLANK", "check"]

BLANK = 0
"""The class that stands for "no symbol" in connectionist temporal classification."""

SHAPES = "(N, steps, features), (N, features) or (N, channels, height, width)"

TARGETS = {"classification": "(N,) or (N, steps)", "regression": "(N, outputs) or (N, steps, outputs)",
           "multi-label": "(N, labels) or (N, steps, labels)", "ctc": "(N, symbols)"}
"""Shapes of targets by task."""


def check(part: str, task: str, x: NDArray[Any], y: NDArray[Any], *, classes: int,
          lengths: NDArray[Any] | None = None, target_lengths: NDArray[Any] | None = None) -> None:
    """Check that samples and targets are as `Dataset` says.

    Parameters:
        part: what they are, such as "training set of data set 'digits'".
        classes: outputs of a model; 0 where nobody knows how many classes there are.

    Raises:
        Refusal: when types, shapes, values or lengths contradict this, or a sequence has too few steps.
    """
    where = f"The {part}"
    wanted = np.dtype(np.float32 if task == "regression" else np.int64)
    if x.dtype != np.float32 or y.dtype != wanted:
        raise Refusal(f"{where} must be float32 with {wanted} targets for the task {task!r}, not {x.dtype} with "
                      f"{y.dtype}; convert them, or give the task that the targets are of")
    ctc, stepped = task == "ctc", per_step(task, y)
    legal = (2,) if ctc else (1, 2) if task == "classification" else (2, 3)
    if x.ndim not in ((3,) if ctc else (2, 3, 4)) or not x.size or y.ndim not in legal or not y.size or (
            len(y) != len(x)):
        raise Refusal(f"{where} must have shapes {'(N, steps, features)' if ctc else SHAPES} and {TARGETS[task]}, none "
                      f"of them 0, not {x.shape} and {y.shape}; reshape it")
    if stepped and (x.ndim != 3 or y.shape[1] != x.shape[1]):
        raise Refusal(f"{where} must have a target at each of the steps of its sequences (N, steps, features), not "
                      f"targets {y.shape} for {x.shape}; reshape it")
    if not np.isfinite(x).all():
        raise Refusal(f"{where} must be finite, but holds NaN or infinity; clean it")
    if lengths is not None:
        if x.ndim != 3:
            raise Refusal(f"{where} must be sequences to have lengths, but has shape {x.shape}; leave them out")
        _check_lengths(f"The lengths of the {part}", lengths, len(x), x.shape[1])
    if (target_lengths is not None) != ctc:
        raise Refusal(f"{where} must have target lengths for 'ctc' and for nothing else, but the task is {task!r}; "
                      "give both or neither")
    if target_lengths is not None:
        _check_lengths(f"The target lengths of the {part}", target_lengths, len(x), y.shape[1])
        _check_symbols(where, y, np.full(len(x), x.shape[1]) if lengths is None else lengths,
                       target_lengths=target_lengths, classes=classes)
        return
    if stepped and lengths is not None:
        y = y[np.arange(y.shape[1]) < lengths[:, None]]
    _check_values(where, task, y, classes)


def _check_values(where: str, task: str, y: NDArray[Any], classes: int) -> None:
    """Check that targets that count are such as the task has."""
    if task == "classification":
        if y.min() < 0 or (classes and y.max() >= classes):
            rule = f"from 0 to {classes - 1}" if classes else "of at least 0"
            raise Refusal(f"{where} must have classes {rule}, not from {y.min()} to {y.max()}; renumber them")
        return
    if y.shape[-1] != classes:
        raise Refusal(f"{where} must have {classes} values in each target, not {y.shape[-1]}; give as many, or say so "
                      "with classes")
    if not np.isfinite(y).all():
        raise Refusal(f"{where} must have finite targets, but some are NaN or infinite; leave those samples out")
    if task == "multi-label" and (y.min() < 0 or y.max() > 1):
        raise Refusal(f"{where} must have labels that are 0 or 1, not from {y.min()} to {y.max()}; convert them")


def _check_symbols(where: str, y: NDArray[np.int64], lengths: NDArray[np.int64], *,
                   target_lengths: NDArray[np.int64], classes: int) -> None:
    valid = np.arange(y.shape[1]) < target_lengths[:, None]
    if y[~valid].any() or y[valid].min() <= BLANK or y[valid].max() >= classes:
        raise Refusal(f"{where} must have symbols from 1 to {classes - 1} and, beyond the target lengths, 0, not from "
                      f"{y[valid].min()} to {y[valid].max()}, with {np.count_nonzero(y[~valid])} beyond; renumber them "
                      "(0 is the blank)")
    # Between two equal symbols the alignment needs a blank.
    needed = target_lengths + ((y[:, 1:] == y[:, :-1]) & valid[:, 1:]).sum(1)
    short = np.flatnonzero(lengths < needed)
    if short.size:
        raise Refusal(f"{where} must have a step for each symbol and one between equal ones, but sequence {short[0]} "
                      f"has {lengths[short[0]]} steps and needs {needed[short[0]]} ({short.size} such sequences); "
                      "leave them out, or stack fewer frames")


def _check_lengths(where: str, lengths: NDArray[np.int64], count: int, longest: int) -> None:
    if lengths.dtype != np.int64 or lengths.shape != (count,):
        raise Refusal(f"{where} must be int64 of shape ({count},), not {lengths.dtype} of {lengths.shape}; "
                      "convert them")
    if lengths.min() < 1 or lengths.max() > longest:
        raise Refusal(f"{where} must be from 1 to {longest}, not from {lengths.min()} to {lengths.max()}; leave empty "
                      "sequences out, and pad to the longest")
