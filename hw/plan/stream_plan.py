"""Plans of layers without an array: how often they work, and how many values they take in a cycle."""
from collections.abc import Iterator
from functools import singledispatch

from circulant.hw.array.plans import StreamPlan, ValuesPlan
from circulant.hw.plan.ladders import Ladder, ladder, layer_entry, layer_multiplications, useful
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.design import LayerEntry
from circulant.sim.golden.stages import Stage

__all__ = ["StreamPlan", "ValuesPlan", "one_for_each", "pooled_aside", "stream_plan", "values_entry",
           "with_one_for_each", "without_multipliers"]


@singledispatch
def pooled_aside(layer: Stage, pixels: int) -> int:
    """How many pixels become of so many side by side in a pooling; 0 where their windows do not lie side by side, and
    in other layers."""
    return 0


@singledispatch
def stream_plan(layer: Stage, *, pixels: int = 1) -> StreamPlan:
    """The plan of a layer without multipliers. The choice of an output and a join take every block in the cycle in
    which it comes, and never limit.

    Parameters:
        pixels: side by side in a block.
    """
    return StreamPlan(1)


def one_for_each(layer: Stage, count: int) -> Iterator[ValuesPlan]:
    """Plans of a kind that has a multiplier for each of the values that it takes in a cycle, of each of ``count``
    vectors or pixels."""
    elements = 1
    while elements < 2 * layer.inputs:
        yield ValuesPlan(elements, count * -(-layer.inputs // elements), elements)
        elements *= 2


def values_entry(layer: Stage, plan: ValuesPlan, limit: str) -> LayerEntry:
    """The entry in the manifest of a layer that takes some values in a cycle."""
    return {"name": layer.name, "kind": layer.kind, "elements": plan.elements, "cycles": plan.cycles,
            "floor": plan.cycles if plan.multipliers else 0, "multipliers": plan.multipliers, "limit": limit}


def without_multipliers(kind: type[Stage]) -> None:
    """Register the plans of a kind without multipliers, which takes a block in each cycle of its `stream_plan`."""
    def only(layer: Stage, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
        return Ladder([(stream_plan(layer),)])

    def none(layer: Stage, count: int = 1, plan: StreamPlan | None = None) -> int:
        return 0

    def entry(layer: Stage, plan: StreamPlan) -> LayerEntry:
        return {"name": layer.name, "kind": layer.kind, "cycles": plan.cycles, "floor": 0, "multipliers": 0,
                "limit": "a value or a block in each cycle"}

    ladder.register(kind, only)
    layer_multiplications.register(kind, none)
    layer_entry.register(kind, entry)


def with_one_for_each(kind: type[Stage]) -> None:
    """Register the plans of a kind with a multiplier for each value, see `one_for_each`."""
    def those(layer: Stage, *, streams: int, count: int, levels: int = LEVELS) -> Ladder:
        return Ladder([(each,) for each in useful(list(one_for_each(layer, count)))])

    def each(layer: Stage, count: int = 1, plan: ValuesPlan | None = None) -> int:
        return layer.inputs * count

    ladder.register(kind, those)
    layer_multiplications.register(kind, each)
    layer_entry.register(kind, lambda layer, plan: values_entry(layer, plan, "some channels in each cycle"))
