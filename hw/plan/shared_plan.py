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

__all__ = ["least_shared", "shareable", "shared_plans"]

FINALISTS = 5
"""Arrays whose exact cost is computed, those with the best estimates; and as many of those with nearly the best one."""

NEARLY, EQUAL = 1 / 12, 1 / 40
"""Shares by which an estimate may be above the best one for a second look, and an exact cost to count as equal."""


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
    why = "hardware.objective must be 'throughput' or 'auto' where layers cannot share an array, but"
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

    Parameters:
        objective: "latency" of a sample, or "area", the shortest period.

    Raises:
        Refusal: when the multipliers are too few for one lane.
    """
    found = [each for each in _candidates(layers, levels) if each.multipliers <= multipliers]
    if not found:
        raise Refusal(f"One array for all layers needs at least {least_shared(layers, levels)} multipliers, not "
                      f"{multipliers}; raise hardware.multipliers")
    plain = [(_cost(layers, each, (each.shape.slots, ROWS, each.shape.slots)), each)
             for each in _finalists(found, objective)]
    best = plain[_best([(cost, each.multipliers) for cost, each in plain], objective)][1]
    spaced = [(_cost(layers, best, spacing), spacing) for spacing in spacings(best.shape)]
    cost, spacing = spaced[_best([(cost, 0) for cost, _ in spaced], objective)]
    elements, cost = _grown(layers, best, spacing, multipliers, cost)
    return _plans(layers, best, spacing, cost.period, elements), cost


def _grown(layers: Sequence[Simple], best: Candidate, spacing: tuple[int, int, int], multipliers: int,
           cost: Cost) -> tuple[list[int], Cost]:
    """The elements of each layer, with what is left of the multipliers given to those whose sample gains most by it;
    and the cost."""
    k = matrices(layers[0])[0].product.block_size
    elements, left = [best.elements] * len(layers), multipliers - best.multipliers
    most = cost.period * (1 + EQUAL)
    while True:
        tried = []
        for n, layer in enumerate(layers):
            more = element_multiplications(layer) * elements[n]
            if 0 < more <= left and elements[n] < k:
                grown = [each * 2 if at == n else each for at, each in enumerate(elements)]
                found = _cost(layers, best, spacing, grown)
                if found.latency < cost.latency and found.period <= most:
                    tried.append((found.latency, more, n, grown, found))
        if not tried:
            return elements, cost
        _, more, _, elements, cost = min(tried)
        left -= more


def _finalists(found: Sequence[Candidate], objective: str) -> list[Candidate]:
    """The candidates with the best estimates of what the objective asks for; and of those that are nearly as good, the
    best by the other figure."""
    def figures(each: Candidate) -> tuple[int, int, int]:
        pair = (each.latency, each.period) if objective == "latency" else (each.period, each.latency)
        return *pair, each.multipliers

    first = sorted(found, key=figures)
    most = figures(first[0])[0] * (1 + NEARLY)
    second = sorted((each for each in first if figures(each)[0] <= most), key=lambda each: figures(each)[1::-1])
    return [*first[:FINALISTS], *(each for each in second[:FINALISTS] if each not in first[:FINALISTS])]


def _best(costs: Sequence[tuple[Cost, int]], objective: str) -> int:
    """The place of the best cost, with multipliers: by what the objective asks for, of equals by the other figure."""
    pairs = [(cost.latency, cost.period) if objective == "latency" else (cost.period, cost.latency)
             for cost, _ in costs]
    most = min(pairs)[0] * (1 + EQUAL)
    return min((n for n, pair in enumerate(pairs) if pair[0] <= most),
               key=lambda n: (pairs[n][1], pairs[n][0], costs[n][1]))


def least_shared(layers: Sequence[Simple], levels: int) -> int:
    """The fewest multipliers with which these layers can share an array."""
    return min(each.multipliers for each in _candidates(layers, levels))


def _plans(layers: Sequence[Simple], chosen: Candidate, spacing: tuple[int, int, int], period: float,
           elements: Sequence[int] = ()) -> list[LayerPlan]:
    """The plans of layers; with so many elements in each pointwise unit, or those of the candidate."""
    sharing = Sharing(tuple(layers), chosen.shape, (spacing,) * len(layers))
    k = matrices(layers[0])[0].product.block_size
    found = [LayerPlan(chosen.shape, each if cells_of(layer) else 0, multipliers=element_multiplications(layer) * each,
                       cycles=period, spacing=spacing, sharing=sharing)
             for layer, each in zip(layers, elements or [chosen.elements] * len(layers), strict=True)]
    return [replace(found[0], multipliers=found[0].multipliers + chosen.shape.multipliers(k)), *found[1:]]


def _cost(layers: Sequence[Simple], chosen: Candidate, spacing: tuple[int, int, int],
          elements: Sequence[int] = ()) -> Cost:
    plans = _plans(layers, chosen, spacing, 0, elements)
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
