"""A convolution, circulant over the channels at each position of its kernel (CirCNN, section 3.2).

Each pixel is transformed once, channel block by channel block; for each output pixel the products of all kernel
positions and input blocks are summed up in the spectral domain, and each output block is transformed back once. So it
is a block-circulant matrix times what the kernel sees, the channels of its positions side by side.
"""
from dataclasses import dataclass, replace

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.circulant import Product, pad
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Flag
from circulant.sim.kinds.matrix import Matrix
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between, multiplied
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, Kind
from circulant.sim.passes.products import Tap, check, check_first_columns, ignore, product, spectra
from circulant.sim.passes.quantizing import layer_product, product_like
from circulant.sim.passes.rules import GRID, PRODUCT, SIZE, WINDOW
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import Windowed
from circulant.sim.shape.window import Grid, Window

__all__ = ["KIND", "Conv", "FloatConv"]


@dataclass(frozen=True, eq=False)
class Conv(Windowed, Matrix):
    """Images (N, height, width, inputs) to images (N, height, width, outputs).

    Parameters:
        inputs, outputs: channels.
        grid: of the images that come.
        product: its columns are those of the kernel's positions, row by row, each ⌈inputs / k⌉ blocks.
        relu: whether negative outputs become zero; see `sim.kinds.linear.Linear`.

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
    def blocks(self) -> int:
        """Blocks of the channels of a pixel that comes."""
        return -(-self.inputs // self.product.block_size)

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


@dataclass(frozen=True, eq=False)
class FloatConv(Windowed, FloatLayer):
    """A convolution: torch.nn.Conv2d, or Conv1d over images of width 1.

    Parameters:
        grid: of the images that come.
        weight: first columns (positions, p, q, k) of the matrix at each position of the kernel, row by row.
        bias: (outputs,).
        relu: whether negative outputs become zero.
    """

    name: str
    inputs: int
    outputs: int
    grid: Grid
    window: Window
    weight: Reals
    bias: Reals
    relu: bool = False

    kind = "conv"

    def __post_init__(self) -> None:
        check_first_columns(self.name, weight=(self.weight, (self.window.positions, self.outputs, self.inputs)))
        check(self.name, bias=(self.bias, (self.outputs,)))
        self.window.outputs(self.name, self.grid)

    @property
    def matrix(self) -> Reals:
        """First columns (p, positions · q, k) of the matrix that takes what the kernel sees."""
        positions, p, q, k = self.weight.shape
        return self.weight.transpose(1, 0, 2, 3).reshape(p, positions * q, k)

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        name, (_, _, q, k) = f"{self.name}.product", self.weight.shape
        x = pad(x, q * k)
        seen = np.stack(list(self.window.views(x, self.grid, axis=1)), axis=3)  # (N, height, width, positions, q·k)

        def of_outputs(tensor: str, values: Reals) -> None:
            if not tensor.endswith((".input", ".spectrum")):
                tap(tensor, values)

        if tap is not ignore:
            tap(f"{name}.input", x[..., :self.inputs])
            tap(f"{name}.spectrum", spectra(x.reshape(*x.shape[:-1], q, k)))
        y = product(name, self.bias[None], of_outputs if tap is not ignore else ignore,
                     {name: (self.matrix[None], seen.reshape(*seen.shape[:3], -1))})[..., 0, :]
        if self.relu:
            tap(f"{self.name}.y", y := np.maximum(y, 0.0))
        return y


@bases.quantize_layer.register
def _(layer: FloatConv, input: Format, peaks: Peaks, bits: Widths) -> Conv:
    matrix = layer_product(layer, layer.matrix, input, peaks, bits)
    return Conv(layer.name, layer.inputs, layer.outputs, grid=layer.grid, window=layer.window, product=matrix,
                relu=layer.relu)


@bases.quantize_layer_like.register
def _(rule: Conv, layer: FloatConv) -> Conv:
    return replace(rule, name=layer.name, product=product_like(rule.product, layer.name, layer.matrix, layer.bias))


@bases.propagate.register
def _(layer: Conv, exact: FloatConv, trace: bases.Trace, known: bases.Known) -> bases.Known:
    """By the true sums before the ReLU, as an interval."""
    y = layer.output_format.real(replace(layer, relu=False)(layer.input_format.quantize(known[0])))
    first, second, third = (
        np.stack(list(layer.window.views(pad(part, layer.blocks * layer.product.block_size), layer.grid, axis=1)),
                 axis=3).reshape(-1, layer.product.columns) for part in known)
    near = multiplied(layer.product, exact.matrix, (first, second, third), y.reshape(-1, layer.outputs))
    middle, rest = y - near.shift.reshape(y.shape), near.rest.reshape(y.shape)
    return between(layer, known, middle - rest, middle + rest)


KIND = Kind(Conv, FloatConv, {"grid": GRID, "window": WINDOW, "relu": Flag(), "product": PRODUCT,
                                     "outputs": SIZE})
