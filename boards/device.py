"""FPGA devices as data: what each one holds, and whether a design fits it: multipliers, block RAMs, look-up tables,
flip-flops, and a place for every memory."""
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from circulant.sim.document import Document
from circulant.sim.refusal import Refusal, nearest

if TYPE_CHECKING:
    from circulant.hw.emit.inventory import Inventory
    from circulant.hw.plan.families import Demand

__all__ = ["NAMES", "Device", "Fit", "Taken", "device", "devices", "fit_of", "fits", "rounded", "smallest"]


@dataclass(frozen=True)
class Device:
    """Capacity of an FPGA.

    Parameters:
        series: of the vendor.
        family: in `circulant.hw.plan.families.FAMILIES`.
        dsps, block_rams: multipliers and memories of that family, as the data sheet counts them.
        luts, flip_flops: look-up tables and flip-flops.
        transceivers: kind of its serial transceivers; empty where it has none.
        vivado: name of a part with this device in Vivado.
    """

    name: str
    series: str
    family: str
    dsps: int
    block_rams: int
    luts: int
    flip_flops: int
    transceivers: str = ""
    vivado: str = ""


@dataclass(frozen=True)
class Taken:
    """The share of a resource that a design takes.

    Parameters:
        used, held: by the design and by the device.
        error: of an estimate, a share of it; None for what is counted.
    """

    used: float
    held: int
    error: float | None = None

    @property
    def exceeds(self) -> bool:
        """Whether the use exceeds what there is, even if less than estimated."""
        return self.used * (1 - (self.error or 0)) > self.held

    @property
    def doubtful(self) -> bool:
        """Whether the use may exceed what there is."""
        return not self.exceeds and self.used * (1 + (self.error or 0)) > self.held

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.used:,g} of {self.held:,}"
        return f"about {rounded(self.used):,} (± {self.error:.0%}) of {self.held:,}"

    def as_json(self) -> Document:
        found: Document = {"used": self.used, "held": self.held, "share": self.used / self.held}
        return found if self.error is None else found | {"error": self.error}


NAMES = {"dsps": "DSP blocks", "block_rams": "block RAMs", "luts": "look-up tables", "flip_flops": "flip-flops"}


@dataclass(frozen=True)
class Fit:
    """The use of a device that a design fits, by resource."""

    device: Device
    taken: dict[str, Taken]

    @property
    def doubts(self) -> list[str]:
        """A sentence for each resource that may not do."""
        return [f"{self.device.name} may be too small: {taken} {NAMES[name]}; synthesize before you rely on it"
                for name, taken in self.taken.items() if taken.doubtful]

    def __str__(self) -> str:
        return f"{self.device.name}: " + ", ".join(f"{taken} {NAMES[name]}" for name, taken in self.taken.items())

    def as_json(self) -> Document:
        return {"name": self.device.name, "series": self.device.series, "doubts": self.doubts,
                "resources": {name: taken.as_json() for name, taken in self.taken.items()}}


@cache
def devices() -> dict[str, Device]:
    """All known devices by name, as devices.toml lists them."""
    text = resources.files("circulant.boards").joinpath("devices.toml").read_text("utf-8")
    names = {field.name for field in fields(Device)}
    return {name: Device(name, **{key: value for key, value in entry.items() if key in names})
            for name, entry in tomllib.loads(text).items()}


def device(name: str) -> Device:
    """The device called ``name``.

    Raises:
        Refusal: when there is none.
    """
    if name not in devices():
        raise Refusal(f"A device must be one of {', '.join(devices())}, not {name!r}{nearest(name, devices())}")
    return devices()[name]


def fits(device: Device, found: "Inventory") -> Fit:
    """The use of a device by a design. Look-up tables and flip-flops are estimated, where its logic was foreseen.

    Raises:
        Refusal: when it takes more than there is, or has memories for which there is no place: every resource that it
            exceeds, by how much, and the smallest device that would do.
    """
    from circulant.hw.plan.families import FAMILIES

    demand = FAMILIES[device.family].demand(found)
    taken = dict(_taken(device, demand))
    exceeded = [f"{used} {NAMES[name]}" + _over(used) for name, used in taken.items() if used.exceeds]
    if demand.unmapped:
        exceeded.append(f"a place for {demand.unmapped:,} memories that lie in look-up tables, which it has not "
                        f"(generate with hardware.family = {FAMILIES[device.family].profile.name!r})")
    if exceeded:
        raise Refusal(f"A design must fit {device.name}, but it needs {' and '.join(exceeded)}; {_way_out(found)}")
    return Fit(device, taken)


def fit_of(name: str, counted: Mapping[str, Any]) -> Fit | None:
    """`fits` of a device by its name and what a manifest says of a design under ``resources``; None for "none".

    Raises:
        Refusal: as `fits`.
    """
    from circulant.hw.emit.inventory import Inventory

    return None if name == "none" else fits(device(name), Inventory.from_json(counted))


def smallest(counted: Mapping[str, Any]) -> Fit | None:
    """The use of the smallest known device that holds a design, by what a manifest says of it under ``resources``."""
    from circulant.hw.emit.inventory import Inventory

    return _smallest(Inventory.from_json(counted))


def _taken(device: Device, demand: "Demand") -> Iterator[tuple[str, Taken]]:
    yield "dsps", Taken(demand.dsps, device.dsps)
    yield "block_rams", Taken(demand.block_rams, device.block_rams)
    for name in ("luts", "flip_flops"):
        if (estimate := getattr(demand, name)) is not None:
            yield name, Taken(estimate.count, getattr(device, name), estimate.error)


def _over(taken: Taken) -> str:
    more = taken.used - taken.held
    return f" ({rounded(more) if taken.error else more:,g} too many)" if more > 0 else ""


def _way_out(found: "Inventory") -> str:
    """The smallest device that holds a design, by look-up tables, and what makes the design smaller."""
    smaller = "lower hardware.multipliers, take narrower words or larger blocks"
    if (fit := _smallest(found)) is not None:
        return f"{smaller}, or take {fit.device.name}, the smallest known one that holds it"
    return f"{smaller}; no known device holds it"


def _smallest(found: "Inventory") -> Fit | None:
    """The use of the smallest known device, by look-up tables, that holds a design without a doubt."""
    from circulant.hw.plan.families import FAMILIES

    for each in sorted(devices().values(), key=lambda each: each.luts):
        demand = FAMILIES[each.family].demand(found)
        taken = dict(_taken(each, demand))
        if not demand.unmapped and not any(one.exceeds or one.doubtful for one in taken.values()):
            return Fit(each, taken)
    return None


def rounded(count: float) -> int:
    """To three digits, since an estimate has no more."""
    digits = max(0, len(str(round(count))) - 3)
    return round(count / 10 ** digits) * 10 ** digits
