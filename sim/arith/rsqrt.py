"""1/√v of positive integers: a table by the leading bits of v, and one Newton step.

v = m · 4^h with m from ¼ to 1, cut to `MANTISSA` fraction bits. A table of its first `INDEX` bits has r₀, 1/√m in the
middle of their cell; r = r₀ (3 − m r₀²) / 2 squares its error. `hw.components.rsqrt` has the same steps.
"""
from functools import cache

import numpy as np

from circulant.sim.arith.fixed import Integers, round_shift

__all__ = ["INDEX", "MANTISSA", "MIDDLE", "ROOT", "START", "inverse_root", "starts"]

MANTISSA, INDEX, START, MIDDLE, ROOT = 18, 8, 10, 18, 16
"""Bits of m, and those that say its cell; fraction bits of r₀, of 3 − m r₀², and of r."""

LEAST = 1 << INDEX - 2
"""The number of the first cell: m is not below ¼."""


@cache
def starts() -> Integers:
    """r₀ of the cells from `LEAST` on."""
    middles = (np.arange(LEAST, 1 << INDEX) + 0.5) / (1 << INDEX)
    return np.floor((1 << START) / np.sqrt(middles) + 0.5).astype(np.int64)


def inverse_root(v: Integers) -> tuple[Integers, Integers]:
    """r and h with 1/√v ≈ r · 2^−(`ROOT` + h), for v from 1 to 2^62 − 1."""
    h = np.searchsorted(np.int64(4) ** np.arange(1, 32, dtype=np.int64)[:30], v, "right") + 1
    bits = MANTISSA - 2 * h
    m = np.where(bits >= 0, v << np.maximum(bits, 0), v >> np.maximum(-bits, 0))
    return _root(m), h.astype(np.int64)


def _root(m: Integers) -> Integers:
    """r of a mantissa of `MANTISSA` bits."""
    start = starts()[(m >> MANTISSA - INDEX) - LEAST]
    middle = round_shift((3 << MANTISSA + 2 * START) - m * start * start, MANTISSA + 2 * START - MIDDLE)
    return np.asarray(round_shift(start * middle, START + MIDDLE + 1 - ROOT))
