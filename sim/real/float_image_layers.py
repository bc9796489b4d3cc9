"""Layers over images (N, height, width, channels) in float64, as they come out of training."""
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import pad
from circulant.sim.arith.fixed import Reals
from circulant.sim.real.products import Tap, check, check_first_columns, ignore, product, spectra
from circulant.sim.shape.geometry import check_order, check_pool, flat, flattened
from circulant.sim.shape.window import Grid, Window, Windowed

__all__ = ["Conv", "Flatten", "Pool", "Scale"]


@dataclass(frozen=True, eq=False)
class Conv(Windowed):
    """A convolution: torch.nn.Conv2d, or Conv1d over images of width 1.

    Parameters:
        grid: of the images that come.
        weight: first columns (positions, p, q, k) of the matrix at each position of the kernel, row by row.
        bias: (outputs,).
        relu: whether negative outputs become zero.
    """

    name: str
    inputs: int
    outputs: int
    grid: Grid
    window: Window
    weight: Reals
    bias: Reals
    relu: bool = False

    kind = "conv"

    def __post_init__(self) -> None:
        check_first_columns(self.name, weight=(self.weight, (self.window.positions, self.outputs, self.inputs)))
        check(self.name, bias=(self.bias, (self.outputs,)))
        self.window.outputs(self.name, self.grid)

    @property
    def matrix(self) -> Reals:
        """First columns (p, positions · q, k) of the matrix that takes what the kernel sees."""
        positions, p, q, k = self.weight.shape
        return self.weight.transpose(1, 0, 2, 3).reshape(p, positions * q, k)

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        name, (_, _, q, k) = f"{self.name}.product", self.weight.shape
        x = pad(x, q * k)
        seen = np.stack(list(self.window.views(x, self.grid, axis=1)), axis=3)  # (N, height, width, positions, q·k)

        def of_outputs(tensor: str, values: Reals) -> None:
            if not tensor.endswith((".input", ".spectrum")):
                tap(tensor, values)

        if tap is not ignore:
            tap(f"{name}.input", x[..., :self.inputs])
            tap(f"{name}.spectrum", spectra(x.reshape(*x.shape[:-1], q, k)))
        y = product(name, self.bias[None], of_outputs if tap is not ignore else ignore,
                     {name: (self.matrix[None], seen.reshape(*seen.shape[:3], -1))})[..., 0, :]
        if self.relu:
            tap(f"{self.name}.y", y := np.maximum(y, 0.0))
        return y


@dataclass(frozen=True, eq=False)
class Pool(Windowed):
    """A maximum or a mean over windows, see `sim.golden.pool.Pool`."""

    name: str
    inputs: int
    grid: Grid
    window: Window
    mode: str

    kind = "pool"

    def __post_init__(self) -> None:
        check_pool(self.name, self.mode, self.window, self.grid)

    @property
    def outputs(self) -> int:
        return self.inputs

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        fill: Any = -math.inf if self.mode == "max" else 0
        views = np.stack(list(self.window.views(x, self.grid, axis=1, fill=fill)))
        y = np.asarray(views.max(0) if self.mode == "max" else views.mean(0))
        tap(f"{self.name}.y", y)
        return y


@dataclass(frozen=True, eq=False)
class Flatten:
    """Images to vectors, or to sequences with a step for each row; see `sim.golden.flatten.Flatten`."""

    name: str
    inputs: int
    grid: Grid
    order: str
    rows: bool = False

    kind = "flatten"

    def __post_init__(self) -> None:
        check_order(self.name, self.order)

    @property
    def outputs(self) -> int:
        return flat(self.inputs, self.grid, rows=self.rows)

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        return flattened(x, self.order, rows=self.rows)


@dataclass(frozen=True, eq=False)
class Scale:
    """y = s x + t over the last axis, or max(0, s x + t).

    Parameters:
        scale, shift: (inputs,).
    """

    name: str
    inputs: int
    scale: Reals
    shift: Reals
    relu: bool = False

    kind = "scale"

    def __post_init__(self) -> None:
        check(self.name, scale=(self.scale, (self.inputs,)), shift=(self.shift, (self.inputs,)))

    @property
    def outputs(self) -> int:
        return self.inputs

    def __call__(self, x: Reals, tap: Tap = ignore) -> Reals:
        y = x * self.scale + self.shift
        y = np.maximum(y, 0.0) if self.relu else y
        tap(f"{self.name}.y", y)
        return y
