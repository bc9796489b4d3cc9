"""Variants of a golden network for estimates: the same layers with larger blocks or narrower numbers.

They have the shapes and formats that a network trained and quantized so would have, and weights at the ends of their
format: what two products in a DSP block take depends on how wide the weights are.
"""
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from circulant.sim.arith.activation import Pwl
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.golden.network import Network
from circulant.sim.kinds.conv import Conv
from circulant.sim.kinds.gru import Gru
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.lstm import Lstm
from circulant.sim.kinds.rnn import Rnn
from circulant.sim.passes.layer import GoldenLayer

__all__ = ["LARGEST", "activation_bits", "block_size", "narrower_activations", "narrower_weights", "weight_bits",
           "with_blocks"]

LARGEST = 64
"""The largest block size."""

KEPT = ("weight", "peephole_format", "factor", "slope_format", "base_format")
"""Formats of what belongs to the network, which narrower activations leave as they are."""


def _products(network: Network) -> list[Product]:
    return [product for layer in network.layers for product in getattr(layer, "products", {}).values()]


def block_size(network: Network) -> int:
    """The smallest block size above 1; 1 where every matrix is dense."""
    return min((product.block_size for product in _products(network) if product.block_size > 1), default=1)


def weight_bits(network: Network) -> int:
    """Bits of the widest weights."""
    return max((product.weight.width for product in _products(network)), default=0)


def activation_bits(network: Network) -> int:
    """Bits of the widest numbers that matrices take."""
    return max((product.input.width for product in _products(network)), default=0)


def with_blocks(network: Network, factor: int) -> Network:
    """Blocks ``factor`` times as large; dense matrices stay dense.

    Raises:
        Refusal: when a block size is none that the hardware knows.
    """
    return network.mapped(lambda layer: _blocked(layer, factor))


def narrower_weights(network: Network, bits: int) -> Network:
    """Weights with ``bits`` less behind the binary point.

    Raises:
        Refusal: when too few are left.
    """
    def product(given: Product) -> Product:
        form = _less(given.weight, bits)
        return replace(given, weights=_ends(form, *given.weights.shape), weight=form)

    return network.mapped(lambda layer: _each_product(layer, product))


def narrower_activations(network: Network, bits: int) -> Network:
    """Inputs, spectra, sums, states and outputs with ``bits`` less behind the binary point.

    Raises:
        Refusal: when too few are left.
    """
    return network.mapped(lambda layer: _narrowed(layer, bits))


def _ends(form: Format, p: int, q: int, k: int) -> Integers:
    """(p, q, k): the greatest number, and the one above the lowest, as quantization hardly gives the lowest. Of four
    blocks each has another combination of them in the parts of a bin."""
    blocks, places = np.arange(p * q).reshape(p, q, 1), np.arange(k)
    return np.array([form.hi, form.lo + 1])[blocks >> places % 2 & 1]


def _less(given: Format, bits: int) -> Format:
    return Format(given.width - bits, given.frac - bits)


def _each_product(value: Any, change: Any) -> Any:
    """A layer with each of its products changed."""
    match value:
        case Product():
            return change(value)
        case tuple():
            return tuple(_each_product(each, change) for each in value)
    if is_dataclass(value) and not isinstance(value, Format | Pwl | type):
        changed = {field.name: _each_product(getattr(value, field.name), change) for field in fields(value)}
        return replace(value, **changed)
    return value


def _narrowed(value: Any, bits: int, name: str = "") -> Any:
    """A layer, or a part of it, with narrower formats."""
    if isinstance(value, Format):
        return value if name in KEPT else _less(value, bits)
    if isinstance(value, Pwl):
        return _table(value, bits)
    if isinstance(value, tuple):
        return tuple(_narrowed(each, bits) for each in value)
    if isinstance(value, np.ndarray) and name in ("bias", "shift"):
        return np.zeros_like(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _narrowed(getattr(value, field.name), bits, field.name)
                                 for field in fields(value)})
    return value


def _table(given: Pwl, bits: int) -> Pwl:
    """A table over arguments of fewer bits: starts that fall together are one."""
    start, kept = np.unique(given.start >> bits, return_index=True)
    return replace(given, input=_less(given.input, bits), output=_less(given.output, bits), start=start,
                   slope=given.slope[kept], base=given.base[kept] >> bits, base_format=_less(given.base_format, bits))


@singledispatch
def _blocked(layer: GoldenLayer, factor: int) -> GoldenLayer:
    """The layer with larger blocks; itself where it has no matrix."""
    return layer


@_blocked.register
def _(layer: Linear | Conv, factor: int) -> GoldenLayer:
    return replace(layer, product=_larger(layer.product, layer.outputs, layer.inputs, factor=factor))


@_blocked.register
def _(layer: Gru, factor: int) -> GoldenLayer:
    sizes = (layer.inputs, layer.hidden)
    recurrent = layer.candidate_recurrent
    candidate = (_joint(layer.candidate, layer.hidden, sizes, factor) if isinstance(layer.candidate, JointProduct)
                 else _larger(layer.candidate, layer.hidden, layer.inputs, factor=factor))
    return replace(layer, gates=_joint(layer.gates, layer.hidden, sizes, factor), candidate=candidate,
                   candidate_recurrent=None if recurrent is None
                   else _larger(recurrent, layer.hidden, layer.hidden, factor=factor))


@_blocked.register
def _(layer: Lstm, factor: int) -> GoldenLayer:
    projection = layer.projection
    return replace(layer, gates=_joint(layer.gates, layer.hidden, (layer.inputs, layer.outputs), factor),
                   projection=None if projection is None
                   else _larger(projection, layer.outputs, layer.hidden, factor=factor))


@_blocked.register
def _(layer: Rnn, factor: int) -> GoldenLayer:
    return replace(layer, gates=_joint(layer.gates, layer.hidden, (layer.inputs, layer.hidden), factor))


def _joint(given: JointProduct, rows: int, columns: Sequence[int], factor: int) -> JointProduct:
    return JointProduct(tuple(_larger(part, rows, size, factor=factor)
                              for part, size in zip(given.parts, columns, strict=True)))


def _larger(given: Product, rows: int, columns: int, *, factor: int) -> Product:
    """A product of gates of ``rows``, or kernel positions of ``columns``, each padded to whole blocks."""
    k = given.block_size
    if k == 1:
        return given
    p, q = (count // -(-size // k) * -(-size // (k * factor))
            for count, size in zip(given.weights.shape[:2], (rows, columns), strict=True))
    return replace(given, weights=_ends(given.weight, p, q, k * factor), bias=np.zeros(p * k * factor, np.int64))
