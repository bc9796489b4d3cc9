"""Products of integers, exact ones and two approximate ones, and the sums of such products in the spectral domain.

"truncated:N" is the array multiplier in two's complement without the N lowest columns of its partial products: aᵢ·bⱼ is
left out where i + j < N (Schulte and Swartzlander, VLSI Signal Processing VI, 1993, without their constant, so that
0 · b = 0). "mitchell" adds logarithms whose mantissas are straight lines (Mitchell, IRE Trans. EC-11, 1962), of
magnitudes: with |a| = 2ⁱ + x, |b| = 2ʲ + y and s = 2ʲx + 2ⁱy the product's magnitude is s + max(s, 2ⁱ⁺ʲ), an integer.
Neither depends on how many bits an operand has. A complex product takes three of them, as in `hw.array.mac_row`.
"""
import math
import re

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.fixed import Integers
from circulant.sim.refusal import Refusal, nearest

__all__ = ["EXACT", "KINDS", "accumulate", "check_multiplier", "columns_left_out", "multiplied", "worst_error"]

KINDS = ("exact", "truncated:N", "mitchell")

EXACT = KINDS[0]


def check_multiplier(name: str) -> str:
    """
    Raises:
        Refusal: when there is no such multiplier.
    """
    if name not in ("exact", "mitchell") and not re.fullmatch(r"truncated:[1-9][0-9]?", str(name)):
        near = "; write truncated:5 for five" if str(name).startswith("truncated") else nearest(str(name), KINDS)
        raise Refusal(f"A multiplier must be one of {', '.join(KINDS)} with 1 to 99 columns N that are left out, not "
                      f"{name!r}{near}")
    return name


def columns_left_out(name: str) -> int:
    """Columns of partial products that a multiplier leaves out."""
    return int(name.partition(":")[2] or 0)


def worst_error(name: str, peak: float) -> float:
    """A bound of |product - a·b| for |a·b| up to ``peak``: of a sum over all columns that are left out, or 1/9 of the
    product (Mitchell 1962)."""
    if name == "mitchell":
        return peak / 9
    return float(sum((c + 1) << c for c in range(columns_left_out(name))))


def multiplied(name: str, a: Integers, b: Integers) -> Integers:
    """The products of integers of a multiplier, element by element."""
    a, b = np.asarray(a, np.int64), np.asarray(b, np.int64)
    if name == "mitchell":
        return _mitchell(a, b, (_powers(a), _powers(b)))
    lost = np.zeros((), np.int64)
    for j in range(count := columns_left_out(name)):
        lost = lost + ((b >> j & 1) << j) * (a & _below(count - j))
    return np.asarray(a * b - lost)


def _powers(x: np.ndarray) -> np.ndarray:
    """The greatest power of two in each number, with its sign; 0 of 0."""
    exponents = np.frexp(np.abs(x).astype(np.float64))[1] - 1
    return np.ldexp(np.sign(x).astype(np.float64), exponents).astype(x.dtype)


def _mitchell(a: np.ndarray, b: np.ndarray, powers: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    both = powers[0] * powers[1]
    between = a * powers[1] + powers[0] * (b - 2 * powers[1])
    return between + np.where(np.abs(between) > np.abs(both), between, both)


def _below(bits: int) -> int:
    return (1 << bits) - 1


def accumulate(name: str, weights: Integers, reach: int, *spectra: Integers) -> np.ndarray:
    """`batch_layout.accumulate` with the products of a multiplier, for weights (p, q, k) of all parts side by side.

    Parameters:
        reach: no sum, nor what is rounded of it, is greater; the numbers are float64 where that holds them.
    """
    kind: type[np.float64 | np.int64] = np.float64 if reach < batch_layout.EXACT else np.int64
    k, _, *batch = spectra[0].shape
    data = np.concatenate([part.reshape(k, part.shape[1], -1) for part in spectra], axis=1).astype(np.int64)
    sums = np.empty((k, len(weights), math.prod(batch)), kind)

    def product(w: Integers, x: Integers) -> np.ndarray:
        return _matrix_product(name, w, x, kind)

    for n in range(min(k, 2)):
        sums[n] = product(weights[..., n], data[n])
    for n in range(2, k, 2):
        (c, d), (a, b) = (weights[..., n], weights[..., n + 1]), (data[n], data[n + 1])
        first = product(c, a + b)
        sums[n], sums[n + 1] = first - product(c + d, b), first + product(d - c, a)
    return sums.reshape(k, len(weights), *batch)


def _matrix_product(name: str, w: np.ndarray, x: np.ndarray, kind: type[np.float64 | np.int64]) -> np.ndarray:
    """Σ_j of the products of w (p, q) and x (q, N)."""
    if name == "mitchell":
        w, x, sums = w.T[..., None].astype(kind), x.astype(kind), np.zeros((len(w), x.shape[1]), kind)
        for each in zip(w, x, _powers(w), _powers(x), strict=True):
            sums += _mitchell(*each[:2], each[2:])
        return sums
    count = columns_left_out(name)
    bits = [w, *(-((w >> j & 1) << j) for j in range(count))]
    low = [x, *(x & _below(count - j) for j in range(count))]
    return np.asarray(np.concatenate(bits, 1).astype(kind) @ np.concatenate(low).astype(kind))
