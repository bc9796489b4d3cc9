"""One array for all layers of a network, or for each group with one block size: which it can be, and its exact cost."""
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import cast

import numpy as np

from circulant.hw.array.layer_programs import ROWS, matrices, mixes, spacings
from circulant.hw.array.plans import LayerPlan, Sharing, Simple
from circulant.hw.array.program import ArrayShape, Matrix
from circulant.hw.layers.cells import cells_of
from circulant.hw.plan.layer_plan import array_shapes, element_multiplications
from circulant.hw.plan.shared_cost import Cost, least_period, period, sample_results, shared_cost
from circulant.hw.plan.shares import FULL, shares
from circulant.hw.plan.step_cost import chain_latency
from circulant.sim.golden.layers import Layer
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["least_shared", "shareable", "shared_plans"]

FINALISTS = 5
"""Arrays whose exact cost is computed, those with the best estimates; and as many of those with nearly the best one."""

NEARLY, EQUAL = 1 / 12, 1 / 32
"""Shares by which an estimate may be above the best one for a second look, and an exact cost to count as equal."""

SPACED, GROWN = 8, 2
"""Arrays that are played with all spacings, and those of them that get what is left of the multipliers."""


@dataclass(frozen=True)
class Candidate:
    """An array, the elements of each pointwise unit, its multipliers, and estimates of its period and latency."""

    shape: ArrayShape
    elements: int
    multipliers: int
    period: int
    latency: int


@dataclass(frozen=True)
class Choice:
    """A candidate, the spacing of all layers' passes, and what `Sharing` says of the order."""

    candidate: Candidate
    spacing: tuple[int, int, int]
    in_turn: bool
    eager: bool


def shareable(network: Network, streams: int) -> tuple[tuple[Simple, ...], ...]:
    """The layers of a network that can share arrays: groups of those that follow each other and have one block size.

    Raises:
        Refusal: when there are others, or they cannot.
    """
    why = "hardware.objective must be 'throughput' or 'auto' where layers cannot share an array, but"
    found = [layer for layer in network.layers if layer.kind != "argmax"]
    for layer in found:
        if layer.kind not in ("linear", "gru", "lstm", "rnn"):
            raise Refusal(f"{why} layer {layer.name!r} is a {layer.kind}, and not recurrent or fully connected")
    simple = cast("list[Simple]", found)
    for layer in simple:
        if block_size(layer) == 1:
            raise Refusal(f"{why} layer {layer.name!r} is dense: an array that is shared has blocks")
    if streams > 1:
        raise Refusal(f"{why} {streams} sequences are interleaved; set hardware.streams to 1")
    return tuple(tuple(group) for _, group in groupby(simple, block_size))


def block_size(layer: Simple) -> int:
    """The block size of a layer with one array."""
    return matrices(layer)[0].product.block_size


def shared_plans(groups: Sequence[Sequence[Simple]], multipliers: int, *, levels: int, objective: str,
                 eager: bool = True) -> tuple[list[LayerPlan], Cost]:
    """The plan of each layer, with an array for each group, and their cost. Of several groups the slowest one gets the
    next multipliers, again and again.

    Parameters:
        objective: "latency" of a sample, or "area", the shortest period.
        eager: see `Sharing`.

    Raises:
        Refusal: when the multipliers are too few for one lane of each group.
    """
    ladders = [_ladder(list(_candidates(layers, levels))) for layers in groups]
    shape = 1, len(ladders), max(map(len, ladders))
    costs, cycles = np.full(shape, FULL), np.zeros(shape, np.int64)
    for n, each in enumerate(ladders):
        costs[0, n, :len(each)], cycles[0, n, :len(each)] = [c.multipliers for c in each], [c.period for c in each]
    chosen, left = shares(costs, cycles, np.array([multipliers]))
    if left[0] < 0:
        arrays = "One array for all layers" if len(groups) == 1 else "An array for each of the block sizes in a row"
        raise Refusal(f"{arrays} needs at least {least_shared(groups, levels)} multipliers, not {multipliers}; raise "
                      "hardware.multipliers")
    rungs = [each[at] for each, at in zip(ladders, chosen[0].tolist(), strict=True)]
    slowest = max(range(len(rungs)), key=lambda n: rungs[n].period)
    plans: list[LayerPlan] = []
    for n, (layers, rung) in enumerate(zip(groups, rungs, strict=True)):
        budget = rung.multipliers + (int(left[0]) if n == slowest else 0)
        found = [each for each in _candidates(layers, levels) if each.multipliers <= budget
                 and (each.elements == block_size(layers[0]) or each.multipliers + each.elements * sum(
                     map(element_multiplications, layers)) > budget)]  # Twice the elements do not fit, too.
        plans += _group_plans(layers, found, budget, objective=objective, eager=eager)
    cost = shared_cost(list(dict.fromkeys(plan.sharing for plan in plans if plan.sharing)),
                       [plan.elements for plan in plans])
    return [replace(plan, cycles=cost.period) for plan in plans], cost


def _ladder(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The useful candidates by their estimates, from the smallest to the fastest."""
    found: list[Candidate] = []
    for each in sorted(candidates, key=lambda each: (each.multipliers, each.period)):
        if not found or each.period < found[-1].period:
            found.append(each)
    return found


def _group_plans(layers: Sequence[Simple], found: Sequence[Candidate], multipliers: int, *, objective: str,
                 eager: bool) -> list[LayerPlan]:
    """The plans of layers with one array, from the candidates that fit."""
    found = _finalists(found, objective)
    plain = [Choice(each, spacing, in_turn, eager) for each in found for spacing in _usual(each.shape)
             for in_turn in (False, True)[:len(layers)]]
    near = _search(layers, plain, objective, share=NEARLY)
    best: dict[tuple[int, bool], Choice] = {}
    for (_, one), (_, other) in zip(near, sorted(near, key=lambda each: each[0][1::-1]), strict=True):
        for each in (other, one):
            best.setdefault((id(each.candidate), each.in_turn), each)
    spaced = [replace(each, spacing=spacing) for each in list(best.values())[:SPACED]
              for spacing in (each.spacing, *spacings(each.candidate.shape))]
    last: dict[tuple[int, bool], Choice] = {}
    for _, each in _search(layers, spaced, objective, share=EQUAL):
        last.setdefault((id(each.candidate), each.in_turn), each)
    grown = [(each, *_grown(layers, each, multipliers)) for each in list(last.values())[:GROWN]]
    chosen, elements, _ = min(grown, key=lambda each: (
        (each[2].latency, each[2].period) if objective == "area" else (each[2].period, each[2].latency)))
    return _plans(layers, chosen, elements)


def _usual(shape: ArrayShape) -> Iterator[tuple[int, int, int]]:
    """Spacings for a first look: rows first, and columns first in the share that waits, all of them or some."""
    yield shape.slots, ROWS, shape.slots
    yield shape.slots, shape.slots, ROWS
    yield shape.slots, 4 * shape.slots, ROWS


def _search(layers: Sequence[Simple], choices: Sequence[Choice], objective: str, *,
            share: float) -> list[tuple[tuple[float, ...], Choice]]:
    """The choices whose exact cost is above the best one by what the objective asks for by such a share at the most,
    sorted by the other figure, which is said with them. What cannot be as good, as its issues alone take longer, is not
    played."""
    played: list[tuple[float, Choice]] = []
    most = float("inf")
    for each in choices:
        sharing, elements = _sharing(layers, each), _elements(layers, [each.candidate.elements] * len(layers))
        if objective != "latency" and least_period([sharing]) > most:
            continue
        first: float = sample_results([sharing], elements)[-1] if objective == "latency" else period(
            [sharing], elements)[0]
        most = min(most, first * (1 + share))
        played.append((first, each))
    equal = [(first, each) for first, each in played if first <= most]

    def other(first: float, each: Choice) -> tuple[float, ...]:
        sharing, elements = _sharing(layers, each), _elements(layers, [each.candidate.elements] * len(layers))
        second: float = period([sharing], elements)[0] if objective == "latency" else sample_results(
            [sharing], elements)[-1]
        shape = each.candidate.shape
        return second, first, each.candidate.multipliers, each.in_turn, shape.rows % shape.chains

    keyed = [(other(*each), n) for n, each in enumerate(equal)]
    return [(key, equal[n][1]) for key, n in sorted(keyed)]


def _grown(layers: Sequence[Simple], chosen: Choice, multipliers: int) -> tuple[list[int], Cost]:
    """The elements of each layer, with what is left of the multipliers given to those whose sample gains most by it;
    and the cost."""
    best, sharing = chosen.candidate, _sharing(layers, chosen)
    k = block_size(layers[0])
    elements, left = [best.elements] * len(layers), multipliers - best.multipliers
    cost = shared_cost([sharing], _elements(layers, elements))
    most = cost.period * (1 + EQUAL)
    while True:
        tried = []
        for n, layer in enumerate(layers):
            more = element_multiplications(layer) * elements[n]
            if 0 < more <= left and elements[n] < k:
                grown = [each * 2 if at == n else each for at, each in enumerate(elements)]
                found = shared_cost([sharing], _elements(layers, grown))
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


def least_shared(groups: Sequence[Sequence[Simple]], levels: int) -> int:
    """The fewest multipliers with which the layers of each group can share an array."""
    return sum(min(each.multipliers for each in _candidates(layers, levels)) for layers in groups)


def _plans(layers: Sequence[Simple], chosen: Choice, elements: Sequence[int]) -> list[LayerPlan]:
    """The plans of layers, with so many elements in each pointwise unit; their cycles are not known yet."""
    shape, sharing = chosen.candidate.shape, _sharing(layers, chosen)
    found = [LayerPlan(shape, own, multipliers=element_multiplications(layer) * each, cycles=0,
                       spacing=chosen.spacing, sharing=sharing)
             for layer, each, own in zip(layers, elements, _elements(layers, elements), strict=True)]
    k = block_size(layers[0])
    return [replace(found[0], multipliers=found[0].multipliers + shape.multipliers(k)), *found[1:]]


def _sharing(layers: Sequence[Simple], chosen: Choice) -> Sharing:
    return Sharing(tuple(layers), chosen.candidate.shape, (chosen.spacing,) * len(layers), chosen.in_turn,
                   chosen.eager)


def _elements(layers: Sequence[Simple], each: Sequence[int]) -> list[int]:
    """The elements of the pointwise units; 0 of a layer without one."""
    return [elements if cells_of(layer) else 0 for layer, elements in zip(layers, each, strict=True)]


def _candidates(layers: Sequence[Simple], levels: int) -> Iterator[Candidate]:
    """Arrays and pointwise units, with estimates."""
    each = [matrices(layer) for layer in layers]
    k = block_size(layers[0])
    element = sum(map(element_multiplications, layers))
    shapes = array_shapes([matrix for some in each for matrix in some], levels, uneven=True)
    for shape in (*shapes, *_abreast_shapes(layers, levels)):
        issues = [(_issues(layer, some, shape, late=False), _issues(layer, some, shape, late=True))
                  for layer, some in zip(layers, each, strict=True)]
        for elements in (2 ** n for n in range(k.bit_length())):
            ways = [(chain_latency(layer, shape, elements), _busy(layer, k, elements)) for layer in layers]
            alone = max(way + max(late, busy) for (way, busy), (_, late) in zip(ways, issues, strict=True))
            yield Candidate(shape, elements, shape.multipliers(k) + element * elements,
                            max(sum(whole for whole, _ in issues), alone),
                            sum(way + max(late, busy) for (way, busy), (_, late) in zip(ways, issues, strict=True)))


def _abreast_shapes(layers: Sequence[Simple], levels: int) -> Iterator[ArrayShape]:
    """Shapes in whose passes all gates of a GRU are side by side, see `circulant.hw.array.layer_programs.mixes`; none
    where another layer's gates do not fit them."""
    found = [matrices(layer) for layer in layers if mixes(layer, ArrayShape(3, 1, 3))]
    others = [matrix for layer in layers if not mixes(layer, ArrayShape(3, 1, 3)) for matrix in matrices(layer)]
    if not found or any(len(matrix.kinds) > 1 for matrix in others):
        return
    rows = {-(-each[0].rows // n) * 3 for each in found for n in range(1, each[0].rows + 1)}
    columns = {-(-matrix.columns // n) for each in found for matrix in (each[0], each[2])
               for n in range(1, matrix.columns + 1)}
    for chains in (3, 6):
        for r in (each for each in rows if each >= chains):
            for c in columns:
                yield ArrayShape(r, c, chains, levels=levels)


def _issues(layer: Simple, found: Sequence[Matrix], shape: ArrayShape, *, late: bool) -> int:
    """Cycles in which an array of a shape issues the block products of a layer once; those that are ``late`` wait for
    the input, or for what comes of it."""
    total = 0
    if mixes(layer, shape):
        shares = [-(-matrix.columns // shape.columns) for matrix in (found[0], found[2])[:1 if late else 2]]
        return -(-3 * found[0].rows // shape.rows) * max(sum(shares), shape.slots * len(shares))
    for matrix in found:
        parts = [part for part in matrix.parts if not late or part.vector or not part.column]
        groups = sum(-(-len(part.columns) // shape.columns) for part in parts)
        total += -(-matrix.rows // shape.rows) * max(groups * shape.fold, shape.slots if groups else 0)
    return total


def _busy(layer: Layer, k: int, elements: int) -> int:
    """Cycles of the pointwise unit, or of rows that leave."""
    size = getattr(layer, "hidden", layer.outputs)
    return -(-size // k) * (k // elements if cells_of(layer) else 1)
