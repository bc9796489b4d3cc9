"""Targets of a data set: their kind, told from type and shape, and the arrays that each kind has."""
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal, nearest

__all__ = ["FORMS", "SETS", "TASKS", "converted", "kind_of", "per_step"]

SETS = {"train": "training set", "test": "test set"}
"""Names of the two parts of a data set in words."""

TASKS = ("classification", "ctc", "regression", "multi-label")
"""Kinds of targets; each has its losses and metrics in `circulant.training.task`."""

FORMS = {
    "classification": "integers from 0 of shape (N,), or (N, steps) for one class at each step",
    "ctc": "integers (N, symbols) from 1 with target_lengths",
    "regression": "numbers of shape (N,), (N, outputs), or (N, steps, outputs) for targets at each step",
    "multi-label": "0 or 1 of shape (N, labels), or (N, steps, labels) for labels at each step",
}
"""Targets of each kind in words."""

STEPPED = {"classification": 2, "regression": 3, "multi-label": 3}
"""Axes of targets that stand at each step."""


def per_step(task: str, y: NDArray[Any]) -> bool:
    """Whether targets of a task stand at each step of a sequence."""
    return STEPPED.get(task) == y.ndim


def kind_of(x: NDArray[Any], y: NDArray[Any]) -> str:
    """The task that targets are of by type and shape: floats are a regression, truth values labels, integers classes.

    Integers of two axes are classes at each step where x has as many steps, and labels where all are 0 or 1.

    Raises:
        Refusal: when they are none of these.
    """
    if y.dtype.kind == "f":
        return "regression"
    if y.dtype.kind == "b":
        return "multi-label"
    if y.dtype.kind in "iu":
        if y.ndim == 1 or (y.ndim == 2 and x.ndim == 3 and y.shape[1] == x.shape[1]):
            return "classification"
        if y.ndim in (2, 3) and y.size and y.min() >= 0 and y.max() <= 1:
            return "multi-label"
    raise Refusal(f"Targets must be classes ({FORMS['classification']}), labels ({FORMS['multi-label']}) or "
                  f"{FORMS['regression']}, not {y.dtype} of shape {y.shape}; convert them, or name a "
                  "loss, or in an .npz file the task")


def converted(task: str, y: NDArray[Any]) -> NDArray[Any]:
    """Targets in the type and shape that `Dataset` has for the task: float32 or int64; (N,) numbers become (N, 1).

    Raises:
        Refusal: when they are none of this task.
    """
    if task not in TASKS:
        raise Refusal(f"A task must be one of {', '.join(map(repr, TASKS))}, not {task!r}{nearest(task, TASKS)}")
    wrong = Refusal(f"Targets of a {task} must be {FORMS[task]}, not {y.dtype} of shape {y.shape}; convert them, or "
                    "choose a loss that fits")
    if y.dtype.kind not in "biuf":
        raise wrong
    if task == "regression":
        with np.errstate(over="ignore"):  # What float32 cannot hold becomes infinity, which is refused.
            y = y.astype(np.float32)
        return y[:, None] if y.ndim == 1 else y
    if task == "multi-label":
        if y.dtype.kind == "f" and not np.isin(y, (0, 1)).all():
            raise Refusal(f"Targets of a {task} must be {FORMS[task]}, but some are others; convert them, or choose a "
                          "loss that fits")
        return y.astype(np.int64)
    if y.dtype.kind not in "iu":
        raise wrong
    return y.astype(np.int64)
