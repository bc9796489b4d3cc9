"""One array for all layers of a network: which it can be, and its exact cost."""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from circulant.hw.array.layer_programs import ROWS, matrices, spacings
from circulant.hw.array.plans import LayerPlan, Sharing, Simple
from circulant.hw.array.program import ArrayShape, Matrix
from circulant.hw.layers.cells import cells_of
from circulant.hw.plan.layer_plan import array_shapes, element_multiplications
from circulant.hw.plan.shared_cost import Cost, shared_cost
from circulant.hw.plan.step_cost import chain_latency
from circulant.sim.golden.layers import Layer
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["OBJECTIVES", "least_shared", "shareable", "shared_plans"]

OBJECTIVES = ("throughput", "latency", "area")
"""Aims of a design: the period of a step, with an array for each layer; the latency of a sample, with one array
for all; the period with one array for all, which needs the fewest multipliers."""

FINALISTS = 8
"""Arrays whose exact cost is computed, those with the best estimates."""


@dataclass(frozen=True)
class Candidate:
    """An array, the elements of each pointwise unit, its multipliers, and estimates of its period and latency."""

    shape: ArrayShape
    elements: int
    multipliers: int
    period: int
    latency: int


def shareable(network: Network, streams: int) -> tuple[Simple, ...]:
    """The layers of a network that can share an array.

    Raises:
        Refusal: when there are others, or they cannot.
    """
    why = "hardware.objective must be 'throughput' where layers cannot share an array, but"
    found = [layer for layer in network.layers if layer.kind != "argmax"]
    for layer in found:
        if layer.kind not in ("linear", "gru", "lstm", "rnn"):
            raise Refusal(f"{why} layer {layer.name!r} is a {layer.kind}, and not recurrent or fully connected")
    simple = cast("list[Simple]", found)
    sizes = {matrices(layer)[0].product.block_size for layer in simple}
    if len(sizes) > 1 or sizes == {1}:
        raise Refusal(f"{why} the block sizes of {network.name!r} are {sorted(sizes)}, and not one above 1")
    if streams > 1:
        raise Refusal(f"{why} {streams} sequences are interleaved; set hardware.streams to 1")
    return tuple(simple)


def shared_plans(layers: Sequence[Simple], multipliers: int, *, levels: int, objective: str) -> tuple[list[LayerPlan],
                                                                                                   Cost]:
    """The plan of each layer, and their cost.

    Raises:
        Refusal: when the multipliers are too few for one lane.
    """
    found = [each for each in _candidates(layers, levels) if each.multipliers <= multipliers]
    if not found:
        raise Refusal(f"One array for all layers needs at least {least_shared(layers, levels)} multipliers, not "
                      f"{multipliers}; raise hardware.multipliers")
    keys = {"latency": lambda each: (each.latency, each.period, each.multipliers),
            "area": lambda each: (each.period, each.multipliers, each.latency)}
    finalists = sorted(found, key=keys[objective])[:FINALISTS]
    first = [(_cost(layers, each, (each.shape.slots, ROWS, each.shape.slots)), each) for each in finalists]
    best = min(first, key=lambda pair: (_order(pair[0], objective), pair[1].multipliers))[1]
    costs = [(_cost(layers, best, spacing), spacing) for spacing in spacings(best.shape)]
    cost, spacing = min(costs, key=lambda pair: _order(pair[0], objective))
    return _plans(layers, best, spacing, cost.period), cost


def least_shared(layers: Sequence[Simple], levels: int) -> int:
    """The fewest multipliers with which these layers can share an array."""
    return min(each.multipliers for each in _candidates(layers, levels))


def _order(cost: Cost, objective: str) -> tuple[float, float]:
    return (cost.latency, cost.period) if objective == "latency" else (cost.period, cost.latency)


def _plans(layers: Sequence[Simple], chosen: Candidate, spacing: tuple[int, int, int],
           period: float) -> list[LayerPlan]:
    sharing = Sharing(tuple(layers), chosen.shape, (spacing,) * len(layers))
    k = matrices(layers[0])[0].product.block_size
    found = [LayerPlan(chosen.shape, chosen.elements if cells_of(layer) else 0,
                       multipliers=element_multiplications(layer) * chosen.elements, cycles=period, spacing=spacing,
                       sharing=sharing) for layer in layers]
    return [replace(found[0], multipliers=found[0].multipliers + chosen.shape.multipliers(k)), *found[1:]]


def _cost(layers: Sequence[Simple], chosen: Candidate, spacing: tuple[int, int, int]) -> Cost:
    plans = _plans(layers, chosen, spacing, 0)
    programs = [plan.program(layer) for plan, layer in zip(plans, layers, strict=True)]
    return shared_cost(layers, programs, [plan.elements for plan in plans])


def _candidates(layers: Sequence[Simple], levels: int) -> Iterator[Candidate]:
    """Arrays and pointwise units, with estimates."""
    each = [matrices(layer) for layer in layers]
    k = each[0][0].product.block_size
    element = sum(map(element_multiplications, layers))
    for shape in array_shapes([matrix for some in each for matrix in some], levels):
        issues = [(_issues(some, shape, late=False), _issues(some, shape, late=True)) for some in each]
        for elements in (2 ** n for n in range(k.bit_length())):
            ways = [(chain_latency(layer, shape, elements), _busy(layer, k, elements)) for layer in layers]
            alone = max(way + max(late, busy) for (way, busy), (_, late) in zip(ways, issues, strict=True))
            yield Candidate(shape, elements, shape.multipliers(k) + element * elements,
                            max(sum(whole for whole, _ in issues), alone),
                            sum(way + max(late, busy) for (way, busy), (_, late) in zip(ways, issues, strict=True)))


def _issues(found: Sequence[Matrix], shape: ArrayShape, *, late: bool) -> int:
    """Cycles in which an array of a shape issues the block products of matrices once; those that are ``late`` wait for
    the input, or for what comes of it."""
    total = 0
    for matrix in found:
        parts = [part for part in matrix.parts if not late or part.vector or not part.column]
        groups = sum(-(-len(part.columns) // shape.columns) for part in parts)
        total += -(-matrix.rows // shape.rows) * max(groups * shape.fold, shape.slots if groups else 0)
    return total


def _busy(layer: Layer, k: int, elements: int) -> int:
    """Cycles of the pointwise unit, or of rows that leave."""
    size = getattr(layer, "hidden", layer.outputs)
    return -(-size // k) * (k // elements if cells_of(layer) else 1)
