"""Energy from activity: counts of toggles times what the liberty file says of each transition. A computation, never a
measurement; docs/asic.md says what it leaves out.

A transition of a net costs ½·C·V², C being the pins that it drives and an estimate of its wire, and what the driving
cell itself takes at that load; a transition at an input costs what its cell says of that pin. The clock is a tree of
buffers that is not there yet: its energy is that of its pins, its wires and of buffers with `LEAVES` pins each.
"""
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.macros import Macro
from circulant.boards.asic.memories import Memory, within
from circulant.boards.asic.netlist import Net, Netlist
from circulant.boards.asic.power.activity import Activity

__all__ = ["KINDS", "Energy", "energy", "pitch"]

KINDS = ("logic", "registers", "rom", "ram", "clock", "macros", "leakage")
"""Kinds of energy: of gates, of flip-flops but for their clock, of memories with fixed contents, of memories in
flip-flops, of the clock with its gates and the clock pins of flip-flops, of macros, and leakage of all."""

WIRE = 0.2
"""Capacitance of a wire, in fF for each µm: about that of a minimum wire in every process since 250 nm."""

PITCHES = 2.0
"""Gate pitches of wire for each pin that a net drives, an average of placed designs; Rent's rule gives 1.5 to 3."""

UTILISATION = 0.7
"""Part of a core that is filled with cells."""

LEAVES = 16
"""Pins that a buffer of the clock tree drives."""


@dataclass(frozen=True)
class Energy:
    """Energy of a cycle in pJ, by `KINDS`."""

    by_kind: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.by_kind.values())

    @property
    def leakage(self) -> float:
        return self.by_kind["leakage"]

    @property
    def dynamic(self) -> float:
        """All but leakage, which does not depend on the clock."""
        return self.total - self.leakage


def pitch(netlist: Netlist, library: Library) -> float:
    """Distance of the gates of a placed design, in µm: the root of what a cell takes of the core."""
    areas = [library.cells[instance.cell].area for instance in netlist.instances.values()
             if instance.cell in library.cells]
    return math.sqrt(sum(areas) / max(1, len(areas)) / UTILISATION)


def energy(netlist: Netlist, library: Library, activity: Activity, memories: Sequence[Memory], *, mhz: float,
           macros: dict[str, Macro], rest: bool = False) -> Energy:
    """The energy of a cycle at an activity, leakage at a clock of ``mhz``; macros work in each cycle, or at ``rest``
    only those whose reading nothing disables."""
    found: dict[str, float] = dict.fromkeys(KINDS, 0.0)
    wire = WIRE * PITCHES * pitch(netlist, library)
    load, fanout = _loads(netlist, library)
    rates: dict[Net, float] = defaultdict(float, {net: count / activity.cycles for net, count in
                                                  activity.toggles.items()})
    pulses = {net: count / activity.cycles for net, count in activity.pulses.items()}
    clock = netlist.ports["clk"][1][0] if "clk" in netlist.ports else None
    for name, instance in netlist.instances.items():
        cell = library.cells.get(instance.cell)
        if cell is None:
            continue
        memory = within(name, memories)
        kind = ("rom" if memory.kind == "rom" else "ram") if memory else (
            "clock" if cell.gating else "registers" if cell.sequential else "logic")
        found["leakage"] += cell.leakage / mhz  # nW for a period in µs are fJ.
        for pin, nets in instance.pins.items():
            said = cell.pins[pin]
            net = nets[0]
            if said.direction == "output":
                if cell.gating:
                    found["clock"] += 2 * pulses.get(net, 0.0) * said.at(load[net])
                    continue
                capacitance = load[net] + wire * fanout[net]
                found[kind] += rates[net] * (said.at(capacitance) + 0.5 * capacitance * library.voltage ** 2)
            elif said.role == "clock":
                found["clock"] += 2 * (1.0 if net == clock else pulses.get(net, 1.0)) * said.at(0.0)
            elif isinstance(net, int):
                found[kind] += rates[net] * said.at(0.0)
    found["clock"] += _tree(load, fanout, wire, library=library, clock=clock, pulses=pulses)
    for memory in memories:
        if memory.macro:
            macro, ports = macros[memory.macro], memory.reads + memory.writes
            working = memory.cell["connections"]["RD_EN"].count("1") if rest else ports
            found["macros"] += macro.cycle(working, rest=ports - working)
            found["leakage"] += macro.leakage / mhz
    return Energy({kind: found[kind] * 1e-3 for kind in KINDS})


def _loads(netlist: Netlist, library: Library) -> tuple[dict[Net, float], Counter[Net]]:
    """Capacitance of the pins at each net, in fF, and how many there are."""
    load: dict[Net, float] = defaultdict(float)
    fanout: Counter[Net] = Counter()
    for instance in netlist.instances.values():
        cell = library.cells.get(instance.cell)
        for pin, said in cell.pins.items() if cell else ():
            if said.direction == "input" and instance.pins.get(pin):
                load[instance.pins[pin][0]] += said.capacitance
                fanout[instance.pins[pin][0]] += 1
    return load, fanout


def _tree(load: dict[Net, float], fanout: Counter[Net], wire: float, *, library: Library, clock: Net | None,
          pulses: dict[Net, float]) -> float:
    """Energy of the clock's wires, pins and buffers in a cycle, in fJ: both edges, for the clock itself in each cycle,
    for a gated one in the cycles in which it runs."""
    total = 0.0
    root = [] if clock is None else [(clock, 1.0)]
    for net, rate in [*root, *pulses.items()]:
        pins = fanout[net]
        capacitance = load[net] + wire * pins
        total += rate * capacitance * library.voltage ** 2
        if library.buffers:
            cell = library.buffers[len(library.buffers) // 2]
            count = 0
            while pins > LEAVES:
                pins = -(-pins // LEAVES)
                count += pins
            each = capacitance / max(1, count)
            own = cell.pins[cell.inputs[0]].capacitance * library.voltage ** 2
            total += rate * count * (2 * cell.pins[cell.outputs[0]].at(min(each, 200.0)) + own)
    return total
