"""The FFT of real blocks in integers: what the hardware's butterflies compute, bit for bit.

The spectrum of a real block of k values is k real numbers, kept in the order
``X[0], X[k/2], re X[1], im X[1], …, re X[k/2-1], im X[k/2-1]`` (k = 1: the value itself).

Sums grow without rounding. The only rounding is that of products with twiddle factors, integers with
``twiddle_bits`` fraction bits: half-up, once per real or imaginary part. At k ≤ 4 there is none.
Decimation in time for real data: Sorensen et al., "Real-valued fast Fourier transform algorithms", 1987.
"""
import math

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


def forward(x: Integers, twiddle_bits: int) -> Integers:
    """Spectra (…, k) of real blocks (…, k), without scaling: log2 k bits wider than the input."""
    n = x.shape[-1]
    if n == 1:
        return x
    if n == 2:
        return np.stack([x[..., 0] + x[..., 1], x[..., 0] - x[..., 1]], axis=-1)
    even, odd = forward(x[..., 0::2], twiddle_bits), forward(x[..., 1::2], twiddle_bits)
    y = np.empty_like(x)
    y[..., 0] = even[..., 0] + odd[..., 0]
    y[..., 1] = even[..., 0] - odd[..., 0]
    middle = n // 4
    y[..., 2 * middle] = even[..., 1]
    y[..., 2 * middle + 1] = -odd[..., 1]
    for m in range(1, middle):
        c, s = twiddle(m, n, twiddle_bits)
        re, im = odd[..., 2 * m], odd[..., 2 * m + 1]
        turned_re = round_shift(c * re + s * im, twiddle_bits)
        turned_im = round_shift(c * im - s * re, twiddle_bits)
        mirror = n // 2 - m
        y[..., 2 * m] = even[..., 2 * m] + turned_re
        y[..., 2 * m + 1] = even[..., 2 * m + 1] + turned_im
        y[..., 2 * mirror] = even[..., 2 * m] - turned_re
        y[..., 2 * mirror + 1] = turned_im - even[..., 2 * m + 1]
    return y


def inverse(y: Integers, twiddle_bits: int) -> Integers:
    """Real blocks (…, k) of spectra (…, k), times k: log2 k + 1 bits wider than the spectrum at the most."""
    n = y.shape[-1]
    if n == 1:
        return y
    if n == 2:
        return np.stack([y[..., 0] + y[..., 1], y[..., 0] - y[..., 1]], axis=-1)
    even, odd = np.empty_like(y[..., ::2]), np.empty_like(y[..., ::2])
    even[..., 0] = y[..., 0] + y[..., 1]
    odd[..., 0] = y[..., 0] - y[..., 1]
    middle = n // 4
    even[..., 1] = 2 * y[..., 2 * middle]
    odd[..., 1] = -2 * y[..., 2 * middle + 1]
    for m in range(1, middle):
        c, s = twiddle(m, n, twiddle_bits)
        mirror = n // 2 - m
        re = y[..., 2 * m] - y[..., 2 * mirror]
        im = y[..., 2 * m + 1] + y[..., 2 * mirror + 1]
        even[..., 2 * m] = y[..., 2 * m] + y[..., 2 * mirror]
        even[..., 2 * m + 1] = y[..., 2 * m + 1] - y[..., 2 * mirror + 1]
        odd[..., 2 * m] = round_shift(c * re - s * im, twiddle_bits)
        odd[..., 2 * m + 1] = round_shift(c * im + s * re, twiddle_bits)
    x = np.empty_like(y)
    x[..., 0::2] = inverse(even, twiddle_bits)
    x[..., 1::2] = inverse(odd, twiddle_bits)
    return x
