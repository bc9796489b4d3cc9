"""How many look-up tables lie between two registers of a netlist, as Yosys writes it as JSON.

A level is a look-up table or the asynchronous read of a memory made of them. Carry chains, wide multiplexers and
inverters lie on the way but count for none: they are hard wires beside the tables.
"""
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Way", "longest", "registers_of_products"]

_TABLE = re.compile(r"LUT[1-6]$|RAM\d+[MX].*|TRELLIS_DPR16X4$")
_FREE = re.compile(r"INV$|MUXF\d$|CARRY4$|CCU2C$|PFUMX$|L6MUX21$")
_PRODUCT = re.compile(r"DSP48E[12]$|MULT18X18D$")
_CARRY = ("CARRY4", "CCU2C")
_WRITING = re.compile(r"W.*|.*CLK|DI.*|ADDRH")
"""Ports of a memory made of look-up tables that its outputs do not follow at once."""


@dataclass(frozen=True)
class Way:
    """The longest way to a register.

    Parameters:
        levels, carries, products: look-up tables, cells of carry chains, and DSP blocks without a register at their
            output that lie on it.
        start, end: names of both registers, without their bits.
    """

    levels: int
    carries: int
    products: int
    start: str
    end: str


def longest(netlist: str | Path, top: str, *, count: int = 20) -> list[Way]:
    """The ways with the most levels, those of each register once."""
    module = json.loads(Path(netlist).read_text())["modules"][top]
    cells, names = module["cells"], _names(module)
    driver: dict[int, tuple[str, int]] = {}
    waits: dict[str, int] = {}
    readers: defaultdict[int, list[str]] = defaultdict(list)
    inputs: dict[str, list[int]] = {}
    for name, cell in cells.items():
        weight = _weight(cell)
        ins, outs = _bits(cell)
        if weight is None:
            continue
        inputs[name] = ins
        for bit in outs:
            driver[bit] = (name, weight)
    for name, ins in inputs.items():
        inputs[name] = ins = [bit for bit in ins if bit in driver]
        waits[name] = len(ins)
        for bit in ins:
            readers[bit].append(name)
    best: dict[str, tuple[int, int, int]] = {}
    before: dict[str, int | None] = {}
    ready = [name for name, count_ in waits.items() if not count_]
    while ready:
        name = ready.pop()
        cell = cells[name]
        found, via = (0, 0, 0), None
        for bit in inputs[name]:
            if best[driver[bit][0]] > found:
                found, via = best[driver[bit][0]], bit
        if via is None:
            via = next((bit for bit in _bits(cell)[0] if isinstance(bit, int) and bit not in driver), None)
        kind = cell["type"]
        best[name] = (found[0] + _weight(cell), found[1] + (kind in _CARRY), found[2] + bool(_PRODUCT.match(kind)))
        before[name] = via
        for bit in _bits(cell)[1]:
            for reader in readers[bit]:
                waits[reader] -= 1
                if not waits[reader]:
                    ready.append(reader)
    ways: dict[str, Way] = {}
    for name, cell in cells.items():
        if _weight(cell) is not None:
            continue
        ins, outs = _bits(cell)
        for bit in ins:
            if bit not in driver or driver[bit][0] not in best:
                continue
            levels, carries, products = best[driver[bit][0]]
            end = names.get(outs[0], name) if outs else name
            if end not in ways or (levels, carries) > (ways[end].levels, ways[end].carries):
                at: int | None = bit
                while at in driver:
                    at = before[driver[at][0]]
                ways[end] = Way(levels, carries, products, names.get(at, "a constant") if at else "a constant", end)
    return sorted(ways.values(), key=lambda way: (-way.levels, -way.carries, way.end))[:count]


def registers_of_products(netlist: str | Path, top: str) -> Counter[str]:
    """How many DSP blocks have which of their registers: {"A B M": 11, "": 3}."""
    cells = json.loads(Path(netlist).read_text())["modules"][top]["cells"].values()
    return Counter(" ".join(kind for kind in "ABMP" if _has(cell["parameters"], f"{kind}REG"))
                   for cell in cells if cell["type"].startswith("DSP48"))


def _has(parameters: dict[str, str], name: str) -> bool:
    return int(str(parameters.get(name, "0")), 2) > 0


def _weight(cell: dict[str, Any]) -> int | None:
    """Levels of a cell; None for one that keeps its outputs until the next clock edge."""
    kind = cell["type"]
    if _TABLE.match(kind):
        return 1
    if _FREE.match(kind):
        return 0
    if _PRODUCT.match(kind) and not any(_has(cell["parameters"], f"{register}REG") for register in "MP"):
        return 0
    return None


def _bits(cell: dict[str, Any]) -> tuple[list[int], list[int]]:
    """The nets that go in and come out, those of a memory's writing left out."""
    ins: list[int] = []
    outs: list[int] = []
    memory = re.match(r"RAM\d|TRELLIS_DPR", cell["type"])
    for port, bits in cell["connections"].items():
        given = [bit for bit in bits if isinstance(bit, int)]
        if cell["port_directions"][port] == "output":
            outs += given
        elif not (memory and _WRITING.match(port)) and port not in ("C", "CLK"):
            ins += given
    return ins, outs


def _names(module: dict[str, Any]) -> dict[int, str]:
    """For each net the shortest name that someone gave it."""
    names: dict[int, str] = {}
    for name, net in sorted(module["netnames"].items(), key=lambda item: (item[1]["hide_name"], len(item[0]))):
        for bit in net["bits"]:
            if isinstance(bit, int):
                names.setdefault(bit, name)
    return names
