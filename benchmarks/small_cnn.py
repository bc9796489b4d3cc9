"""Small random networks over images, on which the estimates of look-up tables and flip-flops are judged."""
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.real import float_model
from circulant.sim.shape.window import Grid, Window

__all__ = ["BITS", "model"]

BITS = {"activation_bits": 9, "weight_bits": 7, "twiddle_bits": 8}


def _first_columns(rng: np.random.Generator, k: int, outputs: int, inputs: int, *positions: int) -> NDArray[np.float64]:
    return rng.normal(0, 0.5, (*positions, -(-outputs // k), -(-inputs // k), k))


def _window(rng: np.random.Generator, grid: Grid) -> Window:
    kernel = int(rng.integers(1, 1 + min(3, grid[0]))), int(rng.integers(1, 1 + min(3, grid[1])))
    down, across = map(int, rng.integers(1, 3, 2))
    padding = int(rng.integers(0, (kernel[0] + 1) // 2 + 1)), int(rng.integers(0, (kernel[1] + 1) // 2 + 1))
    return Window(kernel, (down, across), padding)


def model(seed: int, *, least: Grid = (4, 3), window: Callable[[np.random.Generator, Grid], Window] = _window,
          side: Callable[[Grid], int] = min) -> float_model.Model:
    """Convolutions, some with a pooling behind them, what `_around` adds, then a fully connected layer, for some behind
    a recurrent one.

    Parameters:
        least: rows and columns of images.
        window: draws that of a convolution.
        side: of an image, which is pooled where that has several pixels.
    """
    rng = np.random.default_rng((11, seed))
    channels, grid = int(rng.integers(1, 4)), (int(rng.integers(least[0], 8)), int(rng.integers(least[1], 8)))
    shape = (channels, *grid)
    layers: list[Any] = []
    for n in range(1 + seed % 2):
        seen = window(rng, grid)
        outputs, k = int(rng.integers(1, 9)), int(rng.choice([1, 2, 4]))
        layers.append(FloatConv(f"conv{n}", inputs=channels, outputs=outputs, grid=grid, window=seen,
                                weight=_first_columns(rng, k, outputs, channels, seen.positions),
                                bias=rng.normal(0, 0.3, outputs), relu=bool(rng.integers(2))))
        channels, grid = outputs, seen.outputs("", grid)
        if side(grid) > 1 and rng.integers(2):
            pool = Window(*[(min(2, grid[0]), min(2, grid[1]))] * 2)
            layers.append(FloatPool(f"pool{n}", channels, grid, pool, ("max", "average")[rng.integers(2)]))
            grid = pool.outputs("", grid)
    channels, grid = _around(rng, seed, layers, channels, grid)
    steps = seed % 8 == 7
    layers.append(FloatFlatten("flatten", channels, grid, ("pixels", "channels")[rng.integers(2)], rows=steps))
    size, outputs, k = layers[-1].outputs, int(rng.integers(1, 6)), int(rng.choice([1, 2, 4]))
    if steps:
        hidden, k = 4, int(rng.choice([2, 4]))
        layers.append(FloatGru("gru", size, hidden, _first_columns(rng, k, hidden, size, 3),
                               _first_columns(rng, k, hidden, hidden, 3), *rng.normal(0, 0.4, (2, 3, hidden))))
        size = hidden
    layers.append(FloatLinear("out", size, outputs, _first_columns(rng, k, outputs, size),
                              rng.normal(0, 1, outputs)))
    return float_model.Model.chain("random", shape[0], False, tuple(layers), shape)


def _around(rng: np.random.Generator, seed: int, layers: list[Any], channels: int, grid: Grid) -> tuple[int, Grid]:
    """A scale, a residual sum, or a pooling whose windows overlap, for some; returns channels and size behind them."""
    if seed % 3 == 0:
        layers.append(FloatScale("norm", channels, rng.normal(0, 1, channels), rng.normal(0, 0.3, channels),
                                 bool(rng.integers(2))))
    if seed % 3 == 1:
        window, k = Window((3, 3), padding=(1, 1)), int(rng.choice([1, 2]))
        body = FloatConv("body", inputs=channels, outputs=channels, grid=grid, window=window,
                         weight=_first_columns(rng, k, channels, channels, 9), bias=rng.normal(0, 0.3, channels))
        norm = FloatScale("shortcut", channels, rng.normal(0, 1, channels), rng.normal(0, 0.3, channels))
        layers.append(float_model.Residual("sum", channels, grid=grid, body=(body,),
                                           shortcut=(norm,) if rng.integers(2) else (), relu=True))
    if seed % 3 == 2:
        window = Window((3, 2), (2, 1), (1, 1))
        layers.append(FloatPool("overlap", channels, grid, window, ("max", "average")[rng.integers(2)]))
        grid = window.outputs("", grid)
    return channels, grid
