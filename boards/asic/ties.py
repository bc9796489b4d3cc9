"""Inverters that a netlist does without: flip-flops have inverse outputs, and gates have forms with inverted pins.

Yosys maps flip-flops before ABC maps gates, so that ABC sees neither that a flip-flop gives its inverse at no cost nor
that it may as well keep the inverse of what comes in. Ties, one for each pin in Yosys, are shared here, too.
"""
from collections import defaultdict
from functools import cached_property

from circulant.boards.asic.buffers import FANOUT
from circulant.boards.asic.cells.functions import parsed
from circulant.boards.asic.cells.library import Cell, Library
from circulant.boards.asic.cells.variants import WIDEST, gates, variant
from circulant.boards.asic.netlist import Instance, Net, Netlist

__all__ = ["spare_inverters", "spare_ties"]


def spare_inverters(netlist: Netlist, library: Library) -> int:
    """Remove inverters, and buffers of one pin, without another change of what ports show; returns how many.

    A register whose data pin an inverter drove keeps the inverse from then on, and its two outputs change places.
    """
    before = len(netlist.instances)
    work = _Work(netlist, library)
    work.buffers()
    work.inverse_data()
    while work.inverse_outputs() + work.inverted_gates():
        continue  # Each may free another one.
    return before - len(netlist.instances)


def spare_ties(netlist: Netlist, library: Library, *, fanout: int = FANOUT) -> int:
    """Have each cell that gives a constant drive up to so many pins; returns how many cells are gone."""
    kinds: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, instance in netlist.instances.items():
        cell = library.cells.get(instance.cell)
        if cell and not cell.inputs and len(cell.outputs) >= 1:
            kinds[instance.cell, ",".join(pin for pin in cell.outputs if instance.pins.get(pin))].append(name)
    sinks = _sinks(netlist, library)
    renamed: dict[Net, Net] = {}
    before = len(netlist.instances)
    ports = {net for _, nets in netlist.ports.values() for net in nets}
    for (_, pins), names in kinds.items():
        if "," in pins or not pins:
            continue
        group: list[Net] = []
        room = 0
        for name in names:
            (net,) = netlist.instances[name].pins[pins]
            pinned = len(sinks[net]) + (net in ports)
            if room >= pinned and group:
                renamed[net] = group[0]
                del netlist.instances[name]
                room -= pinned
            else:
                group, room = [net], fanout - pinned
    _rename(netlist, renamed)
    return before - len(netlist.instances)


class _Work:
    """A netlist with what drives and what reads each net."""

    def __init__(self, netlist: Netlist, library: Library) -> None:
        self._netlist, self._library = netlist, library
        self._cells = library.cells
        self._gates = gates(library)
        self._variants: dict[tuple[str, frozenset[str], bool], tuple[Cell, dict[str, str]] | None] = {}
        self._look()

    def _look(self) -> None:
        self._drivers: dict[Net, tuple[str, str]] = {}
        for name, instance in self._netlist.instances.items():
            cell = self._cells.get(instance.cell)
            for pin in cell.outputs if cell else ():
                for net in instance.pins.get(pin, ()):
                    self._drivers[net] = (name, pin)
        self._sinks = _sinks(self._netlist, self._library)
        self._ports = {net for _, nets in self._netlist.ports.values() for net in nets}
        self._fresh = self._netlist.fresh()

    def _inverters(self) -> list[str]:
        return [name for name, instance in self._netlist.instances.items()
                if instance.cell in self._inverting]

    @cached_property
    def _inverting(self) -> set[str]:
        return {cell.name for cell in self._cells.values() if len(cell.inputs) == len(cell.outputs) == 1
                and not cell.sequential and (function := parsed(cell.pins[cell.outputs[0]].function)).sign == "~"
                and function.of[0].sign == cell.inputs[0]}

    def _ends(self, name: str) -> tuple[Net, Net]:
        """The net that an inverter reads, and the one that it drives."""
        instance = self._netlist.instances[name]
        cell = self._cells[instance.cell]
        return instance.pins[cell.inputs[0]][0], instance.pins[cell.outputs[0]][0]

    def _both(self, instance: Instance) -> tuple[str, str] | None:
        """The outputs of a flip-flop that shows its state and the inverse, and that nothing sets but its clock."""
        cell = self._cells.get(instance.cell)
        found = cell.sequential if cell else None
        if not cell or not found or found.kind != "ff" or len(cell.outputs) != 2 or cell.scan or cell.gating:
            return None
        if found.data.strip("() ") not in cell.inputs or not found.states[1:]:
            return None
        others = set(cell.inputs) - {found.data.strip("() "), cell.pin("clock")}
        if any(not self._constant(instance.pins[pin][0]) for pin in others):
            return None
        shown = {cell.pins[pin].function.strip("() "): pin for pin in cell.outputs}
        if set(shown) != set(found.states):
            return None
        return shown[found.states[0]], shown[found.states[1]]

    def _constant(self, net: Net) -> bool:
        driver = self._drivers.get(net)
        return isinstance(net, str) or (driver is not None and
                                        not self._cells[self._netlist.instances[driver[0]].cell].inputs)

    def buffers(self) -> None:
        """Buffers of one pin, which ABC leaves between two names of a net; of more pins, they are of use."""
        renamed: dict[Net, Net] = {}
        pins = {net: len(sinks) for net, sinks in self._sinks.items()}
        buffering = {cell.name for cell in self._cells.values() if len(cell.inputs) == len(cell.outputs) == 1
                     and not cell.sequential and parsed(cell.pins[cell.outputs[0]].function).sign == cell.inputs[0]}
        for name in [name for name, instance in self._netlist.instances.items() if instance.cell in buffering]:
            read, driven = self._ends(name)
            while read in renamed:
                read = renamed[read]
            if isinstance(read, int) and pins.get(driven, 0) <= 1 and not (
                    read in self._ports and driven in self._ports):
                renamed[driven] = read
                del self._netlist.instances[name]
        _rename(self._netlist, renamed)
        self._look()

    def inverse_data(self) -> None:
        """Inverters that data pins alone read."""
        for name in self._inverters():
            read, driven = self._ends(name)
            if driven in self._ports or not self._sinks[driven]:
                continue
            flops = [(self._netlist.instances[sink], pin) for sink, pin in self._sinks[driven]]
            outputs = [self._both(instance) if instance.cell in self._cells and
                       self._data(instance) == pin else None for instance, pin in flops]
            if any(each is None for each in outputs):
                continue
            for (instance, pin), each in zip(flops, outputs, strict=True):
                assert each is not None
                instance.pins[pin] = [read]
                for output in each:
                    instance.pins.setdefault(output, [next(self._fresh)])
                instance.pins[each[0]], instance.pins[each[1]] = instance.pins[each[1]], instance.pins[each[0]]
            del self._netlist.instances[name]
        self._look()

    def _data(self, instance: Instance) -> str:
        found = self._cells[instance.cell].sequential
        return found.data.strip("() ") if found else ""

    def inverse_outputs(self) -> int:
        """Inverters of what a flip-flop shows; returns how many went."""
        renamed: dict[Net, Net] = {}
        for name in self._inverters():
            read, driven = self._ends(name)
            driver = self._drivers.get(read)
            flop = self._netlist.instances.get(driver[0]) if driver else None  # An inverter may be gone by now.
            both = self._both(flop) if flop else None
            if flop is None or driver is None or both is None:
                continue
            other = both[1] if driver[1] == both[0] else both[0]
            flop.pins.setdefault(other, [next(self._fresh)])
            renamed[driven] = flop.pins[other][0]
            del self._netlist.instances[name]
        _rename(self._netlist, renamed)
        self._look()
        return len(renamed)

    def inverted_gates(self) -> int:
        """Inverters whose driver, or whose readers all, have a form that inverts that pin; returns how many went."""
        touched: set[str] = set()
        renamed: dict[Net, Net] = {}
        for name in self._inverters():
            read, driven = self._ends(name)
            driver = self._drivers.get(read)
            if name in touched or not isinstance(read, int):
                continue
            spared = self._cells[self._netlist.instances[name].cell].area
            ends = {sink for sink, _ in self._sinks[driven]}
            if driver and len(self._sinks[read]) == 1 and read not in self._ports and driver[0] not in touched and (
                    chosen := self._other(driver[0], frozenset(), inverted=True)) and chosen[2] < spared:
                self._exchange(driver[0], chosen)
                renamed[driven] = read
            elif ends and not ends & touched and driven not in self._ports and (moves := self._readers(driven, spared)):
                for sink, each in moves.items():
                    self._exchange(sink, each)
                renamed[driven] = read
                touched |= ends
            else:
                continue
            touched |= {name} | ({driver[0]} if driver else set()) | ends
            del self._netlist.instances[name]
        _rename(self._netlist, renamed)
        self._look()
        return len(renamed)

    def _readers(self, net: Net, spared: float) -> dict[str, "_Exchange"] | None:
        """The exchanges of all readers of a net, when together they take less area than is spared."""
        pins: dict[str, set[str]] = defaultdict(set)
        for sink, pin in self._sinks[net]:
            pins[sink].add(pin)
        found: dict[str, _Exchange] = {}
        for sink, inverted in pins.items():
            chosen = self._other(sink, frozenset(inverted), inverted=False)
            if chosen is None or spared <= chosen[2]:
                return None
            found[sink] = chosen
            spared -= chosen[2]
        return found

    def _exchange(self, name: str, chosen: "_Exchange") -> None:
        instance = self._netlist.instances[name]
        instance.cell = chosen[0].name
        instance.pins = {chosen[1][pin]: nets for pin, nets in instance.pins.items()}

    def _other(self, name: str, pins: frozenset[str], *, inverted: bool) -> "_Exchange | None":
        """The form of a gate with inverted pins or output: its cell, the new name of each pin, the area that it takes
        more."""
        cell = self._cells.get(self._netlist.instances[name].cell)
        if cell is None or cell.sequential or cell.gating or len(cell.outputs) != 1 or not (
                1 < len(cell.inputs) <= WIDEST):
            return None
        key = cell.name, pins, inverted
        if key not in self._variants:
            self._variants[key] = variant(cell, pins, inverted, self._gates)
        found = self._variants[key]
        return (*found, found[0].area - cell.area) if found else None


_Exchange = tuple[Cell, dict[str, str], float]


def _sinks(netlist: Netlist, library: Library) -> dict[Net, list[tuple[str, str]]]:
    """The pins that read each net."""
    found: dict[Net, list[tuple[str, str]]] = defaultdict(list)
    for name, instance in netlist.instances.items():
        cell = library.cells.get(instance.cell)
        for pin, nets in instance.pins.items():
            if (cell.pins[pin].direction == "input") if cell else pin != "rd_data":
                for net in nets:
                    found[net].append((name, pin))
    return found


def _rename(netlist: Netlist, renamed: dict[Net, Net]) -> None:
    def final(net: Net) -> Net:
        while net in renamed:
            net = renamed[net]
        return net

    for instance in netlist.instances.values():
        for pin, nets in instance.pins.items():
            if any(net in renamed for net in nets):
                instance.pins[pin] = [final(net) for net in nets]
    for port, (direction, nets) in netlist.ports.items():
        netlist.ports[port] = direction, [final(net) for net in nets]
