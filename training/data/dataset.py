"""The data set: two parts of samples with their targets, checked once and for all."""
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.artifact import digest, digest_arrays
from circulant.sim.public import public
from circulant.sim.refusal import Refusal
from circulant.training.data.checks import BLANK, check
from circulant.training.data.targets import SETS, TASKS, per_step

__all__ = ["BLANK", "TASKS", "Dataset"]

FEW = 10_000
"""Classes that a data set may have however few targets it has."""

@public
@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples and their targets, cut into a training and a test set.

    Members:
        train_x, test_x: float32; sequences (N, T, F), vectors (N, F) or images (N, C, H, W).
        train_y, test_y: for "classification" the classes, int64 (N,) from 0 to classes - 1; for "regression" float32
            (N, outputs); for "multi-label" 0 or 1, int64 (N, labels); each with an axis of T steps behind N where there
            is a target at every step. For "ctc" the symbols, int64 (N, L) from 1 to classes - 1, of which the first
            target length count and the others are 0.
        classes: outputs of a model: classes (with "ctc", the blank at index 0 is one of them), numbers of a regression,
            or labels; 0 for as many as the targets of the training set show.
        task: "classification", "ctc" (connectionist temporal classification, Graves et al., ICML 2006), "regression" or
            "multi-label".
        train_lengths, test_lengths: int64 (N,), the valid steps of each sequence; None where all T are.
        train_target_lengths, test_target_lengths: int64 (N,), the symbols of each sequence; for "ctc" alone.
        symbols: the name of each class, or nothing.
        frames: successive frames in a step of a sequence, whose features are those of the first frame, then of the
            next.

    Raises:
        Refusal: when types, shapes, classes or lengths contradict this, a sequence has too few steps, or there are far
            more classes than targets.
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
        most = max(FEW, 10 * self.train_y.size)  # A model has an output for each, whether or not it ever occurs.
        if self.task in ("classification", "ctc") and self.classes > most:
            raise Refusal(f"Data set {self.name!r} must have at most {most:,} classes for the {self.train_y.size:,} "
                          f"targets of its training set, not {self.classes:,}; number them from 0 without gaps")
        if self.symbols and len(self.symbols) != self.classes:
            raise Refusal(f"Data set {self.name!r} must have a symbol for each of its {self.classes} classes, not "
                          f"{len(self.symbols)} symbols; name all or none")
        if self.frames < 1 or self.train_x.shape[-1] % self.frames:
            raise Refusal(f"The {self.train_x.shape[-1]} features of a step of data set {self.name!r} must be those of "
                          f"whole frames, not of {self.frames}; choose a divisor")
        for part in ("train", "test"):
            x, y, lengths, symbols = (getattr(self, f"{part}_{field}")
                                      for field in ("x", "y", "lengths", "target_lengths"))
            check(f"{SETS[part]} of data set {self.name!r}", self.task, x, y, classes=self.classes, lengths=lengths,
                  target_lengths=symbols)
        one, other = self.train_x.shape[1:], self.test_x.shape[1:]
        if self.train_lengths is not None and self.test_lengths is not None:
            one, other = one[1:], other[1:]  # Only the features of a step must agree.
        if one != other or (self.train_lengths is None) != (self.test_lengths is None):
            raise Refusal(f"The two parts of data set {self.name!r} must have samples of one shape, not "
                          f"{self.train_x.shape[1:]} and {self.test_x.shape[1:]}; cut them to one length, or give "
                          "both lengths")

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
    def sample(self) -> NDArray[np.float32]:
        """Two training samples at the most."""
        return self.train_x[:2]

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
        """How many outputs the targets of the training set ask for; at least 1."""
        y, lengths = self.train_y, self.train_lengths
        if self.task in ("regression", "multi-label"):
            return y.shape[-1] if y.ndim else 1
        if self.per_step and lengths is not None and lengths.shape == y.shape[:1]:
            y = y[np.arange(y.shape[1]) < lengths[:, None]]
        return max(int(y.max(initial=0)) + 1, 1)
