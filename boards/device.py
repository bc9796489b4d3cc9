"""FPGA devices as data: what each one holds, and whether a design exceeds it."""
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from circulant.sim.refusal import Refusal, nearest

__all__ = ["Device", "device", "devices", "fits"]


@dataclass(frozen=True)
class Device:
    """Capacity of an FPGA.

    Parameters:
        multipliers: hardware multipliers of the shape ``multiplier``.
        multiplier: operand widths in bits, signed.
        memory_bits: block RAM that the bitstream can initialise.
        luts: look-up tables.
    """

    name: str
    family: str
    multipliers: int
    multiplier: tuple[int, int]
    memory_bits: int
    luts: int


@cache
def devices() -> dict[str, Device]:
    """All known devices by name, as devices.toml lists them."""
    text = resources.files("circulant.boards").joinpath("devices.toml").read_text("utf-8")
    return {name: Device(name, entry["family"], entry["multipliers"], (entry["multiplier"][0], entry["multiplier"][1]),
                         entry["memory_bits"], entry["luts"])
            for name, entry in tomllib.loads(text).items()}


def device(name: str) -> Device:
    """The device called ``name``.

    Raises:
        Refusal: when there is none.
    """
    if name not in devices():
        raise Refusal(f"A device must be one of {', '.join(devices())}, not {name!r}{nearest(name, devices())}")
    return devices()[name]


def fits(device: Device, multipliers: int, memory_bits: int) -> dict[str, float]:
    """The shares of a device that a design takes: {"multipliers": 0.41, "memory_bits": 0.02}.

    Raises:
        Refusal: when it takes more than there is, naming every resource that it exceeds.
    """
    taken = {"multipliers": (multipliers, device.multipliers), "memory_bits": (memory_bits, device.memory_bits)}
    exceeded = [f"{used:,} {resource.replace('_', ' ')} of {held:,}"
                for resource, (used, held) in taken.items() if used > held]
    if exceeded:
        raise Refusal(f"A design must fit {device.name}, but it needs {' and '.join(exceeded)}; lower "
                      "hardware.multipliers, take narrower words or larger blocks, or choose a larger device")
    return {resource: used / held for resource, (used, held) in taken.items()}
