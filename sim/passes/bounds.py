"""How far a golden product may be from the mathematics: one worst-case bound, derived and not measured.

`sim.error.error_bound` goes on from here to layers and sequences.

Without its roundings a `Product` is linear. So its error is that of a matrix, which is known, and what each rounding
adds at the most:

1. Quantized spectra and twiddle factors make a matrix M̂ instead of M: A·Σ|M̂ − M| along a row, A the peak of x.
2. A butterfly of the forward transform turns a bin by a twiddle factor of modulus ≤ g and rounds both parts of it, by
   √½ of a step in modulus. So the halves of a transform and its last level add up to e(n) = (1 + g)·e(n/2) + √½ steps
   of the input; e(4) = 0.
3. The rounding of the spectrum: √½ of its step in modulus, ½ for the real bins 0 and k/2. The sums thereby err by
   Σ_j |ŵ_f|·((2) + (3)) in bin f, and by as much as (3) when they are rounded themselves.
4. The inverse transform adds up all k bins, each turned at log2 k − 2 levels, G(k) = g**(log2 k − 2) at the most, and
   divides by k. Its own roundings meet the n/2 − 2 complex bins of the odd half at each level:
   v(n) = v(n/2) + √½·(n/2 − 2)·G(n/2) steps of the sums; v(4) = 0.
5. Result and bias are rounded by half a step each.

The products of an approximate multiplier err besides, which adds to (3): `sim.arith.multiplier.worst_error` of each of
the three in a complex one, of its greatest operands.
"""
import math

import numpy as np

from circulant.sim.arith import fft
from circulant.sim.arith.circulant import Product, dense, pack
from circulant.sim.arith.fixed import Format, Reals
from circulant.sim.arith.multiplier import EXACT, worst_error

__all__ = ["bins", "distances", "matrix", "roundings"]

BOTH = math.sqrt(0.5)
"""The modulus of half a step in both parts of a complex number."""


def distances(product: Product, weight: Reals) -> Reals:
    """M̂ − M (rows, columns): (1), but for x."""
    return matrix(product) - dense(weight)


def roundings(*parts: Product) -> Reals:
    """The most that (2) to (5) come to in each row: of a product, or of the parts of a joint one."""
    first = parts[0]
    k, g = first.block_size, _gain(first.block_size, first.twiddle_bits)
    real = np.isin(np.arange(k // 2 + 1), (0, k / 2))
    rounded, copies = np.where(real, 0.5, BOTH), np.where(real, 1, 2)
    finer = np.ldexp(1.0, -np.array(first.row_shifts or [0] * len(first.weights)))[:, None]  # The scale of each row.
    sums = rounded * _lost(first.frac, first.product) * finer
    for part in parts:
        spectra = bins(part.grid.real(part.weights))  # (p, q, bins)
        spectrum = _forward_rounding(k, g) * part.input.step + rounded * _lost(part.input.frac, part.spectrum)
        sums = sums + (np.abs(spectra) * spectrum).sum(1)  # (p, bins)
        if part.multiplier != EXACT:
            sums = sums + _approximate(part) * part.weight.step * part.spectrum.step * finer
    blocks = (sums * copies).sum(-1) * _turns(k, g) + _inverse_rounding(k, g) * first.product.step * finer[:, 0]
    last = [(_lost(first.product.frac + int(math.log2(k)) + shift, first.output) + first.output.step) / 2
            for shift in first.row_shifts or [0] * len(first.weights)]
    return np.asarray(np.repeat(blocks / k + last, k))


def _approximate(part: Product) -> Reals:
    """The most by which the sums (p, bins) of an approximate multiplier err in modulus, in units of their products."""
    def worst(w: np.ndarray, peak: int) -> np.ndarray:
        each: np.ndarray = np.vectorize(lambda w: worst_error(part.multiplier, abs(w) * peak), [float])(w)
        return each.sum(1)

    w, peak = part.weights, -part.spectrum.lo
    found = np.zeros((len(w), part.block_size // 2 + 1))
    for n in range(min(part.block_size, 2)):
        found[:, -n] = worst(w[..., n], peak)
    for n in range(2, part.block_size, 2):
        c, d = w[..., n], w[..., n + 1]
        s1, s2, s3 = worst(c, 2 * peak), worst(d - c, peak), worst(c + d, peak)
        found[:, n // 2] = np.hypot(s1 + s3, s1 + s2)
    return found


def matrix(product: Product) -> Reals:
    """M̂ (rows, columns) in real values: what a product multiplies by, but for its roundings."""
    return _matrix(bins(product.grid.real(product.weights)), product.block_size, product.twiddle_bits)


def _lost(frac: int, form: Format) -> float:
    """The step to which ``frac`` fraction bits are rounded, 0 where ``form`` keeps them all."""
    return form.step if form.frac < frac else 0.0


def _matrix(spectra: np.ndarray, k: int, twiddle_bits: int) -> Reals:
    """M̂ (rows, columns) of half spectra (p, q, bins).

    The transforms are `sim.arith.fft`'s own, of unit vectors so large that nothing is rounded.
    """
    scale = 1 << max(0, int(math.log2(k)) - 2) * twiddle_bits
    units = np.eye(k, dtype=object) * scale
    forward = (fft.forward(units, twiddle_bits) / scale).astype(np.float64)  # (column, packed)
    inverse = (fft.inverse(units, twiddle_bits) / (scale * k)).astype(np.float64)  # (packed, row)
    blocks = pack(spectra[:, :, None] * bins(forward), k) @ inverse  # (p, q, column, row)
    return blocks.transpose(0, 3, 1, 2).reshape(len(spectra) * k, -1)


def bins(packed: Reals) -> np.ndarray:
    """Complex half spectra (…, k//2 + 1) of packed ones (…, k)."""
    k = packed.shape[-1]
    bins = np.zeros((*packed.shape[:-1], k // 2 + 1), np.complex128)
    bins[..., 0] = packed[..., 0]
    if k > 1:
        bins[..., -1] = packed[..., 1]
        bins[..., 1:-1] = packed[..., 2::2] + 1j * packed[..., 3::2]
    return bins


def _gain(k: int, twiddle_bits: int) -> float:
    """g: the greatest modulus of a twiddle factor, and at least 1."""
    factors = [fft.twiddle(m, k, twiddle_bits) for m in range(1, k // 4)]  # those of the smaller levels are among them
    return max([1.0, *(math.hypot(*factor) / (1 << twiddle_bits) for factor in factors)])


def _turns(k: int, g: float) -> float:
    """G(k)."""
    return g ** max(0, math.log2(k) - 2)


def _forward_rounding(k: int, g: float) -> float:
    """e(k)."""
    return 0.0 if k <= 4 else (1 + g) * _forward_rounding(k // 2, g) + BOTH


def _inverse_rounding(k: int, g: float) -> float:
    """v(k)."""
    return 0.0 if k <= 4 else _inverse_rounding(k // 2, g) + BOTH * (k // 2 - 2) * _turns(k // 2, g)
