"""All of a device: the multiplications in a cycle that its DSP blocks and block RAMs allow a network."""
from collections.abc import Callable, Sequence
from functools import partial

from circulant.boards.device import Device
from circulant.hw.emit.inventory import Inventory
from circulant.hw.emit.profile import PROFILES
from circulant.hw.foreseen import foreseen
from circulant.hw.plan.families import FAMILIES, Demand
from circulant.hw.plan_cache import plans_of
from circulant.hw.planner import Plan
from circulant.hw.resources import counted, parts
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.arith.multiplier import EXACT
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["taken", "whole"]

LUTS = 32
"""Look-up tables for each approximate product of the largest budget that is tried."""


def whole(device: Device, network: Network, *, streams: int = 1, levels: int = LEVELS, max_steps: int = 128,
          reloadable: bool = False, objective: str = "throughput", packing: str = "none",
          profile: str = "generic", beat_blocks: int = 1) -> int:
    """The budget of multipliers with which `circulant.hw.planner.plan` fills a device: a product counts the DSP
    blocks that its operands' widths take, an approximate one an estimate of look-up tables. Where not even the smallest
    plan fits, that of the smallest plan.

    Plans with an array for each layer are quickly found. So theirs is the budget of other objectives, too, where the
    device holds what these make of it.

    Raises:
        Refusal: as `circulant.hw.planner.plan`, of a network that has no hardware.
    """
    def demand(objective: str, multipliers: int) -> Demand:
        plans = plans_of(network, multipliers, streams=streams, levels=levels, objective=objective,
                         reloadable=reloadable, packing=packing, beat_blocks=beat_blocks, max_steps=max_steps)
        return FAMILIES[device.family].demand(taken(network, plans, max_steps=max_steps, reloadable=reloadable,
                                                    levels=levels, profile=profile))

    most = (device.dsps * (1 if packing == "none" else 2) if network.multiplier == EXACT
            else max(1, device.luts // LUTS))
    if objective != "throughput":
        try:
            found = largest(partial(demand, "throughput"), device, most)
        except Refusal:  # It has too few multipliers for an array for each layer, or there is no hardware at all.
            found = 0
        if found and _holds(device, demand(objective, found)):
            return found
    return largest(partial(demand, objective), device, most)


def taken(network: Network, plans: Sequence[Plan], *, max_steps: int, levels: int, reloadable: bool = False,
          profile: str = "generic") -> Inventory:
    """Products and memories of plans, and where products are approximate the logic that they are made of."""
    made = parts(network, plans, max_steps=max_steps, reloadable=reloadable)
    if network.multiplier == EXACT:
        return counted(made, PROFILES[profile])
    return foreseen(made, len(network.stages), levels=levels, profile=profile)


def largest(demand: Callable[[int], Demand], device: Device, most: int) -> int:
    """The largest budget, up to ``most``, whose demand a device holds, within 2 %.

    Parameters:
        demand: of a budget; raises a `Refusal` where it is too small for any plan.
    """
    fits, low, high, at = 0, 0, most + 1, most
    while high - low > max(1, low // 50):
        try:
            found = demand(at)
        except Refusal:
            if at == most:
                raise
            low, at = at, (at + high) // 2
            continue
        if _holds(device, found):
            fits = low = at
            at = (low + high) // 2
        else:
            high = at
            at = max(low + 1, min((low + high) // 2, at * device.dsps // max(1, found.dsps)))
    return fits or high


def _holds(device: Device, found: Demand) -> bool:
    return (found.dsps <= device.dsps and found.block_rams <= device.block_rams
            and (found.luts is None or found.luts.count <= device.luts))
