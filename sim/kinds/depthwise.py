"""A depthwise convolution: what a window sees of each channel, times weights of that channel."""
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals, fit, round_shift, rounding_bits, saturate
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Flag
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, check, ignore
from circulant.sim.passes.quantizing import check_fit
from circulant.sim.passes.rules import FORMAT, FORMATS, GRID, WINDOW
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import SameSize, Windowed
from circulant.sim.shape.window import Grid, Window

__all__ = ["KIND", "Depthwise", "FloatDepthwise"]


class _Shape(Windowed, SameSize):
    kind = "depthwise"

    def summed(self, x: np.ndarray, weights: np.ndarray) -> Any:
        """Σ w x over the window, (N, height, width, inputs), by weights (positions, inputs)."""
        return sum(view * each for view, each in zip(self.window.views(x, self.grid, axis=1), weights, strict=True))


@dataclass(frozen=True, eq=False)
class Depthwise(_Shape, GoldenLayer):
    """y = sat(round(Σ w x) + b), or 0 where that is less and it has a ReLU; the sum is exact.

    Parameters:
        inputs: channels.
        grid: of the images that come.
        weights: w, integers (positions, inputs) of the format ``factor``, position by position, row by row.
        bias: b, integers (inputs,) of the output's format.

    Raises:
        Refusal: when integers have another shape or lie beyond their formats, the kernel is larger than the padded
            image, or a sum could leave int64.
    """

    name: str
    inputs: int
    grid: Grid
    window: Window
    weights: Integers
    bias: Integers
    factor: Format
    input_format: Format
    output_format: Format
    relu: bool = False

    searched = ("weight_bits", "output_bits")
    vector = "weights"

    def __post_init__(self) -> None:
        for field, values, form, shape in (
                ("weights", self.weights, self.factor, (self.window.positions, self.inputs)),
                ("bias", self.bias, self.output_format, (self.inputs,))):
            if values.shape != shape or values.min() < form.lo or values.max() > form.hi:
                raise Refusal(f"Layer {self.name!r}: the {field} must be {shape} integers of {form.width} bits, "
                              f"not {values.shape} from {values.min()} to {values.max()}; quantize it again")
        if max(rounding_bits(self.sum_bits, self.rounding), self.output_format.width) + 1 > 63:
            raise Refusal(f"Layer {self.name!r}: its sums must fit into 63 bits, but with the argument "
                          f"{self.input_format}, the weights {self.factor} and the value {self.output_format} they do "
                          "not; choose narrower ones, or binary points nearer to each other")
        self.window.outputs(self.name, self.grid)

    @property
    def sum_bits(self) -> int:
        """Bits of a sum of products."""
        return self.input_format.width + self.factor.width + (self.window.positions - 1).bit_length()

    @property
    def rounding(self) -> int:
        """Bits by which a sum is shifted."""
        return self.input_format.frac + self.factor.frac - self.output_format.frac

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        y = saturate(round_shift(self.summed(x, self.weights), self.rounding) + self.bias, self.output_format.width)
        return self.finished(y, record)


@dataclass(frozen=True, eq=False)
class FloatDepthwise(_Shape, FloatLayer):
    """torch.nn.Conv2d, or Conv1d over images of width 1, with as many groups as channels that come and leave.

    Parameters:
        weights: (positions, inputs), row by row.
        bias: (inputs,).
    """

    name: str
    inputs: int
    grid: Grid
    window: Window
    weights: Reals
    bias: Reals
    relu: bool = False

    def __post_init__(self) -> None:
        check(self.name, weights=(self.weights, (self.window.positions, self.inputs)), bias=(self.bias, (self.inputs,)))
        self.window.outputs(self.name, self.grid)

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        y = np.asarray(self.summed(x, self.weights) + self.bias)
        y = np.maximum(y, 0.0) if self.relu else y
        tap(f"{self.name}.y", y)
        return y


@bases.quantize_layer.register
def _(layer: FloatDepthwise, input: Format, peaks: Peaks, bits: Widths) -> Depthwise:
    known = bits.grids.get(f"{layer.name}.weights")
    factor = known.form if known else fit(float(np.abs(layer.weights).max()), bits.weight_bits)
    output = peaks.fit(bits.value, f"{layer.name}.y", bias=layer.bias)
    return Depthwise(layer.name, layer.inputs, layer.grid, layer.window, weights=factor.quantize(layer.weights),
                     bias=output.quantize(layer.bias), factor=factor, input_format=input, output_format=output,
                     relu=layer.relu)


@bases.quantize_layer_like.register
def _(rule: Depthwise, layer: FloatDepthwise) -> Depthwise:
    check_fit(layer.name, [("weights", rule.factor, layer.weights), ("bias", rule.output_format, layer.bias)])
    return replace(rule, name=layer.name, weights=rule.factor.quantize(layer.weights),
                   bias=rule.output_format.quantize(layer.bias))


@bases.layer_bits.register
def _(layer: Depthwise) -> int:
    return layer.weights.size * layer.factor.width


@bases.layer_worst_cases.register
def _(layer: Depthwise, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", float((np.abs(layer.factor.real(layer.weights)).sum(0) * peak
                                    + np.abs(layer.output_format.real(layer.bias))).max())


@bases.propagate.register
def _(layer: Depthwise, exact: FloatDepthwise, trace: bases.Trace, known: bases.Known) -> bases.Known:
    golden, shift, rest = known
    y, apart = replace(exact, relu=False)(golden - shift), exact.summed(rest, np.abs(exact.weights))
    return between(layer, known, y - apart, y + apart)


KIND = Kind(Depthwise, FloatDepthwise, {"grid": GRID, "window": WINDOW, "relu": Flag(), "factor": FORMAT, **FORMATS},
            arrays={"weights": 2, "bias": 1})
