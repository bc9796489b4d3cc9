"""All of a device: the multiplications in a cycle that its DSP blocks and block RAMs allow a network."""
from collections.abc import Callable

from circulant.boards.device import Device
from circulant.hw.plan.families import FAMILIES, Demand
from circulant.hw.plan.plan import plan
from circulant.hw.resources import inventory
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal

__all__ = ["whole"]


def whole(device: Device, network: Network, *, streams: int = 1, levels: int = LEVELS, max_steps: int = 128,
          reloadable: bool = False, profile: str = "generic") -> int:
    """The budget of multipliers with which `circulant.hw.plan.plan.plan` fills a device: a product counts the DSP
    blocks that its operands' widths take. Where not even the smallest plan fits, that of the smallest plan.

    Raises:
        Refusal: as `circulant.hw.plan.plan.plan`, of a network that has no hardware.
    """
    def demand(multipliers: int) -> Demand:
        plans = plan(network, multipliers, streams=streams, levels=levels)
        return FAMILIES[device.family].demand(inventory(network, plans, max_steps=max_steps, reloadable=reloadable,
                                                        profile=profile))

    return largest(demand, device)


def largest(demand: Callable[[int], Demand], device: Device) -> int:
    """The largest budget whose demand a device holds, within 2 %.

    Parameters:
        demand: of a budget; raises a `Refusal` where it is too small for any plan.
    """
    fits, low, high, at = 0, 0, device.dsps + 1, device.dsps
    while high - low > max(1, low // 50):
        try:
            found = demand(at)
        except Refusal:
            if at == device.dsps:
                raise
            low, at = at, (at + high) // 2
            continue
        if found.dsps <= device.dsps and found.block_rams <= device.block_rams:
            fits = low = at
            at = (low + high) // 2
        else:
            high = at
            at = max(low + 1, min((low + high) // 2, at * device.dsps // max(1, found.dsps)))
    return fits or high
