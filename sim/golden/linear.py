"""A fully connected layer: one block-circulant product (CirCNN, section 3.1), and a ReLU where it has one."""
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import (
    Arrays,
    layer_arrays,
    layer_fields,
    product_arrays,
    product_fields,
    read_product,
    reader,
)
from circulant.sim.refusal import Refusal

__all__ = ["Linear"]


@dataclass(frozen=True, eq=False)
class Linear:
    """y = W x + b, or max(0, W x + b), for every vector of the last axis.

    What is below zero may be saturated before it becomes zero, so that with a ReLU the output's format need only hold
    what is above.

    Raises:
        Refusal: when the sizes contradict the product's.
    """

    name: str
    inputs: int
    outputs: int
    product: Product
    relu: bool = False

    kind = "linear"

    def __post_init__(self) -> None:
        k = self.product.block_size
        size = (-(-self.outputs // k) * k, -(-self.inputs // k) * k)
        if (self.product.rows, self.product.columns) != size:
            raise Refusal(f"Layer {self.name!r}: the matrix for {self.inputs} inputs and {self.outputs} outputs must "
                          f"be {size[0]}x{size[1]} in blocks of {k}, not {self.product.rows}x{self.product.columns}; "
                          "export it again")

    @property
    def products(self) -> dict[str, Product]:
        return {"product": self.product}

    @property
    def input_format(self) -> Format:
        return self.product.input

    @property
    def output_format(self) -> Format:
        return self.product.output

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        """(…, inputs) to (…, outputs)."""
        if record is None:
            y = self.product(x)[..., :self.outputs]
            return np.maximum(y, 0, out=y) if self.relu else y
        name, vectors = f"{self.name}.product", batch_layout.spread(x, self.product.columns, self.product.block_size)
        spectra = self.product.spectra(vectors)
        sums = self.product.sums(spectra)
        record.vector(f"{name}.input", vectors, self.inputs, self.input_format, step=False)
        record.spectral(f"{name}.spectrum", spectra, self.product.spectrum, step=False)
        record.product(name, self.product, sums, self.outputs, step=False)
        values = self.product.values(sums)
        if self.relu:
            record.vector(f"{self.name}.y", np.maximum(values, 0, out=values), self.outputs, self.output_format,
                          step=False)
        return batch_layout.rows(values, self.outputs)


layer_arrays.register(Linear, product_arrays)


@layer_fields.register
def _(layer: Linear) -> dict[str, Any]:
    return {"relu": layer.relu, **product_fields(layer), "outputs": layer.outputs}


@reader(Linear.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Linear:
    return Linear(entry["name"], entry["inputs"], entry["outputs"], read_product(entry, arrays, "product"),
                  relu=entry["relu"])
