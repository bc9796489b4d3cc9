"""One array for all layers of a network, or for each group that can share one: which it is, and its exact cost."""
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from circulant.hw.array.layer_programs import ROWS, spacings
from circulant.hw.array.plans import LayerPlan, Sharing, Simple
from circulant.hw.array.program import ArrayShape
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.components.cell import cells_of
from circulant.hw.plan.ladders import useful
from circulant.hw.plan.layer_plan import element_multiplications
from circulant.hw.plan.shared.candidates import NEARLY, Candidate, Goal, candidates, finalists, least_shared
from circulant.hw.plan.shared.cost import (
    RANKED,
    Cost,
    least_period,
    period,
    periods,
    sample_results,
    sequences_cost,
    shared_cost,
)
from circulant.hw.plan.shared.groups import Group, block_size
from circulant.hw.plan.shared.schedule import schedule
from circulant.hw.plan.shares import FULL, shares
from circulant.sim.refusal import Refusal

__all__ = ["shared_plans"]

EQUAL = 1 / 32
"""Share by which an exact cost may be above the best one to count as equal."""

SPACED, GROWN, TRIED = 8, 2, 12
"""Arrays that are played with all spacings, and those of them that get what is left of the multipliers; plans that are
played for periods behind ends of sequences, until one has always the same."""


@dataclass(frozen=True)
class Choice:
    """A candidate for a group, the spacing of all layers' passes, and what `Sharing` says of the order."""

    group: Group
    candidate: Candidate
    spacing: tuple[int, int, int]
    in_turn: bool


def shared_plans(groups: Sequence[Group], multipliers: int, *, levels: int, goal: Goal,
                 beats: int = 1) -> tuple[list[LayerPlan], Cost]:
    """The plan of each layer, with an array for each group, and their cost. Of several groups the slowest one gets the
    next multipliers, again and again.

    Parameters:
        beats: see `circulant.hw.plan.shared.candidates.candidates`.

    Raises:
        Refusal: when the multipliers are too few for one lane of each group.
    """
    tried = [list(candidates(group, levels, beats)) for group in groups]
    ladders = [useful(each) for each in tried]
    shape = 1, len(ladders), max(map(len, ladders))
    costs, cycles = np.full(shape, FULL), np.zeros(shape, np.int64)
    for n, each in enumerate(ladders):
        costs[0, n, :len(each)], cycles[0, n, :len(each)] = [c.multipliers for c in each], [c.cycles for c in each]
    chosen, left = shares(costs, cycles, np.array([multipliers]))
    if left[0] < 0:
        arrays = ("One array for all layers" if len(groups) == 1 else
                  "An array for each group of layers that can share one")
        raise Refusal(f"{arrays} needs at least {least_shared(groups, levels)} multipliers, not {multipliers}; raise "
                      "hardware.multipliers")
    rungs = [each[at] for each, at in zip(ladders, chosen[0].tolist(), strict=True)]
    slowest = max(range(len(rungs)), key=lambda n: rungs[n].cycles)
    ways: list[Iterator[list[LayerPlan]]] = []
    for n, (group, rung) in enumerate(zip(groups, rungs, strict=True)):
        budget = rung.multipliers + (int(left[0]) if n == slowest else 0)
        found = [each for each in tried[n] if each.multipliers <= budget
                 and (each.elements >= group.k or each.multipliers + each.elements * sum(
                     map(element_multiplications, group.layers)) > budget)]  # Twice the elements do not fit, too.
        ways.append(_group_plans(group, found, budget, goal=goal))
    plans, cost = _steady((list(chain(*each)) for each in zip(*ways, strict=False)), goal,
                          steps=groups[0].steps if any(group.pairs for group in groups) else 0)
    return [replace(plan, cycles=cost.period, repeats=cost.repeats) for plan in plans], cost


def _steady(ways: Iterator[list[LayerPlan]], goal: Goal, *, steps: int) -> tuple[list[LayerPlan], Cost]:
    """The first plans whose period is the same behind each end of a sequence, if they are nearly as good as the first
    ones; else these, with the greatest of their periods as an estimate.

    Parameters:
        steps: of each sequence, where layers have both directions: then the first plans; 0 elsewhere.
    """
    found: list[tuple[list[LayerPlan], Cost]] = []
    for plans in islice(ways, TRIED):
        arrays, elements = list(dict.fromkeys(plan.sharing for plan in plans if plan.sharing)), [
            plan.elements for plan in plans]
        if steps:
            return plans, sequences_cost(arrays, elements, steps=steps, results=sample_results(arrays, elements))
        cost, (_, first) = shared_cost(arrays, elements), found[0] if found else (plans, None)
        if first and not _as_good(cost, first, goal):
            continue
        behind = periods(arrays, elements)
        if cost.turn and behind == {cost.period}:
            return plans, cost
        found.append((plans, replace(cost, period=max(behind | {cost.period}), turn=0)))
    return found[0]


def _as_good(cost: Cost, first: Cost, goal: Goal) -> bool:
    """Whether a cost is nearly as good as the first one, above all by what the goal asks for."""
    mine, best = (goal.figures(each.period, each.latency) for each in (cost, first))
    return mine[0] <= best[0] * (1 + EQUAL) and mine[1] <= best[1] * (1 + NEARLY)


def _group_plans(group: Group, found: Sequence[Candidate], multipliers: int, *,
                 goal: Goal) -> Iterator[list[LayerPlan]]:
    """The plans of layers with one array, from the candidates that fit, the best ones first, and behind them those that
    are nearly as good."""
    found, layers = finalists(found, goal), group.layers
    costs = _Costs(layers)
    orders = (True,) if group.pairs else (False, True)[:len(layers)]  # Neither direction is behind the other one.
    plain = [Choice(group, each, spacing, in_turn) for each in found for spacing in _usual(each.shape)
             for in_turn in orders]
    near = _search(costs, plain, goal, share=NEARLY)
    best: dict[tuple[int, bool], Choice] = {}
    for (_, one), (_, other) in zip(near, sorted(near, key=lambda each: each[0][1::-1]), strict=True):
        for each in (other, one):
            best.setdefault((id(each.candidate), each.in_turn), each)
    spaced = [replace(each, spacing=spacing) for each in list(best.values())[:SPACED]
              for spacing in (each.spacing, *spacings(each.candidate.shape))]
    last: dict[tuple[int, bool], Choice] = {}
    for _, each in _search(costs, spaced, goal, share=EQUAL):
        last.setdefault((id(each.candidate), each.in_turn), each)
    grown = [(each, *_grown(costs, each, multipliers)) for each in list(last.values())[:GROWN]]
    grown.sort(key=lambda each: goal.figures(each[2].period, each[2].latency)[::-1])
    for chosen, elements, _ in grown:
        yield _plans(costs, chosen, elements)
    turned = [replace(chosen, in_turn=True) for chosen, _, _ in grown if orders[-1]]
    done = {chosen for chosen, _, _ in grown}
    for chosen in dict.fromkeys((*turned, *last.values(), *(each for _, each in near))):
        if chosen not in done:
            yield _plans(costs, chosen, _grown(costs, chosen, multipliers)[0])


def _usual(shape: ArrayShape) -> Iterator[tuple[int, int, int]]:
    """Spacings for a first look: rows first, and columns first in the share that waits, all of them or some."""
    yield shape.slots, ROWS, shape.slots
    yield shape.slots, shape.slots, ROWS
    yield shape.slots, 4 * shape.slots, ROWS


class _Costs:
    """Costs of layers that share an array, each played once, and so are choices that issue the same: exact but for
    periods that do not show within `RANKED` cycles."""

    def __init__(self, layers: Sequence[Simple]) -> None:
        self.layers = tuple(layers)
        self._sharings: dict[Choice, Sharing] = {}
        self._schedules: dict[Choice, Hashable] = {}
        self._periods: dict[Hashable, tuple[float, tuple[int, ...], int]] = {}
        self._results: dict[Hashable, tuple[int, ...]] = {}

    def sharing(self, choice: Choice) -> Sharing:
        if choice not in self._sharings:
            self._sharings[choice] = Sharing(
                self.layers, choice.candidate.shape, (choice.spacing,) * len(self.layers), in_turn=choice.in_turn,
                streams=choice.group.streams, pairs=choice.group.pairs,
                schedule=choice.candidate.schedule if choice.group.streams == 1 else InputFirst)
        return self._sharings[choice]

    def _schedule(self, choice: Choice) -> Hashable:
        """The issues that the cost follows from; equal ones of many choices, as their spacings make no difference."""
        if choice not in self._schedules:
            self._schedules[choice] = choice.in_turn, tuple(map(schedule, self.sharing(choice).programs))
        return self._schedules[choice]

    def units(self, each: Sequence[int]) -> list[int]:
        """The elements of the pointwise units; 0 of a layer without one."""
        return [elements if cells_of(layer) else 0 for layer, elements in zip(self.layers, each, strict=True)]

    def period(self, choice: Choice, each: Sequence[int]) -> tuple[float, tuple[int, ...], int]:
        """See `circulant.hw.plan.shared.cost.period`; ``each`` are the elements of each layer."""
        key = self._schedule(choice), tuple(each)
        if key not in self._periods:
            self._periods[key] = period([self.sharing(choice)], self.units(each), most=RANKED)
        return self._periods[key]

    def results(self, choice: Choice, each: Sequence[int]) -> tuple[int, ...]:
        """See `circulant.hw.plan.shared.cost.sample_results`."""
        key = self._schedule(choice), tuple(each)
        if key not in self._results:
            self._results[key] = sample_results([self.sharing(choice)], self.units(each))
        return self._results[key]

    def cost(self, choice: Choice, each: Sequence[int]) -> Cost:
        """Both of them."""
        return Cost(*self.period(choice, each), self.results(choice, each))


def _search(costs: _Costs, choices: Sequence[Choice], goal: Goal, *,
            share: float) -> list[tuple[tuple[float, ...], Choice]]:
    """The choices whose exact cost is above the best one by what the goal asks for by such a share at the most,
    sorted by the other figure, which is said with them. What cannot be as good, as its issues alone take longer, is not
    played."""
    def period(each: Choice) -> float:
        return costs.period(each, [each.candidate.elements] * len(costs.layers))[0]

    def latency(each: Choice) -> int:
        return costs.results(each, [each.candidate.elements] * len(costs.layers))[-1]

    played: list[tuple[float, Choice]] = []
    most = float("inf")
    for each in choices:
        late = 0 if goal == Goal("area") else latency(each)  # Shorter to play than a period.
        if goal.figures(least_period([costs.sharing(each)]), late)[0] > most:
            continue
        first = late if goal.objective == "latency" else goal.figures(period(each), late)[0]
        most = min(most, first * (1 + share))
        played.append((first, each))

    def key(first: float, each: Choice) -> tuple[float, ...]:
        shape, late = each.candidate.shape, latency(each)
        return (goal.figures(0 if goal.objective == "auto" else period(each), late)[1], first,
                each.candidate.multipliers, each.in_turn, shape.rows % shape.chains)

    keyed = sorted((key(first, each), n) for n, (first, each) in enumerate(played) if first <= most)
    return [(key, played[n][1]) for key, n in keyed]


def _grown(costs: _Costs, chosen: Choice, multipliers: int) -> tuple[list[int], Cost]:
    """The elements of each layer, with what is left of the multipliers given to those whose sample gains most by it;
    and the cost."""
    best, layers = chosen.candidate, costs.layers
    k = block_size(layers[0])
    elements, left = [best.elements] * len(layers), multipliers - best.multipliers
    cost = costs.cost(chosen, elements)
    most = cost.period * (1 + EQUAL)
    while True:
        tried = []
        for n, layer in enumerate(layers):
            more = element_multiplications(layer) * elements[n]
            if 0 < more <= left and elements[n] < k:
                grown = [each * 2 if at == n else each for at, each in enumerate(elements)]
                found = costs.cost(chosen, grown)
                if found.latency < cost.latency and found.period <= most:
                    tried.append((found.latency, more, n, grown, found))
        if not tried:
            return elements, cost
        _, more, _, elements, cost = min(tried)
        left -= more


def _plans(costs: _Costs, chosen: Choice, elements: Sequence[int]) -> list[LayerPlan]:
    """The plans of layers, with so many elements in each pointwise unit; their cycles are not known yet."""
    shape, sharing, layers = chosen.candidate.shape, costs.sharing(chosen), costs.layers
    found = [LayerPlan(shape, own, multipliers=element_multiplications(layer) * each, cycles=0,
                       spacing=chosen.spacing, streams=chosen.group.streams, sharing=sharing)
             for layer, each, own in zip(layers, elements, costs.units(elements), strict=True)]
    k = block_size(layers[0])
    return [replace(found[0], multipliers=found[0].multipliers + shape.multipliers(k)), *found[1:]]
