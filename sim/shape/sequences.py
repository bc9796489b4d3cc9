"""Sequences of different lengths in a padded array (N, T, …): which of its steps are theirs, and how they are computed.

Everything here takes them in descending order of their lengths: those that have a step are then the first ones. What
stands behind the end of a sequence is never read, and comes out as 0.
"""
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circulant.sim.refusal import Refusal

__all__ = ["Ended", "Lengths", "backward", "check_lengths", "counts", "descending", "flat", "padded_again", "valid"]

Lengths = NDArray[np.int64]
"""(N,), the steps of each sequence, from 1 on."""


def check_lengths(what: str, lengths: ArrayLike, shape: Sequence[int]) -> Lengths:
    """The lengths of sequences of this shape (N, T, …), as integers.

    Parameters:
        what: a name for the sequences, with which the sentence goes on.

    Raises:
        Refusal: when they are no integers of the shape (N,), or one is not from 1 to T.
    """
    found = np.asarray(lengths)
    if len(shape) != 3:
        raise Refusal(f"{what} must be sequences (N, T, size) to have lengths, but have the shape {tuple(shape)}; "
                      "leave the lengths out")
    count, longest = shape[:2]
    if found.dtype.kind not in "iu" or found.shape != (count,):
        raise Refusal(f"{what} must have integer lengths of the shape ({count},), one for each sequence, not "
                      f"{found.dtype} of {found.shape}; give the steps of each")
    if count and not 1 <= found.min() <= found.max() <= longest:
        raise Refusal(f"{what} must have lengths from 1 to their {longest} steps, not from {found.min()} to "
                      f"{found.max()}; leave empty sequences out, and pad to the longest")
    return found.astype(np.int64)


def descending(lengths: Lengths) -> NDArray[np.int64]:
    """The places of the sequences, the longest first."""
    return np.argsort(-lengths, kind="stable")


def valid(lengths: Lengths, steps: int) -> NDArray[np.bool_]:
    """(N, T): which steps are those of a sequence."""
    return np.asarray(np.arange(steps) < lengths[:, None])


def counts(lengths: Lengths | None, count: int, steps: int) -> list[int]:
    """How many sequences have each step: all ``count`` of them without lengths."""
    if lengths is None:
        return [count] * steps
    return np.searchsorted(-lengths, -np.arange(steps), side="left").tolist()


def flat(x: NDArray[Any], lengths: Lengths) -> NDArray[Any]:
    """The vectors (steps of all sequences, …) of x (N, T, …), step by step."""
    return x.swapaxes(0, 1)[valid(lengths, x.shape[1]).T]


def padded_again(vectors: NDArray[Any], lengths: Lengths, steps: int) -> NDArray[Any]:
    """The (N, T, …) whose vectors `flat` gives."""
    x = np.zeros((len(lengths), steps, *vectors.shape[1:]), vectors.dtype)
    x.swapaxes(0, 1)[valid(lengths, steps).T] = vectors
    return x


def backward(x: NDArray[Any], lengths: Lengths | None) -> NDArray[Any]:
    """x (N, T, …) with the steps of each sequence from its last to its first; padding stays where it is."""
    if lengths is None:
        return x[:, ::-1]
    steps = np.arange(x.shape[1])
    places = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return x[np.arange(len(x))[:, None], places]


class Ended:
    """The states of sequences that have ended while others go on.

    Parameters:
        axis: of a state, along which the sequences stand.
    """

    def __init__(self, axis: int) -> None:
        self._axis = axis
        self._tails: list[tuple[NDArray[Any], ...]] = []

    def cut(self, state: tuple[NDArray[Any], ...], count: int) -> tuple[NDArray[Any], ...]:
        """The state of the first ``count`` sequences; that of the others is kept."""
        if state[0].shape[self._axis] == count:
            return state
        head, tail = zip(*(np.split(part, [count], self._axis) for part in state), strict=True)
        self._tails.append(tail)
        return tuple(np.ascontiguousarray(part) for part in head)

    def whole(self, state: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        """The state behind the last step of every sequence."""
        if not self._tails:
            return state
        return tuple(np.concatenate(parts, self._axis) for parts in zip(state, *reversed(self._tails), strict=True))
