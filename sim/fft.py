"""The FFT of real blocks in integers: what the hardware's butterflies compute, bit for bit.

The spectrum of a real block of k values is k real numbers, kept in the order
``X[0], X[k/2], re X[1], im X[1], …, re X[k/2-1], im X[k/2-1]`` (k = 1: the value itself).

Sums grow without rounding. The only rounding is that of products with twiddle factors, integers with
``twiddle_bits`` fraction bits: half-up, once per real or imaginary part. At k ≤ 4 there is none.
Decimation in time for real data: Sorensen et al., "Real-valued fast Fourier transform algorithms", 1987.
"""
import math
from collections.abc import Callable

import numpy as np

from circulant.sim.fixed import Integers, round_shift
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


def _along(transform: Callable[[Integers, Integers, int], None], x: Integers, twiddle_bits: int,
           axis: int) -> Integers:
    """The results of a transform in columns, (k, N) into (k, N), so that each butterfly works on long rows."""
    x = np.moveaxis(x, axis, 0)
    y = np.empty(x.shape, x.dtype)
    transform(x.reshape(len(x), -1), y.reshape(len(x), -1), twiddle_bits)  # y is contiguous: this is a view of it.
    return np.moveaxis(y, 0, axis)


def _forward(x: Integers, y: Integers, twiddle_bits: int) -> None:
    n = len(x)
    if n == 1:
        y[0] = x[0]
        return
    if n == 2:
        np.add(x[0], x[1], out=y[0])
        np.subtract(x[0], x[1], out=y[1])
        return
    even, odd = np.empty((n // 2, x.shape[1]), x.dtype), np.empty((n // 2, x.shape[1]), x.dtype)
    _forward(x[0::2], even, twiddle_bits)
    _forward(x[1::2], odd, twiddle_bits)
    middle = n // 4
    np.add(even[0], odd[0], out=y[0])
    np.subtract(even[0], odd[0], out=y[1])
    y[2 * middle] = even[1]
    np.negative(odd[1], out=y[2 * middle + 1])
    for m in range(1, middle):
        c, s = twiddle(m, n, twiddle_bits)
        mirror = n // 2 - m
        re, im = odd[2 * m], odd[2 * m + 1]
        turned_re = round_shift(_times(c, re) + _times(s, im), twiddle_bits)
        turned_im = round_shift(_times(c, im) - _times(s, re), twiddle_bits)
        turned_re, turned_im = turned_re.astype(x.dtype, copy=False), turned_im.astype(x.dtype, copy=False)
        np.add(even[2 * m], turned_re, out=y[2 * m])
        np.add(even[2 * m + 1], turned_im, out=y[2 * m + 1])
        np.subtract(even[2 * m], turned_re, out=y[2 * mirror])
        np.subtract(turned_im, even[2 * m + 1], out=y[2 * mirror + 1])


def _inverse(y: Integers, x: Integers, twiddle_bits: int) -> None:
    n = len(y)
    if n == 1:
        x[0] = y[0]
        return
    if n == 2:
        np.add(y[0], y[1], out=x[0])
        np.subtract(y[0], y[1], out=x[1])
        return
    even, odd = np.empty((n // 2, y.shape[1]), y.dtype), np.empty((n // 2, y.shape[1]), y.dtype)
    np.add(y[0], y[1], out=even[0])
    np.subtract(y[0], y[1], out=odd[0])
    middle = n // 4
    np.multiply(y[2 * middle], 2, out=even[1])
    np.multiply(y[2 * middle + 1], -2, out=odd[1])
    for m in range(1, middle):
        c, s = twiddle(m, n, twiddle_bits)
        mirror = n // 2 - m
        re, im = y[2 * m] - y[2 * mirror], y[2 * m + 1] + y[2 * mirror + 1]
        np.add(y[2 * m], y[2 * mirror], out=even[2 * m])
        np.subtract(y[2 * m + 1], y[2 * mirror + 1], out=even[2 * m + 1])
        odd[2 * m] = round_shift(_times(c, re) - _times(s, im), twiddle_bits)
        odd[2 * m + 1] = round_shift(_times(c, im) + _times(s, re), twiddle_bits)
    _inverse(even, x[0::2], twiddle_bits)
    _inverse(odd, x[1::2], twiddle_bits)


def _times(factor: int, x: Integers) -> Integers:
    """The products, which are not narrower than int64."""
    return np.multiply(x, factor, dtype=np.result_type(x.dtype, np.int64))
