"""The search for the place of each layer: dynamic programming over the topological order, as HyPar and AccPar do it.

A state of the program is a place for each layer up to one. What later layers see of it are the places of those whose
results they still take, and how much work and how many words there are so far; of states that look alike the better
one stays, and of all of them the `KEPT` best. Up to `FLAT` chips are told apart at once; more are halved again and
again, as in HyPar's hierarchy, and each half is one chip of all its multipliers until it is halved in turn.

States are ranked by what is least possible: work by multipliers, and words. Those that are left at the end are ranked
by `Costs.cost`, from the ladders of plans that the planner itself chooses from, and the best of these are planned.
Columns come behind that: in the best placements layers get them where the cost becomes lower, or hardly higher, with
the rows of what they take on the same chips where that is better, and what comes out is planned, too. Streams, a chip
for each of several independent sequences, are a choice for the whole network alone, where it is asked for.

HyPar: Song et al., HPCA 2019. AccPar: Song et al., HPCA 2020.
"""
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, product
from math import inf
from typing import Any

from circulant.hw.chips.cluster import Chip, Cluster
from circulant.hw.chips.columns import block_columns, even_columns, unsummed
from circulant.hw.chips.costs import FILL, Costs, Goal
from circulant.hw.chips.cut import Place, Placement, even, not_in_turn
from circulant.hw.chips.plans import Planned, planned, shared
from circulant.hw.chips.rows import block_rows, undivided
from circulant.hw.emit.profile import PROFILES
from circulant.hw.plan.families import FAMILIES
from circulant.hw.planner import plan
from circulant.hw.resources import counted, period
from circulant.hw.stream.pipeline import LEVELS
from circulant.hw.unit import unelaborated
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Node

__all__ = ["FLAT", "Choice", "baselines", "best", "candidates", "columned", "exhaustive", "search"]

FLAT, KEPT, FINALISTS, SUMMED, NEAR, ROUNDS = 4, 256, 3, 2, 1.1, 4
"""Chips that are told apart at once, states that are kept, placements that are planned, and those with columns, whose
costs are within so much of others: by their plans they may be less; samples that the slowest chip has of a turn."""

def candidates(costs: Costs, name: str, chips: Sequence[tuple[int, ...]], weights: Sequence[float]) -> list[Place]:
    """The places of a layer: whole on one of some chips, its rows over several.

    Parameters:
        chips: groups of which it may have one, or a part on each of several.
        weights: multipliers of all chips.
    """
    layer, found = costs.nodes[name].layer, [Place((n,)) for n in dict.fromkeys(n for each in chips for n in each)]
    if undivided(layer):
        return found
    for each in chips:
        for count in range(2, len(each) + 1):
            for some in combinations(each, count):
                own = [weights[n] for n in some]
                ratios = [own] if count > 2 else [own, [own[0], 2 * own[1]], [2 * own[0], own[1]]]
                if block_rows(layer) >= count:
                    found += [Place(some, even(layer, each)) for each in ratios]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class _State:
    placement: dict[str, Place]
    loads: tuple[float, ...]
    words: dict[tuple[int, int], int]
    done: dict[str, float]
    steps: float  # Cycles of a step of divided layers with a state, at the least.

    def rank(self, goal: Goal, multipliers: Sequence[float]) -> tuple[float, float, int]:
        busy = [load / each for load, each in zip(self.loads, multipliers, strict=True)]
        period = max([*busy, *self.words.values(), self.steps])
        return goal.of(period, max(self.done.values())), sum(each * each for each in busy), sum(self.words.values())


def _program(costs: Costs, places: Callable[[str], list[Place]], rank: Callable[[_State], Any]) -> list[Placement]:
    """The placements that are left at the end, the best by ``rank`` first."""
    cluster, network = costs.cluster, costs.network
    multipliers = costs.weights
    alike = [min(m for m in range(n + 1) if cluster.chips[m].multipliers == cluster.chips[n].multipliers)
             for n in range(len(multipliers))]
    last = {source: n for n, node in enumerate(network.nodes) for source in node.sources}
    together = _together(network)
    states = [_State({}, (0.0,) * len(multipliers), {}, {}, 0.0)]
    for n, node in enumerate(network.nodes):
        found: dict[Any, tuple[Any, _State]] = {}
        for state in states:
            for place in places(node.name):
                if cluster.topology == "all" and _later_twin(place, state, alike):
                    continue
                if state.placement.get(together.get(node.name, ""), place) != place:
                    continue
                made = _with(costs, state, node, place)
                live = tuple((name, made.placement[name]) for name in made.placement if last.get(name, n) > n)
                key = live, tuple(round(each, -2) for each in made.loads), tuple(sorted(made.words.items()))
                ranked = rank(made)
                if key not in found or ranked < found[key][0]:
                    found[key] = ranked, made
        states = [made for _, made in sorted(found.values(), key=lambda each: each[0])[:KEPT]]
    return [state.placement for state in states]


def _together(network: Network) -> dict[str, str]:
    """By the name of a layer over images the first one of the branches that it lies on: a circuit adds images whose
    branches part in it, so that all of them are on one chip."""
    found: dict[str, str] = {}
    for node in network.nodes:
        if len(node.sources) < 2 or network.flows[node.name].grid is None:
            continue
        ways = [_up_to(network, source) for source in node.sources]
        beside = ways[0].union(*ways) - ways[0].intersection(*ways)
        names = [each.name for each in network.nodes if each.name in beside] + [node.name]
        found |= dict.fromkeys(names, found.get(names[0], names[0]))
    return found


def _up_to(network: Network, name: str) -> set[str]:
    """A layer, and all that it comes from."""
    node = next((each for each in network.nodes if each.name == name), None)
    return {name}.union(*(_up_to(network, source) for source in node.sources)) if node else {name}


def _by_goal(costs: Costs) -> Callable[[_State], Any]:
    return lambda state: state.rank(costs.goal, costs.weights)


def _later_twin(place: Place, state: _State, alike: Sequence[int]) -> bool:
    """Whether a place begins with an idle chip although one like it, with a lower number, is idle too."""
    used = {n for each in state.placement.values() for n in each.chips}
    return any(n not in used and any(alike[m] == alike[n] and m not in used and m not in place.chips for m in range(n))
               for n in place.chips)


def _with(costs: Costs, state: _State, node: Node, place: Place) -> _State:
    placement = {**state.placement, node.name: place}
    loads, total = list(state.loads), sum(place.blocks) or 1
    for chip, blocks in zip(place.chips, place.blocks or (1,), strict=True):
        loads[chip] += costs.work[node.name] * blocks / total
    words = dict(state.words)
    for pair, each in costs.moved(node, placement).items():
        words[pair] = words.get(pair, 0) + each
    moves = [len({*placement.get(source, place).chips, *place.chips}) > 1 for source in node.sources]
    start = max(state.done.get(source, 0.0) + (costs.cluster.link.latency + 8) * moved
                for source, moved in zip(node.sources, moves, strict=True))
    share = sum(costs.cluster.chips[n].multipliers for n in place.chips)
    done = {**state.done, node.name: start + (FILL if costs.work[node.name] else 1) + costs.work[node.name] / share}
    steps = max(costs.wait(node.name, blocks) + costs.work[node.name] * blocks / total
                / costs.cluster.chips[chip].multipliers for chip, blocks in zip(
                    place.chips, place.blocks or (0,), strict=True))
    return _State(placement, tuple(loads), words, done=done, steps=max(state.steps, steps))


def best(costs: Costs, *, divided: bool = True) -> list[Placement]:
    """The best placements, the first one the best by `Costs.cost`.

    Parameters:
        divided: whether rows may be.
    """
    weights = costs.weights
    everyone = tuple(range(len(weights)))
    if len(weights) <= FLAT:
        places = {name: [place for place in candidates(costs, name, [everyone], weights) if divided or place.whole]
                  for name in costs.nodes}
        found = _program(costs, places.__getitem__, _by_goal(costs))
        if divided:  # What is ranked behind shares may be planned before them.
            found += _program(costs, lambda name: [each for each in places[name] if each.whole], _by_goal(costs))
    else:
        found = _halved(costs, weights, divided)
    ranked = sorted(((costs.cost(each), n, each) for n, each in enumerate(found)), key=lambda each: each[:2])
    return [each for cost, _, each in ranked if cost < inf]


def _halved(costs: Costs, weights: Sequence[float], divided: bool) -> list[Placement]:
    """Placements on more chips, by halving groups of them."""
    groups = [tuple(range(len(weights)))]
    within: dict[str, tuple[int, ...]] = dict.fromkeys(costs.nodes, (0,))
    while True:
        halves, of = list[tuple[int, ...]](), dict[int, tuple[int, ...]]()
        for n, group in enumerate(groups):
            middle = -(-len(group) // 2)
            of[n] = tuple(range(len(halves), len(halves) + (2 if len(group) > 1 else 1)))
            halves += [group[:middle], group[middle:]] if len(group) > 1 else [group]
        cluster = Cluster(tuple(Chip(f"group{n}", max(1, int(sum(weights[m] for m in group))))
                                for n, group in enumerate(halves)), costs.cluster.link)
        level = Costs(costs.network, cluster, costs.goal, costs.levels, costs._ladders)
        places = {name: _refined(level, name, [of[n] for n in within[name]], divided) for name in costs.nodes}
        found = _program(level, places.__getitem__, _by_goal(level))
        groups = halves
        if all(len(group) == 1 for group in groups):
            order = [group[0] for group in groups]
            return [{name: Place(tuple(order[n] for n in place.chips), place.blocks) for name, place in each.items()}
                    for each in found]
        within = {name: place.chips for name, place in found[0].items()}


def _refined(costs: Costs, name: str, halves: Sequence[tuple[int, ...]], divided: bool) -> list[Place]:
    """The places of a layer that lies in some groups, on one half or both of each."""
    weights = costs.weights
    layer = costs.nodes[name].layer
    rows = divided and not undivided(layer)
    each = [[(n,) for n in pair] + ([pair] if len(pair) > 1 and rows else []) for pair in halves]
    found = []
    for some in product(*each):
        chips = tuple(n for part in some for n in part)
        if len(chips) == 1:
            found.append(Place(chips))
        elif block_rows(layer) >= len(chips):
            found.append(Place(chips, even(layer, [weights[n] for n in chips])))
    return found


def exhaustive(costs: Costs, *, divided: bool = True) -> tuple[float, Placement]:
    """The cost of the best of all placements, and that one; for small networks."""
    weights = costs.weights
    everyone = tuple(range(len(weights)))
    places = [[place for place in candidates(costs, name, [everyone], weights) if divided or place.whole]
              for name in costs.nodes]
    made: tuple[float, Placement] = (inf, {})
    for some in product(*places):
        placement = dict(zip(costs.nodes, some, strict=True))
        cost = costs.cost(placement)
        made = min(made, (cost, placement), key=lambda each: each[0])
    return made


def columned(costs: Costs, placements: Sequence[Placement]) -> list[Placement]:
    """Placements in which the columns of layers are divided, each of a cost that is lower than that of the one that it
    is made from, or `NEAR` it; the best one first."""
    found: dict[tuple[tuple[str, Place], ...], float] = {}
    for placement in placements:
        least = start = NEAR * costs.cost(placement)
        for name in costs.nodes:
            for change in _columns(costs, name, placement):
                made = {**placement, **change}
                if (cost := costs.cost(made)) < least:
                    least, placement = cost, made
        if least < start:
            found[tuple(placement.items())] = least
    return [dict(each) for each in sorted(found, key=found.__getitem__)]


def _columns(costs: Costs, name: str, placement: Placement) -> Iterator[dict[str, Place]]:
    """Places of a layer whose columns are divided: as the rows of what it takes are, or over chips of which each has
    its rows, too; or over others."""
    node, chips = costs.nodes[name], costs.cluster.chips
    if unsummed(node.layer):
        return
    k, (source,) = node.layer.product.block_size, node.sources
    before = placement.get(source)
    if before is not None and before.blocks and not before.columns:
        size = costs.nodes[source].layer.outputs // sum(before.blocks)
        if all(each * size % k == 0 for each in before.blocks[:-1]):
            found = [each * size // k for each in before.blocks[:-1]]
            last = block_columns(node.layer) - sum(found)
            yield {name: Place(before.chips, (*found, last), columns=True)}
    groups = [each for count in range(2, len(chips) + 1) for each in combinations(range(len(chips)), count)
              ] if len(chips) <= FLAT else list({placement[each].chips for each in (name, source) if each in placement
                                                 and len(placement[each].chips) > 1})
    for some in groups:
        weights = [costs.weights[n] for n in some]
        if blocks := even_columns(node.layer, weights):
            mine = {name: Place(some, blocks, columns=True)}
            yield mine
            other = costs.nodes.get(source)
            if other is not None and not undivided(other.layer) and block_rows(other.layer) >= len(some):
                yield {source: Place(some, even(other.layer, weights)), **mine}


@dataclass(frozen=True, eq=False)
class Choice:
    """The plan that was found, and those it was chosen from."""

    planned: Planned
    considered: int

    def lines(self) -> list[str]:
        """A line for each layer: its place."""
        names, found = [each.name for each in self.planned.cluster.chips], []
        for name, place in self.planned.placement.items():
            if place.streams:
                found.append(f"{name}: streams, in turn on {', '.join(names[n] for n in place.chips)}")
                continue
            rows = [f"{blocks} blocks on {names[n]}" for n, blocks in zip(place.chips, place.blocks, strict=False)]
            divided = "columns" if place.columns else "rows"
            found.append(f"{name}: " + (f"{divided}, {', '.join(rows)}" if rows else
                                        f"whole on {names[place.chips[0]]}"))
        return found


def search(network: Network, cluster: Cluster, goal: Goal | None = None, *, levels: int = LEVELS,
           objective: str = "throughput", streams: bool = False) -> Choice:
    """The best plan: the first ones of `best`, planned, which fit their chips.

    Parameters:
        streams: whether independent sequences, as many as chips, or samples may take turns, the whole network on each
            chip.

    Raises:
        Refusal: when no chips can hold the network, each a part of it.
    """
    goal = goal or Goal()
    costs = Costs(network, cluster, goal, levels)
    placements, refused, found, divided = best(costs), "", list[Planned](), False
    if streams and not not_in_turn(network):
        with suppress(Refusal):
            turns = dict.fromkeys(costs.nodes, Place(_turns(costs), streams=True))
            placements = [turns, *placements] if costs.cost(turns) < inf else placements
    if not placements:
        raise Refusal(f"Some chips must hold a share of each layer, but {len(cluster.chips)} with "
                      f"{', '.join(f'{each.multipliers:,}' for each in cluster.chips)} multipliers cannot hold network "
                      f"{network.name!r}, the smallest lane per layer; take larger chips or more of them")
    for placement in placements:
        try:
            own = "auto" if goal.latency and any(place.streams for place in placement.values()) else objective
            made = planned(network, cluster, placement, objective=own, levels=levels)
            _require_fit(made)
        except Refusal as refusal:
            refused = refused or str(refusal)
            continue
        found.append(made)
        if not divided:  # Of the best placement with a divided state.
            ways = list(_fitting(shared(network, cluster, placement, levels=levels)))
            found, divided = found + ways, bool(ways)
        if len({id(each.placement) for each in found}) == FINALISTS:
            break
    if len(cluster.chips) > 1:
        divisible = [each for each in placements[:FINALISTS] if not any(place.streams for place in each.values())]
        for n, placement in enumerate(columned(costs, divisible)[:SUMMED]):
            with suppress(Refusal):
                ways = list(shared(network, cluster, placement, levels=levels)) if not n else []
                found += _fitting([planned(network, cluster, placement, objective=objective, levels=levels), *ways])
    if not found:
        raise Refusal(refused)
    return Choice(min(found, key=lambda each: goal.of(each.timing.period, each.timing.latency)), len(placements))


def _turns(costs: Costs) -> tuple[int, ...]:
    """The chips in turn: each once for steps; a faster one several times, and these apart, for samples."""
    chips = range(len(costs.cluster.chips))
    if costs.network.sequence:
        return tuple(chips)
    alone = {each: period(costs.network, plan(costs.network, each, levels=costs.levels))
             for each in {chip.multipliers for chip in costs.cluster.chips}}
    cycles = [alone[chip.multipliers] for chip in costs.cluster.chips]
    slowest = max(cycles)
    _, counts = min((rounds * slowest / sum(counts), counts) for rounds in range(1, ROUNDS + 1)
                    for counts in [[int(rounds * slowest / each) for each in cycles]])
    return tuple(n for _, n in sorted(((at + 0.5) / count, n) for n, count in enumerate(counts) for at in range(count)))


def _fitting(ways: Iterable[Planned]) -> Iterator[Planned]:
    for made in ways:
        with suppress(Refusal):
            _require_fit(made)
            yield made


def _require_fit(made: Planned) -> None:
    """
    Raises:
        Refusal: when a part takes more than its chip has.
    """
    for n, (chip, part) in enumerate(zip(made.cluster.chips, made.cut.parts, strict=True)):
        if part is None or not chip.family:
            continue
        with unelaborated():
            demand = FAMILIES[chip.family].demand(counted(made.top(n).parts + made.waits(n), PROFILES["generic"]))
        for what, takes, has in (("DSP blocks", demand.dsps, chip.dsps), ("block RAMs", demand.block_rams,
                                                                         chip.block_rams)):
            if has and takes > has:
                raise Refusal(f"A part must fit its chip, but that of {chip.name!r} takes {takes:g} of {has:,} {what}; "
                              "give it fewer multipliers, or take larger chips")


def baselines(network: Network, cluster: Cluster, goal: Goal | None = None, *, levels: int = LEVELS,
              costs: Costs | None = None) -> dict[str, tuple[float, Placement]]:
    """The costs of what the papers compare with, by `Costs.cost`: "data": each chip has the whole network and its own
    sequences (period alone; infinite where a chip cannot hold it); "layers": whole layers; "traffic": the fewest words,
    HyPar's objective, whatever the cycles."""
    costs = costs or Costs(network, cluster, goal or Goal(), levels)
    alone = [costs.cost({name: Place((n,)) for name in costs.nodes}) for n in range(len(cluster.chips))]
    rate = sum(0.0 if each == inf else 1 / each for each in alone)
    layers = best(costs, divided=False)
    weights = costs.weights
    everyone = tuple(range(len(weights)))
    places = {name: candidates(costs, name, [everyone], weights) for name in costs.nodes}
    traffic = [each for each in _program(costs, places.__getitem__, lambda state: (
        sum(state.words.values()), *state.rank(costs.goal, weights))) if costs.cost(each) < inf]
    return {"data": (1 / rate if rate else inf, {}), **{name: (costs.cost(found[0]), found[0]) if found else (inf, {})
                                                        for name, found in (("layers", layers), ("traffic", traffic))}}


