"""A convolution, circulant over the channels at each position of its kernel (CirCNN, section 3.2).

Each pixel is transformed once, channel block by channel block; for each output pixel the products of all kernel
positions and input blocks are summed up in the spectral domain, and each output block is transformed back once. So it
is a block-circulant matrix times what the kernel sees, the channels of its positions side by side.
"""
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
    read_grid,
    read_product,
    reader,
)
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Grid, Window, Windowed

__all__ = ["Conv"]


@dataclass(frozen=True, eq=False)
class Conv(Windowed):
    """Images (N, height, width, inputs) to images (N, height, width, outputs).

    Parameters:
        inputs, outputs: channels.
        grid: of the images that come.
        product: its columns are those of the kernel's positions, row by row, each ⌈inputs / k⌉ blocks.
        relu: whether negative outputs become zero; see `sim.golden.linear.Linear`.

    Raises:
        Refusal: when the sizes contradict the product's, or the kernel is larger than the padded image.
    """

    name: str
    inputs: int
    outputs: int
    grid: Grid
    window: Window
    product: Product
    relu: bool = False

    kind = "conv"

    def __post_init__(self) -> None:
        k = self.product.block_size
        size = (-(-self.outputs // k) * k, self.window.positions * self.blocks * k)
        if (self.product.rows, self.product.columns) != size:
            raise Refusal(f"Layer {self.name!r}: the matrix for {self.inputs} input and {self.outputs} output channels "
                          f"and {self.window.positions} kernel positions must be {size[0]}x{size[1]} in blocks of {k}, "
                          f"not {self.product.rows}x{self.product.columns}; export it again")
        self.window.outputs(self.name, self.grid)

    @property
    def products(self) -> dict[str, Product]:
        return {"product": self.product}

    @property
    def blocks(self) -> int:
        """Blocks of the channels of a pixel that comes."""
        return -(-self.inputs // self.product.block_size)

    @property
    def input_format(self) -> Format:
        return self.product.input

    @property
    def output_format(self) -> Format:
        return self.product.output

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        k = self.product.block_size
        vectors = batch_layout.spread(x, self.blocks * k, k)  # (k, q, height, width, N)
        spectra = self.product.spectra(vectors)
        seen = np.stack(list(self.window.views(spectra, self.grid, axis=2)), axis=1)  # (k, positions, q, …)
        sums = self.product.sums(seen.reshape(k, -1, *seen.shape[3:]))
        values = self.product.values(sums)
        if record is not None:
            name = f"{self.name}.product"
            record.vector(f"{name}.input", vectors, self.inputs, self.input_format, step=False)
            record.spectral(f"{name}.spectrum", spectra, self.product.spectrum, step=False)
            record.product(name, self.product, sums, self.outputs, step=False)
        if self.relu:
            np.maximum(values, 0, out=values)
            if record is not None:
                record.vector(f"{self.name}.y", values, self.outputs, self.output_format, step=False)
        return batch_layout.rows(values, self.outputs)


layer_arrays.register(Conv, product_arrays)


@layer_fields.register
def _(layer: Conv) -> dict[str, Any]:
    return {"grid": list(layer.grid), "window": layer.window.as_json(), "relu": layer.relu, **product_fields(layer),
            "outputs": layer.outputs}


@reader(Conv.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Conv:
    return Conv(entry["name"], entry["inputs"], entry["outputs"], grid=read_grid(entry),
                window=Window.from_json(entry["window"]), product=read_product(entry, arrays, "product"),
                relu=entry["relu"])
