"""From a design's folder to standard cells: their area, clock and energy, and files for a full flow."""
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from circulant.boards.asic.area import LOGIC, area
from circulant.boards.asic.buffers import buffer
from circulant.boards.asic.cells.catalogue import Known
from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.cells.models import models
from circulant.boards.asic.handover import handover
from circulant.boards.asic.macros import Macro, Model
from circulant.boards.asic.mapping import Settings, mapped, unpacked
from circulant.boards.asic.memories import Memory
from circulant.boards.asic.netlist import Netlist
from circulant.boards.asic.power.activity import Activity, as_design, compiler, counted
from circulant.boards.asic.power.energy import Energy, energy
from circulant.boards.asic.scan import stitch
from circulant.boards.asic.simulation import able, simulated
from circulant.boards.asic.source import cells as cells_of
from circulant.boards.asic.source import circuit
from circulant.boards.asic.timing import Timing, analysed, found
from circulant.boards.flow import Show, program, silent
from circulant.sim import artifact, design
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.cosim.verification import fitted
from circulant.sim.document import Document
from circulant.sim.refusal import Refusal, TimingMissed
from circulant.sim.vectors import Vectors

__all__ = ["METHOD", "Asic", "asic", "key", "lines", "settings"]

KIND, VERSION, FILE = "circulant-asic", 1, "asic.json"

METHOD = 7
"""Raised whenever the same design gets other figures: what was kept under another one is made anew."""


@dataclass(frozen=True)
class Power:
    """Energy of a cycle at an activity: with clocks as they are, as if none were gated, and while nothing comes."""

    activity: Activity
    energy: Energy
    ungated: Energy
    rest: Energy

    def as_json(self, mhz: float, rate: float) -> Document:
        """The figures at a clock, and at so many inferences a second the mean power in µW: with a clock that always
        comes, and one that is stopped from outside between them; ``busy`` is the part of the time that is work."""
        spent, played = self.energy, self.activity
        cycles = played.cycles / max(1, played.sequences)
        leakage = spent.leakage * mhz
        found: Document = {
            "energy_pj_per_cycle": {kind: round(value, 4) for kind, value in spent.by_kind.items()},
            "energy_nj": {kind: round(value * cycles * 1e-3, 6) for kind, value in spent.by_kind.items()},
            "energy_nj_total": round(spent.total * cycles * 1e-3, 6),
            "gated_to_ungated": round(spent.total / self.ungated.total, 4),
            "power_mw": round(spent.total * mhz * 1e-3, 4),
            "activity": {"cycles": played.cycles, "sequences": played.sequences, "words": played.words,
                         "mismatches": played.mismatches},
            "leakage_uw": round(leakage, 6), "idle_pj_per_cycle": round(self.rest.dynamic, 4)}
        if rate:
            busy = rate * cycles * 1e-6  # In cycles of a µs.
            stopped = busy * spent.dynamic + leakage
            found["mean_power"] = {"inferences_per_second": rate, "busy": busy / mhz,
                                   "clock_stopped_uw": round(stopped, 6),
                                   "clock_running_uw": round(stopped + (mhz - busy) * self.rest.dynamic, 6)}
        return found


@dataclass(frozen=True)
class Asic:
    """Standard cells of a design.

    Parameters:
        area_um2: by `circulant.boards.asic.area.AREAS`.
        cells: instances of the library.
        memories: bits by kind.
        scan: flip-flops in the chain.
        timing, power: None where the caller did without.
        rate: inferences a second for which a mean power is asked; 0 for none.
        corners: figures of the netlist in other libraries with the same cells, by their titles.
        simulated: see `circulant.boards.asic.simulation.simulated`; None where no simulator was named.
    """

    library: Library
    mhz: float
    area_um2: dict[str, float]
    cells: int
    memories: dict[str, int]
    scan: int
    seconds: float
    timing: Timing | None
    power: Power | None
    rate: float
    corners: dict[str, dict[str, float]]
    simulated: dict[str, Any] | None

    @property
    def gate_equivalents(self) -> int:
        """The area by that of a NAND; 0 where the library has none."""
        return round(sum(self.area_um2.values()) / self.library.gate_area) if self.library.gate_area else 0

    @property
    def logic_um2(self) -> float:
        """Area of all but memories that are written."""
        return sum(self.area_um2[kind] for kind in LOGIC)

    def as_json(self) -> Document:
        """The figures as the command prints them."""
        found: Document = {
            "library": self.library.name, "corner": self.library.title, "mhz": self.mhz, "area_um2": self.area_um2,
            "logic_um2": round(self.logic_um2, 4), "gate_equivalents": self.gate_equivalents, "cells": self.cells,
            "memory_bits": self.memories, "scan_flip_flops": self.scan, "seconds": round(self.seconds, 1)}
        if timed := self.timing:
            found |= {"fmax_mhz": round(timed.mhz, 2), "slack_ns": round(timed.slack, 4),
                      "hold_slack_ns": round(timed.hold, 4),
                      "critical": {"start": timed.start, "end": timed.end, "cells": [
                          [each.name, each.cell, each.delay] for each in timed.stages]}}
        if self.power:
            found |= self.power.as_json(self.mhz, self.rate)
        return found | {key: value for key, value in (("corners", self.corners), ("simulated", self.simulated))
                        if value}


def asic(folder: str | Path, out: str | Path, library: Library, known: Known, *, mhz: float, gating: bool = True,
         scan: bool = False, macros: Model, vectors: Vectors | None = None, samples: int = 4, timed: bool = True,
         simulator: str = "", corners: Sequence[Library] = (), rate: float = 0.0, show: Show = silent) -> Asic:
    """Map a design to a library; netlist, models of its cells, figures and files for a full flow come into ``out``.

    Yosys' part is kept in the folder, and found there by a second call for the same design, library and settings.

    Parameters:
        folder: of the design.
        known: what is known of the library.
        mhz: clock that must be reached.
        gating: clock gates before registers with an enable.
        scan: a chain through all flip-flops.
        macros: chooses memory macros.
        vectors: sequences whose switching gives the energy; without them none is computed.
        samples: how many of them.
        timed: analyse the timing.
        simulator: plays the same sequences, too; see `circulant.boards.asic.simulation`. Empty for none.
        corners: libraries with the same cells, in which the netlist is looked at, too.
        rate: inferences a second for a mean power; 0 for none.

    Raises:
        Refusal: when a tool or a cell is missing, the vectors are not those of the design, or it cannot keep the rate.
        ToolError: when a tool fails.
        TimingMissed: when the clock is not reached.
    """
    folder, out, start = Path(folder), Path(out), time.monotonic()
    described = design.read(folder)
    design.require_single(described, "The flow for standard cells")
    if vectors is not None:
        fitted(Manifest.load(folder), vectors.first(samples))
    program()
    if timed:
        found()
    if vectors is not None:
        compiler()
        able(simulator)
    elif rate:
        raise Refusal(f"A mean power at {rate:g} inferences a second needs the energy of one, but no sequence is "
                      "played; leave out --rate, or give --samples 1 or more")
    if scan and gating and library.clock_gates and not any(cell.pin("test") for cell in library.clock_gates):
        raise Refusal(f"A scan chain needs clock gates with a test pin, but {library.name} has none; leave out --scan, "
                      "or map with --no-clock-gating")
    work = out / "work"
    chosen = settings(known, mhz, gating=gating, scan=scan)
    netlist, memories = mapped(folder, described, work, library, chosen, key=key(
        folder, described, library, chosen, macros), macro=macros, show=show)
    buffer(netlist, library)
    chain = stitch(netlist, library) if scan else 0
    netlist.check(library)
    file = out / "netlist.v"
    netlist.write(file)
    timed_by = None
    if timed:
        show("timing", 0, 0)
        timed_by = analysed(file, netlist.top, unpacked(library, work), mhz, scale=library.nanoseconds,
                            work=work)
    cells = models(library, {instance.cell for instance in netlist.instances.values()
                             if instance.cell in library.cells})
    behaviour = (work / "macros.v").read_text() if any(memory.macro for memory in memories) else ""
    as_design(folder, out / "simulation", file, cells, behaviour)
    power = replayed = None
    if vectors is not None:
        show("simulating the netlist", 0, 0)
        activity, still = counted(folder, work / "activity", netlist, library, vectors=vectors, memories=memories,
                                  samples=samples)
        most = mhz * 1e6 * activity.sequences / activity.cycles
        if rate > most:
            raise Refusal(f"--rate must be at most what the circuit takes at {mhz:g} MHz, {most:,.4g} inferences a "
                          f"second, not {rate:g}; ask for fewer, or for a faster clock (--mhz)")
        power = Power(activity, *(
            energy(netlist, library, each, memories, mhz=mhz, macros=macros.chosen, rest=each is still)
            for each in (activity, _free(activity), still)))
        if simulator:
            show(f"simulating with {simulator}", 0, 0)
            replayed = simulated(out, vectors, simulator, samples=samples)
    areas = area(netlist, library, memories, macros.chosen)
    others = {each.title: _corner(netlist, each, power.activity if power else None, memories, file=file, mhz=mhz,
                                  macros=macros.chosen, timed=timed) for each in corners}
    made = Asic(library, mhz, areas, len(netlist.instances), _bits(memories), scan=chain, timing=timed_by, power=power,
                seconds=time.monotonic() - start, rate=rate, simulated=replayed, corners=others)
    handover(out, library, known, described["top"], mhz=mhz, areas=areas, memories=memories, macros=macros.chosen)
    artifact.write_json(out / FILE, KIND, VERSION, {"design": described["hash"]} | made.as_json())
    if timed_by and timed_by.slack < 0:
        longest = max(timed_by.stages, key=lambda stage: stage.delay)
        raise TimingMissed(
            f"The clock of {library.name} must be {mhz:g} MHz, but the netlist reaches {timed_by.mhz:.1f} MHz: the "
            f"slowest path goes from {timed_by.start} to {timed_by.end} through {len(timed_by.stages)} cells, the "
            f"slowest of them a {longest.cell} with {longest.delay:.3g} ns; take --mhz {int(timed_by.mhz)} or less, or "
            f"generate with fewer hardware.levels")
    return made


def _corner(netlist: Netlist, library: Library, activity: Activity | None, memories: list[Memory], *, file: Path,
            mhz: float, macros: dict[str, Macro], timed: bool) -> dict[str, float]:
    """The figures of a netlist in another library with the same cells.

    Raises:
        Refusal: when a cell of the netlist is not in it.
    """
    used = {instance.cell for instance in netlist.instances.values()} - {memory.module for memory in memories}
    for name in sorted(used - set(library.cells)):
        raise Refusal(f"A corner must have the cells of the library, but {library.name} lacks {name}; give one of the "
                      "same cells as --corner")
    still = activity or Activity(1, 1, 0, 0, toggles={}, pulses={})
    spent = energy(netlist, library, still, memories, mhz=mhz, macros=macros)
    found = {"leakage_uw": round(spent.leakage * mhz, 6)}
    if timed:
        (work := file.parent / "work" / "corner").mkdir(parents=True, exist_ok=True)
        timing = analysed(file, netlist.top, unpacked(library, work), mhz, scale=library.nanoseconds, work=work)
        found |= {"fmax_mhz": round(timing.mhz, 2), "hold_slack_ns": round(timing.hold, 4)}
    return found | ({"pj_per_cycle": round(spent.total, 4)} if activity else {})


def settings(known: Known, mhz: float, *, gating: bool = True, scan: bool = False) -> Settings:
    """The choices of a mapping to a library."""
    return Settings(mhz, gating, scan, known.dont_use)


def key(folder: Path, described: Mapping[str, Any], library: Library, chosen: Settings, macros: Model) -> str:
    """A hash of all that a mapping follows from: circuit, library, choices and `METHOD`."""
    return hashlib.sha256(json.dumps([METHOD, circuit(folder, described), cells_of(library), asdict(chosen),
                                      macros.least, macros.least_rom, [str(each) for each in macros.table]]).encode()
                          ).hexdigest()


def _free(activity: Activity) -> Activity:
    """The same activity with clocks that always run. Gates change no value, so that the toggles stay; multiplexers that
    would hold the values instead are not counted, so that this is the least that a design without gates takes."""
    return Activity(**vars(activity) | {"pulses": dict.fromkeys(activity.pulses, activity.cycles)})


def _bits(memories: list[Memory]) -> dict[str, int]:
    return {kind: sum(memory.bits for memory in memories if memory.kind == kind)
            for kind in dict.fromkeys(memory.kind for memory in memories)}


def lines(made: Mapping[str, Any]) -> list[str]:
    """Figures in words."""
    areas = made["area_um2"]
    said = [f"{made['library']} ({made['corner']}): {made['cells']:,} cells, {made['logic_um2'] / 1e6:.4g} mm² of "
            f"logic, {sum(areas.values()) / 1e6:.4g} mm² with memories ({made['gate_equivalents']:,} gate equivalents)",
            "area in mm²: " + ", ".join(f"{kind.replace('_', ' ')} {value / 1e6:.4g}" for kind, value in areas.items()
                                        if value)]
    if "fmax_mhz" in made:
        said.append(f"clock: {made['fmax_mhz']:.1f} MHz before placement, {made['mhz']:g} MHz asked for; slowest path "
                    f"{made['critical']['start']} → {made['critical']['end']}")
    if "energy_nj_total" in made:
        said.append(f"energy, computed from the activity of {made['activity']['sequences']} sequences: "
                    f"{made['energy_nj_total']:.4g} nJ an inference, {made['power_mw']:.4g} mW at {made['mhz']:g} MHz; "
                    f"{made['gated_to_ungated']:.2f} of what it is with clocks that always run")
        said.append("pJ a cycle: " + ", ".join(f"{kind} {value:.4g}" for kind, value in
                                               made["energy_pj_per_cycle"].items() if value))
        said.append(f"at rest: {made['idle_pj_per_cycle']:.4g} pJ a cycle while the clock comes, "
                    f"{made['leakage_uw']:.4g} µW of leakage in any case")
        if mean := made.get("mean_power"):
            said.append(f"mean power at {mean['inferences_per_second']:g} inferences a second, {made['mhz']:g} MHz "
                        f"({mean['busy']:.2%} of the time at work): {mean['clock_running_uw']:,.4g} µW with a clock "
                        f"that always comes, {mean['clock_stopped_uw']:,.4g} µW with one that stops between them")
        said.append(f"{made['activity']['words']:,} output words of the netlist compared, "
                    f"{made['activity']['mismatches']} mismatches")
    for name, each in made.get("corners", {}).items():
        said.append(f"corner {name}: " + ", ".join(filter(None, (
            f"{each['fmax_mhz']:.1f} MHz, hold slack {each['hold_slack_ns']:.3f} ns" if "fmax_mhz" in each else "",
            f"{each['pj_per_cycle']:.4g} pJ a cycle" if "pj_per_cycle" in each else "",
            f"{each['leakage_uw']:.4g} µW of leakage"))))
    if played := made.get("simulated"):
        said.append(f"{played['simulator']}: {played['words']:,} output words compared, "
                    f"{played['mismatches']} mismatches")
    return said
