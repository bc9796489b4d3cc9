"""Smooth functions without a limit of their own, such as SiLU, and lines over them: as few as an error bound allows.

From the least argument on, each segment is made as long as the bound allows. Its line is the chord, moved to the middle
between its greatest distances on both sides, which for an arc without an inflection is the minimax line.
"""
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals

__all__ = ["CURVES", "TURNS", "cut"]


def silu(x: Reals) -> Reals:
    return 0.5 * x * (1 + np.tanh(0.5 * x))


def gelu(x: Reals) -> Reals:
    from scipy.special import erf  # Takes longer to import than all of `sim`, in each process that simulates.

    return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2))))


def gelu_tanh(x: Reals) -> Reals:
    """torch.nn.GELU(approximate="tanh")."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def elu(x: Reals, alpha: float) -> Reals:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def selu(x: Reals) -> Reals:
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def celu(x: Reals, alpha: float) -> Reals:
    return alpha * elu(x / alpha, 1.0)


def softplus(x: Reals, beta: float, threshold: float) -> Reals:
    """torch.nn.Softplus: x itself where beta · x is beyond the threshold."""
    return np.where(beta * x > threshold, x, np.logaddexp(0, beta * x) / beta)


def softsign(x: Reals) -> Reals:
    return x / (1 + np.abs(x))


def hard_swish(x: Reals) -> Reals:
    return x * np.clip(x / 6 + 0.5, 0, 1)


def mish(x: Reals) -> Reals:
    return x * np.tanh(np.logaddexp(0, x))


CURVES: dict[str, tuple[Callable[..., Reals], int]] = {
    "silu": (silu, 0), "gelu": (gelu, 0), "gelu_tanh": (gelu_tanh, 0), "elu": (elu, 1), "selu": (selu, 0),
    "celu": (celu, 1), "softplus": (softplus, 2), "softsign": (softsign, 0), "hard_swish": (hard_swish, 0),
    "mish": (mish, 0)}
"""The functions, and how many parameters each has, which are greater than 0."""

TURNS = {"silu": -1.2784645427610738, "gelu": -0.7517915246935645, "gelu_tanh": -0.7524614220710162,
         "hard_swish": -1.5, "mish": -1.1924312884519823}
"""Where a function that falls first takes its least value; the others rise everywhere."""

GRID = 6
"""Fraction bits of the starts of segments at the most, so that few leading bits of an argument say its segment."""


Curve = Callable[[Reals], Reals]


def cut(exact: Curve, input: Format, bound: float) -> tuple[Integers, Reals, Curve]:
    """Lines over all arguments, each within ``bound`` of the function unless its segment is of one cell of the grid.

    Returns:
        Starts of the segments, slopes, and from these as they are kept the bases (value at 0) that are best.
    """
    step = 1 << max(0, input.frac - GRID, input.width - 16)
    codes = np.arange(input.lo, input.hi + 1, max(1, step >> 3))
    per, x = step // max(1, step >> 3), input.real(codes)
    y = exact(x)
    cells = len(codes) // per

    def part(start: int, end: int) -> slice:
        return slice(start * per, min(end * per + 1, len(codes)))  # With the first argument behind it.

    def chord(start: int, end: int) -> float:
        here = part(start, end)
        return float((y[here][-1] - y[here][0]) / (x[here][-1] - x[here][0])) if len(x[here]) > 1 else 0.0

    def middle(here: slice, slope: float) -> tuple[float, float]:
        off = y[here] - slope * x[here]
        return float(off.max() + off.min()) / 2, float(off.max() - off.min()) / 2

    starts, slopes = [0], []
    while starts[-1] < cells:
        first = starts[-1]
        lo, hi, size = first + 1, cells + 1, 1
        while lo + size <= cells and middle(part(first, lo + size), chord(first, lo + size))[1] <= bound:
            lo, size = lo + size, 2 * size
        hi = min(lo + size, cells + 1)
        while hi - lo > 1:
            half = (lo + hi) // 2
            fits = middle(part(first, half), chord(first, half))[1] <= bound
            lo, hi = (half, hi) if fits else (lo, half)
        slopes.append(chord(first, lo))
        starts.append(lo)
    parts = [part(*ends) for ends in pairwise(starts)]

    def bases(kept: Reals) -> Reals:
        return np.array([middle(here, float(slope))[0] for here, slope in zip(parts, kept, strict=True)])

    return codes[0] + np.array(starts[:-1], np.int64) * step, np.array(slopes), bases
