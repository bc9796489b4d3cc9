"""A scale and shift for each channel: a batch normalisation that could not become part of a circulant matrix."""
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, round_shift, rounding_bits, saturate
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import Arrays, formats, integers, layer_arrays, layer_fields, reader, reader_formats
from circulant.sim.refusal import Refusal

__all__ = ["Scale"]


@dataclass(frozen=True, eq=False)
class Scale:
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
    def outputs(self) -> int:
        return self.inputs

    @property
    def rounding(self) -> int:
        """Bits by which a product is shifted."""
        return self.input_format.frac + self.factor.frac - self.output_format.frac

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        y = saturate(round_shift(x * self.scale, self.rounding) + self.shift, self.output_format.width)
        if self.relu:
            y = np.maximum(y, 0)
        if record is not None:
            record.values(f"{self.name}.y", y, self.output_format)
        return np.asarray(y)


@layer_arrays.register
def _(layer: Scale) -> dict[str, Integers]:
    return {f"{layer.name}.scale": layer.scale, f"{layer.name}.shift": layer.shift}


@layer_fields.register
def _(layer: Scale) -> dict[str, Any]:
    return {**formats(layer), "relu": layer.relu, "factor": layer.factor.as_json()}


@reader(Scale.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Scale:
    name, (given, made) = entry["name"], reader_formats(entry)
    return Scale(name, entry["inputs"], integers(arrays, f"{name}.scale", 1), integers(arrays, f"{name}.shift", 1),
                 factor=Format.from_json(entry["factor"]), input_format=given, output_format=made, relu=entry["relu"])
