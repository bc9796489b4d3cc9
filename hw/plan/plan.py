"""From a budget of multipliers to arrays: what each layer gets, and how many multiplications it has to do."""
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from circulant.hw.layers.residual import end_grid
from circulant.hw.layers.tile import PIXELS
from circulant.hw.plan.conv_plan import (
    ConvPlan,
    ResidualPlan,
    ScalePlan,
    StreamPlan,
    conv_multiplications,
    conv_plans,
    pooled_aside,
    scale_plans,
    stream_plan,
    tile_plans,
)
from circulant.hw.plan.layer_plan import LayerPlan, PairPlan, Simple, candidates, element_multiplications, exact, simple
from circulant.sim.golden.argmax import Argmax
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.flatten import Flatten
from circulant.sim.golden.gru import Gru
from circulant.sim.golden.layers import Recurrent
from circulant.sim.golden.lstm import Lstm
from circulant.sim.golden.network import Layer, Network
from circulant.sim.golden.pool import Pool
from circulant.sim.golden.residual import Residual
from circulant.sim.golden.scale import Scale
from circulant.sim.refusal import Refusal
from circulant.sim.shape.chain import no_hardware
from circulant.sim.shape.window import Grid

__all__ = ["Plan", "each_step", "layer_multiplications", "pixel_counts", "plan", "repeats", "require_positive"]

def require_positive(name: str, value: object, why: str) -> None:
    """
    Raises:
        Refusal: when ``value`` is no positive integer.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Refusal(f"{name} must be a positive integer, not {value!r}; {why}")


def layer_multiplications(layer: Layer) -> int:
    """Real multiplications of one step, image or, of a scale, pixel: block products, activations, gates."""
    if isinstance(layer, Bidirectional):
        return sum(map(layer_multiplications, layer.directions.values()))
    if isinstance(layer, Conv):
        return conv_multiplications(layer)
    if isinstance(layer, Residual):
        counts = (pixel_counts(chain, layer.grid) for chain in layer.branches.values())
        return sum(layer_multiplications(each) * (count if isinstance(each, Scale) else 1)
                   for chain, found in zip(layer.branches.values(), counts, strict=True)
                   for each, count in zip(chain, found, strict=True))
    if isinstance(layer, Pool | Flatten | Argmax):
        return 0
    if isinstance(layer, Scale):
        return layer.inputs
    work = sum(product.multiplications for product in simple(layer).products.values())
    return work + element_multiplications(layer) * layer.hidden if isinstance(layer, Gru | Lstm) else work


Plan = LayerPlan | PairPlan | ConvPlan | StreamPlan | ScalePlan | ResidualPlan

P = TypeVar("P", LayerPlan, ConvPlan, ScalePlan)


def each_step(network: Network) -> list[bool]:
    """Whether each layer works at every step; behind one that returns its last state, a layer works once a sequence."""
    found, steps = [], network.sequence
    for layer in network.layers:
        found.append(steps)
        if isinstance(layer, Flatten):
            steps = layer.rows
        steps = steps and not (isinstance(layer, Recurrent) and layer.returns == "last")
    return found


def plan(network: Network, multipliers: int, *, streams: int = 1) -> list[Plan]:
    """For each layer the plan that makes the slowest layer as fast as ``multipliers`` in all allow.

    Starts with the smallest plan of each layer and enlarges that of the slowest one that can still grow. The two
    directions of a bidirectional layer grow together.

    Parameters:
        streams: independent sequences that a recurrent layer interleaves; with 1 a step takes the least time, with 3
            every step of an LSTM overlaps with those of others.

    Raises:
        Refusal: when a number is not positive, the budget is too small for one lane per layer, or a layer has no
            hardware or none for several streams.
    """
    require_positive("multipliers", multipliers, "give the budget of the device")
    require_positive("streams", streams, "give 1 for the least latency")
    for layer in network.layers:
        if isinstance(layer, Bidirectional) and streams > 1:
            raise Refusal(f"Sequences can only be interleaved where all layers go forward, but layer {layer.name!r} is "
                          f"bidirectional; set hardware.streams to 1, not {streams}")
    _check(network, streams)
    arrays = [_arrays(layer) for layer in network.layers]
    possible = [[list(candidates(layer, streams)) for layer in each] for each in arrays]
    counts, times = pixel_counts(network.layers, network.flow.grid), repeats(network)
    ladders = [_ladders(layer, each, count)
               for layer, each, count in zip(network.layers, possible, counts, strict=True)]
    least = sum(_multipliers(ladder[0]) for ladder in ladders)
    if least > multipliers:
        raise Refusal(f"Network {network.name!r} needs at least {least} multipliers, the smallest lane per layer, not "
                      f"{multipliers}; raise hardware.multipliers or choose a smaller block size")
    found = [_shared(each, multipliers, times) for each in (ladders, *_tiled(network, ladders))]
    ladders, chosen, left = min(
        (each for each in found if each is not None),
        key=lambda each: max(_cycles(rungs[n]) * time for rungs, n, time in zip(*each[:2], times, strict=True)))
    slowest = max(range(len(ladders)), key=lambda at: _cycles(ladders[at][chosen[at]]) * times[at])
    plans: list[Plan] = []
    for at, layer in enumerate(network.layers):
        if not arrays[at]:
            plans.append(ladders[at][chosen[at]][0])
            continue
        spare = left // len(arrays[at]) if at == slowest else 0
        best = [exact(each, found, rung.multipliers + spare)
                for each, found, rung in zip(arrays[at], possible[at], ladders[at][chosen[at]], strict=True)]
        plans.append(PairPlan(best[0], best[1], _joined_blocks(layer)) if isinstance(layer, Bidirectional)
                     else best[0])
    return plans


Ladders = list[list[tuple[Any, ...]]]


def _shared(ladders: Ladders, multipliers: int, times: list[int]) -> tuple[Ladders, list[int], int] | None:
    """The multipliers given to whichever layer is the slowest: the rung of each, and what is left; None when not even
    the lowest rungs can be had."""
    chosen, left = [0] * len(ladders), multipliers - sum(_multipliers(ladder[0]) for ladder in ladders)
    if left < 0:
        return None
    while True:
        for at in sorted(range(len(ladders)), key=lambda at: -_cycles(ladders[at][chosen[at]]) * times[at]):
            now, larger = ladders[at][chosen[at]], ladders[at][chosen[at] + 1:]
            if larger and _multipliers(larger[0]) - _multipliers(now) <= left:
                left -= _multipliers(larger[0]) - _multipliers(now)
                chosen[at] += 1
                break
        else:
            break
    return ladders, chosen, left


def _tiled(network: Network, ladders: Ladders) -> Iterator[Ladders]:
    """The ladders for a first layer that takes some pixels side by side, as may a pooling behind it."""
    first, *others = network.layers
    if not isinstance(first, Conv):
        return
    for pixels in PIXELS:
        tiled: Ladders = [[]]
        aside = pooled_aside(others[0], pixels) if others else 0
        if aside and isinstance(others[0], Pool):
            tiled.append([(stream_plan(others[0], pixels=pixels),)])
        leave = 0 if aside else math.prod(first.output_grid)
        tiled[0] = [(each,) for each in _ladder(list(tile_plans(first, pixels, leave=leave)))]
        if tiled[0]:
            yield [*tiled, *ladders[len(tiled):]]


def _arrays(layer: Layer) -> list[Simple]:
    """The layers with an array of their own that a layer is made of."""
    if isinstance(layer, Conv | Pool | Flatten | Scale | Residual | Argmax):
        return []
    return list(layer.directions.values()) if isinstance(layer, Bidirectional) else [simple(layer)]


def _ladders(layer: Layer, arrays: list[list[LayerPlan]], count: int) -> list[tuple[Any, ...]]:
    """The useful plans of a layer, from the smallest to the fastest.

    Parameters:
        arrays: that it can have, for each direction.
        count: vectors or pixels that come for a vector or an image.
    """
    if isinstance(layer, Scale):
        return [(each,) for each in _ladder(list(scale_plans(layer, count)))]
    if isinstance(layer, Residual):
        chains = [list(zip(chain, pixel_counts(chain, layer.grid), strict=True)) for chain in layer.branches.values()]
        inner = [[rung[0] for rung in _ladders(each, [], pixels)] for chain in chains for each, pixels in chain]
        body = len(layer.body)
        return [(ResidualPlan(rung[:body], rung[body:]),) for rung in _side_by_side(inner)]
    if isinstance(layer, Conv):
        return [(each,) for each in _ladder(list(conv_plans(layer)))]
    if isinstance(layer, Pool | Flatten | Argmax):
        return [(stream_plan(layer),)]
    return list(_side_by_side([_ladder(plans) for plans in arrays]))


def _check(network: Network, streams: int) -> None:
    """
    Raises:
        Refusal: when a network over images gives sequences, or is to interleave them.
    """
    if network.flow.grid is None:
        return
    if why := no_hardware(network.flow, network.end):
        raise Refusal(f"Network {network.name!r} must be one that hardware can be made of: {why}")
    if streams > 1:
        raise Refusal(f"Sequences can only be interleaved where vectors come in, but network {network.name!r} takes "
                      f"images; set hardware.streams to 1, not {streams}")


def pixel_counts(layers: Sequence[Layer], grid: Grid | None) -> list[int]:
    """For each layer of a chain how many pixels of an image come; 1 where vectors do."""
    found = []
    for layer in layers:
        found.append(1 if grid is None else math.prod(grid))
        if grid is not None:
            grid = None if isinstance(layer, Flatten) else end_grid([layer], grid)
    return found


def repeats(network: Network) -> list[int]:
    """For each layer how often its cycles pass for a sample: once, but behind images for each step of the sequence that
    their rows become. Where sequences come in, whose length is open, samples are steps."""
    found, times = [], 1
    for layer, steps in zip(network.layers, each_step(network), strict=True):
        found.append(times if steps and network.flow.grid is not None else 1)
        if isinstance(layer, Flatten) and layer.rows:
            times = layer.grid[0]
    return found


def _joined_blocks(layer: Bidirectional) -> int:
    return -(-layer.outputs // max(each.gates.block_size for each in layer.directions.values()))


def _multipliers(rung: tuple[Any, ...]) -> int:
    return sum(int(each.multipliers) for each in rung)


def _cycles(rung: tuple[Any, ...]) -> int:
    return max(int(each.cycles) for each in rung)


def _side_by_side(ladders: list[list[Any]]) -> list[tuple[Any, ...]]:
    """The ladder of layers at work at the same time: for each speed the smallest plans that all reach it."""
    speeds = sorted({each.cycles for ladder in ladders for each in ladder}, reverse=True)
    slowest = max(ladder[-1].cycles for ladder in ladders)
    return [tuple(next(each for each in ladder if each.cycles <= cycles) for ladder in ladders)
            for cycles in speeds if cycles >= slowest]


def _ladder(plans: list[P]) -> list[P]:
    """The useful plans of a layer, from the smallest to the fastest: each is faster than all that are smaller."""
    useful: list[P] = []
    for candidate in sorted(plans, key=lambda c: (c.multipliers, c.cycles)):
        if not useful or candidate.cycles < useful[-1].cycles:
            useful.append(candidate)
    return useful
