"""The generator's arguments from an experiment: the budget of multipliers, the levels of logic, the family, clock."""
from typing import Any

from circulant.boards.device import device
from circulant.experiment import Experiment
from circulant.hardware import Hardware
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.sim.settings import keys

__all__ = ["budget", "clock", "family", "latency", "levels", "options"]


def options(experiment: Experiment, network: Network) -> dict[str, Any]:
    """The arguments of `circulant.hw.generate`.

    Raises:
        Refusal: as `budget`, `latency` and `levels`.
    """
    given = experiment.tables(("hardware",))["hardware"]
    for name in ("clock_mhz", "library", "latency_us", "chips"):
        del given[name]
    return given | {"multipliers": budget(experiment, network), "levels": levels(experiment),
                    "family": family(experiment), "latency": latency(experiment)}


def family(experiment: Experiment) -> str:
    """The family that the Verilog is for: the experiment's, or that of its device, or "generic"."""
    given, several = experiment.hardware.family, experiment.hardware.several
    if given != "auto":
        return given
    from circulant.hw.plan.families import FAMILIES

    names = (experiment.board.device,) if several is None else several.device
    found = {FAMILIES[device(name).family].profile.name for name in names if name != "none"}
    return found.pop() if len(found) == 1 else "generic"


def _device(experiment: Experiment) -> str:
    """The device whose family says how fast logic is: that of the board, or of the first chip."""
    several = experiment.hardware.several
    return experiment.board.device if several is None else next(iter(several.device), "none")


def levels(experiment: Experiment) -> int:
    """Levels of logic between two registers: the experiment's, or as many as its clock leaves time for, or the least.

    Raises:
        Refusal: when a clock comes with levels or without a device, or is faster than the device's family is.
    """
    from circulant.hw.plan.families import FAMILIES, product_levels

    name, hardware = _device(experiment), experiment.hardware
    rule = keys(Hardware)["levels"]
    low, high, usual = int(rule[0].low or 0), int(rule[0].high or 0), rule[2]
    if not hardware.clock_mhz:
        return hardware.levels
    if hardware.levels != usual:
        raise Refusal(f"hardware.levels follows from hardware.clock_mhz where that is given, but they are "
                      f"{hardware.levels} and {hardware.clock_mhz}; give one of them")
    if name == "none":
        raise Refusal("hardware.clock_mhz needs a device, whose family says how fast logic is, but board.device is "
                      "'none'; name one, or give hardware.levels")
    cells, multiplier = FAMILIES[device(name).family], experiment.quantization.multiplier
    least = max(low, product_levels(multiplier))
    if (found := cells.levels(hardware.clock_mhz)) < least:
        of = f" of products {multiplier!r}" if least > low else ""
        raise Refusal(f"hardware.clock_mhz must leave time for {least} levels of logic{of}, on {name} at most "
                      f"{int(cells.mhz(least))} MHz, not {hardware.clock_mhz}; lower it")
    return min(found, high)


def latency(experiment: Experiment) -> int:
    """Cycles that a sample may take at the most: the experiment's, or those of its microseconds at its clock; 0 where
    it may take any.

    Raises:
        Refusal: as `clock`; when microseconds come with cycles, or without a clock, or are less than a cycle.
    """
    hardware = experiment.hardware
    if not hardware.latency_us:
        return hardware.latency
    if hardware.latency:
        raise Refusal(f"hardware.latency follows from hardware.latency_us where that is given, but they are "
                      f"{hardware.latency} and {hardware.latency_us:g}; give one of them")
    if (mhz := clock(experiment)) is None:
        raise Refusal("hardware.latency_us needs a device, whose family says how long a cycle is, but board.device is "
                      "'none'; name one, or give hardware.latency in cycles")
    if (found := int(hardware.latency_us * mhz + 1e-9)) < 1:
        raise Refusal(f"hardware.latency_us must be a cycle at least, {1 / mhz:.3g} µs at {mhz:g} MHz, not "
                      f"{hardware.latency_us:g}; raise it")
    return found


def clock(experiment: Experiment) -> float | None:
    """The clock of a design's constraints in MHz: the experiment's, or what the device's family is estimated to reach;
    None where neither is known.

    Raises:
        Refusal: as `levels`.
    """
    from circulant.hw.plan.families import FAMILIES

    name, hardware = _device(experiment), experiment.hardware
    if hardware.clock_mhz or name == "none":
        return hardware.clock_mhz or None
    return float(int(FAMILIES[device(name).family].mhz(
        levels(experiment), experiment.quantization.multiplier)))


def budget(experiment: Experiment, network: Network) -> int:
    """The multipliers that a design may have: the experiment's, or as many as its device has DSP blocks for.

    Raises:
        Refusal: when it names neither.
    """
    name, hardware = experiment.board.device, experiment.hardware
    if hardware.multipliers:
        return hardware.multipliers
    if name == "none":
        raise Refusal("hardware.multipliers may be 0 (all of the device's) only if board.device names a device, not "
                      "'none'; give a number or a device")
    from circulant.boards.budget import whole

    return whole(device(name), network.with_argmax() if hardware.argmax else network, streams=hardware.streams,
                 levels=levels(experiment), max_steps=hardware.max_steps, reloadable=hardware.reloadable,
                 objective=hardware.objective, packing=hardware.dsp_packing, profile=family(experiment),
                 beat_blocks=hardware.beat_blocks)
