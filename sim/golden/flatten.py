"""From images to what takes no images: a vector of all values, or a sequence with a vector for each row of pixels."""
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import Arrays, formats, layer_arrays, layer_fields, read_grid, reader, reader_formats
from circulant.sim.shape.geometry import check_order, flat, flattened
from circulant.sim.shape.window import Grid

__all__ = ["Flatten"]


@dataclass(frozen=True, eq=False)
class Flatten:
    """Images (N, height, width, inputs) to vectors (N, outputs) or sequences (N, height, outputs).

    Parameters:
        inputs: channels.
        grid: of the images.
        order: "pixels" for one pixel after the other, all channels of each; "channels", as torch has it, for all
            pixels of the first channel, then those of the next.
        rows: whether each row of pixels is a step of a sequence.
        input_format: of the values.

    Raises:
        Refusal: when the order is unknown.
    """

    name: str
    inputs: int
    grid: Grid
    order: str
    rows: bool
    input_format: Format

    kind = "flatten"

    def __post_init__(self) -> None:
        check_order(self.name, self.order)

    @property
    def outputs(self) -> int:
        return flat(self.inputs, self.grid, rows=self.rows)

    @property
    def output_format(self) -> Format:
        return self.input_format

    @cached_property
    def permutation(self) -> list[int]:
        """For each value of an output vector its place among the values that it is made of, pixel by pixel."""
        height, width = self.grid
        places = np.arange(self.outputs).reshape(1, 1 if self.rows else height, width, self.inputs)
        return list(map(int, flattened(places, self.order, rows=False).reshape(-1)))

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        return flattened(x, self.order, rows=self.rows)


@layer_arrays.register
def _(layer: Flatten) -> dict[str, Integers]:
    return {}


@layer_fields.register
def _(layer: Flatten) -> dict[str, Any]:
    return {"grid": list(layer.grid), **formats(layer), "order": layer.order, "rows": layer.rows}


@reader(Flatten.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Flatten:
    return Flatten(entry["name"], entry["inputs"], read_grid(entry), order=entry["order"], rows=entry["rows"],
                   input_format=reader_formats(entry)[0])
