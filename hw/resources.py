"""Resources of a design, from its plan alone: every memory, every product, hence block RAMs and DSP blocks.

Where a memory lies is not up to a tool: `circulant.hw.emit.profile` says it. How many block RAMs it fills there
follows from their geometry. Held to the Verilog by the tests, and to Yosys by ``python -m benchmarks synthesis``.
"""
from collections.abc import Sequence
from dataclasses import dataclass

from circulant.hw.array.parts import Parts
from circulant.hw.array.plans import LayerPlan
from circulant.hw.emit.inventory import Inventory
from circulant.hw.emit.profile import PROFILES, Profile
from circulant.hw.plan import dataflow
from circulant.hw.plan.families import FAMILIES
from circulant.hw.plan.ladders import layer_multiplications
from circulant.hw.planner import Plan, each_step, repeats
from circulant.hw.top import Top
from circulant.hw.unit import Site, unelaborated, unit
from circulant.sim.figures import Figures
from circulant.sim.golden.network import Network
from circulant.sim.passes.layer import GoldenLayer

__all__ = ["Prediction", "counted", "figures", "figures_of", "inventory", "layer_parts", "parts", "period",
           "predict", "stepwise"]


@dataclass(frozen=True)
class Prediction:
    """DSP blocks and block RAMs, the latter in the unit of the data sheets: half a RAMB36 is a RAMB18."""

    dsps: int
    block_rams: float


def predict(network: Network, plans: Sequence[Plan], family: str, *, max_steps: int = 128,
            reloadable: bool = False, profile: str = "generic") -> Prediction:
    """The demand of a network on a device of a family, as ``generate`` makes it with ``plans`` and these options.

    Parameters:
        profile: what ``generate`` calls ``family``.
    """
    found = FAMILIES[family].demand(inventory(network, plans, max_steps=max_steps, reloadable=reloadable,
                                              profile=profile))
    return Prediction(found.dsps, found.block_rams)


def inventory(network: Network, plans: Sequence[Plan], *, max_steps: int = 128, reloadable: bool = False,
              profile: str = "generic") -> Inventory:
    """The products and memories of `parts` as they are counted in a design; its logic is not foreseen."""
    return counted(parts(network, plans, max_steps=max_steps, reloadable=reloadable), PROFILES[profile])


def counted(made: Parts, profile: Profile) -> Inventory:
    """Parts as they are counted in a design whose memories lie where a profile says."""
    found = Inventory()
    for its, each in ((found.products, made.products), (found.pairs, made.pairs)):
        for count, a, b in each:
            its[max(a, b), min(a, b)] += count
    for memory in made.memories:
        for piece in memory.pieces(profile) if memory.copies else ():
            found.memories[piece] += memory.copies
    return found


def parts(network: Network, plans: Sequence[Plan], *, max_steps: int = 128, reloadable: bool = False) -> Parts:
    """Every memory and every product of a network, as ``generate`` makes it with ``plans`` and these options.

    Raises:
        Refusal: as `circulant.hw.top.Top`, for a network over images.
    """
    with unelaborated():
        return Top(network, plans, max_steps=max_steps, reloadable=reloadable).parts


def figures(network: Network, plans: Sequence[Plan], *, max_steps: int = 128, reloadable: bool = False) -> Figures:
    """The figures of a network, planned, as ``generate`` makes it with ``plans`` and these options.

    Raises:
        Refusal: as `parts`.
    """
    with unelaborated():
        return figures_of(network, plans, Top(network, plans, max_steps=max_steps, reloadable=reloadable))


def figures_of(network: Network, plans: Sequence[Plan], top: Top) -> Figures:
    """The same of a circuit that stands."""
    steps = stepwise(network)
    work = [layer_multiplications(layer, flow.pixels, plan) * times for layer, plan, flow, times
            in zip(network.stages, plans, network.arrangement.come, repeats(network), strict=True)]
    late = dataflow.latencies(network, plans, top.blocks)
    apart = [plan for plan in plans if isinstance(plan, LayerPlan) and plan.sharing is not None and plan.sharing.apart]
    exact = not any(plan.estimated for plan in apart) if apart else network.arrangement.chain
    return Figures(
        sum(each.multipliers for each in plans), sum(each for each, often in zip(work, steps, strict=True) if often),
        sum(each for each, often in zip(work, steps, strict=True) if not often),
        memory_bits=sum(memory.bits for memory in top.parts.memories), cycles=period(network, plans),
        latency_spaced=late["latency_spaced"], latency_contiguous=late["latency_contiguous"],
        estimates=tuple(late.get("estimates", ())) + (() if exact else ("cycles",)))


def stepwise(network: Network) -> list[bool]:
    """Whether each layer works at every step; an image is one sample, whatever steps its rows become."""
    over_images = network.leading.flow.grid is not None
    return [steps and not over_images for steps in each_step(network)]


def period(network: Network, plans: Sequence[Plan]) -> float:
    """Cycles of the slowest layer that works at each step; of a vector or an image, where there are no steps."""
    steps = stepwise(network)
    return max(plan.cycles * times for plan, times, often in zip(plans, repeats(network), steps, strict=True)
               if often or not any(steps))


def layer_parts(layer: GoldenLayer, plan: Plan, *, steps: int = 128) -> Parts:
    """Every memory and every product of a layer.

    Parameters:
        steps: of a sequence at the most, which count where it is bidirectional.
    """
    with unelaborated():
        found: Parts = unit(layer, plan, Site(steps=steps)).parts
    return found
