"""One array for the fully connected layers of a network between which other stages lie: taps, norms, sums, functions.

Each of them has all multipliers while it works, and older taps of the next sample are multiplied when no other one
does. The latency of a sample is exact, see `circulant.hw.plan.dataflow`. The period is first an estimate, what array
and taps do in a step; `circulant.hw.plan.shared.graph` plays it.
"""
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from circulant.hw.array.layer_programs import ROWS, matrices_of
from circulant.hw.array.plans import LayerPlan, Plan, Sharing, ValuesPlan
from circulant.hw.array.program import ArrayShape
from circulant.hw.array.schedules.either_first import EitherFirst
from circulant.hw.plan.ladders import ladder
from circulant.hw.plan.layer_plan import WIDE, array_shapes, narrow, widest
from circulant.hw.plan.shared.candidates import TAKES
from circulant.hw.plan.step_cost import chain_latency
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT
from circulant.sim.kinds.linear import Linear

__all__ = ["apart_plans"]

PLAYED = 5
"""Arrays that are played, those with the best estimates."""


def apart_plans(network: Network, plans: Sequence[Plan], multipliers: int, *, levels: int,
                beats: int) -> Iterator[list[Plan]]:
    """Plans with one array for the fully connected layers of the block size with the most products, those with the best
    estimates first. Layers beside them get what an array leaves, to take as many values a cycle as it gives.

    Parameters:
        plans: of all layers; those of the others are kept, or take more values a cycle.
        beats: blocks that come and leave in a cycle at the most.
    """
    work, members = Counter[tuple[int, int]](), dict[int, Linear]()
    for n, (layer, plan) in enumerate(zip(network.stages, plans, strict=True)):
        if layer.kind == "linear" and isinstance(plan, LayerPlan) and layer.product.block_size > 1:
            members[n] = layer
            work[_blocks(layer)] += layer.product.multiplications
    members = {n: layer for n, layer in members.items() if _blocks(layer) == work.most_common(1)[0][0]}
    if len(members) < 2:
        return
    layers, (k, _) = tuple(members.values()), work.most_common(1)[0][0]
    found = [matrix for layer in layers for matrix in matrices_of(layer)]
    newest = [_newest(network, n, layer) for n, layer in members.items()]

    def estimate(shape: ArrayShape, beside: Sequence[Plan]) -> tuple[float, int]:
        whole, beats, late = 0, 1, sum(plan.cycles for plan in beside if isinstance(plan, ValuesPlan))
        for layer, new in zip(layers, newest, strict=True):
            p, q, _ = layer.product.weights.shape
            passes = -(-p // shape.rows)
            whole += passes * max(-(-q // shape.columns) * shape.fold, shape.slots)
            beats = max(beats, -(-q // shape.takes), -(-p // shape.gives))
            late += chain_latency(layer, shape, 0) + max(passes * max(
                -(-new // shape.columns) * shape.fold, shape.slots), -(-new // shape.takes), -(-p // shape.gives))
        return max(whole, beats) * late, shape.multipliers(k)

    shapes = {_taking(widest(layers, shape, beats), newest) for shape in narrow(found, array_shapes(
        found, levels, chains=WIDE, takes=TAKES))}
    wide = {values: _beside(network, plans, values) for values in (0, *(
        2 ** n for n in range((k * beats).bit_length())))}
    taken = {values: sum(plan.multipliers for n, plan in enumerate(each) if n not in members)
             for values, each in wide.items()}
    ways = [(shape, wide[max(fits)]) for shape in shapes if (fits := [
        values for values, own in taken.items() if values <= k * shape.gives
        and shape.multipliers(k) + own <= multipliers])]
    for shape, beside in sorted(ways, key=lambda way: estimate(*way))[:PLAYED]:
        for spacing in dict.fromkeys((shape.slots, 4 * shape.slots, ROWS)):
            sharing = Sharing(layers, shape, ((spacing,) * 3,) * len(layers), apart=True)
            made, each = list(beside), LayerPlan(
                shape, 0, 0, max(sum(program.cycles for program in sharing.programs) * shape.fold, *(
                    -(-layer.product.weights.shape[1] // shape.takes) for layer in layers)), (spacing,) * 3,
                schedule=EitherFirst, sharing=sharing)
            for n in members:
                made[n] = replace(each, multipliers=0 if n > min(members) else shape.multipliers(k))
            yield made


def _beside(network: Network, plans: Sequence[Plan], values: int) -> list[Plan]:
    """The plans, those of layers that take some values a cycle with so many at the least, or all."""
    found = list(plans)
    for n, (layer, plan) in enumerate(zip(network.stages, plans, strict=True)):
        if isinstance(plan, ValuesPlan) and plan.elements < values:
            rungs = [each for each, in ladder(layer, streams=1, count=1, levels=plan.levels).rungs
                     if isinstance(each, ValuesPlan) and each.cycles <= plan.cycles]
            found[n] = min([plan, *rungs], key=lambda each: (max(0, values - each.elements), each.multipliers))
    return found


def _blocks(layer: Linear) -> tuple[int, int]:
    """The block size and twiddle bits, which layers that share an array have in common."""
    return layer.product.block_size, layer.product.twiddle_bits


def _newest(network: Network, at: int, layer: Linear) -> int:
    """The blocks of the newest tap that come to a layer, or of its whole input."""
    source, k = network.arrangement.sources[at][0], layer.product.block_size
    newest = layer.inputs // getattr(network.stages[source], "taps", 1) if source > INPUT else layer.inputs
    return -(-(layer.inputs if newest % k else newest) // k)


def _taking(shape: ArrayShape, newest: Sequence[int]) -> ArrayShape:
    """The shape with so many blocks a beat that whole ones make up a tap."""
    while shape.takes > 1 and any(new % shape.takes for new in newest if new > 1):
        shape = replace(shape, takes=shape.takes // 2)
    return shape
