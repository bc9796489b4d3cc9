"""A module around a single cell of a netlist."""
from collections.abc import Iterable

from circulant.boards.yosys_json import Bits, Cell, Module, Port

__all__ = ["alone"]


def alone(cell: Cell, name: str, inputs: Iterable[str], output: str) -> tuple[Module, dict[str, Bits]]:
    """A module that has a cell alone, under a name, and what the module's ports, called as the cell's in small letters,
    are connected to. Each net goes in once; constants stay within."""
    known: dict[int | str, int | str] = {}
    ports: dict[str, Port] = {}
    connections: dict[str, Bits] = {}
    mine: dict[str, Bits] = {}
    for port in inputs:
        bits = cell["connections"].get(port, [])
        fresh: Bits = [bit for bit in dict.fromkeys(bits) if isinstance(bit, int) and bit not in known]
        for bit in fresh:
            known[bit] = len(known) + 2
        if fresh:
            ports[port.lower()] = {"direction": "input", "bits": [known[bit] for bit in fresh]}
            connections[port.lower()] = fresh
        mine[port] = [known.get(bit, bit) for bit in bits]
    connections[output.lower()] = cell["connections"][output]
    mine[output] = [len(known) + 2 + n for n in range(len(cell["connections"][output]))]
    ports[output.lower()] = {"direction": "output", "bits": mine[output]}
    kept: Cell = {"hide_name": 0, "type": cell["type"], "attributes": {}, "parameters": cell["parameters"],
                  "port_directions": cell["port_directions"], "connections": mine}
    return {"attributes": {}, "ports": ports, "cells": {name: kept}, "netnames": {
        port: {"hide_name": 0, "bits": its["bits"], "attributes": {}} for port, its in ports.items()}}, connections
