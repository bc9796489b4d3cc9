"""The FFT of real blocks in integers: what the hardware's butterflies compute, bit for bit.

The spectrum of a real block of k values is k real numbers, kept in the order
``X[0], X[k/2], re X[1], im X[1], …, re X[k/2-1], im X[k/2-1]`` (k = 1: the value itself).

Sums grow without rounding. The only rounding is that of products with twiddle factors, integers with
``twiddle_bits`` fraction bits: half-up, once per real or imaginary part. At k ≤ 4 there is none.
Decimation in time for real data: Sorensen et al., "Real-valued fast Fourier transform algorithms", 1987.
"""
import math
from collections.abc import Callable
from functools import cache

import numpy as np

from circulant.sim.arith.fixed import Integers, round_shift
from circulant.sim.refusal import Refusal

__all__ = ["BLOCK_SIZES", "check_block_size", "forward", "inverse", "twiddle"]

BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64)


def check_block_size(k: object) -> int:
    """k itself, when it is a legal block size.

    Raises:
        Refusal: when k is no power of two from 1 to 64.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k not in BLOCK_SIZES:
        raise Refusal(f"Block size must be a power of two from 1 to 64, not {k!r}; choose one of "
                      f"{', '.join(map(str, BLOCK_SIZES))}")
    return k


def twiddle(m: int, n: int, twiddle_bits: int) -> tuple[int, int]:
    """cos(2πm/n) and sin(2πm/n) as integers with ``twiddle_bits`` fraction bits, rounded half-up."""
    angle, scale = 2 * math.pi * m / n, 1 << twiddle_bits
    return math.floor(math.cos(angle) * scale + 0.5), math.floor(math.sin(angle) * scale + 0.5)


def forward(x: Integers, twiddle_bits: int, axis: int = -1) -> Integers:
    """Spectra of real blocks of k values along an axis, without scaling: log2 k bits wider than the input."""
    return _along(_forward, x, twiddle_bits, axis)


def inverse(y: Integers, twiddle_bits: int, axis: int = -1) -> Integers:
    """Real blocks of spectra along an axis, times k: log2 k + 1 bits wider than the spectrum at the most."""
    return _along(_inverse, y, twiddle_bits, axis)


def _along(transform: Callable[[Integers, int], Integers], x: Integers, twiddle_bits: int, axis: int) -> Integers:
    """The results of a transform in columns, (k, N) to (k, N), so that each butterfly works on long rows."""
    x = x if axis == 0 else np.moveaxis(x, axis, 0)
    y = transform(np.ascontiguousarray(x).reshape(len(x), -1), twiddle_bits).reshape(x.shape)
    return y if axis == 0 else np.moveaxis(y, 0, axis)


def _forward(x: Integers, twiddle_bits: int) -> Integers:
    """Level by level: spectra (n, k/n, N), the one with number g that of x[g], x[g + k/n], …"""
    k, count = x.shape
    y = x.reshape(1, k, count)
    while (n := 2 * len(y)) <= k:
        groups, middle = k // n, n // 4
        even, odd, y = y[:, :groups], y[:, groups:], np.empty((n, groups, count), x.dtype)
        np.add(even[0], odd[0], out=y[0])
        np.subtract(even[0], odd[0], out=y[1])
        if middle:
            y[2 * middle] = even[1]
            np.negative(odd[1], out=y[2 * middle + 1])
        if middle > 1:
            up, down = slice(2, 2 * middle, 2), slice(n - 2, 2 * middle, -2)  # the bins m, and n/2 - m
            up_im, down_im = slice(3, 2 * middle, 2), slice(n - 1, 2 * middle + 1, -2)
            turned_re, turned_im = _turned(odd[up], odd[up_im], -1, twiddle_bits)
            np.add(even[up], turned_re, out=y[up])
            np.add(even[up_im], turned_im, out=y[up_im])
            np.subtract(even[up], turned_re, out=y[down])
            np.subtract(turned_im, even[up_im], out=y[down_im])
    return y.reshape(k, count)


def _inverse(y: Integers, twiddle_bits: int) -> Integers:
    """The levels of `_forward` from the last one on."""
    k, count = y.shape
    x = y.reshape(k, 1, count)
    while (n := len(x)) > 1:
        groups, middle = k // n, n // 4
        y, x = x, np.empty((n // 2, 2 * groups, count), y.dtype)
        even, odd = x[:, :groups], x[:, groups:]
        np.add(y[0], y[1], out=even[0])
        np.subtract(y[0], y[1], out=odd[0])
        if middle:
            np.multiply(y[2 * middle], 2, out=even[1])
            np.multiply(y[2 * middle + 1], -2, out=odd[1])
        if middle > 1:
            up, down = slice(2, 2 * middle, 2), slice(n - 2, 2 * middle, -2)
            up_im, down_im = slice(3, 2 * middle, 2), slice(n - 1, 2 * middle + 1, -2)
            np.add(y[up], y[down], out=even[up])
            np.subtract(y[up_im], y[down_im], out=even[up_im])
            odd[up], odd[up_im] = _turned(y[up] - y[down], y[up_im] + y[down_im], 1, twiddle_bits)
    return x.reshape(k, count)


def _turned(re: Integers, im: Integers, way: int, twiddle_bits: int) -> tuple[Integers, Integers]:
    """The bins m = 1, 2, … (m, …) of a level times exp(±2πjm/n), n four times one more than there are, rounded; the
    products are not narrower than int64."""
    kind = np.result_type(re.dtype, np.int64)
    c, s = _factors(len(re), twiddle_bits)
    c, s = (each.astype(kind).reshape(-1, *[1] * (re.ndim - 1)) for each in (c, way * s))
    turned_re, turned_im = np.multiply(c, re, dtype=kind), np.multiply(c, im, dtype=kind)
    turned_re -= np.multiply(s, im, dtype=kind)
    turned_im += np.multiply(s, re, dtype=kind)
    return (round_shift(turned_re, twiddle_bits).astype(re.dtype, copy=False),
            round_shift(turned_im, twiddle_bits).astype(re.dtype, copy=False))


@cache
def _factors(count: int, twiddle_bits: int) -> tuple[Integers, Integers]:
    """Cosines and sines of the first bins."""
    pairs = [twiddle(m, 4 * (count + 1), twiddle_bits) for m in range(1, count + 1)]
    return np.array([c for c, _ in pairs], np.int64), np.array([s for _, s in pairs], np.int64)
