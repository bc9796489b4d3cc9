"""What layers over images may get: arrays for convolutions, and how often the units between them work."""
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from circulant.hw.layers.flatten import in_order
from circulant.hw.layers.line_buffer import LineBufferShape
from circulant.hw.layers.tile import TileShape, tiles_fit
from circulant.hw.plan.line_cost import image_cycles
from circulant.sim.arith.circulant import multiplications
from circulant.sim.golden.argmax import Argmax
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.flatten import Flatten
from circulant.sim.golden.pool import Pool
from circulant.sim.golden.scale import Scale

__all__ = ["ConvPlan", "ResidualPlan", "ScalePlan", "StreamPlan", "conv_multiplications", "conv_plans", "pooled_aside",
           "scale_plans", "side_by_side", "stream_plan", "tile_plans"]

FOLDS = (2, 3, 4, 6, 8, 12, 16, 24, 48)


@dataclass(frozen=True)
class ConvPlan:
    """What a convolution gets.

    Parameters:
        shape: its array, and how the kernel meets it.
        multipliers: of the array.
        cycles: of an image, when the input is always there and the output taken.
    """

    shape: LineBufferShape | TileShape
    multipliers: int
    cycles: int
    streams: int = 1

    @property
    def pixels(self) -> int:
        """That come and leave side by side."""
        return self.shape.pixels if isinstance(self.shape, TileShape) else 1

    @property
    def multiplications(self) -> int:
        """That it makes of an image."""
        shape = self.shape
        return shape.multiplications if isinstance(shape, TileShape) else conv_multiplications(shape.layer)


@dataclass(frozen=True)
class StreamPlan:
    """A layer without multipliers: the cycles of an image."""

    cycles: int
    multipliers: int = 0
    streams: int = 1


@dataclass(frozen=True)
class ScalePlan:
    """A scale: the channels that it takes in a cycle, each with a multiplier, and the cycles of an image."""

    elements: int
    cycles: int
    streams: int = 1

    @property
    def multipliers(self) -> int:
        return self.elements


@dataclass(frozen=True)
class ResidualPlan:
    """What the layers of two branches get, which work at the same time."""

    body: tuple[Any, ...]
    shortcut: tuple[Any, ...]
    streams: int = 1

    @property
    def multipliers(self) -> int:
        return sum(each.multipliers for each in (*self.body, *self.shortcut))

    @property
    def cycles(self) -> int:
        return max((each.cycles for each in (*self.body, *self.shortcut)), default=0)


def conv_multiplications(layer: Conv) -> int:
    """Real multiplications of an image."""
    return prod(layer.output_grid) * layer.product.multiplications


def conv_plans(layer: Conv) -> Iterator[ConvPlan]:
    """Arrays that take all kernel positions, blocks and rows in some turns of equal size."""
    p, _, k = layer.product.weights.shape
    come, go = prod(layer.grid) * layer.blocks, prod(layer.output_grid)
    for rows in _shares(p):
        for positions in _shares(layer.window.positions):
            for blocks in _shares(layer.blocks):
                alone = rows * positions * blocks == 1
                for fold in (1, *(n for n in FOLDS if n < 2 * multiplications(k))) if alone else (1,):
                    shape = _drained(layer, positions, blocks, rows, fold)
                    beats = -(-p // shape.chains)
                    yield ConvPlan(shape, shape.array.multipliers(k), max(
                        come, go * max(shape.cycles, beats), _padded(shape, max(shape.cycles, beats))))


def tile_plans(layer: Conv, pixels: int, *, leave: int) -> Iterator[ConvPlan]:
    """The same in tiles, where they fit.

    Parameters:
        leave: pixels of an image that leave one by one behind the layer, or what is pooled of it.
    """
    if not tiles_fit(layer, pixels):
        return
    for rows in _shares(layer.outputs):
        for positions in _shares(layer.window.kernel[0]):
            shape = TileShape(layer, pixels, positions, rows)
            come = prod(layer.grid) // pixels
            yield ConvPlan(shape, shape.multipliers, max(
                come, leave, shape.tiles * shape.cycles, _padded(shape, shape.cycles)))


def pooled_aside(pool: object, pixels: int) -> int:
    """How many pixels become of so many side by side in a pooling; 0 where their windows do not lie side by side."""
    if not isinstance(pool, Pool):
        return 0
    aside = (pool.window.kernel if pool.output_grid == (1, 1) else pool.window.stride)[1]
    whole = pixels % aside == 0 and pool.grid[1] % pixels == 0 and pool.output_grid[1] * aside == pool.grid[1]
    fits = side_by_side(pool) and whole
    return pixels // aside if fits else 0


def _padded(shape: LineBufferShape | TileShape, cycles: int) -> int:
    """Cycles of an image where its lines have to wait for padding; 0 where they never do."""
    return image_cycles(shape.walk, lines=shape.lines, cycles=cycles) if shape.layer.window.sees_padding_alone else 0


def _drained(layer: Conv, positions: int, blocks: int, rows: int, fold: int) -> LineBufferShape:
    """The array with the fewest chains through which a pass leaves before the next one ends.

    Their number is a power of two, so that blocks fit into those of the next layer, or all rows leave at once.
    """
    p = layer.product.rows // layer.product.block_size
    turns = -(-layer.window.positions // positions) * -(-layer.blocks // blocks) * fold
    chains = 1
    while -(-rows // chains) > turns:
        chains *= 2
    if chains > rows == p:
        chains = rows
    return LineBufferShape(layer, positions, blocks, -(-rows // chains) * chains, chains, fold)


def _shares(count: int) -> list[int]:
    """The sizes of equal shares, the last one perhaps smaller."""
    return sorted({-(-count // n) for n in range(1, count + 1)})


def side_by_side(layer: Pool) -> bool:
    """Whether the windows of a pooling neither overlap nor reach beyond the image."""
    window = layer.window
    overlaps = any(stride < size for stride, size in zip(window.stride, window.kernel, strict=True))
    return not any(window.padding) and (not overlaps or layer.output_grid == (1, 1))


def stream_plan(layer: Pool | Flatten | Argmax, *, pixels: int = 1) -> StreamPlan:
    """A pooling takes a block in each cycle, and a flattening in the order of the pixels; another one gives a value.
    The choice of an output takes every block in the cycle in which it comes, and never limits.

    Parameters:
        pixels: side by side in a block.
    """
    if isinstance(layer, Argmax):
        return StreamPlan(1)
    if isinstance(layer, Pool):
        return StreamPlan(max(prod(layer.grid) // pixels, prod(layer.output_grid)))
    return StreamPlan(prod(layer.grid) if in_order(layer) else layer.outputs * (layer.grid[0] if layer.rows else 1))


def scale_plans(layer: Scale, count: int) -> Iterator[ScalePlan]:
    """A scale takes some channels of each of ``count`` vectors or pixels in a cycle."""
    elements = 1
    while elements < 2 * layer.inputs:
        yield ScalePlan(elements, count * -(-layer.inputs // elements))
        elements *= 2
