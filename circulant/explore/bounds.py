"""Bounds of the block size from costs alone, before anything is trained (E-RNN, HPCA 2019, section VI-A).

Below the lower bound the weights do not fit on the chip; above the upper one a larger block saves no cycle. Costs
follow from shapes, so that an untrained network has those of the trained one.
"""
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from circulant.boards.device import device, fits
from circulant.experiment import Experiment
from circulant.extras import extras
from circulant.run.sizing import budget, family, levels
from circulant.run.untrained import sized, untrained
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["SIZES", "Bounds", "Cost", "bounds"]

SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Block sizes that are considered."""


@dataclass(frozen=True)
class Cost:
    """The cost of an untrained network with one block size.

    Parameters:
        cycles: from step to step with all multipliers that the device has.
        memory_bits: of all memories.
        reason: why there is no such design; empty where there is one.
    """

    block_size: int
    cycles: float = 0
    memory_bits: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Bounds:
    """The block sizes worth training, and the costs that say so.

    Parameters:
        low, high: the smallest and the largest one.
        costs: of every size that was planned, smallest first.
        why: a sentence for each bound.
    """

    low: int
    high: int
    costs: tuple[Cost, ...]
    why: tuple[str, str]


def bounds(experiment: Experiment, *, memory_bits: int = 0, cycles: float = math.inf, deadline: float = math.inf,
           price: Callable[[Experiment], Cost] | None = None) -> Bounds:
    """The block sizes worth training for the experiment's device.

    Parameters:
        memory_bits: that the design may have at the most; 0 for what the device has.
        cycles: from step to step at the most.
        deadline: of `time.monotonic`, after which no block size is planned.
        price: the cost of an experiment; the default builds its network untrained, quantizes and plans it.

    Raises:
        Refusal: when no block size gives a design that fits and keeps the limits, with what the largest one breaks;
            when the deadline comes before.
    """
    costs = []
    for size in SIZES:
        if time.monotonic() > deadline:
            raise Refusal("--hours must be enough to plan the block sizes, but the time was over before that of "
                          f"{size}; allow more")
        costs.append((price or cost)(sized(experiment, size)))
    costs = [each if each.reason else replace(each, reason=" and ".join(words for words, over in (
        (f"it needs {each.memory_bits:,} memory bits, and {memory_bits:,} are allowed",
         memory_bits and each.memory_bits > memory_bits),
        (f"it takes {each.cycles:,g} cycles a step, and {cycles:,.0f} are allowed", each.cycles > cycles)) if over))
        for each in costs]
    legal = [each for each in costs if not each.reason]
    if not legal:
        rule, way = (" and keeps the limits", "relax a limit") if memory_bits or cycles < math.inf else (
            "", "take a smaller model")
        nearest = next((each for each in reversed(costs) if each.cycles), costs[-1])
        raise Refusal(f"Some block size must give a design that fits {experiment.board.device}{rule}, but none does; "
                      f"that of {nearest.block_size}: {nearest.reason}; {way}, or a larger --device")
    low, high = legal[0], min(legal, key=lambda each: (each.cycles, each.block_size))
    below = [each for each in costs if each.block_size < low.block_size]
    smaller = f"k = {below[-1].block_size} is out: {below[-1].reason}" if below else "every block size fits"
    return Bounds(low.block_size, max(low.block_size, high.block_size), tuple(costs), (
        smaller, f"no larger block takes fewer than {high.cycles:,g} cycles a step"))


def cost(experiment: Experiment) -> Cost:
    """The cost of an experiment's network, untrained and with the experiment's widths, planned for its device."""
    size = experiment.compression.block_size
    assert isinstance(size, int)
    try:
        return Cost(size, *_planned(experiment, untrained(experiment)))
    except Refusal as refusal:
        return Cost(size, reason=str(refusal))


def _planned(experiment: Experiment, network: Network) -> tuple[float, int]:
    """Cycles a step and memory bits.

    Raises:
        Refusal: when it cannot be planned, or does not fit.
    """
    with extras("circulant explore"):
        from circulant.boards.budget import taken
        from circulant.hw.planner import plan
        from circulant.hw.resources import parts, period

    options, deep = experiment.hardware, levels(experiment)
    plans = plan(network, budget(experiment, network), streams=options.streams, levels=deep)
    fits(device(experiment.board.device), taken(network, plans, max_steps=options.max_steps, levels=deep,
                                                profile=family(experiment)))
    return period(network, plans), sum(
        memory.bits for memory in parts(network, plans, max_steps=options.max_steps).memories)
