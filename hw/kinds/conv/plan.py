"""Plans of a convolution: arrays that take a pixel or a tile at a time."""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from circulant.hw.array.line_shape import LineBufferShape
from circulant.hw.kinds.conv.tile import TileShape, tiles_fit
from circulant.hw.plan.ladders import Ladder, Rung, folds, ladder, layer_entry, layer_multiplications, tiled, useful
from circulant.hw.plan.line_cost import image_cycles
from circulant.hw.plan.stream_plan import pooled_aside, stream_plan
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.design import LayerEntry
from circulant.sim.figures import floor
from circulant.sim.golden.stages import Stage
from circulant.sim.kinds.conv import Conv

__all__ = ["ConvPlan", "conv_plans", "tile_plans"]


@dataclass(frozen=True)
class ConvPlan:
    """Array, multipliers and cycles of a convolution.

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
        """Pixels that come and leave side by side."""
        return self.shape.pixels

    @property
    def multiplications(self) -> int:
        """Real multiplications of an image."""
        return self.shape.multiplications


def conv_plans(layer: Conv) -> Iterator[ConvPlan]:
    """Arrays that take all kernel positions, blocks and rows in some turns of equal size."""
    p, _, k = layer.product.weights.shape
    come, go = prod(layer.grid) * layer.blocks, prod(layer.output_grid)
    for rows in _shares(p):
        for positions in _shares(layer.window.positions):
            for blocks in _shares(layer.blocks):
                for fold in folds(k, lanes=rows * positions * blocks):
                    shape = _drained(layer, positions, blocks, rows, fold)
                    beats = -(-p // shape.chains)
                    yield ConvPlan(shape, shape.array.multipliers(k), max(
                        come, go * max(shape.cycles, beats), _padded(shape, max(shape.cycles, beats))))


def tile_plans(layer: Conv, pixels: int, *, leave: int) -> Iterator[ConvPlan]:
    """The same in tiles, where they fit, and products are exact.

    Parameters:
        leave: pixels of an image that leave one by one behind the layer, or what is pooled of it.
    """
    if not tiles_fit(layer, pixels) or layer.product.multiplier != EXACT:
        return
    for rows in _shares(layer.outputs):
        for positions in _shares(layer.window.kernel[0]):
            shape = TileShape(layer, pixels, positions, rows)
            come = prod(layer.grid) // pixels
            yield ConvPlan(shape, shape.multipliers, max(
                come, leave, shape.tiles * shape.cycles, _padded(shape, shape.cycles)))


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
    return LineBufferShape(layer, positions, blocks=blocks, rows=-(-rows // chains) * chains, chains=chains, fold=fold)


def _shares(count: int) -> list[int]:
    """The sizes of equal shares, the last one perhaps smaller."""
    return sorted({-(-count // n) for n in range(1, count + 1)})


@ladder.register
def _(layer: Conv, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    return Ladder([(each,) for each in useful(list(conv_plans(layer)))])


@tiled.register
def _(layer: Conv, behind: Stage | None, pixels: int) -> list[Sequence[Rung]]:
    aside = 0 if behind is None else pooled_aside(behind, pixels)
    leave = 0 if aside else prod(layer.output_grid)
    first = [(each,) for each in useful(list(tile_plans(layer, pixels, leave=leave)))]
    if not first:
        return []
    return [first] if behind is None or not aside else [first, [(stream_plan(behind, pixels=pixels),)]]


@layer_multiplications.register
def _(layer: Conv, count: int = 1, plan: ConvPlan | None = None) -> int:
    return prod(layer.output_grid) * layer.product.multiplications if plan is None else plan.multiplications


@layer_entry.register
def _(layer: Conv, plan: ConvPlan) -> LayerEntry:
    shape, least = plan.shape, floor(plan.multiplications, plan.multipliers)
    return {"name": layer.name, "kind": layer.kind, "rows": shape.rows, "columns": shape.row_columns,
            "positions": shape.positions, "blocks": shape.blocks, "chains": shape.chains, "fold": shape.fold,
            "lines": shape.lines, "pixels": plan.pixels,
            "cycles": plan.cycles, "floor": least, "multipliers": plan.multipliers,
            "limit": "multipliers: the array works in every cycle" if plan.cycles <= least else
            "multipliers: the last turn, pass or fold is not full, or a pixel comes in each cycle"}
