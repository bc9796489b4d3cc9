"""Memories of a netlist apart from its logic: each becomes a module of its own, which is then mapped as its kind asks.

A netlist here is what Yosys writes by ``write_json`` after ``memory -nomap``: a memory is a cell ``$mem_v2``.
"""
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from circulant.boards.yosys_json import Bits, Cell, Module, Netlist, Port

__all__ = ["INSTANCE", "Memory", "separate", "within"]

INSTANCE = "circulant_memory_"
"""The beginning of the names of memories."""

_PORTS = ("RD_CLK", "RD_EN", "RD_ARST", "RD_SRST", "RD_ADDR", "WR_CLK", "WR_EN", "WR_ADDR", "WR_DATA", "RD_DATA")

_NONE: Cell = {"hide_name": 0, "type": "$mem_v2", "parameters": {}, "attributes": {}, "port_directions": {},
               "connections": {}}


@dataclass(frozen=True)
class Memory:
    """A memory of a design.

    Parameters:
        module: of the netlist, which holds it alone; memories that are alike have one.
        instance: in the top; what becomes of it has names that begin so.
        words, width: its shape, the width in bits.
        kind: "rom" for fixed contents that become gates; "registers" for words in flip-flops; "asynchronous" for such
            that are read without a clock edge; "macro", for fixed contents, too.
        reads, writes: ports.
        macro: the name of the macro that it is.
        cell, ports: the cell within the module, and the bits of the module's ports, as Yosys has them.
    """

    module: str
    instance: str
    words: int
    width: int
    kind: str
    reads: int
    writes: int
    macro: str = ""
    cell: Cell = field(default_factory=lambda: _NONE, repr=False, compare=False)
    ports: dict[str, Bits] = field(default_factory=dict, repr=False, compare=False)

    @property
    def bits(self) -> int:
        return self.words * self.width

    @property
    def contents(self) -> str:
        """The bits that it holds at first, those of word 0 in front and the lowest of each first; empty for any."""
        said = str(self.cell["parameters"].get("INIT", "x"))[::-1]
        return said[:self.bits].replace("x", "0") if set(said) != {"x"} else ""


def within(name: str, memories: Sequence[Memory]) -> Memory | None:
    """The memory that an instance lies in, or is."""
    return memories[int(name.removeprefix(INSTANCE).split(".")[0])] if name.startswith(INSTANCE) else None


def separate(netlist: Netlist, top: str, macro: Callable[..., str]) -> list[Memory]:
    """Move each memory of the module ``top`` into a module of its own, in place; memories in the order of their names.

    Parameters:
        macro: names the macro that a memory of so many words of so many bits becomes, fixed ones with ``rom=True``,
            where it is read at clock edges; an empty string for flip-flops or gates.
    """
    modules = netlist["modules"]
    cells = modules[top]["cells"]
    found: list[Memory] = []
    alike: dict[str, str] = {}
    for place in sorted(name for name, cell in cells.items() if cell["type"] == "$mem_v2"):
        module, connections = _alone(cells.pop(place))
        values = module["cells"]["words"]["parameters"]
        name = alike.setdefault(json.dumps(module, sort_keys=True), f"memory_{len(alike)}")
        words, width, reads, writes = (int(values[key], 2) for key in ("SIZE", "WIDTH", "RD_PORTS", "WR_PORTS"))
        clocked = "0" not in values["RD_CLK_ENABLE"]
        chosen = macro(words, width, rom=not writes) if clocked else ""
        kind = "macro" if chosen else "rom" if not writes else "registers" if clocked else "asynchronous"
        if chosen:
            module["attributes"]["keep_hierarchy"] = "1"
        modules[name] = module
        found.append(Memory(name, f"{INSTANCE}{len(found)}", words, width, kind=kind, reads=reads, writes=writes,
                            macro=chosen, cell=module["cells"]["words"],
                            ports={port: its["bits"] for port, its in module["ports"].items()}))
        cells[found[-1].instance] = {
            "hide_name": 0, "type": name, "parameters": {}, "attributes": {}, "connections": connections,
            "port_directions": {port: its["direction"] for port, its in module["ports"].items()}}
    return found


def _alone(cell: Cell) -> tuple[Module, dict[str, Bits]]:
    """A module that has a memory alone, and what the module's ports, called as the memory's in small letters, are
    connected to. Each net goes in once; constants stay within."""
    known: dict[int | str, int | str] = {}
    ports: dict[str, Port] = {}
    connections: dict[str, Bits] = {}
    mine: dict[str, Bits] = {}
    number = count(2)
    for port in _PORTS:
        if port == "RD_DATA":  # What a memory gives may come back to it.
            known = {}
        bits = cell["connections"].get(port, [])
        fresh: Bits = [bit for bit in dict.fromkeys(bits) if isinstance(bit, int) and bit not in known]
        known |= dict(zip(fresh, number, strict=False))
        if fresh:
            ports[port.lower()] = {"direction": "output" if port == "RD_DATA" else "input",
                                   "bits": [known[bit] for bit in fresh]}
            connections[port.lower()] = fresh
        mine[port] = [known.get(bit, bit) for bit in bits]
    inside = cell | {"attributes": {}, "parameters": cell["parameters"] | {"MEMID": "\\words"}, "connections": mine}
    return {"attributes": {}, "ports": ports, "cells": {"words": inside}, "netnames": {
        port: {"hide_name": 0, "bits": its["bits"], "attributes": {}} for port, its in ports.items()}}, connections
