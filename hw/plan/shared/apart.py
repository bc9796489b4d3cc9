"""One array for the fully connected layers of a network between which other stages lie: taps, norms, sums, functions.

Each of them has all multipliers while it works, and older taps of the next sample are multiplied when no other one
does. The latency of a sample is exact, see `circulant.hw.plan.passing`; the period is an estimate, the issues of all.
"""
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from circulant.hw.array.layer_programs import ROWS, matrices_of
from circulant.hw.array.plans import LayerPlan, Plan, Sharing
from circulant.hw.array.program import ArrayShape
from circulant.hw.array.schedules.either_first import EitherFirst
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
    estimates first.

    Parameters:
        plans: of all layers, of which those of the others are kept.
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
    layers, (k, _), budget = tuple(members.values()), work.most_common(1)[0][0], multipliers - sum(
        plan.multipliers for n, plan in enumerate(plans) if n not in members)
    found = [matrix for layer in layers for matrix in matrices_of(layer)]
    newest = [_newest(network, n, layer) for n, layer in members.items()]

    def estimate(shape: ArrayShape) -> tuple[float, int]:
        whole = late = 0
        for layer, new in zip(layers, newest, strict=True):
            p, q, _ = layer.product.weights.shape
            passes = -(-p // shape.rows)
            whole += passes * max(-(-q // shape.columns) * shape.fold, shape.slots)
            late += chain_latency(layer, shape, 0) + max(passes * max(
                -(-new // shape.columns) * shape.fold, shape.slots), -(-new // shape.takes), -(-p // shape.gives))
        return whole * late, shape.multipliers(k)

    shapes = {_taking(widest(layers, shape, beats), newest) for shape in narrow(found, array_shapes(
        found, levels, chains=WIDE, takes=TAKES)) if shape.multipliers(k) <= budget}
    for shape in sorted(shapes, key=estimate)[:PLAYED]:
        for spacing in dict.fromkeys((shape.slots, 4 * shape.slots, ROWS)):
            sharing = Sharing(layers, shape, ((spacing,) * 3,) * len(layers), apart=True)
            made, each = list(plans), LayerPlan(
                shape, 0, 0, sum(program.cycles for program in sharing.programs) * shape.fold, (spacing,) * 3,
                schedule=EitherFirst, sharing=sharing)
            for n in members:
                made[n] = replace(each, multipliers=0 if n > min(members) else shape.multipliers(k))
            yield made


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
