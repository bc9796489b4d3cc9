"""Arithmetic of a netlist apart from its other logic: alike cells are one module, which is mapped once.

Products, since a design has few shapes of multipliers and many of each, between registers, so that nothing is lost at
their borders. And sums of what a memory gives in the same cycle: a mapping for area lets each path become as slow as
the slowest one, and does not see the memory before these, which is mapped by itself.
"""
import json
from typing import Any

__all__ = ["APART", "arithmetic_apart"]

APART = "arithmetic_"
"""The beginning of the names of modules."""

LEAST = 8
"""Bits of a sum that is worth a module."""

Json = dict[str, Any]


def arithmetic_apart(netlist: Json, top: str, *, sums: bool = True) -> list[str]:
    """Move each product of two variables of the module ``top``, and with ``sums`` each sum of what a memory gives, into
    a module; returns the modules, each once. Memories are modules that have an output ``rd_data``."""
    modules: Json = netlist["modules"]
    cells: Json = modules[top]["cells"]
    read = _read(cells)
    alike: dict[str, str] = {}
    for place in sorted(name for name, cell in cells.items()
                        if (cell["type"] == "$mul" and _variable(cell)) or (sums and _late(cell, read))):
        cell = cells[place]
        module, connections = _module(cell)
        name = alike.setdefault(json.dumps(module, sort_keys=True), f"{APART}{len(alike)}")
        modules[name] = module
        cells[place] = {"hide_name": cell["hide_name"], "type": name, "parameters": {}, "attributes": {},
                        "port_directions": {port: entry["direction"] for port, entry in module["ports"].items()},
                        "connections": connections}
    return list(alike.values())


def _read(cells: Json) -> set[int]:
    """The nets that memories drive, and those behind a choice or a mask of them."""
    found = {bit for cell in cells.values() for bit in cell["connections"].get("rd_data", ())}
    for _ in range(2):
        found |= {bit for cell in cells.values() if cell["type"] in ("$mux", "$pmux", "$and", "$logic_and")
                  and found & set(cell["connections"]["A"] + cell["connections"]["B"])
                  for bit in cell["connections"]["Y"]}
    return found


def _late(cell: Json, read: set[int]) -> bool:
    return (cell["type"] in ("$add", "$sub") and _variable(cell) and len(cell["connections"]["Y"]) >= LEAST
            and any(bit in read for side in "AB" for bit in cell["connections"][side]))


def _variable(cell: Json) -> bool:
    return all(any(isinstance(bit, int) for bit in cell["connections"][side]) for side in "AB")


def _module(cell: Json) -> tuple[Json, Json]:
    """A module around a cell, and what its ports are connected to. Each net goes in once; constants stay within."""
    known: dict[int, int] = {}
    ports: Json = {}
    connections: Json = {}
    for side in "AB":
        fresh = [bit for bit in dict.fromkeys(cell["connections"][side]) if isinstance(bit, int) and bit not in known]
        known |= {bit: len(known) + 2 + n for n, bit in enumerate(fresh)}
        if fresh:
            ports[side.lower()] = {"direction": "input", "bits": [known[bit] for bit in fresh]}
            connections[side.lower()] = fresh
    mine: Json = {side: [known.get(bit, bit) for bit in cell["connections"][side]] for side in "AB"}
    mine["Y"] = [len(known) + 2 + n for n in range(len(cell["connections"]["Y"]))]
    ports["y"] = {"direction": "output", "bits": mine["Y"]}
    connections["y"] = cell["connections"]["Y"]
    kept = {"hide_name": 0, "type": cell["type"], "attributes": {}, "parameters": cell["parameters"],
            "port_directions": {"A": "input", "B": "input", "Y": "output"}, "connections": mine}
    nets = {name: {"hide_name": 0, "bits": port["bits"], "attributes": {}} for name, port in ports.items()}
    return {"attributes": {}, "ports": ports, "cells": {"operation": kept}, "netnames": nets}, connections
