"""The sum of what two chains of layers make of the same images, vectors or steps (He et al. 2016), with or without a
ReLU behind it."""
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, requantize, rounding_bits
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import (
    Arrays,
    formats,
    layer_arrays,
    layer_as_json,
    layer_fields,
    layer_from_json,
    read_grid,
    reader,
    reader_formats,
)
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Grid

if TYPE_CHECKING:
    from circulant.sim.golden.layers import Layer

__all__ = ["Residual"]


@dataclass(frozen=True, eq=False)
class Residual:
    """y = body(x) + shortcut(x), or max(0, …), rounded half-up and saturated.

    Parameters:
        inputs: channels, or values of a vector.
        grid: of the images that come; None for vectors, and steps of sequences.
        body, shortcut: layers; no layer stands for x itself. That they fit is checked by `sim.shape.chain.check_chain`.
        output_format: of the sum.

    Raises:
        Refusal: when the sum could leave int64.
    """

    name: str
    inputs: int
    grid: Grid | None
    body: tuple["Layer", ...]
    shortcut: tuple["Layer", ...]
    input_format: Format
    output_format: Format
    relu: bool = False

    kind = "residual"

    def __post_init__(self) -> None:
        frac = max(form.frac for form in self.formats)
        bits = max(form.width + frac - form.frac for form in self.formats) + 1
        if rounding_bits(bits, frac - self.output_format.frac) > 63:
            raise Refusal(f"Layer {self.name!r}: the sum must fit into 63 bits, but with the branches "
                          f"{self.formats[0]} and {self.formats[1]} and the value {self.output_format} it does not; "
                          "choose narrower ones, or binary points nearer to each other")

    @property
    def branches(self) -> dict[str, tuple["Layer", ...]]:
        return {"body": self.body, "shortcut": self.shortcut}

    @property
    def within(self) -> tuple["Layer", ...]:
        """The layers of both branches."""
        return *self.body, *self.shortcut

    @property
    def outputs(self) -> int:
        return next((chain[-1].outputs for chain in self.branches.values() if chain), self.inputs)

    @property
    def formats(self) -> tuple[Format, Format]:
        """The formats of what the two branches give."""
        body, shortcut = (chain[-1].output_format if chain else self.input_format for chain in self.branches.values())
        return body, shortcut

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        sides = []
        for chain in self.branches.values():
            values = x
            for layer in chain:
                values = layer(values, record)
            sides.append(values)
        frac = max(form.frac for form in self.formats)
        first, second = (side << frac - form.frac for side, form in zip(sides, self.formats, strict=True))
        y = requantize(first + second, frac, self.output_format)
        if self.relu:
            y = np.maximum(y, 0)
        if record is not None:
            record.values(f"{self.name}.y", y, self.output_format)
        return np.asarray(y)


@layer_arrays.register
def _(layer: Residual) -> dict[str, Integers]:
    return {name: array for each in layer.within for name, array in layer_arrays(each).items()}


@layer_fields.register
def _(layer: Residual) -> dict[str, Any]:
    grid = {} if layer.grid is None else {"grid": list(layer.grid)}
    return {**grid, **formats(layer), "relu": layer.relu,
            **{side: list(map(layer_as_json, chain)) for side, chain in layer.branches.items()}}


@reader(Residual.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Residual:
    body, shortcut = (tuple(layer_from_json(each, arrays) for each in entry[side]) for side in ("body", "shortcut"))
    given, made = reader_formats(entry)
    grid = read_grid(entry) if "grid" in entry else None
    return Residual(entry["name"], entry["inputs"], grid, body=body, shortcut=shortcut, input_format=given,
                    output_format=made, relu=entry["relu"])
