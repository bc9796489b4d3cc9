"""Memories of a netlist apart from its logic: each becomes a module of its own, which is then mapped as its kind asks.

A netlist here is what Yosys writes by ``write_json`` after ``memory -nomap``: a memory is a cell ``$mem_v2``.
"""
import json
from dataclasses import dataclass, field
from typing import Protocol

from circulant.boards.asic.alone import alone
from circulant.boards.yosys_json import Bits, Cell, Module, Netlist

__all__ = ["INSTANCE", "MacroTable", "Memory", "separate"]

INSTANCE = "circulant_memory_"
"""The beginning of the names of memories."""

_INPUTS = ("RD_CLK", "RD_EN", "RD_ARST", "RD_SRST", "RD_ADDR", "WR_CLK", "WR_EN", "WR_ADDR", "WR_DATA")

_NONE: Cell = {"hide_name": 0, "type": "$mem_v2", "parameters": {}, "attributes": {}, "port_directions": {},
               "connections": {}}


class MacroTable(Protocol):
    """Chooses macros."""

    def __call__(self, words: int, width: int, *, rom: bool = False) -> str:
        """The macro that a memory of so many words of so many bits becomes; an empty string for flip-flops or gates."""


@dataclass(frozen=True)
class Memory:
    """A memory of a design.

    Parameters:
        module: of the netlist, which holds it alone; memories that are alike have one.
        instance: in the top; what becomes of it has names that begin so.
        place: its name in the design.
        words, width: its shape, the width in bits.
        kind: "rom" for fixed contents that become gates; "registers" for words in flip-flops; "asynchronous" for such
            that are read without a clock edge; "macro", for fixed contents, too.
        reads, writes: ports.
        macro: the name of the macro that it is.
        cell, ports: the cell within the module, and the bits of the module's ports, as Yosys has them.
    """

    module: str
    instance: str
    place: str
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


def separate(netlist: Netlist, top: str, macro: MacroTable) -> list[Memory]:
    """Move each memory of the module ``top`` into a module of its own, in place; memories in the order of their names.

    Parameters:
        macro: chooses macros for memories that are read at clock edges.
    """
    modules = netlist["modules"]
    cells = modules[top]["cells"]
    found: list[Memory] = []
    alike: dict[str, str] = {}
    for place in sorted(name for name, cell in cells.items() if cell["type"] == "$mem_v2"):
        cell = cells.pop(place)
        cell["parameters"] |= {"MEMID": "\\words"}
        module, connections = alone(cell, "words", _INPUTS, "RD_DATA")
        name = alike.setdefault(json.dumps(module, sort_keys=True), f"memory_{len(alike)}")
        memory = _described(name, f"{INSTANCE}{len(found)}", place, cell=cell, module=module, macro=macro)
        if memory.macro:
            module["attributes"]["keep_hierarchy"] = "1"
        modules[name] = module
        cells[memory.instance] = {
            "hide_name": 0, "type": name, "parameters": {}, "attributes": {}, "connections": connections,
            "port_directions": {port: entry["direction"] for port, entry in module["ports"].items()}}
        found.append(memory)
    return found


def _number(cell: Cell, name: str) -> int:
    return int(cell["parameters"][name], 2)


def _described(name: str, instance: str, place: str, *, cell: Cell, module: Module, macro: MacroTable) -> Memory:
    words, width, writes = (_number(cell, name) for name in ("SIZE", "WIDTH", "WR_PORTS"))
    clocked = "0" not in cell["parameters"]["RD_CLK_ENABLE"]
    chosen = macro(words, width, rom=not writes) if clocked else ""
    kind = "macro" if chosen else "rom" if not writes else "registers" if clocked else "asynchronous"
    return Memory(name, instance, place, words, width, kind=kind, reads=_number(cell, "RD_PORTS"), writes=writes,
                  macro=chosen, cell=module["cells"]["words"],
                  ports={port: entry["bits"] for port, entry in module["ports"].items()})
