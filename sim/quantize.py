"""From float64 to integers: formats picked from the ranges that calibration data shows."""
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from circulant.sim import gru, linear, reference
from circulant.sim.activation import fit_pwl
from circulant.sim.circulant import Product, pad
from circulant.sim.fixed import Format, Reals, fit
from circulant.sim.network import Layer, Network
from circulant.sim.refusal import Refusal

__all__ = ["Peaks", "Widths", "quantize"]


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


HEADROOM = 1.25
"""How far above the calibration's peak a format still reaches: unseen data goes a little further."""


class Peaks:
    """The greatest magnitude of every tensor that a reference model shows on calibration data."""

    def __init__(self, model: reference.Model, calibration: Reals) -> None:
        self._peaks: dict[str, float] = {}
        model.run(calibration, self._see)

    def _see(self, name: str, values: Reals) -> None:
        self._peaks[name] = max(self._peaks.get(name, 0.0), float(np.abs(values).max()))

    def fit(self, width: int, *names: str, bias: ArrayLike = 0.0) -> Format:
        """The finest format of ``width`` bits that holds all these tensors with headroom, and ``bias`` without.

        A bias may be far greater than the sums in which it takes part.
        """
        peak = HEADROOM * max(self._peaks[name] for name in names)
        return fit(max(peak, float(np.abs(bias).max())), width)


def quantize(model: reference.Model, calibration: ArrayLike, **widths: int) -> Network:
    """The golden model of ``model``: integer spectra, and formats that hold what ``calibration`` exercises.

    Parameters:
        calibration: (N, T, inputs) or (N, inputs), like the data to come.
        widths: the fields of `Widths`.

    Raises:
        Refusal: when a width is out of range, or the data is empty, not finite, or of the wrong shape.
    """
    bits = Widths(**widths)
    data = reference.check_data("Calibration data", calibration, model.inputs, model.sequence)
    if not np.isfinite(data).all():
        raise Refusal("Calibration data must be finite, but it holds NaN or infinity; clean it first")
    peaks = Peaks(model, data)
    layers: list[Layer] = []
    form = fit(float(np.abs(data).max()), bits.activation_bits)
    for layer in model.layers:
        quantized: Layer
        if isinstance(layer, reference.Gru):
            quantized = _gru(layer, form, peaks, bits)
        else:
            quantized = _linear(layer, form, peaks, bits)
        layers.append(quantized)
        form = quantized.output_format
    return Network(model.name, model.inputs, model.sequence, tuple(layers))


def _product(name: str, weight: Reals, bias: Reals, input: Format, output: Format, peaks: Peaks,
             bits: Widths) -> Product:
    spectra = reference.spectra(weight)
    weights = fit(float(np.abs(spectra).max()), bits.weight_bits)
    spectrum = _no_finer(peaks.fit(bits.spectrum, f"{name}.spectrum"), input.frac)
    product = _no_finer(peaks.fit(bits.product, f"{name}.product"), spectrum.frac + weights.frac)
    return Product(weights.quantize(spectra), output.quantize(bias), weights, input, spectrum, product, output,
                   bits.twiddle_bits)


def _no_finer(form: Format, frac: int) -> Format:
    """The format with ``frac`` fraction bits at the most: exact sums have no more."""
    return Format(form.width, min(form.frac, frac))


def _linear(layer: reference.Linear, input: Format, peaks: Peaks, bits: Widths) -> linear.Linear:
    p, _, k = layer.weight.shape
    name = f"{layer.name}.product"
    output = peaks.fit(bits.activation_bits, f"{name}.output", bias=layer.bias)
    product = _product(name, layer.weight, pad(layer.bias, p * k), input, output, peaks, bits)
    return linear.Linear(layer.name, layer.inputs, layer.outputs, product)


def _gru(layer: reference.Gru, input: Format, peaks: Peaks, bits: Widths) -> gru.Gru:
    state = Format(bits.activation_bits, bits.activation_bits - 1)
    pre = peaks.fit(bits.activation_bits, *(f"{layer.name}.{tensor}" for tensor in (
        "input_product.output", "recurrent_product.output", "sigmoid.input", "tanh.input")),
        bias=np.stack([layer.bias_ih, layer.bias_hh]))
    products = {}
    for role, weight, bias, form in (("input_product", layer.weight_ih, layer.bias_ih, input),
                                     ("recurrent_product", layer.weight_hh, layer.bias_hh, state)):
        _, p, q, k = weight.shape
        flat = weight.reshape(3 * p, q, k)
        products[role] = _product(f"{layer.name}.{role}", flat, pad(bias, p * k).reshape(-1), form, pre, peaks, bits)
    tables = {}
    for function in ("sigmoid", "tanh"):
        segments = min(bits.segments, 1 << max(1, pre.frac + int(math.log2(4))))
        tables[function] = fit_pwl(function, pre, state, segments)
    return gru.Gru(layer.name, layer.inputs, layer.hidden, layer.returns,
                   products["input_product"], products["recurrent_product"], tables["sigmoid"], tables["tanh"])
