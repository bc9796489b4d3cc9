"""Formats picked from the ranges that calibration data shows."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import Product, pad
from circulant.sim.arith.fixed import Format, Reals, fit
from circulant.sim.arith.segments import fit_pwl
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.passes.bitwidths import RULES, Widths
from circulant.sim.passes.products import spectra as spectra_of
from circulant.sim.shape.graph import computed
from circulant.sim.shape.sequences import Lengths, descending, flat

__all__ = ["HEADROOM", "Peaks", "Spectral", "Widths", "fit_least", "fit_rows", "no_finer", "product", "spectral",
           "table", "whole_product"]


BATCH = 256
"""Samples of the calibration that are computed side by side: the windows of more images take much memory."""

ROW_SHIFTS = range(-3, 5)
"""Bits by which the weights of a block row may be finer than those of its matrix: eight places, three bits."""

HEADROOM = 1.25
"""How far above the calibration's peak a format still reaches: unseen data goes a little further."""


class Peaks:
    """The greatest magnitude of every tensor that a reference model shows on calibration data.

    Parameters:
        lengths: of its sequences; None where all of their steps count.

    Members:
        inputs: that of the data themselves, of each input by its name.
        ragged: whether they are sequences with lengths.
    """

    def __init__(self, model: Any, calibration: Mapping[str, Reals], lengths: Lengths | None = None) -> None:
        flows = {each.name: each.flow for each in model.inputs}
        self.inputs, self.ragged = dict.fromkeys(flows, 0.0), lengths is not None
        self._peaks: dict[str, float] = {}
        self._rows: dict[str, Reals] = {}
        order = np.arange(len(next(iter(calibration.values())))) if lengths is None else descending(lengths)
        for some in np.split(order, range(BATCH, len(order), BATCH)):
            steps = None if lengths is None else lengths[some]
            values = {name: each[some] if steps is None or not flows[name].sequence else each[some, :int(steps[0])]
                      for name, each in calibration.items()}
            for name, each in values.items():
                seen = each if steps is None or not flows[name].sequence else flat(each, steps)
                self.inputs[name] = max(self.inputs[name], float(np.abs(seen).max()))
            computed(model, values, self._see, steps)

    def _see(self, name: str, values: Reals) -> None:
        self._peaks[name] = max(self._peaks.get(name, 0.0), float(np.abs(values).max()))
        if name.endswith(".product"):  # (…, block rows, k)
            rows = np.abs(values).max(axis=(*range(values.ndim - 2), -1))
            self._rows[name] = np.maximum(self._rows.get(name, 0.0), rows)

    @property
    def never(self) -> list[str]:
        """The tensors that the data never exercise: they are always zero, and their formats say nothing."""
        inputs = dict(zip(self.inputs if len(self.inputs) > 1 else ["input"], self.inputs.values(), strict=True))
        return [name for name, peak in {**inputs, **self._peaks}.items() if not peak]

    def fit(self, width: int, *names: str, bias: ArrayLike = 0.0, clip: int = 0) -> Format:
        """The finest format of ``width`` bits that holds all these tensors with headroom, and ``bias`` without.

        A bias may be far greater than the sums in which it takes part.

        Parameters:
            clip: integer bits less than that.
        """
        peak = HEADROOM * max(self._peaks[name] for name in names)
        form = fit(max(peak, float(np.abs(bias).max())), width)
        return Format(width, form.frac + clip)

    def fit_sums(self, width: int, *names: str, row_shifts: tuple[int, ...], clip: int = 0) -> Format:
        """The same for sums of products, in rows that have shifts: those of gates come first, of a candidate last."""
        if not row_shifts:
            return self.fit(width, *names, clip=clip)
        peaks = [0.0]
        for name in names:
            rows = self._rows[name]
            shifts = row_shifts[-len(rows):] if ".candidate" in name else row_shifts[:len(rows)]
            peaks.append(float(np.ldexp(rows, np.array(shifts)).max()))
        return Format(width, fit(HEADROOM * max(peaks), width).frac + clip)


def fit_least(values: Reals, width: int) -> Format:
    """The format of ``width`` bits in which values lose the least, in squares: the few greatest may saturate."""
    first = fit(float(np.abs(values).max()), width)
    forms = [Format(width, first.frac + clip) for clip in range(3)]
    return min(forms, key=lambda form: float(np.square(form.real(form.quantize(values)) - values).sum()))


def fit_rows(parts: Sequence[tuple[Reals, WeightGrid]]) -> tuple[WeightGrid, ...]:
    """Grids with a binary point for each block row, where the row loses the least, in squares.

    Parameters:
        parts: spectra (p, q, k) that are added up, and their formats: the shifts of a row are one and the same in all.
    """
    lost = np.array([sum(np.square(grid.finer(bits).real(grid.finer(bits).quantize(spectra)) - spectra).sum((1, 2))
                         for spectra, grid in parts) for bits in ROW_SHIFTS])
    used = np.any([np.abs(spectra).max((1, 2)) > 0 for spectra, _ in parts], axis=0)
    best = np.where(used, np.array(ROW_SHIFTS)[lost.argmin(0)], ROW_SHIFTS[-1])
    least = int(best.min())
    shifts = tuple(int(each) for each in np.where(used, best - least, 0))
    return tuple(WeightGrid(grid.finer(least).form, shifts if any(shifts) else ()) for _, grid in parts)


def table(function: str, argument: Format, value: Format, bits: Widths) -> Pwl:
    """The table of a function, as was asked for."""
    return fit_pwl(function, argument, value, bits.segments, error=bits.activation_error, method=bits.activation_table)


def product(name: str, weight: Reals, bias: Reals, input: Format, output: Format, peaks: Peaks,
             bits: Widths) -> Product:
    """A product of its own with first columns (p, q, k) and bias (p·k,)."""
    spectra, bits = spectra_of(weight), bits.of(name)
    grid = bits.grids.get(name) or WeightGrid(fit_least(spectra, bits.weight_bits))
    if name not in bits.grids and bits.weight_scale == "row":
        (grid,) = fit_rows([(spectra, grid)])
    spectrum = no_finer(peaks.fit(bits.spectrum, f"{name}.spectrum", clip=bits.spectrum_clip), input.frac)
    sums = no_finer(peaks.fit_sums(bits.product, f"{name}.product", row_shifts=grid.row_shifts, clip=bits.product_clip),
                    spectrum.frac + grid.form.frac)
    return Product(grid.quantize(spectra), bias=output.quantize(bias), weight=grid.form, input=input,
                   spectrum=spectrum, product=sums, output=output, twiddle_bits=bits.twiddle_bits,
                   row_shifts=grid.row_shifts, multiplier=bits.multiplier)


def whole_product(name: str, weight: Reals, bias: Reals, input: Format, seen: str, peaks: Peaks, bits: Widths
                  ) -> Product:
    """A dense product (p, q, 1) whose values keep the fraction bits of the exact sums.

    Where the greatest sum that the weights can give fits into `RULES`, nothing is rounded but a bias that is finer than
    the sums, and nothing saturates; else formats go by the calibration, as those of any product.

    Parameters:
        seen: the tensor of the values.
    """
    spectra, bits = spectra_of(weight), bits.of(name)
    weights = bits.grids.get(name, WeightGrid(fit_least(spectra, bits.weight_bits))).form
    integers, frac = weights.quantize(spectra), input.frac + weights.frac
    rows = np.abs(integers[..., 0]).sum(1) * float(-input.lo) + np.abs(np.ldexp(bias, frac))
    least = max(int(rows.max(initial=1)).bit_length() + 1, RULES["product_bits"][0])
    forms = [Format(least, frac) if least <= RULES[key][1] else no_finer(peaks.fit(RULES[key][1], tensor), frac)
             for key, tensor in (("product_bits", f"{name}.product"), ("output_bits", seen))]
    return Product(integers, bias=forms[1].quantize(bias), weight=weights, input=input, spectrum=input,
                   product=forms[0], output=forms[1], twiddle_bits=bits.twiddle_bits, multiplier=bits.multiplier)


def no_finer(form: Format, frac: int) -> Format:
    """The format with ``frac`` fraction bits at the most: exact sums have no more."""
    return Format(form.width, min(form.frac, frac))


@dataclass(frozen=True)
class Spectral:
    """Formats that the matrices of a recurrent layer share, so that their sums can be made in the spectral domain.

    Parameters:
        inputs, spectra, weights: by vector: of itself, of its spectrum, of the matrices that take it, whose block rows
            are those of all gates one behind the other.
        product: of the sums.
        multiplier: of all of them.
    """

    inputs: tuple[Format, ...]
    spectra: tuple[Format, ...]
    weights: tuple[WeightGrid, ...]
    product: Format
    twiddle_bits: int
    multiplier: str

    def part(self, weight: Reals, bias: Reals | None, output: Format, vector: int, first: int = 0) -> Product:
        """A part with first columns (gates, p, q, k) of the matrix of a vector, and bias (gates, rows) or none.

        Parameters:
            first: the first of the gates that these are.
        """
        gates, p, q, k = weight.shape
        flat = spectra_of(weight.reshape(gates * p, q, k))
        rows = np.zeros((gates, 1)) if bias is None else bias
        grid = self.weights[vector].rows(slice(first * p, (first + gates) * p))
        return Product(grid.quantize(flat), bias=output.quantize(pad(rows, p * k).reshape(-1)),
                       weight=grid.form, input=self.inputs[vector], spectrum=self.spectra[vector],
                       product=self.product, output=output, twiddle_bits=self.twiddle_bits, row_shifts=grid.row_shifts,
                       multiplier=self.multiplier)


def spectral(name: str, peaks: Peaks, bits: Widths, sums: Sequence[str],
              vectors: Sequence[tuple[Sequence[str], Reals, Format]]) -> Spectral:
    """Formats for the named sums over vectors: by vector the products that take it, their weights, and its format.

    The exact sums of all vectors get the fraction bits of the coarsest one. What the others have above that is taken
    from their spectra and weights, from whichever is then the wider one; weights on a grid stay on it.
    """
    own = [f"{name}.{products[0]}" for products, _, _ in vectors]
    seen = [spectra_of(weight).reshape(-1, *weight.shape[-2:]) for _, weight, _ in vectors]
    weights = [bits.grids.get(path) or WeightGrid(fit_least(each, bits.of(path).weight_bits))
               for path, each in zip(own, seen, strict=True)]
    spectra = [no_finer(peaks.fit(bits.of(path).spectrum, *(f"{name}.{product}.spectrum" for product in products),
                                  clip=bits.of(path).spectrum_clip), form.frac)
               for path, (products, _, form) in zip(own, vectors, strict=True)]
    exact = min(spectrum.frac + weight.form.frac for spectrum, weight in zip(spectra, weights, strict=True))
    for n, (spectrum, weight) in enumerate(zip(spectra, weights, strict=True)):
        surplus = spectrum.frac + weight.form.frac - exact
        from_spectrum = min(surplus, max(0, (surplus + spectrum.width - weight.form.width + 1) // 2))
        if own[n] in bits.grids:
            from_spectrum = surplus
        spectra[n] = Format(spectrum.width, spectrum.frac - from_spectrum)
        weights[n] = weight.finer(from_spectrum - surplus)
    if not any(path in bits.grids for path in own) and bits.weight_scale == "row":
        weights = [*fit_rows(list(zip(seen, weights, strict=True)))]
        exact = spectra[0].frac + weights[0].form.frac
    product = no_finer(peaks.fit_sums(bits.product, *(f"{name}.{each}.product" for each in sums),
                                      row_shifts=weights[0].row_shifts, clip=bits.product_clip), exact)
    return Spectral(tuple(form for _, _, form in vectors), tuple(spectra), tuple(weights), product,
                    twiddle_bits=bits.twiddle_bits, multiplier=bits.multiplier)
