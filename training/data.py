"""Data sets of sequences with a class each, by name."""
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal, nearest

__all__ = ["DATASETS", "Dataset", "load_data"]

TEST_DIGITS = 360


@dataclass(frozen=True, eq=False)
class Dataset:
    """Sequences and their classes, cut into a train and a test part.

    Members:
        train_x, test_x: float32 (N, steps, features), or (N, features) where there are no steps.
        train_y, test_y: int64 (N,), from 0 to classes - 1.

    Raises:
        Refusal: when types, shapes or classes contradict this.
    """

    name: str
    train_x: NDArray[np.float32]
    train_y: NDArray[np.int64]
    test_x: NDArray[np.float32]
    test_y: NDArray[np.int64]
    classes: int

    def __post_init__(self) -> None:
        for part, x, y in (("train", self.train_x, self.train_y), ("test", self.test_x, self.test_y)):
            where = f"The {part} part of data set {self.name!r}"
            if x.dtype != np.float32 or y.dtype != np.int64:
                raise Refusal(f"{where} must be float32 with int64 classes, not {x.dtype} with {y.dtype}; convert it")
            if x.ndim not in (2, 3) or y.shape != x.shape[:1] or not len(x):
                raise Refusal(f"{where} must have shapes (N, steps, features) and (N,), not {x.shape} and {y.shape}; "
                              "reshape it")
            if not np.isfinite(x).all():
                raise Refusal(f"{where} must be finite, but holds NaN or infinity; clean it")
            if y.min() < 0 or y.max() >= self.classes:
                raise Refusal(f"{where} must have classes from 0 to {self.classes - 1}, not from {y.min()} to "
                              f"{y.max()}; renumber them")
        if self.train_x.shape[1:] != self.test_x.shape[1:]:
            raise Refusal(f"The two parts of data set {self.name!r} must have samples of one shape, not "
                          f"{self.train_x.shape[1:]} and {self.test_x.shape[1:]}; cut them alike")

    @property
    def inputs(self) -> int:
        """Features of a step."""
        return int(self.train_x.shape[-1])


def load_data(name: str, *, seed: int = 0) -> Dataset:
    """The data set of a name; ``seed`` chooses its split where it has none of its own.

    Raises:
        Refusal: when no data set has this name.
    """
    if name not in DATASETS:
        raise Refusal(f"A data set must be one of {', '.join(map(repr, DATASETS))}, not {name!r}"
                      f"{nearest(name, DATASETS)}")
    return DATASETS[name](seed)


def _digits(seed: int) -> Dataset:
    """scikit-learn's 1797 handwritten digits: an 8 × 8 image is a sequence of 8 rows; pixels are scaled to 0…1."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    except ImportError:
        raise Refusal("The data set 'digits' must be read through scikit-learn, which is not installed; "
                      "run: pip install 'circulant[training]'") from None
    bunch = load_digits()
    x, y = (bunch.images / 16).astype(np.float32), bunch.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=TEST_DIGITS, random_state=seed, stratify=y)
    return Dataset("digits", train_x, train_y, test_x, test_y, classes=10)


DATASETS: dict[str, Callable[[int], Dataset]] = {"digits": _digits}
"""Loaders by name; each takes the seed of its split."""
