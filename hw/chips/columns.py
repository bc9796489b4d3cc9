"""Shares of the columns of a layer: each chip works with some of the inputs, and one adds up what all have made.

Sums of products are exact, and are added up before they are rounded, in the spectral domain: so every bit is that of
the whole layer (AccPar, HPCA 2020: its third kind of partition).
"""
from collections.abc import Sequence
from typing import Any

from circulant.hw.chips.rows import in_proportion
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.partial_sum import PartialSum, SpectralProduct
from circulant.sim.refusal import Refusal

__all__ = ["block_columns", "column_share", "column_sum", "even_columns", "unsummed"]


def block_columns(layer: Any) -> int:
    """The block columns of a layer, which may be divided; 0 of a kind whose columns the hardware does not divide."""
    return -(-layer.inputs // layer.product.block_size) if layer.kind == "linear" else 0


def unsummed(layer: Any) -> str:
    """The reason why the columns of a layer are not divided, in words; empty where they can be."""
    if block_columns(layer) > 1:
        return ""
    return f"no columns of a layer of the kind {layer.kind!r} are divided" if not block_columns(layer) else (
        "it has one block column")


def even_columns(layer: Any, weights: Sequence[float]) -> tuple[int, ...]:
    """Block columns for each chip, in proportion to ``weights``, at least one each; none if there are not so many."""
    total = 0 if unsummed(layer) else block_columns(layer)
    return in_proportion(total, weights) if total >= len(weights) else ()


def column_share(layer: Any, name: str, begin: int, end: int) -> Linear:
    """The layer ``name`` that gives the sums of the block columns from ``begin`` up to ``end`` of a layer.

    Raises:
        Refusal: when its columns cannot be divided.
    """
    if why := unsummed(layer):
        raise Refusal(f"The columns of layer {layer.name!r} cannot be divided: {why}; place it whole")
    k, product = layer.product.block_size, SpectralProduct.of(layer.product, begin, end)
    return Linear(name, min(end * k, layer.inputs) - begin * k, product.rows, product)


def column_sum(layer: Linear, formats: Sequence[Format]) -> PartialSum:
    """The layer that makes the outputs of a layer from sums of these formats, one for each share of its columns."""
    return PartialSum(layer.name, layer.product.rows, tuple(formats), layer.output_format, layer.relu,
                      product=layer.product, rows=layer.outputs)
