"""Vectors, steps or pixels side by side, in integers."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, requantize, rounding_bits
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import Arrays, layer_arrays, layer_fields, reader
from circulant.sim.refusal import Refusal

__all__ = ["Concat"]


@dataclass(frozen=True, eq=False)
class Concat:
    """The values of the first source, behind them those of the next: each rounded half-up and saturated to one format.

    Parameters:
        sizes: values of the vectors of each source.
        input_formats: of what the sources give.

    Raises:
        Refusal: when a value could leave int64.
    """

    name: str
    sizes: tuple[int, ...]
    input_formats: tuple[Format, ...]
    output_format: Format

    kind = "concat"

    def __post_init__(self) -> None:
        for form in self.input_formats:
            if rounding_bits(form.width, form.frac - self.output_format.frac) > 63:
                raise Refusal(f"Layer {self.name!r}: values of the {form} must fit into 63 bits when they become "
                              f"{self.output_format}, but they do not; choose formats nearer to each other")

    @property
    def inputs(self) -> int:
        return sum(self.sizes)

    @property
    def outputs(self) -> int:
        return sum(self.sizes)

    @property
    def rounds(self) -> bool:
        """Whether a source has another format than the output."""
        return any(form != self.output_format for form in self.input_formats)

    def __call__(self, values: Sequence[Integers], record: Recorder | None = None) -> Integers:
        parts = [requantize(part, form.frac, self.output_format)
                 for part, form in zip(values, self.input_formats, strict=True)]
        y = np.concatenate(parts, axis=-1)
        if record is not None and self.rounds:
            record.values(f"{self.name}.y", y, self.output_format)
        return y


@layer_arrays.register
def _(layer: Concat) -> dict[str, Integers]:
    return {}


@layer_fields.register
def _(layer: Concat) -> dict[str, Any]:
    return {"sizes": list(layer.sizes), "input_formats": [form.as_json() for form in layer.input_formats],
            "output_format": layer.output_format.as_json()}


@reader(Concat.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Concat:
    return Concat(entry["name"], tuple(entry["sizes"]), tuple(map(Format.from_json, entry["input_formats"])),
                  Format.from_json(entry["output_format"]))
