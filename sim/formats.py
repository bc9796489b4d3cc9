"""Formats picked from the ranges that calibration data shows."""
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim import reference
from circulant.sim.activation import Pwl, fit_pwl
from circulant.sim.circulant import Product, pad
from circulant.sim.fixed import Format, Reals, fit
from circulant.sim.refusal import Refusal

__all__ = ["HEADROOM", "Peaks", "Spectral", "Widths", "no_finer", "product", "spectral", "table"]


@dataclass(frozen=True)
class Widths:
    """Bits of every kind of tensor; the binary points follow from the data.

    Parameters:
        weight_bits: quantized spectra of the weights, 2 to 18.
        activation_bits: inputs, pre-activations, gates, states and outputs, 4 to 24.
        spectrum_bits: spectra of the data, 4 to 26; 0 for one more than ``activation_bits``, so that a sum of two fits
            an 18-bit multiplier port at 16 bits.
        product_bits: sums of products before the inverse transform, 4 to 40; 0 for eight more than ``activation_bits``.
        twiddle_bits: fraction bits of twiddle factors, 4 to 20.
        segments: entries of an activation table, a power of two from 2 to 1024.

    Raises:
        Refusal: when a field is out of its range.
    """

    weight_bits: int = 12
    activation_bits: int = 16
    spectrum_bits: int = 0
    product_bits: int = 0
    twiddle_bits: int = 16
    segments: int = 64

    def __post_init__(self) -> None:
        for name, lo, hi in (("weight_bits", 2, 18), ("activation_bits", 4, 24), ("spectrum_bits", 4, 26),
                             ("product_bits", 4, 40), ("twiddle_bits", 4, 20)):
            value = getattr(self, name)
            if not (lo <= value <= hi or (value == 0 and name in ("spectrum_bits", "product_bits"))):
                raise Refusal(f"{name} must be from {lo} to {hi}, not {value!r}; choose a width in that range")
        if not 2 <= self.segments <= 1024 or self.segments & (self.segments - 1):
            raise Refusal(f"segments must be a power of two from 2 to 1024, not {self.segments!r}; choose one of them")

    @property
    def spectrum(self) -> int:
        return self.spectrum_bits or self.activation_bits + 1

    @property
    def product(self) -> int:
        return self.product_bits or self.activation_bits + 8


BATCH = 256
"""Samples of the calibration that are computed side by side: the windows of more images take much memory."""

HEADROOM = 1.25
"""How far above the calibration's peak a format still reaches: unseen data goes a little further."""


class Peaks:
    """The greatest magnitude of every tensor that a reference model shows on calibration data.

    Members:
        input: that of the data themselves.
    """

    def __init__(self, model: reference.Model, calibration: Reals) -> None:
        self.input = float(np.abs(calibration).max())
        self._peaks: dict[str, float] = {}
        for start in range(0, len(calibration), BATCH):
            model.compute(calibration[start:start + BATCH], self._see)

    def _see(self, name: str, values: Reals) -> None:
        self._peaks[name] = max(self._peaks.get(name, 0.0), float(np.abs(values).max()))

    def fit(self, width: int, *names: str, bias: ArrayLike = 0.0) -> Format:
        """The finest format of ``width`` bits that holds all these tensors with headroom, and ``bias`` without.

        A bias may be far greater than the sums in which it takes part.
        """
        peak = HEADROOM * max(self._peaks[name] for name in names)
        return fit(max(peak, float(np.abs(bias).max())), width)


def table(function: str, argument: Format, value: Format, bits: Widths) -> Pwl:
    """A table of as many segments as were asked for, or as there are arguments."""
    return fit_pwl(function, argument, value, min(bits.segments, 1 << max(1, argument.frac + 2)))


def product(name: str, weight: Reals, bias: Reals, input: Format, output: Format, peaks: Peaks,
             bits: Widths) -> Product:
    """A product of its own with first columns (p, q, k) and bias (p·k,)."""
    spectra = reference.spectra(weight)
    weights = fit(float(np.abs(spectra).max()), bits.weight_bits)
    spectrum = no_finer(peaks.fit(bits.spectrum, f"{name}.spectrum"), input.frac)
    sums = no_finer(peaks.fit(bits.product, f"{name}.product"), spectrum.frac + weights.frac)
    return Product(weights.quantize(spectra), output.quantize(bias), weights, input, spectrum, sums, output,
                   bits.twiddle_bits)


def no_finer(form: Format, frac: int) -> Format:
    """The format with ``frac`` fraction bits at the most: exact sums have no more."""
    return Format(form.width, min(form.frac, frac))


@dataclass(frozen=True)
class Spectral:
    """Formats that the matrices of a recurrent layer share, so that their sums can be made in the spectral domain.

    Parameters:
        inputs, spectra, weights: by vector: of itself, of its spectrum, of the matrices that take it.
        product: of the sums.
    """

    inputs: tuple[Format, ...]
    spectra: tuple[Format, ...]
    weights: tuple[Format, ...]
    product: Format
    twiddle_bits: int

    def part(self, weight: Reals, bias: Reals | None, output: Format, vector: int) -> Product:
        """A part with first columns (gates, p, q, k) of the matrix of a vector, and bias (gates, rows) or none."""
        gates, p, q, k = weight.shape
        flat = reference.spectra(weight.reshape(gates * p, q, k))
        rows = np.zeros((gates, 1)) if bias is None else bias
        return Product(self.weights[vector].quantize(flat), output.quantize(pad(rows, p * k).reshape(-1)),
                       self.weights[vector], self.inputs[vector], self.spectra[vector], self.product, output,
                       self.twiddle_bits)


def spectral(name: str, peaks: Peaks, bits: Widths, sums: Sequence[str],
              vectors: Sequence[tuple[Sequence[str], Reals, Format]]) -> Spectral:
    """Formats for the named sums over vectors: by vector the products that take it, their weights, and its format.

    The exact sums of all vectors get the fraction bits of the coarsest one. What the others have above that is taken
    from their spectra and weights, from whichever is then the wider one.
    """
    weights = [fit(float(np.abs(reference.spectra(weight)).max()), bits.weight_bits) for _, weight, _ in vectors]
    spectra = [no_finer(peaks.fit(bits.spectrum, *(f"{name}.{product}.spectrum" for product in products)), form.frac)
               for products, _, form in vectors]
    exact = min(spectrum.frac + weight.frac for spectrum, weight in zip(spectra, weights, strict=True))
    for n, (spectrum, weight) in enumerate(zip(spectra, weights, strict=True)):
        surplus = spectrum.frac + weight.frac - exact
        from_spectrum = min(surplus, max(0, (surplus + spectrum.width - weight.width + 1) // 2))
        spectra[n] = Format(spectrum.width, spectrum.frac - from_spectrum)
        weights[n] = Format(weight.width, weight.frac - surplus + from_spectrum)
    product = no_finer(peaks.fit(bits.product, *(f"{name}.{each}.product" for each in sums)), exact)
    return Spectral(tuple(form for _, _, form in vectors), tuple(spectra), tuple(weights), product, bits.twiddle_bits)
