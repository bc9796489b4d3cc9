"""The maximum or the mean of what a window sees, channel by channel; of the whole image with a kernel of its size."""
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, requantize, rounding_bits
from circulant.sim.arith.trace import Recorder
from circulant.sim.golden.serial import Arrays, formats, layer_arrays, layer_fields, read_grid, reader, reader_formats
from circulant.sim.refusal import Refusal
from circulant.sim.shape.geometry import check_pool
from circulant.sim.shape.window import Grid, Window, Windowed

__all__ = ["Pool", "reciprocal"]


def reciprocal(count: int) -> tuple[int, int]:
    """1 / count as (factor, fraction bits): exact for a power of two, else with 16 significant bits."""
    if count & (count - 1) == 0:
        return 1, count.bit_length() - 1
    bits = 16 + count.bit_length() - 1
    return ((1 << bits + 1) // count + 1) // 2, bits


@dataclass(frozen=True, eq=False)
class Pool(Windowed):
    """Images (N, height, width, inputs) to smaller ones.

    Parameters:
        inputs: channels.
        grid: of the images that come.
        mode: "max", which sees nothing around the image, or "average", which sees zeros there.
        input_format, output_format: of the values; a maximum keeps its format.

    Raises:
        Refusal: when the mode is unknown, the kernel is larger than the padded image or the padding than half the
            kernel, a maximum changes its format, or the sums of an average could leave int64.
    """

    name: str
    inputs: int
    grid: Grid
    window: Window
    mode: str
    input_format: Format
    output_format: Format

    kind = "pool"

    def __post_init__(self) -> None:
        check_pool(self.name, self.mode, self.window, self.grid)
        if self.mode == "max" and self.input_format != self.output_format:
            raise Refusal(f"Layer {self.name!r}: a maximum must keep the {self.input_format}, not give "
                          f"{self.output_format}; quantize it again")
        count = self.window.positions
        factor, bits = reciprocal(count)
        sums = self.input_format.width + count.bit_length() + factor.bit_length()
        if self.mode == "average" and rounding_bits(
                sums, self.input_format.frac + bits - self.output_format.frac) > 63:
            raise Refusal(f"Layer {self.name!r}: the sums of {count} values must fit into 63 bits, but with the "
                          f"argument {self.input_format} and the value {self.output_format} they do not; choose "
                          "narrower ones, or binary points nearer to each other")

    @property
    def outputs(self) -> int:
        return self.inputs

    def __call__(self, x: Integers, record: Recorder | None = None) -> Integers:
        fill = self.input_format.lo if self.mode == "max" else 0
        first, *others = self.window.views(x, self.grid, axis=1, fill=fill)
        y = first.copy()
        for other in others:
            if self.mode == "max":
                np.maximum(y, other, out=y)
            else:
                y += other
        if self.mode == "average":
            factor, bits = reciprocal(self.window.positions)
            y = requantize(y * factor, self.input_format.frac + bits, self.output_format)
        if record is not None:
            record.values(f"{self.name}.y", y, self.output_format)
        return y


@layer_arrays.register
def _(layer: Pool) -> dict[str, Integers]:
    return {}


@layer_fields.register
def _(layer: Pool) -> dict[str, Any]:
    return {"grid": list(layer.grid), "window": layer.window.as_json(), **formats(layer), "mode": layer.mode}


@reader(Pool.kind)
def _read(entry: dict[str, Any], arrays: Arrays) -> Pool:
    given, made = reader_formats(entry)
    return Pool(entry["name"], entry["inputs"], read_grid(entry), window=Window.from_json(entry["window"]),
                mode=entry["mode"], input_format=given, output_format=made)
