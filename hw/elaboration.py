"""Elaboration by Amaranth, without what takes much of its time and changes nothing."""
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amaranth.hdl import _nir

__all__ = ["brisk", "may_cycle"]

_LATER = _nir.Top | _nir.FlipFlop | _nir.Memory | _nir.SyncWritePort | _nir.SyncReadPort | _nir.Instance
"""Cells whose outputs do not follow their inputs at once, or are not looked through by Amaranth."""

_check_comb_cycles = _nir.Netlist.check_comb_cycles


@contextmanager
def brisk() -> Iterator[None]:
    """While Amaranth elaborates: a tenth of its search for cycles of logic, no check of each bit that it names, and no
    search for garbage, since nearly all that it makes stays."""
    collects = gc.isenabled()
    gc.disable()
    before = [vars(place)[name] for place, name in _REPLACED]
    for (place, name), function in _REPLACED.items():
        setattr(place, name, function)
    try:
        yield
    finally:
        for (place, name), function in zip(_REPLACED, before, strict=True):
            setattr(place, name, function)
        if collects:
            gc.enable()


def _searched(netlist: _nir.Netlist) -> None:
    """Amaranth goes from each bit of a sum to each bit of its operands; now only where there may be a cycle."""
    if may_cycle(netlist):
        _check_comb_cycles(netlist)


def _made(cls: type[_nir.Value], nets: Any = ()) -> _nir.Value:
    """A value, without asking of each of its nets whether it is one."""
    return tuple.__new__(cls, (nets,) if isinstance(nets, _nir.Net) else nets)


def _resolved(netlist: _nir.Netlist, value: _nir.Value) -> _nir.Value:
    """A value whose nets are known, those of negative numbers by now; most have none."""
    if not value or min(value) >= 0:
        return value
    return _nir.Value([netlist.resolve_net(net) if net < 0 else net for net in value])


_REPLACED: dict[tuple[Any, str], Any] = {
    (_nir.Netlist, "check_comb_cycles"): _searched,
    (_nir.Netlist, "resolve_value"): _resolved,
    (_nir.Value, "__new__"): staticmethod(_made),
}


def may_cycle(netlist: _nir.Netlist) -> bool:
    """Whether a cell of logic depends on itself, or a signal on nothing but signals; without either there is no cycle
    of bits."""
    if any(isinstance(cell, _nir.FlipFlop) and not cell.arst.is_const for cell in netlist.cells):
        return True
    connections = netlist.connections
    waits: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    logic = {index for index, cell in enumerate(netlist.cells) if not isinstance(cell, _LATER)}
    late: dict[int, int] = {}  # the nets behind those that were named before they were known

    def source(net: int) -> int:
        way = []
        while net < 0 and net not in late:
            way.append(net)
            if len(way) > len(connections):
                return net
            net = connections[net]
        net = late.get(net, net)
        late.update(dict.fromkeys(way, net))
        return net

    if any(source(net) < 0 for net in connections):
        return True
    for index in logic:
        before = {source(net) >> 16 for net in netlist.cells[index].input_nets()} & logic
        waits[index] = len(before)
        for each in before:
            readers.setdefault(each, []).append(index)
    ready = [index for index, count in waits.items() if not count]
    done = 0
    while ready:
        done += 1
        for reader in readers.get(ready.pop(), ()):
            waits[reader] -= 1
            if not waits[reader]:
                ready.append(reader)
    return done < len(logic)
