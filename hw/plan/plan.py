"""From a budget of multipliers to arrays: what each layer gets."""
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from circulant.hw.array.plans import Plan
from circulant.hw.layers.tile import PIXELS
from circulant.hw.plan import conv_plan, layer_plan, residual_plan, stream_plan
from circulant.hw.plan.passes import Ladder, Rung, ladder, layer_multiplications, tiled
from circulant.hw.plan.shared_plan import OBJECTIVES, least_shared, shareable, shared_plans
from circulant.hw.plan.shares import FULL, shares
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.shape.chain import flows

__all__ = ["KINDS", "Ladder", "Plan", "each_step", "ladder", "layer_multiplications", "plan", "repeats",
           "require_positive", "rung_cycles", "rung_multipliers"]

KINDS = (conv_plan, layer_plan, residual_plan, stream_plan)
"""Where the kinds of layers are planned: with these files their implementations of `passes` are there."""



def require_positive(name: str, value: object, why: str) -> None:
    """
    Raises:
        Refusal: when ``value`` is no positive integer.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Refusal(f"{name} must be a positive integer, not {value!r}; {why}")


def each_step(network: Network) -> list[bool]:
    """Whether each layer works at every step; behind one that returns its last state, a layer works once a sequence."""
    return [flow.sequence for flow in flows(network.flow, network.layers)[:-1]]


def repeats(network: Network) -> list[int]:
    """For each layer how often its cycles pass for a sample: once, but behind images for each step of the sequence that
    their rows become. Where sequences come in, whose length is open, samples are steps."""
    found, times, images = [], 1, network.flow.grid is not None
    passing = flows(network.flow, network.layers)
    for come, go in itertools.pairwise(passing):
        found.append(times if come.sequence and images else 1)
        if come.grid is not None and go.sequence:
            times = come.grid[0]
    return found


def plan(network: Network, multipliers: int, *, streams: int = 1, levels: int = LEVELS,
         objective: str = "throughput") -> list[Plan]:
    """For each layer the plan that makes the slowest layer as fast as ``multipliers`` in all allow.

    Starts with the smallest plan of each layer and enlarges that of the slowest one that can still grow. The two
    directions of a bidirectional layer grow together.

    Parameters:
        streams: independent sequences that a recurrent layer interleaves; with 1 a step takes the least time, with 3
            every step of an LSTM overlaps with those of others.
        levels: of logic between two registers of recurrent and fully connected layers, see docs/synthesis.md.
        objective: one of `OBJECTIVES`.

    Raises:
        Refusal: when a number is not positive, the budget is too small for one lane per layer, or a layer has no
            hardware or none for several streams.
    """
    require_positive("multipliers", multipliers, "give the budget of the device")
    require_positive("streams", streams, "give 1 for the least latency")
    found = [ladder(layer, streams=streams, count=flow.pixels, levels=levels)
             for layer, flow in zip(network.layers, flows(network.flow, network.layers), strict=False)]
    _check(network, streams)
    if objective not in OBJECTIVES:
        raise Refusal(f"hardware.objective must be one of {', '.join(OBJECTIVES)}, not {objective!r}")
    if objective != "throughput":
        one, _ = shared_plans(shareable(network, streams), multipliers, levels=levels, objective=objective)
        return [*one, *(each.rungs[0][0] for each in found[len(one):])]
    times = repeats(network)
    ladders: Ladders = [each.rungs for each in found]
    least = sum(rung_multipliers(rungs[0]) for rungs in ladders)
    if least > multipliers:
        raise Refusal(f"Network {network.name!r} needs at least {least} multipliers, the smallest lane per layer, not "
                      f"{multipliers}; raise hardware.multipliers or choose a smaller block size"
                      f"{_one_array(network, streams, levels)}")
    shared = [_shared(each, multipliers, times) for each in (ladders, *_tiled(network, ladders))]
    ladders, chosen, left = min(
        (each for each in shared if each is not None),
        key=lambda each: max(rung_cycles(rungs[n]) * time for rungs, n, time in zip(*each[:2], times, strict=True)))
    slowest = max(range(len(ladders)), key=lambda at: rung_cycles(ladders[at][chosen[at]]) * times[at])
    return [each.settle(ladders[at][chosen[at]], left if at == slowest else 0) for at, each in enumerate(found)]


def _one_array(network: Network, streams: int, levels: int) -> str:
    """A way out of a budget that is too small for an array for each layer; none where layers cannot share one."""
    try:
        least = least_shared(shareable(network, streams), levels)
    except Refusal:
        return ""
    return f", or set hardware.objective to 'area': one array for all layers needs {least}"


Ladders = list[Sequence[Rung]]


def _shared(ladders: Ladders, multipliers: int, times: list[int]) -> tuple[Ladders, list[int], int] | None:
    """The multipliers given to whichever layer is the slowest: the rung of each, and what is left; None when not even
    the lowest rungs can be had."""
    shape = 1, len(ladders), max(map(len, ladders))
    costs, cycles = np.full(shape, FULL), np.zeros(shape, np.int64)
    for at, rungs in enumerate(ladders):
        costs[0, at, :len(rungs)] = [rung_multipliers(rung) for rung in rungs]
        cycles[0, at, :len(rungs)] = [rung_cycles(rung) * times[at] for rung in rungs]
    chosen, left = shares(costs, cycles, np.array([multipliers]))
    return None if left[0] < 0 else (ladders, chosen[0].tolist(), int(left[0]))


def _tiled(network: Network, ladders: Ladders) -> Iterator[Ladders]:
    """The ladders for a first layer that takes some pixels side by side, as may a pooling behind it."""
    first, behind = network.layers[0], network.layers[1] if len(network.layers) > 1 else None
    for pixels in PIXELS:
        if found := tiled(first, behind, pixels):
            yield [*found, *ladders[len(found):]]


def _check(network: Network, streams: int) -> None:
    """
    Raises:
        Refusal: when a network over images is to interleave sequences.
    """
    if network.flow.grid is not None and streams > 1:
        raise Refusal(f"Sequences can only be interleaved where vectors come in, but network {network.name!r} takes "
                      f"images; set hardware.streams to 1, not {streams}")


def rung_multipliers(rung: Rung) -> int:
    """Multipliers of the plans of a rung together."""
    return sum(int(each.multipliers) for each in rung)


def rung_cycles(rung: Rung) -> int:
    """Cycles of the slowest plan of a rung."""
    return max(int(each.cycles) for each in rung)
