"""Layers of one block-circulant product, with a ReLU behind it or none: a fully connected layer and a convolution."""
from collections.abc import Iterator

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format
from circulant.sim.passes import bases, ranges
from circulant.sim.passes.layer import GoldenLayer

__all__ = ["PRODUCT_FIELDS", "Matrix", "twiddle_fields"]

PRODUCT_FIELDS = ("weight_bits", "spectrum_bits", "product_bits", "output_bits")
"""The bit widths of a layer with a matrix."""


class Matrix(GoldenLayer):
    """A layer in integers whose outputs are those of its product, or 0 where these are less and it has a ReLU."""

    product: Product

    @property
    def products(self) -> dict[str, Product]:
        return {"product": self.product}

    @property
    def input_format(self) -> Format:
        return self.product.input

    @property
    def output_format(self) -> Format:
        return self.product.output


@bases.bitwidth_fields.register
def _(layer: Matrix) -> list[str]:
    return [*PRODUCT_FIELDS, *twiddle_fields(layer)]


def twiddle_fields(layer: GoldenLayer) -> list[str]:
    """Smaller transforms only add."""
    return ["twiddle_bits"] if max(product.block_size for product in layer.products.values()) > 4 else []


@bases.layer_worst_cases.register
def _(layer: Matrix, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    yield from ranges.vector(f"{layer.name}.product", layer.product, peak)
    yield from (rows := ranges.sums(f"{layer.name}.product", [(layer.product, peak)]))
    if layer.relu:
        yield f"{layer.name}.y", rows[-1][1]
