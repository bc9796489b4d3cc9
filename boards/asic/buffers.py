"""Fan-out: nets that drive more pins than a gate can in time get balanced trees of buffers. ABC sees neither the nets
of flip-flops nor those between the parts that it maps one after the other."""
from collections import defaultdict

from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.memories import INSTANCE
from circulant.boards.asic.netlist import Instance, Net, Netlist

__all__ = ["FANOUT", "buffer"]

FANOUT = 16
"""Pins that a net may drive without a tree."""

LOAD = 0.375
"""Part of the most that a buffer may drive which it drives in time: libraries state it at their slowest slew."""

Sink = tuple[str, list[Net], int, float]
"""The name of an instance, the nets at a pin of it, which of them it is, and the capacitance."""


def buffer(netlist: Netlist, library: Library, *, fanout: int = FANOUT) -> int:
    """Put trees of buffers behind nets with more sinks than ``fanout``; returns how many buffers. Clocks are left to
    the clock tree, and constants need none."""
    fresh, made = netlist.fresh(), 0
    for net, level in _sinks(netlist, library).items() if library.buffers else ():
        while len(level) > fanout:
            size = -(-len(level) // (-(-len(level) // fanout)))
            above: list[Sink] = []
            for start in range(0, len(level), size):
                group, behind = level[start:start + size], next(fresh)
                load = sum(capacitance for *_, capacitance in group)
                cell = next((each for each in library.buffers if load <= LOAD * each.pins[each.outputs[0]].most),
                            library.buffers[-1])
                for _, nets, at, _ in group:
                    nets[at] = behind
                # What lies in one memory is part of it.
                of = {name.partition(".")[0] + "." if name.startswith(INSTANCE) else "" for name, *_ in group}
                name, pin = f"{of.pop() if len(of) == 1 else ''}buffer_{made}", cell.inputs[0]
                netlist.instances[name] = Instance(cell.name, {pin: [net], cell.outputs[0]: [behind]})
                above.append((name, netlist.instances[name].pins[pin], 0, cell.pins[pin].capacitance))
                made += 1
            level = above
    return made


def _sinks(netlist: Netlist, library: Library) -> dict[Net, list[Sink]]:
    """The pins that each net drives, without ports, clocks and constants."""
    left: set[Net] = {"0", "1"}
    sinks: dict[Net, list[Sink]] = defaultdict(list)
    for name, instance in netlist.instances.items():
        cell = library.cells.get(instance.cell)
        for pin, nets in instance.pins.items():
            if pin in (cell.outputs if cell else ("rd_data",)):
                left |= set(nets) if cell and not cell.inputs else set()
            elif cell.pins[pin].role == "clock" if cell else pin.endswith("_clk"):
                left |= set(nets)
            else:
                for at, net in enumerate(nets):
                    sinks[net].append((name, nets, at, cell.pins[pin].capacitance if cell else 5.0))
    return {net: found for net, found in sinks.items() if net not in left}
