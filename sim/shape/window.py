"""Windows of convolutions and poolings over an image, and the flow between layers."""
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.refusal import Refusal

__all__ = ["Flow", "Grid", "Window", "pixels"]

Grid = tuple[int, int]
"""Height and width of an image. What has one axis, as the data of a Conv1d, is an image of width 1."""


@dataclass(frozen=True)
class Flow:
    """The flow from one layer to the next: vectors, sequences of vectors, or images.

    Parameters:
        size: values of a vector, or of a pixel.
        grid: of an image; None elsewhere.
        sequence: whether it is a sequence.
    """

    size: int
    grid: Grid | None = None
    sequence: bool = False

    @property
    def pixels(self) -> int:
        """Pixels of an image; 1 elsewhere."""
        return 1 if self.grid is None else math.prod(self.grid)

    @property
    def values(self) -> int:
        """Values of a vector, or of a whole image."""
        return self.size * self.pixels

    def __str__(self) -> str:
        if self.grid is not None:
            return f"images of {self.grid[0]} x {self.grid[1]} with {self.size} channels"
        return f"{'sequences of ' if self.sequence else ''}vectors of {self.size} values"


@dataclass(frozen=True)
class Window:
    """A kernel that moves over an image in steps of ``stride``, zeros around the image. All are (height, width).

    Parameters:
        dilation: pixels from one position of the kernel to the next.

    Raises:
        Refusal: when a size is not positive, or the padding is negative.
    """

    kernel: Grid
    stride: Grid = (1, 1)
    padding: Grid = (0, 0)
    dilation: Grid = (1, 1)

    def __post_init__(self) -> None:
        if min(*self.kernel, *self.stride, *self.dilation) < 1 or min(self.padding) < 0:
            raise Refusal(f"A window must have a positive kernel, stride and dilation and no negative padding, not "
                          f"{self}; correct the layer")

    @property
    def extent(self) -> Grid:
        """Pixels from the first position of the kernel to the last, down and across."""
        down, across = ((kernel - 1) * dilation + 1 for kernel, dilation in zip(
            self.kernel, self.dilation, strict=True))
        return down, across

    @property
    def positions(self) -> int:
        """Pixels that it sees."""
        return math.prod(self.kernel)

    def outputs(self, name: str, grid: Grid) -> Grid:
        """Positions that it takes on an image, down and across.

        Raises:
            Refusal: when it is larger than the padded image of layer ``name``.
        """
        padded = tuple(size + 2 * pad for size, pad in zip(grid, self.padding, strict=True))
        if any(extent > size for extent, size in zip(self.extent, padded, strict=True)):
            raise Refusal(f"Layer {name!r}: the kernel must fit into the padded image, but {self.extent[0]} x "
                          f"{self.extent[1]} is larger than {padded[0]} x {padded[1]}; choose a smaller kernel or more "
                          "padding")
        down, across = ((size - extent) // stride + 1
                        for size, extent, stride in zip(padded, self.extent, self.stride, strict=True))
        return down, across

    @property
    def sees_padding_alone(self) -> bool:
        """Whether the padding reaches the kernel on a side, which then sees nothing else."""
        return any(pad >= size for pad, size in zip(self.padding, self.extent, strict=True))

    def views(self, x: np.ndarray, grid: Grid, *, axis: int, fill: int = 0) -> Iterator[np.ndarray]:
        """Pixels that each position of the kernel sees, row by row: x with the output's height and width.

        Parameters:
            axis: of the height, that of the width follows.
            fill: stands around the image.
        """
        down, across = self.outputs("", grid)
        (top, left), (above, aside) = self.padding, self.stride
        edges = [(0, 0)] * x.ndim
        edges[axis:axis + 2] = [(top, top), (left, left)]
        padded = np.pad(x, edges, constant_values=fill) if top or left else x
        before: tuple[Any, ...] = (slice(None),) * axis
        for r in range(0, self.extent[0], self.dilation[0]):
            for c in range(0, self.extent[1], self.dilation[1]):
                yield padded[(*before, slice(r, r + above * (down - 1) + 1, above),
                              slice(c, c + aside * (across - 1) + 1, aside))]

    def as_json(self) -> dict[str, list[int]]:
        return {"kernel": list(self.kernel), "stride": list(self.stride), "padding": list(self.padding),
                **({"dilation": list(self.dilation)} if max(self.dilation) > 1 else {})}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Window":
        kernel, stride, padding, dilation = (tuple(data.get(name, (1, 1))) for name in (
            "kernel", "stride", "padding", "dilation"))
        return cls(kernel, stride, padding, dilation)


def pixels(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Images (N, channels, *extents), as torch has them, pixel by pixel: (N, height, width, channels)."""
    x = x.reshape(len(x), *shape, *[1] * (3 - len(shape)))
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))
