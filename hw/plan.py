"""From a budget of multipliers to arrays: what each layer gets, and how many multiplications it has to do."""
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from circulant.hw.array.program import ArrayShape, Matrix, Program
from circulant.hw.cells import cells_of
from circulant.hw.convplan import (
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
from circulant.hw.cost import TURNS, chain_latency, step_timeline
from circulant.hw.programs import IN_TURN, layer_program, matrices, spacings, vector_cycles
from circulant.hw.residual import end_grid
from circulant.hw.tile import PIXELS
from circulant.sim.argmax import Argmax
from circulant.sim.bidirectional import Bidirectional
from circulant.sim.circulant import multiplications
from circulant.sim.conv import Conv
from circulant.sim.flatten import Flatten
from circulant.sim.gru import Gru
from circulant.sim.layers import Recurrent
from circulant.sim.linear import Linear
from circulant.sim.lstm import Lstm
from circulant.sim.network import Layer, Network
from circulant.sim.pool import Pool
from circulant.sim.refusal import Refusal
from circulant.sim.residual import Residual
from circulant.sim.scale import Scale
from circulant.sim.window import Grid

__all__ = ["LayerPlan", "PairPlan", "Plan", "each_step", "layer_multiplications", "pixel_counts", "plan", "repeats",
           "require_positive"]

Simple = Linear | Gru | Lstm
"""A layer with one array."""

CHAINS = (1, 2, 4, 8)

FINALISTS = 10
"""Arrays whose exact cost is computed, those with the best estimates."""


@dataclass(frozen=True)
class LayerPlan:
    """What a layer gets.

    Parameters:
        shape: its array.
        elements: of the pointwise unit per cycle; 0 without one.
        multipliers: what both take.
        cycles: from step to step, or from vector to vector, when the input is always there and the output taken: first
            an estimate, exact in what `plan` gives. Interleaved streams may take part of a cycle more on the average.
        spacing: of the passes' ends, see `Program`.
        streams: sequences that are interleaved.
    """

    shape: ArrayShape
    elements: int
    multipliers: int
    cycles: float
    spacing: tuple[int, int, int] = (1, 1, 1)
    streams: int = 1

    @property
    def lanes(self) -> int:
        return self.shape.lanes


@dataclass(frozen=True)
class PairPlan:
    """What the two directions of a bidirectional layer get, which work at the same time.

    Parameters:
        blocks: of an output vector, that leave one after the other.
    """

    forward: LayerPlan
    backward: LayerPlan
    blocks: int

    @property
    def multipliers(self) -> int:
        return self.forward.multipliers + self.backward.multipliers

    @property
    def cycles(self) -> float:
        """From step to step, while sequences of one length follow each other."""
        return max(self.forward.cycles, self.backward.cycles, self.blocks)

    @property
    def streams(self) -> int:
        return 1


def require_positive(name: str, value: object, why: str) -> None:
    """
    Raises:
        Refusal: when ``value`` is no positive integer.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Refusal(f"{name} must be a positive integer, not {value!r}; {why}")


def element_multiplications(layer: Layer) -> int:
    """Multiplications per element of the state: activations, gates, peepholes."""
    return sum(cell.multiplications(layer) for cell in cells_of(layer)) if isinstance(layer, Gru | Lstm) else 0


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
    work = sum(product.multiplications for product in _simple(layer).products.values())
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
    candidates = [[list(_candidates(layer, streams)) for layer in each] for each in arrays]
    counts, times = pixel_counts(network.layers, network.flow.grid), repeats(network)
    ladders = [_ladders(layer, each, count)
               for layer, each, count in zip(network.layers, candidates, counts, strict=True)]
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
        exact = [_exact(each, found, rung.multipliers + spare)
                 for each, found, rung in zip(arrays[at], candidates[at], ladders[at][chosen[at]], strict=True)]
        plans.append(PairPlan(exact[0], exact[1], _joined_blocks(layer)) if isinstance(layer, Bidirectional)
                     else exact[0])
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
    return list(layer.directions.values()) if isinstance(layer, Bidirectional) else [_simple(layer)]


def _ladders(layer: Layer, candidates: list[list[LayerPlan]], count: int) -> list[tuple[Any, ...]]:
    """The useful plans of a layer, from the smallest to the fastest.

    Parameters:
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
    return list(_side_by_side([_ladder(plans) for plans in candidates]))


def _check(network: Network, streams: int) -> None:
    """
    Raises:
        Refusal: when a network over images gives sequences, or is to interleave them.
    """
    if network.flow.grid is None:
        return
    if each_step(network)[-1] and not (
            isinstance(network.layers[-1], Recurrent) and network.layers[-1].returns == "last"):
        raise Refusal(f"Hardware over images must give a vector for each, but network {network.name!r} gives a "
                      "sequence; let its last recurrent layer return the last step only")
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


def _simple(layer: Layer) -> Simple:
    if not isinstance(layer, Linear | Gru | Lstm):
        raise Refusal(f"The hardware must have a unit for each layer, but has none for {layer.name!r}, a layer of the "
                      f"kind {layer.kind!r}; the golden model computes it")
    return layer


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


def _candidates(layer: Simple, streams: int) -> Iterator[LayerPlan]:
    """Arrays and pointwise units, with an estimate of their cycles."""
    found = matrices(layer)
    k = found[0].product.block_size
    rows = {-(-matrix.rows // n) for matrix in found for n in range(1, matrix.rows + 1)}
    columns = {-(-matrix.columns // n) for matrix in found for n in range(1, matrix.columns + 1)}
    recurrent = isinstance(layer, Gru | Lstm)
    each = element_multiplications(layer)
    folds = [n for n in (2, 3, 4, 6, 8, 12, 16, 24, 48) if n < 2 * multiplications(k)]
    for chains in CHAINS:
        if any(len(matrix.kinds) % chains and chains % len(matrix.kinds) for matrix in found):
            continue
        for r in {-(-count // chains) * chains for count in rows}:
            for c in columns:
                for fold in (1, *folds) if r * c == 1 else (1,):
                    shape = ArrayShape(r, c, chains, fold)
                    for elements in (2 ** n for n in range(k.bit_length())) if recurrent else (0,):
                        used = shape.multipliers(k) + each * elements
                        yield LayerPlan(shape, elements, used, _estimate(layer, found, shape, elements, streams),
                                        (1, 1, 1) if recurrent else IN_TURN, streams)


def _estimate(layer: Simple, found: list[Matrix], shape: ArrayShape, elements: int, streams: int) -> int:
    if not isinstance(layer, Gru | Lstm):
        return vector_cycles(layer, shape)
    issue = sum(-(-matrix.rows // shape.rows) * max(-(-matrix.columns // shape.columns) * shape.fold, shape.slots)
                for matrix in found)
    k = layer.gates.block_size
    busy = max(issue, -(-layer.hidden // k) * k // elements)
    if streams > 1:
        return busy
    ahead = sum(-(-matrix.rows // shape.rows) * ((layer.inputs // k) // shape.columns) * shape.fold
                for matrix in found if not matrix.stage)
    return max(busy, issue - ahead + chain_latency(layer, shape, elements))


def _exact(layer: Simple, plans: list[LayerPlan], budget: int) -> LayerPlan:
    """The fastest plan within the budget; of equals, the one with the fewest multipliers, chains and accumulators."""
    finalists = sorted((p for p in plans if p.multipliers <= budget),
                       key=lambda p: (p.cycles, p.multipliers, p.shape.chains, -p.shape.rows))[:FINALISTS]
    timed = []
    for candidate in finalists:
        if not isinstance(layer, Gru | Lstm):
            timed.append((candidate, 1))
            continue
        for spacing in spacings(candidate.shape):
            program = layer_program(layer, candidate.shape, spacing)
            timed.append((replace(candidate, spacing=spacing, cycles=_period(layer, program, candidate)),
                          program.slots))
    best, _ = min(timed, key=lambda entry: (entry[0].cycles, entry[0].multipliers, entry[0].shape.chains, entry[1]))
    if best.streams == 1 or not isinstance(layer, Gru | Lstm):
        return best
    return replace(best, cycles=_period(layer, layer_program(layer, best.shape, best.spacing), best, TURNS))


def _period(layer: Gru | Lstm, program: Program, candidate: LayerPlan, turns: int = 1) -> float:
    return step_timeline(layer, program, candidate.elements, streams=candidate.streams, turns=turns).period
