"""Block-circulant matrices: their algebra in float64, and their product with a vector in integers.

A matrix (m × n) is cut into p × q blocks of size k; ragged edges are zero-padded. A block is given by its first
column c: ``C[i, j] = c[(i - j) mod k]``, so that ``C @ x = ifft(fft(c) * fft(x))`` (CirCNN eq. 2, E-RNN eq. 4).
"""
import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith import batch_layout, fft, multiplier
from circulant.sim.arith.fixed import Format, Integers, Reals, requantize, round_shift, rounding_bits, saturate
from circulant.sim.arith.weight_grid import WeightGrid, check_row_shifts
from circulant.sim.refusal import Refusal

__all__ = ["JointProduct", "Product", "dense", "multiplications", "pack", "pad", "project"]

def pad(x: ArrayLike, size: int) -> np.ndarray:
    """x (…, n) with zeros behind it, up to (…, size)."""
    x = np.asarray(x)
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])])


def project(w: ArrayLike, k: int) -> Reals:
    """First columns (p, q, k) of the block-circulant matrix nearest to w (m, n) in the Euclidean norm.

    The mean over each wrapped diagonal, of those entries that a ragged edge leaves (E-RNN, section 4: the projection).
    """
    w = np.asarray(w, np.float64)
    (m, n), i = w.shape, np.arange(k)
    p, q = -(-m // k), -(-n // k)
    inside = np.zeros((p * k, q * k))
    inside[:m, :n] = 1

    def diagonals(a: Reals) -> Reals:
        blocks = a.reshape(p, k, q, k).transpose(0, 2, 1, 3)  # (p, q, row, column)
        return np.asarray(blocks[:, :, (i[:, None] + i) % k, i].sum(-1))

    whole = np.zeros((p * k, q * k))
    whole[:m, :n] = w
    return diagonals(whole) / np.maximum(diagonals(inside), 1)


def dense(blocks: ArrayLike) -> Reals:
    """The matrix (p·k, q·k) of first columns (p, q, k)."""
    blocks = np.asarray(blocks, np.float64)
    (p, q, k), i = blocks.shape, np.arange(blocks.shape[-1])
    return blocks[:, :, (i[:, None] - i) % k].transpose(0, 2, 1, 3).reshape(p * k, q * k)


def pack(spectra: np.ndarray, k: int) -> Reals:
    """Half spectra (…, k//2 + 1), as `numpy.fft.rfft` gives them, in the order of `sim.arith.fft`, (…, k)."""
    packed = np.empty((*spectra.shape[:-1], k))
    packed[..., 0] = spectra[..., 0].real
    if k > 1:
        packed[..., 1] = spectra[..., k // 2].real
        packed[..., 2::2] = spectra[..., 1:k // 2].real
        packed[..., 3::2] = spectra[..., 1:k // 2].imag
    return packed


def multiplications(k: int) -> int:
    """Real multiplications of a block product, three for a complex bin: the least for a real circular convolution."""
    return k if k <= 2 else 2 + 3 * (k // 2 - 1)


@dataclass(frozen=True, eq=False)
class Product:
    """y = W x + b in integers, W block-circulant and stored as quantized spectra.

    Parameters:
        weights: spectra (p, q, k) of the first columns, integers of the format ``weight``.
        bias: (p·k,) integers of the format ``output``.
        input, spectrum, product, output: formats of x, of FFT(x), of Σ FFT(w)∘FFT(x), of y.
        twiddle_bits: fraction bits of the twiddle factors in both transforms.
        row_shifts: of each block row, by how many bits its weights and its sums of products are finer than their
            formats say; empty where all are 0.
        multiplier: of the products of spectra, see `circulant.sim.arith.multiplier`.

    The spectrum, the sum of products and the result are each rounded half-up and saturated into their format; the sum
    over j is exact. The factor 1/k of the inverse transform and the shift of the row are part of the last rounding.

    Raises:
        Refusal: when a sum could leave int64, or the shapes or formats contradict each other.

    Members:
        spectral: whether it ends with the sums, see `circulant.sim.kinds.partial_sum.SpectralProduct`.
    """

    spectral: ClassVar[bool] = False

    weights: Integers
    bias: Integers
    weight: Format
    input: Format
    spectrum: Format
    product: Format
    output: Format
    twiddle_bits: int
    row_shifts: tuple[int, ...] = ()
    multiplier: str = multiplier.EXACT

    def __post_init__(self) -> None:
        p, _, k = self.weights.shape
        fft.check_block_size(k)
        narrow = min(self.weight.width, self.spectrum.width)
        if multiplier.columns_left_out(multiplier.check_multiplier(self.multiplier)) >= narrow:
            raise Refusal(f"A truncated multiplier must leave out fewer columns than its narrower operand has bits, "
                          f"{narrow}, but {self.multiplier!r} does not; leave out fewer")
        object.__setattr__(self, "row_shifts", check_row_shifts(self.row_shifts, p))
        if self.bias.shape != (p * k,):
            raise Refusal(f"The bias must have one value per row, ({p * k},), not {self.bias.shape}; pad it with zeros")
        for name, array, form in (("weights", self.weights, self.weight), ("bias", self.bias, self.output)):
            if array.size and (array.min() < form.lo or array.max() > form.hi):
                raise Refusal(f"The {name} must lie in the {form.width}-bit format from {form.lo} to {form.hi}, "
                              f"not from {array.min()} to {array.max()}; quantize them again")
        if max(max(self._forward_bits, self._inverse_bits) + self.twiddle_bits,
               rounding_bits(self._forward_bits, self.input.frac - self.spectrum.frac),
               rounding_bits(self.reach.bit_length() + 1, self.frac - self.product.frac), self._last_bits) > 63:
            raise Refusal(f"The sums of a block-circulant product must fit into 63 bits, but with {self.twiddle_bits} "
                          f"twiddle bits and the formats {self.input}, {self.spectrum}, {self.weight}, {self.product}, "
                          f"{self.output} they do not; choose narrower ones, or binary points nearer to each other")

    @property
    def block_size(self) -> int:
        return int(self.weights.shape[2])

    @property
    def rows(self) -> int:
        """Length of y, a multiple of the block size."""
        return int(self.weights.shape[0]) * self.block_size

    @property
    def columns(self) -> int:
        """Length of x, a multiple of the block size."""
        return int(self.weights.shape[1]) * self.block_size

    @property
    def frac(self) -> int:
        """Fraction bits of the exact sums of products, in a row without a shift."""
        return self.spectrum.frac + self.weight.frac

    @property
    def grid(self) -> WeightGrid:
        """The values that the weights can take."""
        return WeightGrid(self.weight, self.row_shifts)

    @property
    def last_shift(self) -> int:
        """Bits by which the rows behind the inverse transform are rounded, in the row with the greatest shift."""
        return self.product.frac + int(math.log2(self.block_size)) - self.output.frac + self.grid.spread

    @property
    def multiplications(self) -> int:
        """Real multiplications of one product."""
        p, q, k = self.weights.shape
        return p * q * multiplications(k)

    @property
    def reach(self) -> int:
        """A bound of |Σ FFT(w)∘FFT(x)|, from the formats; of approximate products, three of which make a complex one,
        that of both that are added."""
        parts = 2 if self.multiplier == multiplier.EXACT else 4
        return parts * self.weights.shape[1] * -self.weight.lo * -self.spectrum.lo

    def __call__(self, x: Integers) -> Integers:
        """y (…, rows) for x (…, columns or less: zeros are appended)."""
        vectors = batch_layout.spread(x.reshape(-1, x.shape[-1]), self.columns, self.block_size)
        values = self.values(self.sums(self.spectra(vectors)), spent=True)
        return batch_layout.rows(values, self.rows).reshape(*x.shape[:-1], self.rows)

    def spectra(self, x: Integers) -> Integers:
        """The spectra of x, (k, …)."""
        shift = self.input.frac - self.spectrum.frac
        x = x.astype(batch_layout.number(max(self._forward_bits, rounding_bits(self._forward_bits, shift))), copy=False)
        return np.asarray(requantize(fft.forward(x, self.twiddle_bits, 0), shift, Format(self.spectrum.width, 0)))

    def accumulate(self, spectra: Integers) -> Integers:
        """`sums` of spectra (…, q, k): (…, p, k)."""
        p, q, k = self.weights.shape
        sums = self.sums(spectra.reshape(-1, q, k).T).astype(np.int64)
        return np.ascontiguousarray(sums.transpose(2, 1, 0)).reshape(*spectra.shape[:-2], p, k)

    def sums(self, spectra: Integers) -> np.ndarray:
        """Σ_j FFT(w_ij) ∘ FFT(x_j), exactly but for the products of the multiplier: (k, q, …) to integers (k, p, …),
        in float64 where that holds them."""
        if self.multiplier != multiplier.EXACT:
            return multiplier.accumulate(self.multiplier, self.weights, self._rounded_reach, spectra)
        return batch_layout.accumulate(self._matrices, spectra)

    def rounded(self, sums: np.ndarray, *, spent: bool = False) -> Integers:
        """The sums in their format.

        Parameters:
            spent: whether the sums may be overwritten, which is faster.
        """
        y = round_shift(sums, self.frac - self.product.frac, out=sums if spent else None)
        return np.asarray(saturate(y, self.product.width, out=y)).astype(self._number, copy=False)

    def values(self, sums: np.ndarray, *, spent: bool = False) -> Integers:
        """y (k, p, …) of the exact sums of products (k, p, …); `rounded` says what ``spent`` is."""
        y = fft.inverse(self.rounded(sums, spent=spent), self.twiddle_bits, 0)
        if self.row_shifts:
            y <<= np.array(self.grid.row_scales, y.dtype).reshape(-1, *[1] * (y.ndim - 2))
        y = round_shift(y, self.last_shift, out=y)
        bias = self.bias.reshape(-1, self.block_size).T.astype(y.dtype)
        y += bias.reshape(*bias.shape, *[1] * (y.ndim - 2))
        return np.asarray(saturate(y, self.output.width, out=y))

    @property
    def _forward_bits(self) -> int:
        """Width of the exact spectrum."""
        return self.input.width + int(math.log2(self.block_size)) + 1

    @property
    def _inverse_bits(self) -> int:
        """Width of the rows before they are rounded."""
        return self.product.width + int(math.log2(self.block_size)) + 1

    @cached_property
    def _last_bits(self) -> int:
        """Bits that hold everything from the rounded sums to the values."""
        scaled = self._inverse_bits + self.grid.spread
        return max(scaled, rounding_bits(scaled, self.last_shift) + 1, self.output.width + 1)

    @cached_property
    def _number(self) -> type[np.int32 | np.int64]:
        return batch_layout.number(self._last_bits)

    @cached_property
    def _matrices(self) -> list[np.ndarray]:
        return batch_layout.matrices(self.weights, self._rounded_reach)

    @property
    def _rounded_reach(self) -> int:
        return _rounding_reach(self.reach, self.frac - self.product.frac)


def _rounding_reach(reach: int, shift: int) -> int:
    """A bound of everything on the way through `round_shift`, from one of its argument, in units of the argument."""
    return reach + (1 << shift >> 1 if shift > 0 else 0)


@dataclass(frozen=True, eq=False)
class JointProduct:
    """y = W1 x1 + W2 x2 + … + b in integers, summed up in the spectral domain and rounded once.

    Parameters:
        parts: the products, with the same rows and the same fraction bits of their exact sums. The first one says how
            the sum is rounded, and has the bias; those of the others are zero.

    Raises:
        Refusal: when the parts do not fit together, or their sum could leave int64.
    """

    parts: tuple[Product, ...]

    def __post_init__(self) -> None:
        first = self.parts[0]
        for part in self.parts[1:]:
            for name in ("rows", "block_size", "frac", "product", "output", "twiddle_bits", "row_shifts", "multiplier"):
                if (mine := getattr(part, name)) != (rule := getattr(first, name)):
                    raise Refusal("The parts of a joint product must have the rows, block size, fraction bits, "
                                  "formats, twiddle bits, row shifts and multiplier of the first, but one has the "
                                  f"{name.replace('_', ' ')} {mine}, not {rule}; quantize them together")
            if part.bias.any():
                raise Refusal("The parts of a joint product must have no bias but that of the first; quantize them "
                              "together")
        if rounding_bits(self.reach.bit_length() + 1, first.frac - first.product.frac) > 63:
            raise Refusal(f"The sum of a joint product must fit into 63 bits, but {self.reach} does not; choose "
                          "narrower formats")

    @property
    def reach(self) -> int:
        """A bound of the exact sums, from the formats."""
        return sum(part.reach for part in self.parts)

    @property
    def weights(self) -> Integers:
        """Spectra (p, q, k), the columns of the parts side by side."""
        return np.concatenate([part.weights for part in self.parts], axis=1)

    @property
    def block_size(self) -> int:
        return self.parts[0].block_size

    @property
    def rows(self) -> int:
        """Length of y, a multiple of the block size."""
        return self.parts[0].rows

    @property
    def output(self) -> Format:
        """Format of y."""
        return self.parts[0].output

    @property
    def multiplications(self) -> int:
        """Real multiplications of one product."""
        return sum(part.multiplications for part in self.parts)

    def __call__(self, *xs: Integers) -> Integers:
        """y (…, rows) for one x (…, columns or less) for each part."""
        spectra = [part.spectra(batch_layout.spread(x.reshape(-1, x.shape[-1]), part.columns, self.block_size))
                   for part, x in zip(self.parts, xs, strict=True)]
        ys = batch_layout.rows(self.values(self.sums(*spectra), spent=True), self.rows)
        return ys.reshape(*xs[0].shape[:-1], self.rows)

    def sums(self, *spectra: Integers) -> np.ndarray:
        """The sums (k, p, …) for spectra (k, q, …) of each part, as `Product.sums`."""
        if self.parts[0].multiplier != multiplier.EXACT:
            return multiplier.accumulate(self.parts[0].multiplier, self.weights, self._rounded_reach, *spectra)
        return batch_layout.accumulate(self._matrices, *spectra)

    def rounded(self, sums: np.ndarray) -> Integers:
        """The sums in their format."""
        return self.parts[0].rounded(sums)

    def values(self, sums: np.ndarray, *, spent: bool = False) -> Integers:
        """y (k, p, …) of the exact sums (k, p, …)."""
        return self.parts[0].values(sums, spent=spent)

    @cached_property
    def _matrices(self) -> list[np.ndarray]:
        return batch_layout.matrices(self.weights, self._rounded_reach)

    @property
    def _rounded_reach(self) -> int:
        first = self.parts[0]
        return _rounding_reach(self.reach, first.frac - first.product.frac)
