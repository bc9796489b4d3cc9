"""The maximum or the mean of what a window sees, channel by channel; of the whole image with a kernel of its size."""
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format, Integers, Reals, requantize, rounding_bits
from circulant.sim.arith.trace import Recorder
from circulant.sim.files.schema import Choice
from circulant.sim.passes import bases
from circulant.sim.passes.errors import monotone
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import FloatLayer, GoldenLayer, Kind
from circulant.sim.passes.products import Tap, ignore
from circulant.sim.passes.quantizing import same_formats
from circulant.sim.passes.rules import FORMATS, GRID, WINDOW
from circulant.sim.refusal import Refusal
from circulant.sim.shape.layer import SameSize, Windowed
from circulant.sim.shape.window import Grid, Window

__all__ = ["KIND", "FloatPool", "Pool", "reciprocal"]

MODES = ("max", "average")


def reciprocal(count: int) -> tuple[int, int]:
    """1 / count as (factor, fraction bits): exact for a power of two, else with 16 significant bits."""
    if count & (count - 1) == 0:
        return 1, count.bit_length() - 1
    bits = 16 + count.bit_length() - 1
    return ((1 << bits + 1) // count + 1) // 2, bits


@dataclass(frozen=True, eq=False)
class Pool(Windowed, SameSize, GoldenLayer):
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
        _check(self.name, self.mode, self.window, self.grid)
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
        return self.finished(y, record)


@dataclass(frozen=True, eq=False)
class FloatPool(Windowed, SameSize, FloatLayer):
    """A maximum or a mean over windows, see `Pool`."""

    name: str
    inputs: int
    grid: Grid
    window: Window
    mode: str

    kind = "pool"

    def __post_init__(self) -> None:
        _check(self.name, self.mode, self.window, self.grid)

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        fill: Any = -math.inf if self.mode == "max" else 0
        views = np.stack(list(self.window.views(x, self.grid, axis=1, fill=fill)))
        y = np.asarray(views.max(0) if self.mode == "max" else views.mean(0))
        tap(f"{self.name}.y", y)
        return y


def _check(name: str, mode: str, window: Window, grid: Grid) -> None:
    """
    Raises:
        Refusal: when the mode is unknown, or the window does not fit.
    """
    if mode not in MODES:
        raise Refusal(f"Layer {name!r} must pool by 'max' or 'average', not {mode!r}; choose one")
    if any(2 * pad > kernel for pad, kernel in zip(window.padding, window.kernel, strict=True)):
        raise Refusal(f"Layer {name!r}: the padding must be at most half of the kernel {window.kernel}, not "
                      f"{window.padding}; choose less")
    window.outputs(name, grid)


@bases.quantize_layer.register
def _(layer: FloatPool, input: Format, peaks: Peaks, bits: Widths) -> Pool:
    mean = peaks.fit(bits.value, f"{layer.name}.y") if layer.mode == "average" else input
    return Pool(layer.name, layer.inputs, layer.grid, window=layer.window, mode=layer.mode, input_format=input,
                output_format=mean)


bases.quantize_layer_like.register(Pool, same_formats)


@bases.bitwidth_fields.register
def _(layer: Pool) -> list[str]:
    return [] if layer.mode == "max" else ["output_bits"]


@bases.layer_worst_cases.register
def _(layer: Pool, peak: float, steps: int) -> Iterator[tuple[str, float]]:
    yield f"{layer.name}.y", peak


bases.propagate.register(Pool, monotone)


KIND = Kind(Pool, FloatPool, {"grid": GRID, "window": WINDOW, "mode": Choice(MODES), **FORMATS})
