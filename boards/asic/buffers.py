"""Fan-out: nets that drive more pins than a gate can in time get balanced trees of buffers, and cells that drive much
get a stronger form. Yosys and ABC leave nets of flip-flops as they are.
"""
import re
from collections import defaultdict
from collections.abc import Sequence

from circulant.boards.asic.cells.library import Cell, Library
from circulant.boards.asic.memories import INSTANCE
from circulant.boards.asic.netlist import Instance, Net, Netlist

__all__ = ["BUFFER", "FANOUT", "buffer", "forms", "loads", "strengthen"]

BUFFER = "buffer_"
"""The beginning of the names of buffers."""

FANOUT = 16
"""Pins that a net may drive without a tree."""

EFFORT = 6.0
"""Load over the own input capacitance up to which a gate drives it by itself; 4 is the fastest, more is smaller."""

Sink = tuple[str, str]
"""An instance and its pin; a port has no instance."""


def loads(netlist: Netlist, library: Library) -> dict[Net, float]:
    """Capacitance of the pins at each net, in fF; wires are not known before placement."""
    found: dict[Net, float] = defaultdict(float)
    for instance in netlist.instances.values():
        cell = library.cells.get(instance.cell)
        for pin, nets in instance.pins.items() if cell else ():
            if cell and cell.pins[pin].direction == "input":
                found[nets[0]] += cell.pins[pin].capacitance
    return found


def buffer(netlist: Netlist, library: Library, *, fanout: int = FANOUT) -> int:
    """Put trees of buffers behind nets with more sinks than ``fanout``; returns how many buffers. Clocks are left to
    the clock tree, and constants need none."""
    if not library.buffers:
        return 0
    still, sinks = _sinks(netlist, library)
    fresh, made, number = netlist.fresh(), 0, 0
    for net, level in sinks.items():
        if net in still:
            continue
        while len(level) > fanout:
            size = -(-len(level) // (-(-len(level) // fanout)))
            above: list[Sink] = []
            for start in range(0, len(level), size):
                group = level[start:start + size]
                load = sum(_capacitance(netlist, library, sink) for sink in group)
                cell = _buffer_for(library, load)
                while (name := f"{_memory(group)}{BUFFER}{number}") in netlist.instances:
                    number += 1
                behind = next(fresh)
                netlist.instances[name] = Instance(cell.name, {cell.inputs[0]: [net], cell.outputs[0]: [behind]})
                for instance, pin in group:
                    nets = netlist.instances[instance].pins[pin]
                    nets[:] = [behind if each == net else each for each in nets]
                above.append((name, cell.inputs[0]))
                made += 1
            level = above
    return made


def _memory(group: Sequence[Sink]) -> str:
    """The beginning of the names of the memory that all of some sinks lie in, whose part their buffer is."""
    found = {name.partition(".")[0] if name.startswith(INSTANCE) else "" for name, _ in group}
    return f"{found.pop()}." if len(found) == 1 and "" not in found else ""


def _sinks(netlist: Netlist, library: Library) -> tuple[set[Net], dict[Net, list[Sink]]]:
    """Nets of clocks and constants, and the pins that each net drives, ports left out."""
    still: set[Net] = set()
    sinks: dict[Net, list[Sink]] = defaultdict(list)
    for name, instance in netlist.instances.items():
        cell = library.cells.get(instance.cell)
        for pin, nets in instance.pins.items():
            if cell is None:
                if not pin.startswith("rd_data"):
                    for net in dict.fromkeys(nets):
                        sinks[net].append((name, pin))
                if pin.endswith("_clk"):
                    still |= set(nets)
            elif cell.pins[pin].direction == "input" and isinstance(nets[0], int):
                sinks[nets[0]].append((name, pin))
                if cell.pins[pin].role == "clock":
                    still.add(nets[0])
            elif not cell.inputs:
                still |= set(nets)
    return still, sinks


def _capacitance(netlist: Netlist, library: Library, sink: Sink) -> float:
    cell = library.cells.get(netlist.instances[sink[0]].cell)
    return cell.pins[sink[1]].capacitance if cell else 5.0


def _buffer_for(library: Library, load: float) -> Cell:
    """The smallest buffer that drives a load with the effort that is allowed."""
    for cell in library.buffers:
        if load <= _able(cell) * EFFORT / 4:
            return cell
    return library.buffers[-1]


def _able(cell: Cell) -> float:
    """A quarter of what the first output may drive at the most: libraries state it at their slowest slew."""
    return max(cell.pins[cell.outputs[0]].most, 1.0) / 4


def forms(library: Library, cell: Cell) -> Sequence[Cell]:
    """The cells that do the same as a cell, with other drives, the weakest first."""
    stem = _stem(cell.name)
    found = [each for each in library.cells.values() if _stem(each.name) == stem and set(each.pins) == set(cell.pins)
             and not each.dont_use and each.outputs]
    return sorted(found, key=lambda each: (each.pins[each.outputs[0]].most, each.area))


def _stem(name: str) -> str:
    """The name of a cell without its drive: ``_2`` at the end, or ``x2``, ``xp5``, ``x1p5`` before the suffix."""
    return re.sub(r"_\d+$|_m$|x(p?\d+)(p\d+)?(DC|f)?(?=_ASAP)", "", name)


def strengthen(netlist: Netlist, library: Library) -> int:
    """Give each cell whose load is above what its drive can take in time the next form that can; returns how many."""
    load, changed = loads(netlist, library), 0
    known: dict[str, Sequence[Cell]] = {}
    for instance in netlist.instances.values():
        cell = library.cells.get(instance.cell)
        if cell is None or cell.gating or len(cell.outputs) == 0:
            continue
        driven = max((load[net] for pin in cell.outputs for net in instance.pins.get(pin, ())), default=0.0)
        if driven <= _able(cell):
            continue
        better = known.setdefault(cell.name, forms(library, cell))
        chosen = next((each for each in better if driven <= _able(each)), better[-1] if better else cell)
        if _able(chosen) > _able(cell):
            instance.cell = chosen.name
            changed += 1
    return changed
