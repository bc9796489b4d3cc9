"""Plans of layers without an array: how often they work, and how many values they take in a cycle."""
from collections.abc import Iterator
from functools import singledispatch
from math import prod

from circulant.hw.arith.straight_lines import straight
from circulant.hw.array.plans import ActivationPlan, ScalePlan, StreamPlan
from circulant.hw.layers.flatten import in_order
from circulant.hw.layers.pool import side_by_side
from circulant.hw.plan.passes import Ladder, ladder, layer_entry, layer_multiplications, useful
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.artifact import Json
from circulant.sim.golden.stages import Stage
from circulant.sim.kinds.activation import Activation
from circulant.sim.kinds.argmax import Argmax
from circulant.sim.kinds.concat import Concat
from circulant.sim.kinds.elementwise import Elementwise
from circulant.sim.kinds.flatten import Flatten
from circulant.sim.kinds.over_time import OverTime
from circulant.sim.kinds.pool import Pool
from circulant.sim.kinds.product import Product
from circulant.sim.kinds.scale import Scale
from circulant.sim.kinds.slice import Slice

__all__ = ["ActivationPlan", "ScalePlan", "StreamPlan", "activation_plans", "pooled_aside", "scale_plans",
           "stream_plan"]

ASIDE = 16
"""Values in a cycle at the most of a function that takes no multipliers."""


@singledispatch
def pooled_aside(layer: Stage, pixels: int) -> int:
    """How many pixels become of so many side by side in a pooling; 0 where their windows do not lie side by side, and
    in other layers."""
    return 0


@pooled_aside.register
def _(layer: Pool, pixels: int) -> int:
    aside = (layer.window.kernel if layer.output_grid == (1, 1) else layer.window.stride)[1]
    whole = pixels % aside == 0 and layer.grid[1] % pixels == 0 and layer.output_grid[1] * aside == layer.grid[1]
    return pixels // aside if side_by_side(layer) and whole else 0


@singledispatch
def stream_plan(layer: Stage, *, pixels: int = 1) -> StreamPlan:
    """The plan of a layer without multipliers. The choice of an output and a join take every block in the cycle in
    which it comes, and never limit.

    Parameters:
        pixels: side by side in a block.
    """
    return StreamPlan(1)


@stream_plan.register
def _(layer: Pool, *, pixels: int = 1) -> StreamPlan:
    """A block in each cycle."""
    return StreamPlan(max(prod(layer.grid) // pixels, prod(layer.output_grid)))


@stream_plan.register
def _(layer: Flatten, *, pixels: int = 1) -> StreamPlan:
    """A block in each cycle in the order of the pixels, else a value."""
    return StreamPlan(prod(layer.grid) if in_order(layer) else layer.outputs * (layer.grid[0] if layer.rows else 1))


def scale_plans(layer: Scale | Product, count: int) -> Iterator[ScalePlan]:
    """A scale or a product takes some channels of each of ``count`` vectors or pixels in a cycle."""
    elements = 1
    while elements < 2 * layer.inputs:
        yield ScalePlan(elements, count * -(-layer.inputs // elements))
        elements *= 2


def activation_plans(layer: Activation, count: int) -> Iterator[ActivationPlan]:
    """A function takes some values of each of ``count`` vectors or pixels in a cycle, each with a multiplier; one of
    straight lines, which has none, up to `ASIDE`."""
    if straight(layer.table):
        elements = min(ASIDE, 1 << (layer.inputs - 1).bit_length())
        yield ActivationPlan(elements, count * -(-layer.inputs // elements), 0)
        return
    elements = 1
    while elements < 2 * layer.inputs:
        yield ActivationPlan(elements, count * -(-layer.inputs // elements), elements)
        elements *= 2


@ladder.register
def _(layer: Activation, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    return Ladder([(each,) for each in useful(list(activation_plans(layer, count)))])


@layer_multiplications.register
def _(layer: Activation, count: int = 1, plan: ActivationPlan | None = None) -> int:
    return 0 if straight(layer.table) else layer.inputs * count


@layer_entry.register
def _(layer: Activation, plan: ActivationPlan) -> Json:
    return {"name": layer.name, "kind": layer.kind, "elements": plan.elements, "cycles": plan.cycles,
            "floor": plan.cycles if plan.multipliers else 0, "multipliers": plan.multipliers,
            "limit": "some values in each cycle"}


@ladder.register
def _(layer: Pool | Flatten | Argmax | Elementwise | Concat | Slice, *, streams: int, count: int,
      levels: int = LEVELS) -> Ladder:
    return Ladder([(stream_plan(layer),)])


@ladder.register
def _(layer: OverTime, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    """Each block in the cycle in which it comes. The division, behind a queue, limits none but short sequences."""
    return Ladder([(StreamPlan(1, streams=streams),)])


@ladder.register
def _(layer: Scale | Product, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
    return Ladder([(each,) for each in useful(list(scale_plans(layer, count)))])


@layer_multiplications.register
def _(layer: Pool | Flatten | OverTime | Argmax | Elementwise | Concat | Slice, count: int = 1,
      plan: StreamPlan | None = None) -> int:
    return 0


@layer_multiplications.register
def _(layer: Scale | Product, count: int = 1, plan: ScalePlan | None = None) -> int:
    return layer.inputs * count


@layer_entry.register
def _(layer: Pool | Flatten | OverTime | Argmax | Elementwise | Concat | Slice, plan: StreamPlan) -> Json:
    return {"name": layer.name, "kind": layer.kind, "cycles": plan.cycles, "floor": 0, "multipliers": 0,
            "limit": "a value or a block in each cycle"}


@layer_entry.register
def _(layer: Scale | Product, plan: ScalePlan) -> Json:
    return {"name": layer.name, "kind": layer.kind, "elements": plan.elements, "cycles": plan.cycles,
            "floor": plan.cycles, "multipliers": plan.multipliers, "limit": "some channels in each cycle"}
