"""Elaboration by Amaranth, without what takes much of its time and changes nothing.

This is the one place where something of Amaranth is replaced. The five functions of its netlist below are private, so
they are replaced only in the version of Amaranth that was read, `READ`, and only while a design is generated; with any
other version all is Amaranth's own, and slower. Text and errors are the same either way, which tests hold.

What it buys, in seconds of one core on a busy machine, without and with it, by ``python -m benchmarks generation`` with
and without ``--plain``: digits-gru 2.2 and 1.5, LeNet-5 4.0 and 2.8, the papers' LSTM with k = 16 11.4 and 7.3.
"""
from __future__ import annotations

import gc
import importlib.metadata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from amaranth.back import rtlil
from amaranth.hdl import _nir

__all__ = ["READ", "drivers", "fast_elaboration", "may_cycle", "replacements"]

READ = "0.5.10"
"""The version of Amaranth whose private functions were read: of another one none is replaced."""


@contextmanager
def fast_elaboration() -> Iterator[None]:
    """While Amaranth elaborates: a tenth of its search for cycles of logic, fewer checks of each bit that it names, and
    no search for garbage. With an Amaranth other than `READ` the checks and the search for cycles are its own.

    Nearly all that it makes is garbage in the end. Whoever knows when calls ``gc.collect(0)``, which looks through what
    is new alone; what outlived that is looked through once more by the next elaboration.
    """
    collects = gc.isenabled()
    if collects:
        gc.collect(1)
    gc.disable()
    replaced = replacements()
    before = [vars(place)[name] for place, name in replaced]
    for (place, name), function in replaced.items():
        setattr(place, name, function)
    try:
        yield
    finally:
        for (place, name), function in zip(replaced, before, strict=True):
            setattr(place, name, function)
        if collects:
            gc.enable()


def replacements() -> dict[tuple[type, str], object]:
    """Replacements by class and name; none for another version of Amaranth, which need not even have the names."""
    return _read() if importlib.metadata.version("amaranth") == READ else {}


@cache
def _read() -> dict[tuple[type, str], object]:
    check = _nir.Netlist.check_comb_cycles

    def searched(netlist: _nir.Netlist) -> None:
        """Amaranth goes from each bit of a sum to each bit of its operands; now only where there may be a cycle."""
        known = drivers(netlist)
        if known is None or may_cycle(netlist, known):
            check(netlist)
        netlist.connections = known or {}

    return {
        (_nir.Netlist, "check_comb_cycles"): searched,
        (_nir.Netlist, "resolve_value"): _resolved,
        (_nir.Net, "from_cell"): classmethod(_net),
        (_nir.Value, "__new__"): staticmethod(_made),
        (rtlil.ModuleEmitter, "sigspec"): _sigspec,
    }


def _net(cls: type[_nir.Net], cell: int, bit: int) -> _nir.Net:
    """A net, without asking whether its cell can be; of its bit that must be asked, as it would become another cell."""
    assert 0 <= bit < 1 << 16, f"A cell must have at most 65,536 bits, but one has a bit {bit}"
    return int.__new__(cls, cell << 16 | bit)


def _made(cls: type[_nir.Value], nets: _nir.Net | Iterable[_nir.Net] = ()) -> _nir.Value:
    """A value, without asking of each of its nets whether it is one."""
    return tuple.__new__(cls, (nets,) if isinstance(nets, _nir.Net) else nets)


def _resolved(netlist: _nir.Netlist, value: _nir.Value) -> _nir.Value:
    """A value whose nets are known, those of negative numbers by now; most have none."""
    if not value or min(value) >= 0:
        return value
    known = netlist.connections
    return _nir.Value([known[net] if net < 0 else net for net in value])


def _sigspec(emitter: rtlil.ModuleEmitter, *parts: _nir.Net | Iterable[_nir.Net]) -> str:
    """The words for some nets, those of a wire that follow each other as one part of it."""
    nets: list[_nir.Net] = []
    for part in parts:
        if isinstance(part, _nir.Net):
            nets.append(part)
        else:
            nets.extend(part)
    places, words, at, end = emitter.nets, [], 0, len(nets)
    while at < end:
        begin = at
        if nets[at] in (0, 1):
            while at < end and nets[at] in (0, 1):
                at += 1
            words.append(f"{at - begin}'{''.join('1' if net else '0' for net in nets[begin:at][::-1])}")
            continue
        wire, low = places[nets[at]]
        bit = low
        while at < end and nets[at] not in (0, 1) and places[nets[at]] == (wire, bit):
            at, bit = at + 1, bit + 1
        words.append(f"{wire.name} [{low}]" if bit == low + 1 else f"{wire.name} [{bit - 1}:{low}]")
    return words[0] if len(words) == 1 else "{ " + " ".join(reversed(words)) + " }"


def drivers(netlist: _nir.Netlist) -> dict[_nir.Net, _nir.Net] | None:
    """Drivers of the nets that were named before they were known; None where some drive each other alone."""
    connections = netlist.connections
    known: dict[_nir.Net, _nir.Net] = {}
    for each in connections:
        way, net = [], each
        while net < 0 and net not in known:
            way.append(net)
            if len(way) > len(connections):
                return None
            net = connections[net]
        known.update(dict.fromkeys(way, known.get(net, net)))
    return known


def may_cycle(netlist: _nir.Netlist, known: dict[_nir.Net, _nir.Net]) -> bool:
    """Whether a cell of logic depends on itself; where none does there is no cycle of bits.

    Parameters:
        known: see `drivers`.
    """
    if any(isinstance(cell, _nir.FlipFlop) and not cell.arst.is_const for cell in netlist.cells):
        return True
    # Cells whose outputs do not follow their inputs at once, or are not looked through by Amaranth.
    later = (_nir.Top, _nir.FlipFlop, _nir.Memory, _nir.SyncWritePort, _nir.SyncReadPort, _nir.Instance)
    waits: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    logic = {index for index, cell in enumerate(netlist.cells) if not isinstance(cell, later)}
    for index in logic:
        before = {known.get(net, net) >> 16 for net in netlist.cells[index].input_nets()} & logic
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
