"""Cells that give constants: one for several pins, where Yosys has one for each."""
from collections import Counter, defaultdict

from circulant.boards.asic.buffers import FANOUT
from circulant.boards.asic.cells.library import Library
from circulant.boards.asic.netlist import Net, Netlist

__all__ = ["spare_ties"]


def spare_ties(netlist: Netlist, library: Library, *, fanout: int = FANOUT) -> int:
    """Have each cell that gives a constant drive up to so many pins; returns how many cells are gone."""
    ties: dict[tuple[str, str], list[str]] = defaultdict(list)
    reads = Counter({net for _, nets in netlist.ports.values() for net in nets})
    for name, instance in netlist.instances.items():
        cell = library.cells.get(instance.cell)
        reads.update(net for pin, nets in instance.pins.items() for net in nets
                     if (pin in cell.inputs if cell else pin != "rd_data"))
        driven = [pin for pin in cell.outputs if instance.pins.get(pin)] if cell and not cell.inputs else []
        if len(driven) == 1:
            ties[instance.cell, driven[0]].append(name)
    renamed: dict[Net, Net] = {}
    for (_, pin), names in ties.items():
        shared, room = netlist.instances[names[0]].pins[pin][0], -1
        for name in names:
            (net,) = netlist.instances[name].pins[pin]
            if reads[net] <= room:
                renamed[net] = shared
                room -= reads[net]
                del netlist.instances[name]
            else:
                shared, room = net, fanout - reads[net]
    for nets in (*(nets for instance in netlist.instances.values() for nets in instance.pins.values()),
                 *(nets for _, nets in netlist.ports.values())):
        nets[:] = [renamed.get(net, net) for net in nets]
    return len(renamed)
