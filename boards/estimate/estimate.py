"""The demand of a network on a device before anything is generated: multipliers, DSP blocks, block RAMs, look-up
tables, flip-flops, clock."""
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from circulant.boards.budget import whole
from circulant.boards.device import NAMES, Device, Taken, rounded
from circulant.hw.array.plans import require_packing, require_pairs
from circulant.hw.foreseen import foreseen
from circulant.hw.plan.families import CLOCK_ERROR, FAMILIES
from circulant.hw.plan_cache import plans_of
from circulant.hw.planner import Plan
from circulant.hw.resources import figures, parts
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.document import Document
from circulant.sim.figures import Figures
from circulant.sim.golden.network import Network

__all__ = ["Estimated", "Options", "estimate"]

LATENCIES = {"latency_spaced": "into an idle circuit", "latency_contiguous": "back to back"}
"""The latencies of a sample, and of which samples they are."""

@dataclass(frozen=True)
class Options:
    """Options of `circulant.hw.generate`, as far as resources follow from them.

    Parameters:
        multipliers: at the most; 0 for all that the device has room for.
    """

    multipliers: int = 0
    streams: int = 1
    levels: int = LEVELS
    objective: str = "auto"
    max_steps: int = 128
    reloadable: bool = False
    dsp_packing: str = "none"
    protection: str = "none"
    beat_blocks: int = 1
    latency: int = 0


@dataclass(frozen=True)
class Estimated:
    """An estimate.

    Parameters:
        budget: multipliers at the most.
        figures: of the plan.
        taken: by resource, see `circulant.boards.device.NAMES`.
        unmapped: memories for which the family has no place.
        mhz: the clock that the family model says, at the device's slowest speed grade.
        asked: latency at the most, in cycles; 0 for any.
    """

    device: Device
    budget: int
    figures: Figures
    taken: dict[str, Taken] = field(default_factory=dict)
    unmapped: int = 0
    mhz: float = 0.0
    asked: int = 0

    def us(self, cycles: float) -> float:
        """Microseconds that cycles take; the clock's error is theirs."""
        return cycles / self.mhz

    @property
    def profile(self) -> str:
        """``hardware.family`` that it holds for."""
        return FAMILIES[self.device.family].profile.name

    @cached_property
    def shortages(self) -> dict[str, float]:
        """By resource how much more than the device has; empty where the design fits."""
        found = {name: taken.used - taken.held for name, taken in self.taken.items() if taken.exceeds}
        return found | ({"unmapped": self.unmapped} if self.unmapped else {})

    @property
    def fits(self) -> bool:
        return not self.shortages

    @property
    def doubts(self) -> list[str]:
        """Resources that may not do."""
        return [name for name, taken in self.taken.items() if taken.doubtful]

    def lines(self) -> list[str]:
        """The estimate in words."""
        (beside, each), made = FAMILIES[self.device.family].cycle, self.figures
        return [
            f"{self.device.name} ({self.device.series}), hardware.family = {self.profile}: {made.multipliers:,} "
            f"multipliers of {self.budget:,} allowed",
            f"  {'period':<15} {self._time(made.cycles)}: a step, a vector or an image",
            *(f"  {name.replace('_', ', '):<18} {self._late(name)}, {when}" for name, when in LATENCIES.items()),
            *([f"  {'latency asked':<18} at most {self._time(self.asked)}"] if self.asked else []),
            *(f"  {NAMES[name]:<15} {taken}{self._over(name)}" for name, taken in self.taken.items()),
            f"  {'clock':<15} about {self.mhz:.0f} MHz (± {CLOCK_ERROR:.0%}): {beside:g} ns, and {each:g} ns for each "
            "level of logic",
            *([f"  {self.unmapped} memories have no place"] if self.unmapped else [])]

    def _time(self, cycles: float) -> str:
        return f"{cycles:,g} cycles, about {self.us(cycles):.3g} µs (± {CLOCK_ERROR:.0%})"

    def _late(self, name: str) -> str:
        if (cycles := self.figures.latencies[name]) is None:
            return "not planned for this network: circulant simulate measures it"
        return self._time(cycles) + (", an estimate" if name in self.figures.estimates else "")

    def _over(self, name: str) -> str:
        if name in self.shortages:
            return f": {rounded(self.shortages[name]):,g} too many"
        return ": may not fit" if name in self.doubts else ""

    def as_json(self) -> Document:
        return {"device": self.device.name, "family": self.profile, "fits": self.fits, "budget": self.budget,
                "multipliers": self.figures.multipliers, "cycles": self.figures.cycles,
                **{name: taken.as_json() for name, taken in self.taken.items()},
                "mhz": round(self.mhz, 1), "mhz_error": CLOCK_ERROR, "period_us": self.us(self.figures.cycles),
                **self.figures.latencies, **{f"{name}_us": None if cycles is None else self.us(cycles)
                                             for name, cycles in self.figures.latencies.items()},
                **({"latency_asked": self.asked} if self.asked else {}),
                "estimates": list(self.figures.estimates), "shortages": self.shortages, "doubts": self.doubts}


def estimate(network: Network, device: Device, options: Options | None = None) -> Estimated:
    """The estimate of a network on a device, for the profile of the device's family.

    Raises:
        Refusal: as `circulant.hw.planner.plan`, of a network that has no hardware, or a budget that is too small; as
            `estimated`.
    """
    options = options or Options()
    given = options.multipliers or _all(network, device, options)
    plans = plans_of(network, given, streams=options.streams, levels=options.levels, objective=options.objective,
                     reloadable=options.reloadable, packing=options.dsp_packing, protection=options.protection,
                     beat_blocks=options.beat_blocks, latency=options.latency, max_steps=options.max_steps)
    return estimated(network, plans, device, options, given)


def estimated(network: Network, plans: Sequence[Plan], device: Device, options: Options, budget: int) -> Estimated:
    """The estimate of plans that stand.

    Raises:
        Refusal: when products shall share DSP blocks, and the device's, or the products, do not allow it.
    """
    family = FAMILIES[device.family]
    require_packing(options.dsp_packing, family.profile.name)
    made = parts(network, plans, max_steps=options.max_steps, reloadable=options.reloadable)
    require_pairs(made, options.dsp_packing, network.name)
    demand = family.demand(foreseen(made, len(network.stages), levels=options.levels, profile=family.profile.name))
    assert demand.luts is not None and demand.flip_flops is not None
    return Estimated(
        device, budget, figures(network, plans, max_steps=options.max_steps, reloadable=options.reloadable),
        taken={"dsps": Taken(demand.dsps, device.dsps), "block_rams": Taken(demand.block_rams, device.block_rams),
               "luts": Taken(demand.luts.count, device.luts, demand.luts.error),
               "flip_flops": Taken(demand.flip_flops.count, device.flip_flops, demand.flip_flops.error)},
        unmapped=demand.unmapped, asked=options.latency,
        mhz=family.mhz(options.levels, network.multiplier))


def _all(network: Network, device: Device, options: Options) -> int:
    """Multipliers for which a device has DSP blocks and block RAMs."""
    return whole(device, network, streams=options.streams, levels=options.levels, max_steps=options.max_steps,
                 reloadable=options.reloadable, objective=options.objective,
                 packing=options.dsp_packing, profile=FAMILIES[device.family].profile.name,
                 beat_blocks=options.beat_blocks)
