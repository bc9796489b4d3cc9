"""The passes over a network that depend on the kinds of its layers: each kind registers its own in its file.

A kind without an implementation is refused in one sentence. What walks over the network stands in `sim.golden`,
`sim.quantize`, `sim.error` and `sim.exercise`.
"""
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import singledispatch
from typing import Any

import numpy as np

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Tensor
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import GoldenLayer
from circulant.sim.shape.kinds import unknown

__all__ = ["TABLES", "Known", "Trace", "activations", "arguments", "bitwidth_fields", "factors", "layer_arrays",
           "layer_bits", "layer_worst_cases", "matrices", "propagate", "quantize_layer", "quantize_layer_like"]

Trace = Mapping[str, Tensor]
"""Golden tensors by their names."""

Known = tuple[Reals, Reals, Reals]
"""Golden values, and what they err by: a known part, ± a bound."""

TABLES = ("start", "slope", "base")
"""The arrays of an activation."""


@singledispatch
def activations(layer: Any) -> dict[str, Pwl]:
    """The tables of a layer's activations by role; none for a layer without gates."""
    return {}


@singledispatch
def layer_arrays(layer: Any) -> dict[str, np.ndarray]:
    """The integers of a layer by their names in the file."""
    raise unknown(layer, "written to a file")


@layer_arrays.register
def _(layer: GoldenLayer) -> dict[str, np.ndarray]:
    """Arrays of its own, and of its matrices and tables."""
    own: Any = layer
    arrays = {f"{layer.name}.{each.name}": value for each in fields(own)
              if isinstance(value := getattr(layer, each.name), np.ndarray)}
    for role, product in layer.products.items():
        arrays[f"{layer.name}.{role}.weights"] = product.weights
        arrays[f"{layer.name}.{role}.bias"] = product.bias
    for role, pwl in activations(layer).items():
        arrays |= {f"{layer.name}.{role}.{part}": getattr(pwl, part) for part in TABLES}
    return arrays


@singledispatch
def matrices(layer: Any) -> dict[str, Product]:
    """By path a product of each matrix of a layer: what has a width of its weights for itself."""
    raise unknown(layer, "quantized")


@matrices.register
def _(layer: GoldenLayer) -> dict[str, Product]:
    """Behind the rows of the gates of a GRU are its candidate's."""
    return {f"{layer.name}.{role}": product for role, product in layer.products.items()
            if not role.startswith("candidate_")}


def factors(layer: Any) -> dict[str, Format]:
    """By path the formats of vectors of weights, one for each value; none of most layers."""
    return {f"{layer.name}.{layer.vector}": layer.factor} if layer.vector else {}


@singledispatch
def bitwidth_fields(layer: Any) -> list[str]:
    """The kinds of bit widths of a layer that can be searched; none where everything follows from its input."""
    raise unknown(layer, "searched for bit widths")


@bitwidth_fields.register
def _(layer: GoldenLayer) -> list[str]:
    return list(layer.searched)


@singledispatch
def layer_bits(layer: Any) -> int:
    """Bits of the weights of a layer as the circuit stores them."""
    raise unknown(layer, "priced")


@layer_bits.register
def _(layer: GoldenLayer) -> int:
    """Weights of its matrices, as wide as in the widest of them."""
    products = layer.products.values()
    return (sum(product.weights.size for product in products)
            * max((product.weight.width for product in products), default=0))


@singledispatch
def quantize_layer(layer: Any, input: Any, peaks: Peaks, bits: Widths) -> GoldenLayer:
    """The golden layer that takes values of a format.

    Parameters:
        input: the format; of a join those of its sources.
        peaks: what calibration data exercises.
        bits: widths of the layer.
    """
    raise unknown(layer, "quantized")


@singledispatch
def quantize_layer_like(rule: Any, layer: Any) -> GoldenLayer:
    """A golden layer of a float layer of the same kind.

    Parameters:
        rule: has the formats and activation tables.

    Raises:
        Refusal: when a weight or a bias does not fit.
    """
    raise unknown(rule, "quantized")


@singledispatch
def layer_worst_cases(layer: Any, peak: Any, steps: int) -> Iterator[tuple[str, float]]:
    """By tensor of a layer the greatest magnitude for inputs up to a peak, those of a join up to a peak for each."""
    raise unknown(layer, "analysed")


@layer_worst_cases.register
def _(layer: GoldenLayer, peak: Any, steps: int) -> Iterator[tuple[str, float]]:
    """None, where a layer shows no tensor of its own."""
    return iter(())


@singledispatch
def propagate(layer: Any, exact: Any, trace: Trace, known: Any) -> Known:
    """The outputs of a layer from its inputs: (N, height, width, channels), (N, T, size) or (N, size).

    Parameters:
        exact: what ``layer`` was quantized from.
        known: golden inputs, and what they err by: `Known`, of a join a list of them.
    """
    raise unknown(layer, "bounded in its error")


@singledispatch
def arguments(layer: Any, trace: Trace) -> Iterator[tuple[str, Pwl, Integers]]:
    """Name, table and arguments (N, …) of each activation of a layer; none for a layer without them."""
    return iter(())
