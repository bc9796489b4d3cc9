"""From images to what takes no images: a vector of all values, or a sequence with a vector for each row of pixels."""
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Choice, Flag
from circulant.sim.passes import bases
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import FORMATS, GRID
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import OverImages
from circulant.sim.shape.window import Flow, Grid

__all__ = ["KIND", "ORDERS", "Flatten", "FloatFlatten", "flattened"]

ORDERS = ("pixels", "channels")


def flattened(x: np.ndarray, order: str, *, rows: bool) -> np.ndarray:
    """Images (N, height, width, channels) as vectors (N, outputs) or sequences (N, height, outputs)."""
    if order == "channels":
        x = np.moveaxis(x, -1, 2 if rows else 1)
    return x.reshape(*x.shape[:2], -1) if rows else x.reshape(len(x), -1)


class _Shape(OverImages):
    kind = "flatten"

    order: str
    rows: bool

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise Refusal(f"Layer {self.name!r} must flatten by 'pixels' or 'channels', not {self.order!r}; choose one")

    @property
    def outputs(self) -> int:
        height, width = self.grid
        return self.inputs * width * (1 if self.rows else height)

    def _of_images(self) -> Flow:
        return Flow(self.outputs, sequence=self.rows)


@dataclass(frozen=True, eq=False)
class Flatten(_Shape, GoldenLayer):
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


@dataclass(frozen=True, eq=False)
class FloatFlatten(_Shape, FloatLayer):
    """Images to vectors, or to sequences with a step for each row; see `Flatten`."""

    name: str
    inputs: int
    grid: Grid
    order: str
    rows: bool = False

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        return flattened(x, self.order, rows=self.rows)


@bases.quantize_layer.register
def _(layer: FloatFlatten, input: Format, peaks: Peaks, bits: Widths) -> Flatten:
    return Flatten(layer.name, layer.inputs, layer.grid, order=layer.order, rows=layer.rows, input_format=input)


bases.quantize_layer_like.register(Flatten, same_formats)


@bases.propagate.register
def _(layer: Flatten, exact: FloatFlatten, trace: bases.Trace, known: bases.Known) -> bases.Known:
    first, second, third = (flattened(part, layer.order, rows=layer.rows) for part in known)
    return first, second, third


KIND = Kind(Flatten, FloatFlatten, {"grid": GRID, "order": Choice(ORDERS), "rows": Flag(), **FORMATS})
