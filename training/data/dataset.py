"""The data set: two parts of samples with their targets, checked once and for all."""
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.sim.artifact import digest, digest_arrays
from circulant.sim.public import public
from circulant.sim.refusal import Refusal

__all__ = ["BLANK", "TASKS", "Dataset"]

BLANK = 0
"""The class that stands for "no symbol" in connectionist temporal classification."""

TASKS = ("classification", "ctc")

SHAPES = "(N, steps, features), (N, features) or (N, channels, height, width)"


@public
@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples and their targets, cut into a train and a test part.

    Members:
        train_x, test_x: float32; sequences (N, T, F), vectors (N, F) or images (N, C, H, W).
        train_y, test_y: int64; for "classification" the classes (N,) from 0 to classes - 1, for "ctc" the symbols
            (N, L) from 1 to classes - 1, of which the first target length count and the others are 0.
        classes: with "ctc", the blank at index 0 is one of them.
        task: "classification" or "ctc" (connectionist temporal classification, Graves et al., ICML 2006).
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
    train_y: NDArray[np.int64]
    test_x: NDArray[np.float32]
    test_y: NDArray[np.int64]
    classes: int
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
        return (f"<Dataset {self.name!r} {self.task}, {self.classes} classes, train {len(self.train_x):,}, test "
                f"{len(self.test_x):,} × {self.shape}>")

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

    def _check(self, part: str) -> None:
        x, y, lengths, target_lengths = (getattr(self, f"{part}_{field}")
                                         for field in ("x", "y", "lengths", "target_lengths"))
        where = f"The {part} part of data set {self.name!r}"
        if x.dtype != np.float32 or y.dtype != np.int64:
            raise Refusal(f"{where} must be float32 with int64 targets, not {x.dtype} with {y.dtype}; convert it")
        rank = 2 if self.task == "ctc" else 1
        if x.ndim not in ((3,) if rank == 2 else (2, 3, 4)) or not x.size or y.ndim != rank or len(y) != len(x):
            shapes = "(N, steps, features) and (N, symbols)" if rank == 2 else f"{SHAPES} and (N,)"
            raise Refusal(f"{where} must have shapes {shapes}, none of them 0, not {x.shape} and {y.shape}; reshape it")
        if not np.isfinite(x).all():
            raise Refusal(f"{where} must be finite, but holds NaN or infinity; clean it")
        if lengths is not None:
            if x.ndim != 3:
                raise Refusal(f"{where} must be sequences to have lengths, but has shape {x.shape}; leave them out")
            _check_lengths(f"The lengths of the {part} part of data set {self.name!r}", lengths, len(x), x.shape[1])
        if (target_lengths is None) != (self.task == "classification"):
            raise Refusal(f"{where} must have target lengths for 'ctc' and for nothing else, but the task is "
                          f"{self.task!r}; give both or neither")
        if target_lengths is not None:
            _check_lengths(f"The target lengths of the {part} part of data set {self.name!r}", target_lengths, len(x),
                           y.shape[1])
            self._check_symbols(where, y, np.full(len(x), x.shape[1]) if lengths is None else lengths, target_lengths)
        elif y.min() < 0 or y.max() >= self.classes:
            raise Refusal(f"{where} must have classes from 0 to {self.classes - 1}, not from {y.min()} to "
                          f"{y.max()}; renumber them")

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
