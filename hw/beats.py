"""Streams of several blocks a cycle: arrays that take and give them, and products in the order that is soonest through.

A beat holds up to so many blocks, each layer as many of them as its array takes and gives; between layers of different
ones stands a width converter. The price is transforms side by side, and inverse ones: more logic, no multipliers.
"""
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import product
from math import inf
from typing import Any

from circulant.hw.array.layer_programs import IN_TURN, matrices_of
from circulant.hw.array.matrix import beats, blocks_aside
from circulant.hw.array.plans import LayerPlan, Plan, Simple, StreamPlan, ValuesPlan
from circulant.hw.array.program import ArrayShape
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.components.cell import cells_of
from circulant.hw.kinds.linear import vector_cycles
from circulant.hw.plan.dataflow import Cycles, StageCycles, forked, latencies, stage_cycles
from circulant.hw.plan.ladders import Ladder, ladder, useful
from circulant.hw.plan.latency import leaving
from circulant.hw.plan.layer_plan import array_shapes, candidates, exact, narrow, widest
from circulant.hw.plan.sizes import Played, Sizes
from circulant.hw.plan.step_cost import chain_latency
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT, Stage
from circulant.sim.kinds.cell import RecurrentLayer
from circulant.sim.kinds.linear import Linear
from circulant.sim.refusal import Refusal

__all__ = ["AUTO", "BEATS", "Widths", "allowed_beats", "best_beats", "joined_plans"]

BEATS = 1, 2, 4, 8, 16
"""Blocks of a beat at the most that a design may have."""

AUTO = 0
"""The word for as many blocks a beat as give the best design."""

CELLS = 4
"""Blocks that a layer with a state gives at once, at the most."""

LONGER = 1, 1.25, 1.6
"""By what a period may be longer for a shorter latency, where the product of both counts."""

ROUNDS = 3
"""Times at the most that layers which the result waits for get what multipliers are left."""

MORE = 3
"""Times its own multipliers that a small layer gets besides, of twice as many that are left."""

RANKED = 8
"""Arrays of a layer whose results are played, those with the best estimates."""


@dataclass(frozen=True)
class Widths:
    """How wide the beats of a design may be.

    Parameters:
        tried: blocks of a beat at the most, of which the best is taken.
        levels: of logic between two registers.
        multipliers: of the design at the most.
        product: whether that of period and latency counts; else the period, and then the latency.
        limit: of the latency, in cycles, which comes first.
    """

    tried: tuple[int, ...]
    levels: int
    multipliers: int
    product: bool = False
    limit: float = inf

    def figures(self, cycles: float, late: int | None) -> tuple[float, ...]:
        """The figures that are compared of plans, the smaller the better."""
        beyond = max(0.0, (inf if late is None else late) - self.limit) if self.limit < inf else 0.0
        return beyond, *((cycles * late,) if self.product and late else (cycles, late or 0))


def allowed_beats(network: Network, blocks: int, *, streams: int, reloadable: bool, objective: str) -> tuple[int, ...]:
    """The blocks of a beat, at the most, that are to be tried for ``hardware.beat_blocks``.

    Raises:
        Refusal: when it is no such number, or the design cannot have beats of several blocks.
    """
    if isinstance(blocks, bool) or blocks not in (AUTO, *BEATS):
        raise Refusal(f"hardware.beat_blocks must be {', '.join(map(str, BEATS))}, or {AUTO} for the best of them, not "
                      f"{blocks!r}; give a power of two")
    if blocks == 1:
        return (1,)
    connected = [each for each in network.stages if isinstance(each, Linear | RecurrentLayer)]
    stack = len(connected) > 1 and any(map(cells_of, network.stages))
    why = next((reason for reason, found in (
        (f"objective {objective!r} gives all layers one array", stack and objective in ("latency", "area")),
        (f"{streams} streams are interleaved", streams > 1),
        (f"network {network.name!r} takes images", any(each.flow.grid is not None for each in network.inputs)),
        (f"network {network.name!r} has no fully connected layer and no cell", not connected)) if found), "")
    if why and blocks != AUTO:
        raise Refusal(f"hardware.beat_blocks must be 1 or {AUTO} where {why}, not {blocks}; leave it out")
    if why or blocks != AUTO:
        return (1 if why else blocks,)
    most = max(max(each.product.weights.shape[:2]) if isinstance(each, Linear) else CELLS for each in connected)
    return tuple(n for n in BEATS if n < 2 * most)


def best_beats(network: Network, ladders: Sequence[Ladder], separate: Callable[[list[Ladder]], list[Plan]],
               widths: Widths) -> list[Plan]:
    """The plans of an array for each layer with the best beats.

    Parameters:
        ladders: of layers that take a block a cycle.
        separate: from the ladders of all layers to plans within the budget.
    """
    if widths.tried == (1,):
        return separate(list(ladders))
    best: tuple[tuple[float, ...], list[Plan]] | None = None
    sizes = Sizes(network)
    for blocks in widths.tried:
        wide = [(_wide_ladder(layer, blocks, widths.levels) if blocks > 1 else None) or each
                for layer, each in zip(network.stages, ladders, strict=True)]
        made = separate(wide)
        for longer, widens in product(LONGER if (widths.product or widths.limit < inf) and blocks > 1 else (1,),
                                      (False,) if blocks == 1 or network.arrangement.chain else (False, True)):
            bound = int(max(each.cycles for each in made) * longer)
            plans = made if blocks == 1 else _with_joins(
                sizes, _soonest(sizes, made, widths, bound, blocks, widens=widens))
            late = latencies(network, plans, sizes(plans))["latency_spaced"]
            key = widths.figures(max(each.cycles for each in plans), late)
            if best is None or key < best[0]:
                best = key, plans
    assert best is not None
    return best[1]


def joined_plans(network: Network, plans: list[Plan]) -> list[Plan]:
    """The plans with the cycles of joins, which pass a block in each."""
    return _with_joins(Sizes(network), plans)


def _with_joins(sizes: Sizes, plans: list[Plan]) -> list[Plan]:
    network = sizes.network
    if network.arrangement.chain:
        return plans
    return [replace(plan, cycles=-(-stage.outputs // gives))
            if isinstance(plan, StreamPlan) and getattr(stage, "joins", False) else plan
            for stage, (_, gives), plan in zip(network.stages, sizes(plans), plans, strict=True)]


@dataclass(frozen=True)
class _Coming:
    """The cycles in which ``size`` values leave the layer before another one, ``k`` in each."""

    leaves: Cycles
    size: int
    k: int

    def taken(self, values: int) -> Cycles:
        """The cycles in which so many values come at once."""
        return forked(self.leaves, self.size, self.k, [values])[0]


@singledispatch
def _wide_ladder(layer: Any, blocks: int, levels: int) -> Ladder | None:
    """The useful plans of a layer whose array takes and gives several blocks a cycle; one with a state only gives."""
    return None


@_wide_ladder.register
def _(layer: Linear, blocks: int, levels: int) -> Ladder | None:
    return _ladder(layer, [_planned(layer, shape) for shape in _shapes(layer, blocks, levels)])


@_wide_ladder.register
def _(layer: RecurrentLayer, blocks: int, levels: int) -> Ladder | None:
    return _ladder(layer, list(candidates(layer, 1, levels, min(blocks, CELLS))))


def _ladder(layer: Simple, found: list[LayerPlan]) -> Ladder:
    return Ladder([(each,) for each in useful(found)],
                  lambda rung, spare: exact(layer, found, rung[0].multipliers + spare))


def _shapes(layer: Linear, most: int, levels: int) -> Iterator[ArrayShape]:
    """Arrays with as many blocks a beat as their columns and chains allow."""
    found = matrices_of(layer)
    for shape in narrow(found, array_shapes(found, levels)):
        yield widest([layer], shape, most)


def _planned(layer: Linear, shape: ArrayShape, spacing: tuple[int, int, int] = IN_TURN) -> LayerPlan:
    return LayerPlan(shape, 0, shape.multipliers(layer.product.block_size), vector_cycles(layer, shape), spacing)


def _soonest(sizes: Sizes, plans: Sequence[Plan], widths: Widths, bound: int, blocks: int, *,
             widens: bool) -> list[Plan]:
    """The plans with arrays, orders of products and widths that give the results of a sample sooner: each layer that
    the result waits for in turn, with what comes to it from those before, and again those that it waits for then.
    Unchanged where it is not known when blocks come.

    Parameters:
        bound: of the period.
        blocks: of a beat at the most.
        widens: whether sources of joins give more blocks a cycle, too, and small layers get what others have left.
    """
    network, plans, seen = sizes.network, list(plans), set[int]()
    for _ in range(1 if network.arrangement.chain else ROUNDS):
        found = stage_cycles(network, plans, sizes(plans))
        if found is None:
            break
        late, before = _latest(network, found), list(plans)
        again = late <= seen
        if again and not widens:
            break
        growing = [at for at in sorted(late) if isinstance(plans[at], LayerPlan | ValuesPlan)]
        for at in sorted(late):
            if widens:
                _widen(sizes, plans, at, (bound, blocks, widths.levels), widths.multipliers)
            left, own = widths.multipliers - sum(each.multipliers for each in plans), plans[at].multipliers
            small = again and 2 * MORE * own <= left  # These alone, with what others have left.
            if at in growing and (small or not again):
                share = left // (len(growing) - growing.index(at))
                plans[at] = _sooner(sizes, plans, at, (bound, blocks, widths.levels),
                                    spare=own + max(share, MORE * own * small))
        seen |= late
        if all(one is other for one, other in zip(plans, before, strict=True)):
            break
    return plans


def _widen(sizes: Sizes, plans: list[Plan], at: int, limits: tuple[int, int, int], multipliers: int) -> None:
    """Let what comes to a join give as many blocks a cycle as another source does, where that is sooner through the
    join: it takes the least of them. For the limits see `_sooner`."""
    network, (bound, blocks, levels) = sizes.network, limits
    for source in network.arrangement.sources[at] if len(network.arrangement.sources[at]) > 1 else ():
        layer, plan = network.stages[source], plans[source] if source > INPUT else None
        if not isinstance(layer, Linear) or not isinstance(plan, LayerPlan) or plan.sharing is not None:
            continue
        spare = plan.multipliers + multipliers - sum(each.multipliers for each in plans)
        shapes = dict[int, ArrayShape]()
        for shape in sorted(_shapes(layer, blocks, levels), key=lambda each: each.multipliers(
                layer.product.block_size)):
            if plan.shape.gives < shape.gives and shape.multipliers(layer.product.block_size) <= spare and (
                    vector_cycles(layer, shape) <= min(bound, plan.cycles)):
                shapes.setdefault(shape.gives, shape)
        best = _joined(sizes, plans, at, plan, source)
        for shape in shapes.values():
            wide = _planned(layer, shape)
            if (found := _joined(sizes, plans, at, wide, source)) < best:
                best, plans[source] = found, wide


def _latest(network: Network, found: Sequence[StageCycles]) -> set[int]:
    """The stages through which what comes last has passed; all, where there are several results."""
    late, behind = set[int](), list(range(len(found))) if network.many else [len(found) - 1]
    while behind:
        at = behind.pop()
        if at > INPUT and at not in late:
            late.add(at)
            last = max(comes[-1] for comes in found[at].comes)
            behind += [source for source, comes in zip(network.arrangement.sources[at], found[at].comes, strict=True)
                       if comes[-1] == last]
    return late


def _sooner(sizes: Sizes, plans: Sequence[Plan], at: int, limits: tuple[int, int, int], spare: int) -> Plan:
    """The plan of a stage for ``spare`` multipliers with which its result is there first; for the bound and the blocks
    of ``limits`` see `_soonest`, the third one is of levels."""
    network, layer, plan, (source, *others) = sizes.network, sizes.network.stages[at], plans[at], (
        sizes.network.arrangement.sources[at])
    bound, blocks, levels = limits
    if others:
        assert isinstance(plan, ValuesPlan)
        return min(_wider(layer, plan, spare), key=lambda each: _joined(sizes, plans, at, each))
    each = sizes(plans)
    found = stage_cycles(network, plans, each)
    assert found is not None
    size = network.stages[source].outputs if source > INPUT else network.inputs[INPUT - source].flow.size
    k = each[source][1] if source > INPUT else each[at][0]
    coming = _Coming(found[source].leaves if source > INPUT else list(range(1 - -(-size // k), 1)), size, k)
    if isinstance(plan, ValuesPlan):
        return _widest(layer, plan, coming, spare)
    if isinstance(layer, Linear) and isinstance(plan, LayerPlan) and plan.sharing is None:
        shapes = [replace(shape, takes=n) for shape in _shapes(layer, blocks, levels)
                  if shape.multipliers(layer.product.block_size) <= spare for n in BEATS if n <= shape.takes]
        made = [_planned(layer, each) for each in shapes]
    elif isinstance(layer, RecurrentLayer) and isinstance(plan, LayerPlan) and plan.sharing is None:
        made = [each for each in candidates(layer, 1, levels, min(blocks, CELLS)) if each.multipliers <= spare]
    else:
        return plan
    return _earliest(sizes.played, layer, plan, coming, [each for each in made if each.cycles <= bound],
                     bound=bound)


def _widest(layer: Stage, plan: ValuesPlan, coming: _Coming, spare: int) -> Plan:
    """The plan of a layer that takes some values a cycle, of those for ``spare`` multipliers, whose result is there
    first."""
    def gives(each: Plan) -> tuple[float, ...]:
        assert isinstance(each, ValuesPlan)
        found = leaving(layer, each, coming.taken(each.elements), each.elements)
        return (float("inf"),) if found is None else (found[-1], sum(found) / len(found), each.multipliers)

    return min(_wider(layer, plan, spare), key=gives)


def _wider(layer: Stage, plan: ValuesPlan, spare: int) -> list[Plan]:
    """The plan of a layer that takes some values a cycle, and those for ``spare`` multipliers that take more."""
    rungs = [rung[0] for rung in ladder(layer, streams=1, count=1, levels=plan.levels).rungs]
    return [plan, *(each for each in rungs if each.multipliers <= spare and each.cycles <= plan.cycles)]


def _joined(sizes: Sizes, plans: Sequence[Plan], at: int, plan: Plan, source: int | None = None) -> tuple[int, int]:
    """The cycle in which the last block leaves a join with that plan, or with that of a source, and its multipliers."""
    made = list(plans)
    made[at if source is None else source] = plan
    found = stage_cycles(sizes.network, made, sizes(made)) or []
    return found[at].leaves[-1], plan.multipliers


def _earliest(known: Played, layer: Simple, plan: LayerPlan, coming: _Coming, made: list[LayerPlan],
              *, bound: int) -> LayerPlan:
    """The plan of a layer with the array of one that is made, within a period of ``bound``, whose result is there
    first."""
    matrices = matrices_of(layer)

    def comes(shape: ArrayShape) -> Cycles:
        return coming.taken(beats(matrices, shape)[0])

    made.sort(key=lambda each: (_estimate(layer, each, comes(each.shape)), each.shape.chains, each.multipliers))
    played: list[tuple[tuple[float, ...], int, LayerPlan]] = []
    for one in made[:RANKED]:
        for first in sorted({1, one.shape.slots, 2 * one.shape.slots, IN_TURN[0]}):
            each = replace(one, spacing=(first, *IN_TURN[1:]), schedule=EitherFirst)
            given = known.leaving(layer, each, comes(each.shape))
            key = given[-1], sum(given) / len(given), each.shape.chains, each.multipliers
            played.append((key, len(played), each))
    given = known.leaving(layer, plan, comes(plan.shape))
    for (last, *_), _, each in sorted(played):
        if last >= given[-1]:
            break
        cycles = known.period(layer, each)
        if cycles <= max(bound, plan.cycles):
            return each.taking(cycles)
    return plan


def _estimate(layer: Simple, plan: LayerPlan, comes: Cycles) -> int:
    """The cycle in which about the last block of a result leaves: columns first or rows first, whichever is sooner."""
    matrices, shape = matrices_of(layer), plan.shape
    passes, groups = (sum(-(-each.rows // shape.rows) for each in matrices if not each.stage),
                      -(-matrices[0].inputs // shape.columns))
    aside = blocks_aside(matrices, shape)
    there = [comes[min(((n + 1) * shape.columns - 1) // aside, len(comes) - 1)] for n in range(groups)]
    down, along = there[0], there[0]
    for cycle in there:
        down, along = max(down, cycle) + passes * shape.fold, max(along, cycle) + shape.fold
    ends = min(down + passes * (shape.slots - 1),
               along + (passes - 1) * max(groups * shape.fold, shape.slots) + shape.slots)
    leaves = -(-layer.outputs // (plan.elements or matrices[0].product.block_size * shape.gives))
    return max(ends, there[-1] + leaves) + chain_latency(layer, shape, plan.elements)
