"""Products and biases in integers, in formats picked from data or given by another network."""
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import Product, pad
from circulant.sim.arith.fixed import Format, Reals, fit
from circulant.sim.arith.weight_grid import WeightGrid
from circulant.sim.passes.formats import Peaks, Widths, product, whole_product
from circulant.sim.passes.layer import FloatLayer, GoldenLayer
from circulant.sim.passes.products import spectra
from circulant.sim.refusal import Refusal

__all__ = ["check_fit", "grid_of", "layer_product", "product_like", "same_formats"]

SATURATES = 4
"""How many times what a format that holds all values loses may be lost where some saturate: the matrices of a recurrent
layer share their binary points, so that not each of them has the best."""

BEHIND = {"input_product": "candidate_input", "recurrent_product": "candidate_recurrent"}
"""The product that has the last rows of a matrix, by that which has the first ones."""

Numbers = tuple[str, Format | WeightGrid, Reals]
"""Tensors that become integers: name, format, values."""


def same_formats(rule: Any, layer: FloatLayer) -> Any:
    """The golden layer of a layer without weights: that with its formats, under its name."""
    return replace(rule, name=layer.name)


def grid_of(layer: GoldenLayer, role: str) -> WeightGrid:
    """The values of the weights of a matrix of a layer; behind the rows of the gates of a GRU are its candidate's."""
    rows = [layer.products[role], *filter(None, [layer.products.get(BEHIND.get(role, ""))])]
    shifts = tuple(shift for each in rows for shift in each.row_shifts or (0,) * len(each.weights))
    return WeightGrid(rows[0].weight, shifts if any(shifts) else ())


def layer_product(layer: Any, weight: Reals, input: Format, peaks: Peaks, bits: Widths) -> Product:
    """The product with first columns (p, q, k) and the bias of a layer in float64."""
    p, _, k = weight.shape
    name = f"{layer.name}.product"
    seen = f"{layer.name}.y" if layer.relu else f"{name}.output"
    bias = pad(layer.bias, p * k)
    if bits.whole and k == 1 and bits.of(name).weight_scale == "matrix":
        return whole_product(name, weight, bias=bias, input=input, seen=seen, peaks=peaks, bits=bits)
    output = peaks.fit(bits.output, seen, bias=layer.bias, clip=bits.output_clip)
    return product(name, weight, bias=bias, input=input, output=output, peaks=peaks, bits=bits)


def product_like(rule: Product, name: str, weight: Reals, bias: Reals) -> Product:
    """The product with first columns (p, q, k) and a bias, in the formats of another one.

    Raises:
        Refusal: as `check_fit`.
    """
    check_fit(name, [("weights", rule.grid, spectra(weight)), ("biases", rule.output, bias)])
    return Product(rule.grid.quantize(spectra(weight)),
                   bias=rule.output.quantize(pad(bias, weight.shape[0] * weight.shape[-1])), weight=rule.weight,
                   input=rule.input, spectrum=rule.spectrum, product=rule.product, output=rule.output,
                   twiddle_bits=rule.twiddle_bits, row_shifts=rule.row_shifts, multiplier=rule.multiplier)


def check_fit(name: str, numbers: Iterable[Numbers]) -> None:
    """Check that values fit: rounding brings each at most a step away, or few saturate in a narrow format, as one
    that loses the least in squares lets them.

    Raises:
        Refusal: when values of layer ``name`` do not.
    """
    for what, form, values in numbers:
        error = np.abs(form.real(form.quantize(values)) - values)
        if (error > form.step).any() and np.square(error).sum() > SATURATES * _least(form, values):
            raise Refusal(f"The {what} of layer {name!r} must fit the {form} of the other network, but they reach "
                          f"{np.abs(values).max():.4g}; quantize first the network that has the greater ones")


def _least(form: Format | WeightGrid, values: Reals) -> float:
    """Loss, in squares, of the finest format of this width that holds all values."""
    width = form.width if isinstance(form, Format) else form.form.width
    holds = fit(float(np.abs(values).max()), width)
    return float(np.square(holds.real(holds.quantize(values)) - values).sum())
