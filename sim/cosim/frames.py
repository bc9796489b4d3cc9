"""Frames whose tlast is misplaced, and which a circuit must make whole: see docs/ports.md."""
import numpy as np
from numpy.typing import NDArray

__all__ = ["Frame", "misplaced"]

Frame = tuple[NDArray[np.uint8], NDArray[np.bool_]]
"""Beats (n, bytes), and which of them carry tlast."""

SURPLUS = 3
"""Beats behind the end of a sample that ends too late."""


def misplaced(frame: Frame, *, each: int | None, late: bool = False) -> Frame:
    """The same frame for a circuit that fills up or drops.

    Zeros at its end are not sent: those of a sample, or at the end of each marked vector of a sequence; tlast comes
    with the last beat before them. A sample that is ``late`` is whole, and goes on behind its end until tlast.

    Parameters:
        each: beats of a vector of a sequence; None of a sample.
    """
    beats, last = frame
    if late and each is None:
        more = np.resize(beats ^ 0xff, (SURPLUS, beats.shape[1]))
        return np.concatenate([beats, more]), np.arange(len(beats) + SURPLUS) == len(beats) + SURPLUS - 1
    sent, marks = np.ones(len(beats), bool), np.zeros(len(beats), bool)
    for end in np.flatnonzero(last):
        start = 0 if each is None else end + 1 - each
        said = np.flatnonzero(beats[start:end + 1].any(axis=1))
        stop = start + (said[-1] if len(said) else 0)
        sent[stop + 1:end + 1], marks[stop] = False, True
    return beats[sent], marks[sent]
