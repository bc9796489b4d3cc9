"""The sum of vectors, steps or images (He et al. 2016), with or without a ReLU behind it."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, requantize, rounding_bits
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import Arrays, layer_arrays, layer_fields, reader
from circulant.sim.refusal import Refusal

__all__ = ["Add"]


@dataclass(frozen=True, eq=False)
class Add:
    """y = Σ x_i, or max(0, …): exact, then rounded half-up and saturated.

    Parameters:
        inputs: values of a vector, channels of an image.
        input_formats: of what the sources give.
        output_format: of the sum.

    Raises:
        Refusal: when the sum could leave int64.
    """

    name: str
    inputs: int
    input_formats: tuple[Format, ...]
    output_format: Format
    relu: bool = False

    kind = "add"

    def __post_init__(self) -> None:
        frac = max(form.frac for form in self.input_formats)
        bits = max(form.width + frac - form.frac for form in self.input_formats) + (len(self.input_formats) - 1
                                                                                    ).bit_length()
        if rounding_bits(bits, frac - self.output_format.frac) > 63:
            raise Refusal(f"Layer {self.name!r}: the sum must fit into 63 bits, but with the branches "
                          f"{' and '.join(map(str, self.input_formats))} and the value {self.output_format} it does "
                          "not; choose narrower ones, or binary points nearer to each other")

    @property
    def outputs(self) -> int:
        return self.inputs

    @property
    def sizes(self) -> tuple[int, ...]:
        """Values of the vectors of each source."""
        return (self.inputs,) * len(self.input_formats)

    def __call__(self, values: Sequence[Integers], record: Recorder | None = None) -> Integers:
        frac = max(form.frac for form in self.input_formats)
        total = sum(side << frac - form.frac for side, form in zip(values, self.input_formats, strict=True))
        y = requantize(np.asarray(total), frac, self.output_format)
        if self.relu:
            y = np.maximum(y, 0)
        if record is not None:
            record.values(f"{self.name}.y", y, self.output_format)
        return np.asarray(y)


@layer_arrays.register
def _(layer: Add) -> dict[str, Integers]:
    return {}


@layer_fields.register
def _(layer: Add) -> dict[str, Any]:
    return {"input_formats": [form.as_json() for form in layer.input_formats],
            "output_format": layer.output_format.as_json(), "relu": layer.relu}


@reader(Add.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Add:
    return Add(entry["name"], entry["inputs"], tuple(map(Format.from_json, entry["input_formats"])),
               Format.from_json(entry["output_format"]), relu=entry["relu"])
