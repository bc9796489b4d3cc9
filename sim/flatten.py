"""From images to what takes no images: a vector of all values, or a sequence with a vector for each row of pixels."""
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from circulant.sim.fixed import Format, Integers
from circulant.sim.refusal import Refusal
from circulant.sim.trace import Recorder
from circulant.sim.window import Grid

__all__ = ["ORDERS", "Flatten", "check_order", "flat", "flattened"]

ORDERS = ("pixels", "channels")


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


def flat(channels: int, grid: Grid, *, rows: bool) -> int:
    """Values of an image, or of a row of its pixels."""
    height, width = grid
    return channels * width * (1 if rows else height)


def flattened(x: np.ndarray, order: str, *, rows: bool) -> np.ndarray:
    """Images (N, height, width, channels) as vectors (N, outputs) or sequences (N, height, outputs)."""
    if order == "channels":
        x = np.moveaxis(x, -1, 2 if rows else 1)
    return x.reshape(*x.shape[:2], -1) if rows else x.reshape(len(x), -1)


def check_order(name: str, order: str) -> None:
    """
    Raises:
        Refusal: when the order is unknown.
    """
    if order not in ORDERS:
        raise Refusal(f"Layer {name!r} must flatten by 'pixels' or 'channels', not {order!r}; choose one")
