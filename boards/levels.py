"""How many look-up tables lie between two registers of a netlist, as Yosys writes it as JSON.

A level is a look-up table or the asynchronous read of a memory made of them. Carry chains, wide multiplexers and
inverters lie on the way but count for none: they are hard wires beside the tables.
"""
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from circulant.boards.yosys_json import Cell, Module

__all__ = ["Netlist", "Way"]

_TABLE = re.compile(r"LUT[1-6]$|RAM\d+[MX].*|TRELLIS_DPR16X4$")
_FREE = re.compile(r"INV$|MUXF\d$|CARRY4$|CCU2C$|PFUMX$|L6MUX21$|DSP48E[12]$|MULT18X18D$")
_CARRY = ("CARRY4", "CCU2C")
_PRODUCT = re.compile(r"DSP48E[12]$|MULT18X18D$")
_REGISTER = re.compile(r"FD[RSCP]E(_1)?$|SRL(16E|C32E)$|TRELLIS_FF$")
"""Flip-flops, and shift registers made of look-up tables, which a tool makes of a delay."""
_MEMORY = re.compile(r"RAM\d|TRELLIS_DPR")
_WRITING = re.compile(r"W.*|.*CLK|DI.*|ADDRH")
"""Ports of a memory made of look-up tables that its outputs do not follow at once."""
_OPERANDS, _RESULT = re.compile(r"[AB]\d*$"), re.compile(r"P\d*$")
"""Ports of a DSP block."""


@dataclass(frozen=True, order=True)
class _Depth:
    levels: int = 0
    carries: int = 0
    products: int = 0


@dataclass(frozen=True)
class Way:
    """The longest path to a register.

    Parameters:
        levels, carries, products: look-up tables, cells of carry chains and DSP blocks on it.
        start, end: names of both registers, without their bits.
    """

    levels: int
    carries: int
    products: int
    start: str
    end: str


class Netlist:
    """A flat netlist.

    Parameters:
        file: that ``write_json`` wrote.
        top: the module.
    """

    def __init__(self, file: str | Path, top: str) -> None:
        module: Module = json.loads(Path(file).read_text())["modules"][top]
        self._cells = module["cells"]
        self._names = _names(module)
        self._driver: dict[int, str] = {}
        self._bits: dict[str, tuple[list[int], list[int]]] = {}
        for name, cell in self._cells.items():
            self._bits[name] = _bits(cell)
            for bit in self._bits[name][1]:
                self._driver[bit] = name

    def ways(self, count: int = 20) -> list[Way]:
        """The longest paths between registers, the one with the most levels first; one for each register at an end."""
        found: dict[str, Way] = {}
        for name, cell in self._cells.items():
            if not _keeps(cell):
                continue
            ins, outs = self._bits[name]
            end = self._names.get(outs[0], name) if outs else name
            for bit in ins:
                depth = self._depth(bit)
                if end not in found or (depth.levels, depth.carries) > (found[end].levels, found[end].carries):
                    found[end] = Way(depth.levels, depth.carries, depth.products, self._start(bit), end)
        return sorted(found.values(), key=lambda way: (-way.levels, -way.carries, way.end))[:count]

    def bare_products(self) -> list[str]:
        """DSP blocks with an operand that is no register's output, or a result that something else than a register
        reads; a register within the block counts as one."""
        readers = defaultdict[int | str, list[str]](list)
        for name, (ins, _) in self._bits.items():
            for bit in ins:
                readers[bit].append(name)
        bare = []
        for name, cell in self._cells.items():
            if not _PRODUCT.match(cell["type"]):
                continue
            parameters = cell["parameters"]
            before = all(_has(parameters, f"{port[0]}REG") or self._registered(bits)
                         for port, bits in cell["connections"].items() if _OPERANDS.match(port))
            after = _has(parameters, "MREG") or _has(parameters, "PREG") or all(
                _REGISTER.match(self._cells[reader]["type"])
                for port, bits in cell["connections"].items() if _RESULT.match(port)
                for bit in bits for reader in readers.get(bit, ()))
            if not (before and after):
                bare.append(name)
        return bare

    def _registered(self, bits: list[Any]) -> bool:
        return all(_REGISTER.match(self._cells[self._driver[bit]]["type"]) for bit in bits if bit in self._driver)

    @cached_property
    def _depths(self) -> dict[str, tuple[_Depth, int | None]]:
        """For each cell of logic the depth behind it, and the net by which its longest path comes in."""
        logic = {name for name, cell in self._cells.items() if not _keeps(cell)}
        ins = {name: [bit for bit in self._bits[name][0] if self._driver.get(bit) in logic] for name in logic}
        waits = {name: len(bits) for name, bits in ins.items()}
        readers = defaultdict(list)
        for name, bits in ins.items():
            for bit in bits:
                readers[bit].append(name)
        found: dict[str, tuple[_Depth, int | None]] = {}
        ready = [name for name, waiting in waits.items() if not waiting]
        while ready:
            name = ready.pop()
            kind = self._cells[name]["type"]
            given, outs = self._bits[name]
            via = max(ins[name], key=lambda bit: found[self._driver[bit]][0], default=given[0] if given else None)
            before = found[self._driver[via]][0] if ins[name] and via is not None else _Depth()
            found[name] = (_Depth(before.levels + bool(_TABLE.match(kind)), before.carries + (kind in _CARRY),
                                  before.products + bool(_PRODUCT.match(kind))), via)
            for bit in outs:
                for reader in readers[bit]:
                    waits[reader] -= 1
                    if not waits[reader]:
                        ready.append(reader)
        return found

    def _depth(self, bit: int) -> _Depth:
        driver = self._driver.get(bit, "")
        return self._depths[driver][0] if driver in self._depths else _Depth()

    def _start(self, bit: int) -> str:
        at: int | None = bit
        while at is not None and self._driver.get(at, "") in self._depths:
            at = self._depths[self._driver[at]][1]
        return "a constant" if at is None else self._names.get(at, "a port")


def _has(parameters: dict[str, str], name: str) -> bool:
    return int(str(parameters.get(name, "0")), 2) > 0


def _keeps(cell: Cell) -> bool:
    """Whether a cell's outputs stay until the next clock edge."""
    kind = cell["type"]
    if _TABLE.match(kind):
        return False
    return not _FREE.match(kind) or any(_has(cell["parameters"], f"{register}REG") for register in "MP")


def _bits(cell: Cell) -> tuple[list[int], list[int]]:
    """The nets that go in and come out, those of a memory's writing left out."""
    ins: list[int] = []
    outs: list[int] = []
    memory = _MEMORY.match(cell["type"])
    for port, bits in cell["connections"].items():
        given = [bit for bit in bits if isinstance(bit, int)]
        if cell["port_directions"][port] == "output":
            outs += given
        elif not (memory and _WRITING.match(port)) and port not in ("C", "CLK"):
            ins += given
    return ins, outs


def _names(module: Module) -> dict[int, str]:
    """For each net the shortest name that someone gave it."""
    names: dict[int, str] = {}
    for name, net in sorted(module["netnames"].items(), key=lambda item: (item[1]["hide_name"], len(item[0]))):
        for bit in net["bits"]:
            if isinstance(bit, int):
                names.setdefault(bit, name)
    return names
