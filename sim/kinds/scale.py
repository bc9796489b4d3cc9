"""A scale and shift for each channel: a batch normalisation that could not become part of a circulant matrix."""
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals, fit, round_shift, rounding_bits, saturate
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Flag
from circulant.sim.passes import bases
from circulant.sim.passes.errors import between, ends
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, check, ignore
from circulant.sim.passes.quantizing import check_fit
from circulant.sim.passes.rules import FORMAT, FORMATS
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import SameSize

__all__ = ["KIND", "FloatScale", "Scale"]


@dataclass(frozen=True, eq=False)
class Scale(SameSize, GoldenLayer):
    """y = s x + t, or max(0, s x + t), over the last axis of vectors or images; rounded half-up, then saturated.

    Parameters:
        scale: s, integers (inputs,) of the format ``factor``.
        shift: t, integers (inputs,) of the output's format.

    Raises:
        Refusal: when a scale or shift has another shape or lies beyond its format, or a sum could leave int64.
    """

    name: str
    inputs: int
    scale: Integers
    shift: Integers
    factor: Format
    input_format: Format
    output_format: Format
    relu: bool = False

    kind = "scale"
    stepwise = True
    searched = ("weight_bits", "output_bits")

    def __post_init__(self) -> None:
        for field, values, form in (("scale", self.scale, self.factor), ("shift", self.shift, self.output_format)):
            if values.shape != (self.inputs,) or values.min() < form.lo or values.max() > form.hi:
                raise Refusal(f"Layer {self.name!r}: the {field} must be {self.inputs} integers of {form.width} bits, "
                              f"not {values.shape} from {values.min()} to {values.max()}; quantize it again")
        bits = rounding_bits(self.input_format.width + self.factor.width, self.rounding)
        if max(bits, self.output_format.width) + 1 > 63:
            raise Refusal(f"Layer {self.name!r}: its sums must fit into 63 bits, but with the argument "
                          f"{self.input_format}, the factor {self.factor} and the value {self.output_format} they do "
                          "not; choose narrower ones, or binary points nearer to each other")

    @property
    def rounding(self) -> int:
        """Bits by which a product is shifted."""
        return self.input_format.frac + self.factor.frac - self.output_format.frac

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        y = saturate(round_shift(x * self.scale, self.rounding) + self.shift, self.output_format.width)
        return self.finished(y, record)


@dataclass(frozen=True, eq=False)
class FloatScale(SameSize, FloatLayer):
    """y = s x + t over the last axis, or max(0, s x + t).

    Parameters:
        scale, shift: (inputs,).
    """

    name: str
    inputs: int
    scale: Reals
    shift: Reals
    relu: bool = False

    kind = "scale"
    stepwise = True

    def __post_init__(self) -> None:
        check(self.name, scale=(self.scale, (self.inputs,)), shift=(self.shift, (self.inputs,)))

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        y = x * self.scale + self.shift
        y = np.maximum(y, 0.0) if self.relu else y
        tap(f"{self.name}.y", y)
        return y


@bases.quantize_layer.register
def _(layer: FloatScale, input: Format, peaks: Peaks, bits: Widths) -> Scale:
    factor = fit(float(np.abs(layer.scale).max()), bits.weight_bits)
    output = peaks.fit(bits.value, f"{layer.name}.y", bias=layer.shift)
    return Scale(layer.name, layer.inputs, factor.quantize(layer.scale), output.quantize(layer.shift), factor=factor,
                 input_format=input, output_format=output, relu=layer.relu)


@bases.quantize_layer_like.register
def _(rule: Scale, layer: FloatScale) -> Scale:
    check_fit(layer.name, [("factors", rule.factor, layer.scale), ("shifts", rule.output_format, layer.shift)])
    return replace(rule, name=layer.name, scale=rule.factor.quantize(layer.scale),
                   shift=rule.output_format.quantize(layer.shift))


@bases.layer_bits.register
def _(layer: Scale) -> int:
    return layer.inputs * layer.factor.width


@bases.layer_worst_cases.register
def _(layer: Scale, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", float((np.abs(layer.factor.real(layer.scale)) * peak
                                    + np.abs(layer.output_format.real(layer.shift))).max())


@bases.propagate.register
def _(layer: Scale, exact: FloatScale, trace: bases.Trace, known: bases.Known) -> bases.Known:
    both = [exact.scale * end + exact.shift for end in ends(*known)]
    return between(layer, known, np.minimum(*both), np.maximum(*both))


KIND = Kind(Scale, FloatScale, {"relu": Flag(), "factor": FORMAT, **FORMATS}, arrays={"scale": 1, "shift": 1})
