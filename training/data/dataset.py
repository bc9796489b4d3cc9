"""The data set: two parts of samples with their targets, checked once and for all."""
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.artifact import digest, digest_arrays
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.training.data.targets import TASKS, per_step

__all__ = ["BLANK", "TASKS", "Dataset"]

BLANK = 0
"""The class that stands for "no symbol" in connectionist temporal classification."""

SHAPES = "(N, steps, features), (N, features) or (N, channels, height, width)"

TARGETS = {"classification": "(N,) or (N, steps)", "regression": "(N, outputs) or (N, steps, outputs)",
           "multi-label": "(N, labels) or (N, steps, labels)"}
"""Shapes of targets by task; those of "ctc" are (N, symbols)."""


@public
@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples and their targets, cut into a train and a test part.

    Members:
        train_x, test_x: float32; sequences (N, T, F), vectors (N, F) or images (N, C, H, W).
        train_y, test_y: for "classification" the classes, int64 (N,) from 0 to classes - 1; for "regression" float32
            (N, outputs); for "multi-label" 0 or 1, int64 (N, labels); each with an axis of T steps behind N where there
            is a target at every step. For "ctc" the symbols, int64 (N, L) from 1 to classes - 1, of which the first
            target length count and the others are 0.
        classes: outputs of a model: classes (with "ctc", the blank at index 0 is one of them), numbers of a regression,
            or labels; 0 for as many as the targets of the train part show.
        task: "classification", "ctc" (connectionist temporal classification, Graves et al., ICML 2006), "regression" or
            "multi-label".
        train_lengths, test_lengths: int64 (N,), the valid steps of each sequence; None where all T are.
        train_target_lengths, test_target_lengths: int64 (N,), the symbols of each sequence; for "ctc" alone.
        symbols: the name of each class, or nothing.
        frames: successive frames in a step of a sequence, whose features are those of the first frame, then of the
            next.

    Raises:
        Refusal: when types, shapes, classes or lengths contradict this, or a sequence has too few steps.
    """

    name: str
    train_x: NDArray[np.float32]
    train_y: NDArray[Any]
    test_x: NDArray[np.float32]
    test_y: NDArray[Any]
    classes: int = 0
    task: str = "classification"
    train_lengths: NDArray[np.int64] | None = None
    test_lengths: NDArray[np.int64] | None = None
    train_target_lengths: NDArray[np.int64] | None = None
    test_target_lengths: NDArray[np.int64] | None = None
    symbols: tuple[str, ...] = ()
    frames: int = 1

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise Refusal(f"The task of data set {self.name!r} must be one of {', '.join(map(repr, TASKS))}, not "
                          f"{self.task!r}; name one of them")
        if not self.classes:
            object.__setattr__(self, "classes", self._outputs())
        if self.symbols and len(self.symbols) != self.classes:
            raise Refusal(f"Data set {self.name!r} must have a symbol for each of its {self.classes} classes, not "
                          f"{len(self.symbols)} symbols; name all or none")
        if self.frames < 1 or self.train_x.shape[-1] % self.frames:
            raise Refusal(f"The {self.train_x.shape[-1]} features of a step of data set {self.name!r} must be those of "
                          f"whole frames, not of {self.frames}; choose a divisor")
        for part in ("train", "test"):
            self._check(part)
        one, other = self.train_x.shape[1:], self.test_x.shape[1:]
        if self.train_lengths is not None and self.test_lengths is not None:
            one, other = one[1:], other[1:]  # Only the features of a step must agree.
        if one != other or (self.train_lengths is None) != (self.test_lengths is None):
            raise Refusal(f"The two parts of data set {self.name!r} must have samples of one shape, not "
                          f"{self.train_x.shape[1:]} and {self.test_x.shape[1:]}; cut them alike, or give both lengths")

    def __repr__(self) -> str:
        what = {"regression": "outputs", "multi-label": "labels"}.get(self.task, "classes")
        return (f"<Dataset {self.name!r} {self.task}, {self.classes} {what}, train {len(self.train_x):,}, test "
                f"{len(self.test_x):,} × {self.shape}>")

    @property
    def per_step(self) -> bool:
        """Whether there is a target at every step."""
        return per_step(self.task, self.train_y)

    @property
    def inputs(self) -> int:
        """Features of a step or of a vector, or channels of an image."""
        return int(self.train_x.shape[1 if self.train_x.ndim == 4 else -1])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a training sample: (T, F), (F,) or (C, H, W)."""
        return tuple(map(int, self.train_x.shape[1:]))

    def digest(self) -> str:
        """SHA-256 of everything that a training sees; equal on every machine for the same files and options."""
        arrays = {field: value for field, value in vars(self).items() if isinstance(value, np.ndarray)}
        return digest({"arrays": digest_arrays(arrays), "classes": self.classes, "task": self.task,
                       "symbols": list(self.symbols)})

    def _outputs(self) -> int:
        """How many outputs the targets of the train part ask for; at least 1."""
        y, lengths = self.train_y, self.train_lengths
        if self.task in ("regression", "multi-label"):
            return y.shape[-1] if y.ndim else 1
        if self.per_step and lengths is not None and lengths.shape == y.shape[:1]:
            y = y[np.arange(y.shape[1]) < lengths[:, None]]
        return max(int(y.max(initial=0)) + 1, 1)

    def _check(self, part: str) -> None:
        x, y, lengths, target_lengths = (getattr(self, f"{part}_{field}")
                                         for field in ("x", "y", "lengths", "target_lengths"))
        where = f"The {part} part of data set {self.name!r}"
        wanted = np.dtype(np.float32 if self.task == "regression" else np.int64)
        if x.dtype != np.float32 or y.dtype != wanted:
            raise Refusal(f"{where} must be float32 with {wanted} targets, not {x.dtype} with {y.dtype}; convert it")
        ctc, stepped = self.task == "ctc", per_step(self.task, y)
        legal = (2,) if ctc else (1, 2) if self.task == "classification" else (2, 3)
        if x.ndim not in ((3,) if ctc else (2, 3, 4)) or not x.size or y.ndim not in legal or not y.size or (
                len(y) != len(x)):
            shapes = "(N, steps, features) and (N, symbols)" if ctc else f"{SHAPES} and {TARGETS[self.task]}"
            raise Refusal(f"{where} must have shapes {shapes}, none of them 0, not {x.shape} and {y.shape}; reshape it")
        if stepped and (x.ndim != 3 or y.shape[1] != x.shape[1]):
            raise Refusal(f"{where} must have a target at each of the steps of its sequences (N, steps, features), not "
                          f"targets {y.shape} for {x.shape}; reshape it")
        if not np.isfinite(x).all():
            raise Refusal(f"{where} must be finite, but holds NaN or infinity; clean it")
        if lengths is not None:
            if x.ndim != 3:
                raise Refusal(f"{where} must be sequences to have lengths, but has shape {x.shape}; leave them out")
            _check_lengths(f"The lengths of the {part} part of data set {self.name!r}", lengths, len(x), x.shape[1])
        if (target_lengths is not None) != ctc:
            raise Refusal(f"{where} must have target lengths for 'ctc' and for nothing else, but the task is "
                          f"{self.task!r}; give both or neither")
        if target_lengths is not None:
            _check_lengths(f"The target lengths of the {part} part of data set {self.name!r}", target_lengths, len(x),
                           y.shape[1])
            self._check_symbols(where, y, np.full(len(x), x.shape[1]) if lengths is None else lengths, target_lengths)
            return
        if stepped and lengths is not None:
            y = y[np.arange(y.shape[1]) < lengths[:, None]]
        self._check_values(where, y)

    def _check_values(self, where: str, y: NDArray[Any]) -> None:
        """See that targets that count are such as the task has."""
        if self.task == "classification":
            if y.min() < 0 or y.max() >= self.classes:
                raise Refusal(f"{where} must have classes from 0 to {self.classes - 1}, not from {y.min()} to "
                              f"{y.max()}; renumber them")
            return
        if y.shape[-1] != self.classes:
            raise Refusal(f"{where} must have {self.classes} values in each target, as 'classes' says, not "
                          f"{y.shape[-1]}; give classes = {y.shape[-1]}, or 0")
        if not np.isfinite(y).all():
            raise Refusal(f"{where} must have finite targets, but some are NaN or infinite; leave those samples out")
        if self.task == "multi-label" and (y.min() < 0 or y.max() > 1):
            raise Refusal(f"{where} must have labels that are 0 or 1, not from {y.min()} to {y.max()}; convert them")

    def _check_symbols(self, where: str, y: NDArray[np.int64], lengths: NDArray[np.int64],
                       target_lengths: NDArray[np.int64]) -> None:
        valid = np.arange(y.shape[1]) < target_lengths[:, None]
        if y[~valid].any() or y[valid].min() <= BLANK or y[valid].max() >= self.classes:
            raise Refusal(f"{where} must have symbols from 1 to {self.classes - 1} and, beyond the target lengths, 0, "
                          f"not from {y[valid].min()} to {y[valid].max()}, with {np.count_nonzero(y[~valid])} beyond; "
                          "renumber them (0 is the blank)")
        # Between two equal symbols the alignment needs a blank.
        needed = target_lengths + ((y[:, 1:] == y[:, :-1]) & valid[:, 1:]).sum(1)
        short = np.flatnonzero(lengths < needed)
        if short.size:
            raise Refusal(f"{where} must have a step for each symbol and one between equal ones, but sequence "
                          f"{short[0]} has {lengths[short[0]]} steps and needs {needed[short[0]]} ({short.size} such "
                          "sequences); leave them out, or stack fewer frames")


def _check_lengths(where: str, lengths: NDArray[np.int64], count: int, longest: int) -> None:
    if lengths.dtype != np.int64 or lengths.shape != (count,):
        raise Refusal(f"{where} must be int64 of shape ({count},), not {lengths.dtype} of {lengths.shape}; "
                      "convert them")
    if lengths.min() < 1 or lengths.max() > longest:
        raise Refusal(f"{where} must be from 1 to {longest}, not from {lengths.min()} to {lengths.max()}; leave empty "
                      "sequences out, and pad to the longest")
