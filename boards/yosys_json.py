"""The netlists of Yosys as ``write_json`` writes them: a bit is the number of its net, or a constant as text."""
from typing import TypedDict

__all__ = ["Bits", "Cell", "Module", "NetName", "Netlist", "Port"]

Bits = list[int | str]


class Port(TypedDict):
    """A port of a module, of direction "input", "output" or "inout"."""

    direction: str
    bits: Bits


class Cell(TypedDict):
    """An instance: parameters in binary digits, and what its ports are connected to."""

    hide_name: int
    type: str
    parameters: dict[str, str]
    attributes: dict[str, str]
    port_directions: dict[str, str]
    connections: dict[str, Bits]


class NetName(TypedDict):
    """A name of nets; ``hide_name`` is 1 where Yosys made it."""

    hide_name: int
    bits: Bits
    attributes: dict[str, str]


class Module(TypedDict):
    """A module by its parts."""

    attributes: dict[str, str]
    ports: dict[str, Port]
    cells: dict[str, Cell]
    netnames: dict[str, NetName]


class Netlist(TypedDict):
    """All modules of a file."""

    modules: dict[str, Module]
