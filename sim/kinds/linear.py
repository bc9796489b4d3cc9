"""A fully connected layer: one block-circulant product (CirCNN, section 3.1), and a ReLU where it has one."""
from dataclasses import dataclass

import numpy as np

from circulant.sim.arith import batch_layout
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Flag
from circulant.sim.kinds.matrix import Matrix
from circulant.sim.passes import bases
from circulant.sim.passes.errors import multiplied
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, Kind
from circulant.sim.passes.products import Tap, check, check_first_columns, ignore, product
from circulant.sim.passes.quantizing import layer_product, product_like
from circulant.sim.passes.rules import PRODUCT, SIZE
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import OverVectors

__all__ = ["KIND", "FloatLinear", "Linear"]


@dataclass(frozen=True, eq=False)
class Linear(OverVectors, Matrix):
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
    stepwise = True

    def __post_init__(self) -> None:
        k = self.product.block_size
        size = (-(-self.outputs // k) * k, -(-self.inputs // k) * k)
        if (self.product.rows, self.product.columns) != size:
            raise Refusal(f"Layer {self.name!r}: the matrix for {self.inputs} inputs and {self.outputs} outputs must "
                          f"be {size[0]}x{size[1]} in blocks of {k}, not {self.product.rows}x{self.product.columns}; "
                          "export it again")

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


@dataclass(frozen=True, eq=False)
class FloatLinear(OverVectors, FloatLayer):
    """y = W x + b, or max(0, W x + b).

    Parameters:
        weight: first columns (p, q, k), p·k ≥ outputs and q·k ≥ inputs.
        bias: (outputs,).
        relu: whether negative outputs become zero.
    """

    name: str
    inputs: int
    outputs: int
    weight: Reals
    bias: Reals
    relu: bool = False

    kind = "linear"
    stepwise = True

    def __post_init__(self) -> None:
        check_first_columns(self.name, weight=(self.weight, (self.outputs, self.inputs)))
        check(self.name, bias=(self.bias, (self.outputs,)))

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        name = f"{self.name}.product"
        y = product(name, self.bias[None], tap, {name: (self.weight[None], x)})[..., 0, :]
        if self.relu:
            tap(f"{self.name}.y", y := np.maximum(y, 0.0))
        return y


@bases.quantize_layer.register
def _(layer: FloatLinear, input: Format, peaks: Peaks, bits: Widths) -> Linear:
    matrix = layer_product(layer, layer.weight, input, peaks, bits)
    return Linear(layer.name, layer.inputs, layer.outputs, matrix, layer.relu)


@bases.quantize_layer_like.register
def _(rule: Linear, layer: FloatLinear) -> Linear:
    matrix = product_like(rule.product, layer.name, layer.weight, layer.bias)
    return Linear(layer.name, layer.inputs, layer.outputs, matrix, layer.relu)


@bases.propagate.register
def _(layer: Linear, exact: FloatLinear, trace: bases.Trace, known: bases.Known) -> bases.Known:
    size = known[0].shape[-1]
    y = trace[f"{layer.name}.product.output"]
    golden = y.format.real(y.integers)
    first, second, third = (part.reshape(-1, size) for part in known)
    near = multiplied(layer.product, exact.weight, (first, second, third), golden.reshape(-1, layer.outputs))
    if not layer.relu:
        return golden, near.shift.reshape(golden.shape), near.rest.reshape(golden.shape)
    # A ReLU brings nothing further apart; what is known of the error is lost where a sign may be another one.
    most, sure = near.most.reshape(golden.shape), np.abs(golden) > near.most.reshape(golden.shape)
    return (np.maximum(golden, 0), np.where(sure, near.shift.reshape(golden.shape) * (golden > 0), 0),
            np.where(sure, near.rest.reshape(golden.shape) * (golden > 0), most))


KIND = Kind(Linear, FloatLinear, {"relu": Flag(), "product": PRODUCT, "outputs": SIZE})
