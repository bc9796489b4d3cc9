"""Products of a netlist apart from its other logic: alike ones are one module, which is mapped once.

A design has few shapes of multipliers and many of each, between registers; so nothing is lost at their borders, and
their mapping takes the time of one of each shape.
"""
import json
from typing import Any

__all__ = ["PRODUCT", "products_apart"]

PRODUCT = "product_"
"""The beginning of the names of modules of products."""

Json = dict[str, Any]


def products_apart(netlist: Json, top: str) -> list[str]:
    """Move each product of two variables of the module ``top`` into a module; returns the modules, each once."""
    modules: Json = netlist["modules"]
    cells: Json = modules[top]["cells"]
    alike: dict[str, str] = {}
    for place in sorted(name for name, cell in cells.items() if cell["type"] == "$mul" and _variable(cell)):
        cell = cells[place]
        module, connections = _module(cell)
        name = alike.setdefault(json.dumps(module, sort_keys=True), f"{PRODUCT}{len(alike)}")
        modules[name] = module
        cells[place] = {"hide_name": cell["hide_name"], "type": name, "parameters": {}, "attributes": {},
                        "port_directions": {port: entry["direction"] for port, entry in module["ports"].items()},
                        "connections": connections}
    return list(alike.values())


def _variable(cell: Json) -> bool:
    return all(any(isinstance(bit, int) for bit in cell["connections"][side]) for side in "AB")


def _module(cell: Json) -> tuple[Json, Json]:
    """A module around a product, and what its ports are connected to. Each net goes in once; constants stay within."""
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
    kept = {"hide_name": 0, "type": "$mul", "attributes": {}, "parameters": cell["parameters"],
            "port_directions": {"A": "input", "B": "input", "Y": "output"}, "connections": mine}
    nets = {name: {"hide_name": 0, "bits": port["bits"], "attributes": {}} for name, port in ports.items()}
    return {"attributes": {}, "ports": ports, "cells": {"product": kept}, "netnames": nets}, connections
