"""The latency of a sample, in cycles, exact: from the last beat of its input to the last beat of its result.

It is that of a closed loop: all samples before have passed, their state is there, and nothing else is under way. The
period of `circulant.hw.plan.shared.cost` is another figure, and neither follows from the other.
"""
from collections.abc import Sequence
from functools import singledispatch

from circulant.hw.array.plans import LayerPlan, Plan, Sharing, streams_of, wanted
from circulant.hw.array.schedules.input_first import InputFirst
from circulant.hw.components.cell import cells_of
from circulant.hw.plan.shared.cost import end_latency, loop_latency, sample_results
from circulant.sim.design import Latencies
from circulant.sim.golden.network import Network
from circulant.sim.golden.stages import Stage
from circulant.sim.kinds.over_time import OverTime
from circulant.sim.shape.kinds import within

__all__ = ["held_up", "kept_back", "leaving", "leaving_to", "reblocked", "sample_latencies", "sample_latency",
           "through", "with_state_first"]

def sample_latencies(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]]) -> Latencies:
    """Both latencies by their names in a manifest: spaced, as `sample_latency` gives it, and contiguous, of samples in
    a closed loop. In such a loop the first beat of a sample is offered in the cycle behind the last beat of the result
    before, and its other beats at once; a sample is a vector or a step that has a result of its own, else a sequence.

    That of a sequence depends on its length and on what the one before has left: the figure, of 12 to 32 steps behind a
    reset, is named in ``estimates``. None where that of a layer is not known; for the parameters see `sample_latency`.
    """
    if network.many:
        return {"latency_spaced": None, "latency_contiguous": None}
    spaced = sample_latency(network, plans, blocks)
    found = None if spaced is None else _contiguous(network, plans, blocks, spaced)
    return {"latency_spaced": spaced, "latency_contiguous": found,
            **({} if found is None or _stepwise(network) else {"estimates": ["latency_contiguous"]})}


def with_state_first(stages: Sequence[Stage], plans: Sequence[Plan]) -> list[int]:
    """The layers with an array of their own that multiplies the next step's state when a result is out."""
    return [n for n, (layer, plan) in enumerate(zip(stages, plans, strict=True)) if isinstance(plan, LayerPlan)
            and plan.sharing is None and plan.schedule is not InputFirst and cells_of(layer)]


def _stepwise(network: Network) -> bool:
    """Whether each vector has a result."""
    return network.per_step or not network.sequence


def _contiguous(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]], spaced: int) -> int | None:
    """The latency in a closed loop; ``spaced`` is that of a sample alone."""
    stepwise, early = _stepwise(network), 1 + max(with_state_first(network.stages, plans), default=-1)
    shared = [plan.sharing for plan in plans if isinstance(plan, LayerPlan) and plan.sharing is not None]
    if stepwise and not shared and not early:
        return spaced  # An array of one's own has nothing left to do when the result is out.
    if streams_of(plans) > 1 and not stepwise:
        return None
    groups, elements, gives = list(dict.fromkeys(shared)), [], False
    for n, (layer, plan) in enumerate(zip(network.stages, plans, strict=True)):
        if n >= max(len(shared), early) and (stepwise or gives or isinstance(layer, OverTime)):
            break
        if not isinstance(plan, LayerPlan):
            return None
        if n >= len(shared):
            groups.append(plan.alone(layer))
        elements.append(plan.elements)
        gives |= getattr(layer, "returns", "") == "last"
    played = len(elements)
    if not played:
        return None

    def behind(given: list[int]) -> int:
        left = _through(network, plans, blocks, played, given)
        assert left is not None, "the latency of a sample alone is known"
        return left[-1]

    return (loop_latency if stepwise else end_latency)(groups, elements, behind)


def sample_latency(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]]) -> int | None:
    """Cycles from the last beat of a sample to the last beat of its result, where it comes into an idle circuit; None
    where a layer takes whole sequences or images, and where branches part.

    Parameters:
        plans: of the layers.
        blocks: for each layer the values of a block that comes and of one that leaves.
    """
    if (network.many or network.flow.grid is not None or not network.arrangement.chain
            or any(within(layer) for layer in network.stages)):
        return None
    sharing = [plan.sharing for plan in plans if isinstance(plan, LayerPlan) and plan.sharing is not None]
    first = -(-network.flow.size // blocks[0][0])
    cycles = list(_shared(sharing, plans)) if sharing else list(range(1 - first, 1))
    left = _through(network, plans, blocks, len(sharing), cycles)
    if left is None:
        return None
    return left[-1] if sharing else left[-1] - kept_back(
        network.stages[0], cycles, blocks[0][0], wanted(network.arrangement, 0, plans))


def through(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]], comes: list[int]
            ) -> list[int] | None:
    """Cycles in which the blocks of a result leave a chain that is idle, as those of its input come in these; None
    where that of a layer is not known."""
    sharing = [plan.sharing for plan in plans if isinstance(plan, LayerPlan) and plan.sharing is not None]
    cycles = [comes[-1] + cycle for cycle in _shared(sharing, plans)] if sharing else comes
    return _through(network, plans, blocks, len(sharing), cycles)


def _through(network: Network, plans: Sequence[Plan], blocks: Sequence[tuple[int, int]], first: int,
             cycles: list[int]) -> list[int] | None:
    """Cycles in which the blocks of a result leave, as those of the input of a layer come, of the ``first`` one that is
    to be passed; None where that of a layer is not known."""
    k, size = (blocks[first - 1][1], network.stages[first - 1].outputs) if first else (blocks[0][0], network.flow.size)
    taken = [come for come, _ in blocks[1:]] + [blocks[-1][1]]
    for at, (layer, plan, (come, leave), own) in list(enumerate(zip(
            network.stages, plans, blocks, taken, strict=True)))[first:]:
        found = leaving_to(layer, plan, reblocked(cycles, size, k, come), come, wanted(network.arrangement, at, plans))
        if found is None:
            return None
        cycles, k, size = held_up(layer, found, -(-min(leave, layer.outputs) // own)), leave, layer.outputs
    return cycles


@singledispatch
def held_up(layer: Stage, leaves: list[int], parts: int) -> list[int]:
    """The cycles in which blocks leave a layer whose reader takes each in so many parts; most have a queue behind
    them."""
    return leaves


def _shared(sharing: Sequence[Sharing], plans: Sequence[Plan]) -> tuple[int, ...]:
    """Cycles in which the blocks of a result leave layers that share arrays, each layer with that of ``sharing``."""
    elements = [plan.elements for plan in plans if isinstance(plan, LayerPlan)]
    return sample_results(list(dict.fromkeys(sharing)), elements[:len(sharing)])


def reblocked(cycles: list[int], size: int, k_in: int, k_out: int) -> list[int]:
    """Cycles in which a vector of ``size`` values leaves a `WidthConverter` in blocks of ``k_out``, as its blocks of
    ``k_in`` come in these; they are taken at once."""
    if k_in == k_out:
        return cycles
    found: list[int] = []
    if k_in >= min(k_out, size):  # A block is held while its parts leave.
        for n in range(-(-size // k_out)):
            found.append(max(cycles[n * k_out // k_in], found[-1] + 1 if found else cycles[0]))
        return found
    parts = k_out // k_in
    return [cycles[min((n + 1) * parts, len(cycles)) - 1] + 1 for n in range(-(-size // k_out))]


@singledispatch
def leaving(layer: Stage, plan: Plan, comes: list[int], k: int) -> list[int] | None:
    """Cycles in which the blocks of an output leave a layer, as those of its input come, of ``k`` values each; None of
    a layer that takes whole sequences or images."""
    return None


@singledispatch
def leaving_to(layer: Stage, plan: Plan, comes: list[int], k: int, wanted: int) -> list[int] | None:
    """As `leaving`, of a layer whose unit looks at how many values the one behind it ``wanted``, see
    `circulant.hw.array.plans.wanted`."""
    return leaving(layer, plan, comes, k)


@singledispatch
def kept_back(layer: Stage, comes: list[int], k: int, wanted: int) -> int:
    """Cycles for which a layer lets the last block of an input wait, whose blocks are shown in these; see
    `leaving_to`."""
    return 0
