"""Values moved to other places where no layer takes them as they are: a matrix of zeros and ones over a vector, or over
each step of a sequence. Constants among them are its bias."""
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from circulant.sim.arith.fixed import Reals
from circulant.training.neutral.streams import Places

__all__ = ["LARGEST", "Rearrangement", "of_steps", "of_values"]

LARGEST = 1 << 14
"""Weights of such a matrix at the most: it is dense, so that each takes a multiplication."""


class Rearrangement(NamedTuple):
    """A matrix (outputs, inputs) of zeros and ones, and a bias (outputs,) where it has none."""

    weight: Reals
    bias: Reals


def of_values(places: Places, columns: Sequence[Places | NDArray[np.float64]], inputs: int) -> Rearrangement | None:
    """The matrix of a move of the values of vectors; None where it is too large.

    Parameters:
        places: by value the number among those of all that is given.
        columns: of what is given one after the other: the column of the matrix for each value, or constants.
        inputs: columns.
    """
    flat = places.reshape(-1)
    if flat.size * inputs > LARGEST:
        return None
    column = np.concatenate([np.full(part.size, -1) if part.dtype.kind == "f" else part for part in columns])
    constant = np.concatenate([part if part.dtype.kind == "f" else np.zeros(part.size) for part in columns])
    return Rearrangement((column[flat][:, None] == np.arange(inputs)).astype(np.float64), constant[flat])


def of_steps(places: Places, sizes: tuple[int, ...]) -> Rearrangement | None:
    """The matrix of a move within each step of a sequence (steps, size), the same in all; None where it is another
    one."""
    if places.ndim != 2 or len(sizes) != 2 or len(places) != sizes[0]:
        return None
    within = places - np.arange(len(places))[:, None] * sizes[1]
    if (within != within[0]).any() or within.min() < 0 or within.max() >= sizes[1]:
        return None
    return of_values(within[0], [np.arange(sizes[1])], sizes[1])
