"""Arithmetic of a netlist apart from its other logic: alike cells are one module, which is mapped once.

Products, since a design has few shapes of multipliers and many of each, between registers, so that nothing is lost at
their borders. And sums of what a memory gives in the same cycle: a mapping for area lets each path become as slow as
the slowest one, and does not see the memory before these, which is mapped by itself.
"""
import json
from collections.abc import Mapping

from circulant.boards.asic.alone import alone
from circulant.boards.yosys_json import Cell, Netlist

__all__ = ["APART", "arithmetic_apart"]

APART = "arithmetic_"
"""The beginning of the names of modules."""

LEAST = 8
"""Bits of a sum that is worth a module."""


def arithmetic_apart(netlist: Netlist, top: str, *, sums: bool = True) -> list[str]:
    """Move each product of two variables of the module ``top``, and with ``sums`` each sum of what a memory gives, into
    a module; returns the modules, each once. Memories are modules that have an output ``rd_data``."""
    modules = netlist["modules"]
    cells = modules[top]["cells"]
    read = _read(cells)
    alike: dict[str, str] = {}
    for place in sorted(name for name, cell in cells.items()
                        if (cell["type"] == "$mul" and _variable(cell)) or (sums and _late(cell, read))):
        cell = cells[place]
        module, connections = alone(cell, "operation", "AB", "Y")
        name = alike.setdefault(json.dumps(module, sort_keys=True), f"{APART}{len(alike)}")
        modules[name] = module
        cells[place] = {"hide_name": cell["hide_name"], "type": name, "parameters": {}, "attributes": {},
                        "port_directions": {port: entry["direction"] for port, entry in module["ports"].items()},
                        "connections": connections}
    return list(alike.values())


def _read(cells: Mapping[str, Cell]) -> set[int | str]:
    """The nets that memories drive, and those behind a choice or a mask of them."""
    found = {bit for cell in cells.values() for bit in cell["connections"].get("rd_data", ())}
    for _ in range(2):
        found |= {bit for cell in cells.values() if cell["type"] in ("$mux", "$pmux", "$and", "$logic_and")
                  and found & set(cell["connections"]["A"] + cell["connections"]["B"])
                  for bit in cell["connections"]["Y"]}
    return found


def _late(cell: Cell, read: set[int | str]) -> bool:
    return (cell["type"] in ("$add", "$sub") and _variable(cell) and len(cell["connections"]["Y"]) >= LEAST
            and any(bit in read for side in "AB" for bit in cell["connections"][side]))


def _variable(cell: Cell) -> bool:
    return all(any(isinstance(bit, int) for bit in cell["connections"][side]) for side in "AB")
