"""When the blocks of a sample come to each stage of a graph and leave it, and how many of them wait in front of joins.

The sample comes into an idle circuit: no stage waits for an earlier one. In a circuit that is never idle, samples that
follow each other in the period of its slowest stage pass in the same cycles, each a period later, if the queues hold
what waits then. As no stage gives a block later for being given one sooner, the circuit is never slower.
"""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from math import ceil

from circulant.hw.array.plans import LayerPlan, Plan, Sharing, sharings, streams_of, wanted
from circulant.hw.plan.latency import held_up, kept_back, leaving_to, sample_latencies, with_state_first
from circulant.hw.plan.shared.cost import results_together
from circulant.sim.design import Latencies
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import INPUT
from circulant.sim.shape.kinds import unknown
from circulant.sim.shape.layer import Held

__all__ = ["Cycles", "StageCycles", "depths", "early_blocks", "forked", "in_turn", "joined", "latencies",
           "stage_cycles"]

Cycles = list[int]

EARLY = 64
"""Cycles, and those of the products, that older taps come before a sample."""


@dataclass(frozen=True)
class StageCycles:
    """The cycles in which blocks pass through a stage, counted from the last block of the input.

    Parameters:
        comes: of each source, in the blocks that the stage takes.
        turns: of a join, in which it takes what makes each block from the queues of its sources.
        begins: the number of the block that the first one of each source takes part in.
        leaves: of what it gives.
    """

    comes: list[Cycles]
    turns: Cycles
    begins: list[int]
    leaves: Cycles


def latencies(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]]) -> Latencies:
    """Both latencies of a sample, as `circulant.hw.plan.latency.sample_latencies`, also where branches part; those of
    several inputs or outputs are not planned."""
    apart = any(each.apart for each in sharings(plans))
    if network.many or (network.arrangement.chain and not apart):
        return sample_latencies(network, plans, blocks)
    found = stage_cycles(network, plans, blocks)
    readers = network.arrangement.readers(INPUT)
    k = min(blocks[at][0] for at in readers)  # Behind a converter nothing keeps the input itself back.
    spaced = None if found is None else found[-1].leaves[-1] - max(
        kept_back(network.stages[at], found[at].comes[0], k, wanted(network.arrangement, at, plans))
        if blocks[at][0] == k else 0 for at in readers)
    stepwise = network.per_step or not network.sequence  # Nothing is under way when a result is out,
    early = with_state_first(network.stages, plans) or (  # but products with a state or with older taps may be.
        apart and any(stage.kind == "taps" for stage in network.stages))
    return {"latency_spaced": spaced, "latency_contiguous": spaced if stepwise and not early else None}


def stage_cycles(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]],
                 given: Mapping[str, Cycles] | None = None) -> list[StageCycles] | None:
    """The cycles of a sample at each stage of a network; None where those of a stage are not known.

    Parameters:
        blocks: for each stage the values of a block that comes and of one that leaves.
        given: by the name of an input the cycles in which its blocks come; else they come one in each cycle, the last
            ones of all inputs in the same, which is cycle 0.
    """
    arranged = network.arrangement
    if streams_of(plans) > 1 or any(each.flow.grid is not None for each in network.inputs) or any(arranged.late) or any(
            isinstance(stage, Held) for stage in arranged.each):
        return None
    known = dict[int, Cycles]()
    own = next((each for each in sharings(plans) if each.apart), None)
    while True:  # Until layers that share an array give what they are given time for: each round is right for longer.
        found = _stage_cycles(network, plans, blocks, given or {}, known)
        if own is None or found is None:
            return found
        members = [n for n, plan in enumerate(plans) if isinstance(plan, LayerPlan) and plan.sharing is own]
        left = dict(zip(members, results_together(own, _coming(network, plans, found, members, own)), strict=True))
        if left == known:
            return found
        known = left


def _coming(network: Network, plans: Sequence[Plan], found: Sequence[StageCycles], members: Sequence[int],
            own: Sharing) -> list[Cycles]:
    """The cycles in which blocks come to layers that share an array: of older taps long before the sample, and those of
    the next sample as soon as they can."""
    comes: list[Cycles] = []
    begin = min(found[at].comes[0][-1] for at in members) - EARLY - sum(
        program.cycles * program.shape.fold + len(found[at].comes[0])
        for at, program in zip(members, own.programs, strict=True))
    for at in members:
        each, source, arranged = found[at].comes[0], network.arrangement.sources[at][0], network.arrangement
        older = early_blocks(network.stages[source], wanted(arranged, source, plans)) if source > INPUT else 0
        comes.append([*range(begin, begin + older), *each[older:], *range(each[-1] + 1, each[-1] + 1 + older)])
    return comes


@singledispatch
def early_blocks(layer: object, wanted: int) -> int:
    """The blocks of a vector that leave a stage before it comes; ``wanted``: see `leaving_to`."""
    return 0


def _stage_cycles(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]],
                  given: Mapping[str, Cycles], known: Mapping[int, Cycles]) -> list[StageCycles] | None:
    """As `stage_cycles`, with the cycles in which blocks leave some layers ``known``."""
    arranged = network.arrangement
    comes: list[list[Cycles]] = [[[] for _ in sources] for sources in arranged.sources]

    def give(at: int, leaves: Cycles, size: int, k: int) -> None:
        sinks = [(n, place) for n, sources in enumerate(arranged.sources)
                 for place, source in enumerate(sources) if source == at]
        taken = forked(leaves, size, k, [blocks[n][0] for n, _ in sinks])
        for (n, place), cycles in zip(sinks, taken, strict=True):
            comes[n][place] = cycles

    for n, each in enumerate(network.inputs):
        k = min(blocks[reader][0] for reader in arranged.readers(INPUT - n))
        comes_in = given.get(each.name, list(range(1 - -(-each.flow.size // k), 1)))
        give(INPUT - n, comes_in, each.flow.size, k)
    found: list[StageCycles] = []
    leaves: Cycles | None
    for at, (layer, plan, (k, gives)) in enumerate(zip(network.stages, plans, blocks, strict=True)):
        turns, begins, leaves = list[int](), list[int](), known.get(at) or leaving_to(
            layer, plan, comes[at][0], k, wanted(arranged, at, plans))
        if len(comes[at]) > 1:
            turns, begins, more = joined(layer, comes[at], k)
            leaves = [cycle + more for cycle in turns]
        if leaves is None:
            return None
        parts = [-(-min(gives, layer.outputs) // blocks[n][0]) for n in arranged.readers(at)]
        leaves = held_up(layer, leaves, max(parts, default=1))
        found.append(StageCycles(comes[at], turns, begins, leaves))
        give(at, leaves, layer.outputs, gives)
    return found


def forked(leaves: Cycles, size: int, k: int, sizes: Sequence[int]) -> list[Cycles]:
    """The cycles in which a vector of ``size`` values, whose blocks of ``k`` leave in these, comes to each reader, in
    blocks of its own of so many values. A block is shown when all have taken the one before."""
    found: list[Cycles] = [[] for _ in sizes]
    free = leaves[0]
    for at, cycle in enumerate(leaves):
        shown = max(cycle, free)
        free = shown + 1
        for own, cycles in zip(sizes, found, strict=True):
            if k >= min(own, size):  # In parts, the block is held while they leave.
                parts = min(-(-k // own), -(-size // own) - len(cycles))
                cycles += range(shown, shown + parts)
                free = max(free, shown + parts)
            elif (at + 1) * k % own == 0 or at == len(leaves) - 1:
                cycles.append(shown + 1)
    return found


@singledispatch
def joined(layer: object, comes: list[Cycles], k: int) -> tuple[Cycles, list[int], int]:
    """The ``turns`` and ``begins`` of a join, see `StageCycles`, and how many cycles later its own blocks leave."""
    raise unknown(layer, "joined")


def in_turn(cycles: Cycles) -> Cycles:
    """One after the other, none before its cycle."""
    found: Cycles = []
    for cycle in cycles:
        found.append(max(cycle, found[-1] + 1) if found else cycle)
    return found


def depths(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]],
           given: Mapping[str, Cycles] | None = None, period: float = 0) -> dict[int, list[int]]:
    """By the number of a join the words that the queue of each source holds: those that wait while samples follow each
    other in the period of the slowest stage, and a whole vector at the least. Empty where passing is not known.

    Parameters:
        blocks, given: as of `stage_cycles`.
        period: of what is slower than each stage.
    """
    found = stage_cycles(network, plans, blocks, given)
    if found is None:
        return {}
    period = max([ceil(period), *(ceil(plan.cycles) for plan in plans),
                  *(len(cycles) for each in found for cycles in each.comes)])
    return {at: [max(len(comes), _waiting(comes, _behind(each.turns, period)[begin:], period))
                 for comes, begin in zip(each.comes, each.begins, strict=True)]
            for at, each in enumerate(found) if each.turns}


def _behind(turns: Cycles, period: int) -> Cycles:
    """The turns of a join, none before the last one of the sample before, which is a period earlier."""
    return [max(cycle, turns[-1] - period + 1 + n) for n, cycle in enumerate(turns)]


def _waiting(comes: Cycles, moves: Cycles, period: int) -> int:
    """Words at the most in the memory of a `DeepQueue` into which, and out of which, blocks go in these cycles, and
    again each period."""
    moves = moves[:len(comes)]
    times = range(0, (moves[-1] - comes[0]) // period * period + 2 * period + 1, period)
    arrive, leave = ({cycle + later for later in times for cycle in cycles} for cycles in (comes, moves))
    most, level, shown = 0, 0, False
    for cycle in range(comes[0], comes[-1] + times[-1] + 1):
        given, take = cycle in arrive, shown and cycle in leave
        free = not shown or take
        read, passes = level > 0 and free, given and free and not level
        write = given and not passes
        most = max(most, level + 1) if write else most
        level, shown = level + write - read, read or passes or not free
    return most
