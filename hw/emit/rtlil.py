"""RTLIL as Amaranth writes it, read into modules of wires, cells, processes and memories.

Each wire has one driver: a port, a cell, a process that assigns to it alone, or a connection.
"""
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Bits", "Case", "Cell", "Chunk", "Memory", "Module", "Process", "Switch", "Wire", "joined", "low_bits",
           "modules", "single_bits", "span", "width_of"]


class Chunk(NamedTuple):
    """Bits ``low`` to ``low`` + ``width`` - 1 of a wire; with an empty name the constant ``low``."""

    name: str
    low: int
    width: int


Bits = tuple[Chunk, ...]
"""Bits of wires and constants, the highest first."""


@dataclass(slots=True)
class Wire:
    """A wire; ``port`` is "input", "output", or empty."""

    name: str
    width: int
    port: str
    attributes: dict[str, str]


@dataclass(slots=True)
class Cell:
    """A cell; parameters and attributes are texts as they stand."""

    kind: str
    name: str
    attributes: dict[str, str]
    parameters: dict[str, str] = field(default_factory=dict)
    ports: dict[str, Bits] = field(default_factory=dict)

    @property
    def memory(self) -> str:
        """The name of the memory that it is a port of."""
        return self.parameters["MEMID"].strip('"').replace("\\\\", "\\")

    def number(self, parameter: str) -> int:
        """A parameter that is a number."""
        text = self.parameters[parameter]
        return int(text.partition("'")[2], 2) if "'" in text else int(text)


class Memory(NamedTuple):
    """A memory of ``depth`` words."""

    name: str
    width: int
    depth: int
    attributes: dict[str, str]


class Case(NamedTuple):
    """Statements for some patterns of 0, 1 and -; without patterns, otherwise."""

    patterns: list[str]
    body: list["Switch | tuple[Chunk, Bits]"]


class Switch(NamedTuple):
    """A choice by priority."""

    selector: Bits
    cases: list[Case]


Process = list["Switch | tuple[Chunk, Bits]"]
"""Statements in order: choices, and assignments to bits of a wire."""


@dataclass(slots=True)
class Module:
    """A module; what it holds has the order of the text."""

    name: str
    attributes: dict[str, str]
    wires: dict[str, Wire] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=dict)
    connections: list[tuple[Bits, Bits]] = field(default_factory=list)


def width_of(bits: Bits) -> int:
    return sum(chunk.width for chunk in bits)


def span(bits: Bits, low: int, width: int) -> Bits:
    """Bits ``low`` to ``low`` + ``width`` - 1."""
    found: list[Chunk] = []
    for name, start, size in reversed(bits):
        if width and low < size:
            taken = min(size - low, width)
            found.append(Chunk(name, start + low, taken) if name else
                         Chunk("", (start >> low) & ((1 << taken) - 1), taken))
            width -= taken
            low = 0
        else:
            low = max(0, low - size)
    return tuple(reversed(found))


def single_bits(bits: Bits) -> Iterator[Chunk]:
    """Bit by bit, the lowest first."""
    for name, low, width in reversed(bits):
        for bit in range(width):
            yield Chunk(name, low + bit, 1) if name else Chunk("", low >> bit & 1, 1)


def joined(high: Bits, low: Bits) -> Bits:
    """Bits side by side; what follows each other in a wire as one part of it."""
    if high and low and high[-1].name == low[0].name:
        (name, start, width), (_, below, size) = high[-1], low[0]
        if not name:
            return (*high[:-1], Chunk("", start << size | below, width + size), *low[1:])
        if start == below + size:
            return (*high[:-1], Chunk(name, below, width + size), *low[1:])
    return high + low


def low_bits(bits: Bits, width: int) -> Bits:
    """The lowest ``width`` bits, or all where there are no more."""
    have = width_of(bits)
    return bits if have <= width else span(bits, 0, width)


def modules(text: str) -> Iterator[Module]:
    """The modules of a text, the top first."""
    lines = iter(text.split("\n"))
    attributes: dict[str, str] = {}
    for line in lines:
        if line.startswith("attribute "):
            _, name, value = line.split(" ", 2)
            attributes[name[1:]] = value
        elif line.startswith("module "):
            yield _Reader(Module(line[7:].lstrip("\\"), attributes), lines).module
            attributes = {}


class _Reader:
    """Reads the body of a module."""

    def __init__(self, module: Module, lines: Iterator[str]) -> None:
        self.module, self._lines = module, lines
        self._known: dict[str, Bits] = {}
        attributes: dict[str, str] = {}
        for line in lines:
            if not line:
                continue
            words = line.split()
            first = words[0]
            if first == "attribute":
                attributes[words[1][1:]] = line.split(" ", 4)[4]
                continue
            if first == "wire":
                width = int(words[2])
                port = words[3] if width and words[3] in ("input", "output") else ""  # One of no bits is none.
                module.wires[words[-1]] = Wire(words[-1], width, port, attributes)
            elif first == "cell":
                module.cells.append(self._cell(Cell(words[1], words[2], attributes)))
            elif first == "process":
                if statements := self._statements():
                    module.processes.append(statements)
            elif first == "memory":
                module.memories[words[5]] = Memory(words[5], int(words[2]), int(words[4]), attributes)
            elif first == "connect":
                target, value = line.strip()[8:].split(" ", 1)
                if bits := self._bits(target):
                    module.connections.append((bits, self._bits(value)))
            elif first == "end":
                return
            else:
                raise ValueError(f"RTLIL must hold wires, cells, processes, memories and connections, not {line!r}")
            attributes = {}

    def _cell(self, cell: Cell) -> Cell:
        for line in self._lines:
            if line == "  end":
                return cell
            kind, name, value = line[4:].split(" ", 2)
            if kind == "connect":
                cell.ports[name[1:]] = self._bits(value)
            elif name in ("signed", "real"):
                name, value = value.split(" ", 1)
                cell.parameters[name[1:]] = value
            else:
                cell.parameters[name[1:]] = value
        raise ValueError(f"A cell of RTLIL must have an end, but {cell.name} has none")

    def _statements(self) -> Process:
        """Up to the end of a process or a switch."""
        found: Process = []
        outer: list[Process] = []  # Of the cases that are open: the statements around their switches.
        for line in self._lines:
            text = line.strip()
            word, _, rest = text.partition(" ")
            if word == "assign":
                target, _, value = rest.partition(" ")
                if value.startswith("["):
                    place, _, value = value.partition("] ")
                    target = f"{target} {place}]"
                found += [(bits, self._bits(value)) for bits in self._bits(target)]
            elif word == "switch":
                switch = Switch(self._bits(rest) if rest != "{}" else (), [])
                found.append(switch)
                outer.append(found)
            elif word == "case":
                parent = outer[-1][-1]
                assert isinstance(parent, Switch), "a case must stand in a switch"
                patterns = [each.partition("'")[2] for each in rest.split(", ")] if rest else []
                found = []
                parent.cases.append(Case(patterns, found))
            elif word == "end":
                if not outer:
                    return found
                found = outer.pop()
        raise ValueError("A process of RTLIL must have an end")

    def _bits(self, text: str) -> Bits:
        if text not in self._known:
            self._known[text] = self._parse(text.split())
        return self._known[text]

    def _parse(self, words: list[str]) -> Bits:
        found: list[Chunk] = []
        if words[0] == "{":
            words = words[1:-1]
        for word in words:
            if word[0] == "[":
                high, _, low = word[1:-1].partition(":")
                first = int(low or high)
                found[-1] = Chunk(found[-1].name, first, int(high) - first + 1)
            elif word[0] in "\\$":
                found.append(Chunk(word, 0, self.module.wires[word].width))
            else:
                size, _, digits = word.partition("'")
                value = digits.replace("x", "0")
                found.append(Chunk("", int(value or "0", 2), int(size)))
        return tuple(chunk for chunk in found if chunk.width)
