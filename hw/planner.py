"""From a budget of multipliers to arrays: what each layer gets."""
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np

from circulant.hw.array.layer_programs import matrices_of
from circulant.hw.array.matrix import beats
from circulant.hw.array.plans import LayerPlan, Plan, StreamPlan
from circulant.hw.beats import Widths, allowed_beats, best_beats, joined_plans
from circulant.hw.kinds.conv.tile import PIXELS
from circulant.hw.kinds.registry import KINDS
from circulant.hw.plan.alternative import APART, EACH, GROUPS, ONE, Alternative, known_latency, reason_of
from circulant.hw.plan.dataflow import latencies
from circulant.hw.plan.ladders import Ladder, Rung, ladder, layer_multiplications, tiled
from circulant.hw.plan.latency import leaving, reblocked
from circulant.hw.plan.shared.apart import apart_plans
from circulant.hw.plan.shared.arrays import shared_plans
from circulant.hw.plan.shared.candidates import Goal, least_shared
from circulant.hw.plan.shared.graph import exact_plans
from circulant.hw.plan.shared.groups import STEPS, Group, paired, shareable
from circulant.hw.plan.shares import FULL, shares
from circulant.hw.plan.sizes import Sizes
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT
from circulant.sim.refusal import Refusal

__all__ = ["KINDS", "OBJECTIVES", "Alternative", "Ladder", "Plan", "alternatives", "each_step", "ladder",
           "layer_multiplications", "plan", "repeats", "require_positive", "rung_cycles", "rung_multipliers"]

OBJECTIVES = ("throughput", "auto", "latency", "area")
"""Aims of a design: an array for each layer, so that all work at once; of that and one array for all layers the one
with the smaller product of period and latency; the one with the shorter latency; one array for all, with the shortest
period."""


def require_positive(name: str, value: object, why: str) -> None:
    """
    Raises:
        Refusal: when ``value`` is no positive integer.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Refusal(f"{name} must be a positive integer, not {value!r}; {why}")


def each_step(network: Network) -> list[bool]:
    """Whether each layer works at every step; behind one that returns its last state, a layer works once a sequence."""
    return [flow.sequence for flow in network.arrangement.come]


def repeats(network: Network) -> list[int]:
    """For each layer how often its cycles pass for a sample: once, but behind images for each step of the sequence that
    their rows become. Where sequences come in, whose length is open, samples are steps."""
    found, times, images = [], 1, not network.sequence
    for stage, come in zip(network.stages, network.arrangement.come, strict=True):
        found.append(times if come.sequence and images else 1)
        if come.grid is not None and getattr(stage, "rows", False):
            times = come.grid[0]
    return found


def plan(network: Network, multipliers: int, *, streams: int = 1, levels: int = LEVELS,
         objective: str = "throughput", reloadable: bool = False, beat_blocks: int = 1, latency: int = 0,
         waits: Mapping[str, int] | None = None, max_steps: int = STEPS) -> list[Plan]:
    """For each layer its share of ``multipliers``: of an array for each layer, the slowest layer is as fast as they
    allow; for other objectives see `alternatives`.

    Parameters:
        streams: independent sequences that a recurrent layer interleaves; with 1 a step takes the least time, with 3
            every step of an LSTM overlaps with those of others.
        levels: of logic between two registers of recurrent and fully connected layers and norms, see docs/synthesis.md.
        objective: one of `OBJECTIVES`.
        reloadable: whether weights are exchanged, see `Sharing`.
        beat_blocks: blocks of a beat at the most, one of `circulant.hw.beats.BEATS`, or `circulant.hw.beats.AUTO`.
        latency: of a sample into an idle circuit at the most, in cycles; 0 for any.
        waits: by the name of a layer the cycles that its step takes beside its array, as it waits for what comes from
            elsewhere; only with "throughput".
        max_steps: of a sequence at the most; the period of both directions on one array is that of such sequences.

    Raises:
        Refusal: when a number is not positive, the budget is too small for one lane per layer, or a layer has no
            hardware or none for several streams, or no plan that is found has the latency.
    """
    if objective != "throughput":
        return alternatives(network, multipliers, streams=streams, levels=levels, objective=objective,
                            reloadable=reloadable, beat_blocks=beat_blocks, latency=latency,
                            max_steps=max_steps)[0].plans
    beats = allowed_beats(network, beat_blocks, streams=streams, reloadable=reloadable, objective=objective)
    found = _ladders(network, multipliers, streams, levels, objective)
    least = sum(rung_multipliers(each.rungs[0]) for each in found)
    way_out = _one_array(network, streams, levels, least) if least > multipliers else ""
    made = best_beats(network, found, partial(_separate, network, multipliers, way_out=way_out, waits=waits),
                      Widths(beats, levels, multipliers, limit=_limit(latency)))
    return _within(network, [_each(network, made)], latency, multipliers, objective)[0].plans


def alternatives(network: Network, multipliers: int, *, streams: int = 1, levels: int = LEVELS,
                 objective: str, reloadable: bool = False, beat_blocks: int = 1,
                 latency: int = 0, max_steps: int = STEPS) -> list[Alternative]:
    """The engines that a network can have within a budget, the best first, for an objective other than "throughput";
    for the parameters see `plan`. With a latency asked for, those within it are the best, whatever the objective.

    Raises:
        Refusal: as `plan`; when the layers cannot share an array, unless the objective is "auto".
    """
    beats = allowed_beats(network, beat_blocks, streams=streams, reloadable=reloadable, objective=objective)
    ladders = _ladders(network, multipliers, streams, levels, objective)
    widths = Widths(beats, levels, multipliers, product=True, limit=_limit(latency))
    own = partial(best_beats, network, ladders, partial(_separate, network, multipliers, way_out=""), widths)
    if objective == "latency" and any(layer.kind == "bidirectional" for layer in network.stages):
        raise Refusal(f"hardware.objective must not be 'latency' where a layer is bidirectional, as network "
                      f"{network.name!r} has no result before a sequence ends; choose 'throughput', 'auto' or 'area'")
    try:
        groups = shareable(network, streams, max_steps)
    except Refusal as refusal:
        if objective != "auto":
            raise
        why = f"layers cannot share one: {str(refusal).partition(', but ')[2].partition('; ')[0]}"
        return _within(network, _with_apart(network, _each(network, own(), why), multipliers, widths), latency,
                       multipliers, objective)
    least = sum(rung_multipliers(each.rungs[0]) for each in ladders)
    found = [_each(network, own())] if least <= multipliers else []
    behind = [each.rungs[0][0] for each in ladders]

    def shared(goal: Goal) -> Alternative:
        made, cost = shared_plans(groups, multipliers, levels=levels, goal=goal, beats=max(beats))
        one = paired(network.stages, made)
        plans = [*one, *behind[len(one):]]
        late = None if len(one) < len(made) else _latency(network, plans, len(one), list(cost.results), groups[-1].k)
        return Alternative(ONE if len(groups) == 1 else GROUPS, plans, cost.period, late)

    made = [shared(Goal(objective))]
    if objective == "latency":  # The product of both figures leads to other arrays, which may have a lower one.
        made.append(shared(Goal("auto")))
    elif latency:
        for goal in Goal(objective, latency - _behind(network, behind, groups)), Goal("latency"):
            if _spaced(network, made[-1]) > latency:
                made.append(shared(goal))
        made = made[-1:] if _spaced(network, made[-1]) <= latency else made
    found.append(min(made, key=lambda each: (known_latency(each), each.period)))
    known = all(each.latency is not None for each in found)
    order = {"auto": lambda each: (each.period * known_latency(each) if known else each.period, known_latency(each)),
             "latency": lambda each: (known_latency(each), each.period), "area": lambda each: (each.engines == EACH, 0)}
    best, *others = _within(network, sorted(found, key=order[objective]), latency, multipliers, objective)
    return [best if best.reason else replace(best, reason=reason_of(best, others, objective, least)), *others]


def _with_apart(network: Network, each: Alternative, multipliers: int, widths: Widths) -> list[Alternative]:
    """An array for each layer, and one for the fully connected layers, the better first, where beats of several blocks
    are tried, without which they wait for one another."""
    own, sizes, found = _spaced(network, each), Sizes(network), list[tuple[tuple[float, ...], float, list[Plan]]]()
    if max(widths.tried) == 1 or own == inf:
        return [each]
    for plans in apart_plans(network, each.plans, multipliers, levels=widths.levels, beats=max(widths.tried)):
        late = latencies(network, plans, sizes(plans))["latency_spaced"]
        found.append((widths.figures(_slowest(network, plans), late), late or inf, plans))
    if not found:
        return [each]
    least: tuple[tuple[float, ...], Alternative] | None = None
    for figures, spaced, plans in sorted(found, key=lambda one: one[0]):
        if least is not None and figures >= least[0]:
            break  # No period is shorter than its estimate.
        made = exact_plans(network, joined_plans(network, plans), sizes(plans))
        one = Alternative(APART, made, _slowest(network, made), int(spaced))
        key = widths.figures(one.period, one.latency)
        least = (key, one) if least is None or key < least[0] else least
    assert least is not None
    both = [replace(each, latency=int(own), reason=""), least[1]]
    best, other = sorted(both, key=lambda n: widths.figures(n.period, n.latency))
    return [replace(best, reason=reason_of(best, [other], "auto", 0)), other]


def _limit(latency: int) -> float:
    return latency or inf


def _spaced(network: Network, each: Alternative) -> float:
    """The latency of a sample into an idle circuit; infinite where it is not planned."""
    found = latencies(network, each.plans, Sizes(network)(each.plans))["latency_spaced"]
    return inf if found is None else found


def _behind(network: Network, plans: Sequence[Plan], groups: Sequence[Group]) -> int:
    """About the latency of the layers behind those that share arrays."""
    shared = sum(len(group.layers) for group in groups)
    if shared > len(network.stages):  # Both directions, of which no sample has a latency.
        return 0
    size, k = network.stages[shared - 1].outputs, groups[-1].k
    return _latency(network, plans, shared, list(range(1 - -(-size // k), 1)), k) or 0


def _within(network: Network, found: Sequence[Alternative], latency: int, multipliers: int,
            objective: str) -> list[Alternative]:
    """The alternatives, the best first, with those in front whose latency is the one asked for at the most, if one is.

    Raises:
        Refusal: when no alternative has it.
    """
    if not latency:
        return list(found)

    late = {id(each): _spaced(network, each) for each in found}

    def beyond(each: Alternative) -> float:
        return max(0, late[id(each)] - latency)

    best, *others = sorted(found, key=beyond)
    nearest = late[id(best)]
    if nearest == inf:
        raise Refusal(f"The latency of a sample is not planned of network {network.name!r}, so that hardware.latency "
                      f"must be 0, not {latency}; leave it out, and see what circulant simulate measures")
    if beyond(best):
        other = " or objective 'latency'" if objective == "throughput" else ""
        raise Refusal(f"A sample of network {network.name!r} must take at most {latency} cycles (hardware.latency), "
                      f"but the nearest plan takes {nearest:g}, {best.engines} with {best.multipliers} of "
                      f"{multipliers} multipliers and a step of {best.period:g} cycles; ask for {nearest:g}, or give "
                      f"more multipliers, levels of logic, blocks a beat{other}")
    why = f"only so does a sample take at most {latency} cycles" if others and beyond(others[0]) else best.reason
    return [replace(best, reason=why), *others]


def _each(network: Network, plans: list[Plan], reason: str = "") -> Alternative:
    """An array for each layer, with its period and, where that is known of all layers, its latency."""
    latency = None
    if isinstance(plans[0], LayerPlan) and network.arrangement.chain:
        k = matrices_of(network.stages[0])[0].product.block_size
        latency = _latency(network, plans, 0, list(range(1 - -(-network.flow.size // k), 1)), k)
    return Alternative(EACH, plans, _slowest(network, plans), latency, reason)


def _slowest(network: Network, plans: Sequence[Plan]) -> float:
    """The cycles of the slowest layer that works at every step, or of all where none does."""
    working = [plan.cycles for plan, steps in zip(plans, each_step(network), strict=True) if steps]
    return max(working or [plan.cycles for plan in plans])


def _latency(network: Network, plans: Sequence[Plan], first: int, cycles: list[int], k: int) -> int | None:
    """The latency of a sample; None where that of a layer is not known.

    Parameters:
        first: layer that has an array of its own or none.
        cycles: in which the blocks of its input come, of ``k`` values each.
    """
    for layer, plan in zip(network.stages[first:], plans[first:], strict=True):
        if isinstance(plan, LayerPlan):
            own, gives = beats(matrices_of(layer), plan.shape)
            cycles, k = reblocked(cycles, layer.inputs, k, own), own
        found = leaving(layer, plan, cycles, k)
        if found is None:
            return None
        cycles, k = found, gives if isinstance(plan, LayerPlan) else k
    return cycles[-1]


def _ladders(network: Network, multipliers: int, streams: int, levels: int, objective: str) -> list[Ladder]:
    """The ladder of each layer.

    Raises:
        Refusal: as `plan`.
    """
    require_positive("multipliers", multipliers, "give the budget of the device")
    require_positive("streams", streams, "give 1 for the least latency")
    found = [ladder(layer, streams=streams, count=flow.pixels, levels=levels)
             for layer, flow in zip(network.stages, network.arrangement.come, strict=True)]
    arranged = network.arrangement
    for n, (layer, flow, sources) in enumerate(zip(network.stages, arranged.come, arranged.sources, strict=True)):
        only = found[n].rungs[0][0]
        if isinstance(only, StreamPlan) and flow.grid is None and (not n or network.many) and len(sources) == 1 and (
                sources[0] <= INPUT):  # Its values come one by one, or as many side by side as it asks for.
            found[n] = Ladder([(replace(only, cycles=-(-flow.size // getattr(layer, "block", 1))),)])
    _check(network, streams)
    if objective not in OBJECTIVES:
        raise Refusal(f"hardware.objective must be one of {', '.join(OBJECTIVES)}, not {objective!r}")
    return found


def _separate(network: Network, multipliers: int, found: list[Ladder], way_out: str,
              waits: Mapping[str, int] | None = None) -> list[Plan]:
    """An array for each layer: starts with the smallest plan of each and enlarges that of the slowest one that can
    still grow. The two directions of a bidirectional layer grow together.

    Parameters:
        way_out: of a budget that is too small.
        waits: see `plan`.
    """
    times, beside = repeats(network), [(waits or {}).get(layer.name, 0) for layer in network.stages]
    ladders: Ladders = [each.rungs for each in found]
    least = sum(rung_multipliers(rungs[0]) for rungs in ladders)
    if least > multipliers:
        raise Refusal(f"Network {network.name!r} needs at least {least} multipliers, the smallest lane per layer, not "
                      f"{multipliers}; raise hardware.multipliers or choose a smaller block size{way_out}")
    shared = [_shared(each, multipliers, times, beside) for each in (ladders, *_tiled(network, ladders))]
    ladders, chosen, left = min(
        (each for each in shared if each is not None),
        key=lambda each: max(rung_cycles(rungs[n]) * time for rungs, n, time in zip(*each[:2], times, strict=True)))
    slowest = max(range(len(ladders)), key=lambda at: rung_cycles(ladders[at][chosen[at]]) * times[at])
    return joined_plans(network, [each.settle(ladders[at][chosen[at]], left if at == slowest else 0)
                                  for at, each in enumerate(found)])


def _one_array(network: Network, streams: int, levels: int, least: int) -> str:
    """A way out of a budget that is too small for an array for each layer, which takes at ``least`` so many
    multipliers; none where layers cannot share one, or need as many with it."""
    try:
        shared = least_shared(shareable(network, streams), levels)
    except Refusal:
        return ""
    return f", or set hardware.objective to 'area': layers that share an array need {shared}" if shared < least else ""


Ladders = list[Sequence[Rung]]


def _shared(ladders: Ladders, multipliers: int, times: list[int], beside: list[int]
            ) -> tuple[Ladders, list[int], int] | None:
    """The multipliers given to whichever layer is the slowest: the rung of each, and what is left; None when not even
    the lowest rungs can be had."""
    shape = 1, len(ladders), max(map(len, ladders))
    costs, cycles = np.full(shape, FULL), np.zeros(shape, np.int64)
    for at, rungs in enumerate(ladders):
        costs[0, at, :len(rungs)] = [rung_multipliers(rung) for rung in rungs]
        cycles[0, at, :len(rungs)] = [rung_cycles(rung) * times[at] + beside[at] for rung in rungs]
    chosen, left = shares(costs, cycles, np.array([multipliers]))
    return None if left[0] < 0 else (ladders, chosen[0].tolist(), int(left[0]))


def _tiled(network: Network, ladders: Ladders) -> Iterator[Ladders]:
    """The ladders for a first layer that takes some pixels side by side, as may a pooling behind it."""
    if not network.arrangement.chain:
        return
    first, behind = network.stages[0], network.stages[1] if len(network.stages) > 1 else None
    for pixels in PIXELS:
        if found := tiled(first, behind, pixels):
            yield [*found, *ladders[len(found):]]


def _check(network: Network, streams: int) -> None:
    """
    Raises:
        Refusal: when a network over images is to interleave sequences.
    """
    if streams > 1 and any(each.flow.grid is not None for each in network.inputs):
        raise Refusal(f"Sequences can only be interleaved in a network over sequences, but network {network.name!r} "
                      f"takes images; set hardware.streams to 1, not {streams}")


def rung_multipliers(rung: Rung) -> int:
    """Multipliers of the plans of a rung together."""
    return sum(int(each.multipliers) for each in rung)


def rung_cycles(rung: Rung) -> int:
    """Cycles of the slowest plan of a rung."""
    return max(int(each.cycles) for each in rung)
