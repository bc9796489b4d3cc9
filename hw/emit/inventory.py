"""Parts of a generated design, counted in the RTLIL that it is written from, through its hierarchy: products
with the widths of their operands, memories with their shapes and places, registers, and bits of logic by kind.

It holds for every kind of layer, since it reads what was generated; `circulant.hw.resources` foresees the same from a
plan alone. In which form the Verilog is written does not matter.
"""
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from circulant.sim.artifact import Json

__all__ = ["LOGIC", "Inventory", "Inventories"]

LOGIC = ("registers", "sums", "increments", "comparisons", "thresholds", "equalities", "choices", "gates", "shifts")
"""Kinds of bits that are counted: of registers; sums and negations, those with a constant apart; comparisons by size,
those with a constant apart; equalities; values chosen from by conditions; gates; shifts by variable distances, times
the bits of the distance."""

_KINDS = {"$add": "sums", "$sub": "sums", "$neg": "sums", "$lt": "comparisons", "$le": "comparisons",
          "$gt": "comparisons", "$ge": "comparisons", "$eq": "equalities", "$ne": "equalities", "$mux": "choices",
          "$and": "gates", "$or": "gates", "$xor": "gates", "$reduce_and": "gates", "$reduce_or": "gates",
          "$reduce_xor": "gates", "$reduce_bool": "gates"}
_FIXED = {"sums": "increments", "comparisons": "thresholds"}
"""Kinds of bits where one operand is a constant."""
_SHIFTS = ("$shl", "$shr", "$sshr", "$shift", "$shiftx")
_MEMORIES = {"\\circulant_rom": False, "\\circulant_ram": True, "\\circulant_loadable": True}
"""Modules written by hand, and whether they can be written."""

_PART = re.compile(r"(\S+)(?: \[(\d+)(?::(\d+))?\])?")
_CONSTANT = re.compile(r"-?\d+(?:'[01xz-]+)?$")
_WIRE = re.compile(r"  wire width (\d+).* (\S+)$")
_MEMORY = re.compile(r"  memory width (\d+) size (\d+) (\S+)$")


@dataclass
class Inventory:
    """Counts of a design.

    Parameters:
        products: multiplications of two variables by the bits of their operands, the wider first.
        memories: by words, bits of a word, and where they lie: "block", "distributed" or "logic"; see
            `circulant.hw.emit.target.ram_style`.
        logic: bits by their kinds, see `LOGIC`.
    """

    products: Counter[tuple[int, int]] = field(default_factory=Counter)
    memories: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    logic: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Inventory", times: int = 1) -> None:
        for mine, its in ((self.products, other.products), (self.memories, other.memories), (self.logic, other.logic)):
            for key, count in its.items():
                mine[key] += count * times  # type: ignore[index]

    def as_json(self) -> Json:
        return {"products": [[count, *key] for key, count in sorted(self.products.items())],
                "memories": [[count, *key] for key, count in sorted(self.memories.items())],
                "logic": {kind: self.logic[kind] for kind in LOGIC}}

    @classmethod
    def from_json(cls, entry: Json) -> "Inventory":
        return cls(Counter({(a, b): count for count, a, b in entry["products"]}),
                   Counter({(words, width, style): count for count, words, width, style in entry["memories"]}),
                   Counter(entry["logic"]))


class Inventories:
    """Inventories of modules, read one text after the other."""

    def __init__(self) -> None:
        self._own: dict[str, Inventory] = {}
        self._children: dict[str, Counter[str]] = {}

    def read(self, rtlil: str) -> None:
        """Take in the modules of a text."""
        for text in rtlil.split("\nmodule ")[1:]:
            name, _, body = text.partition("\n")
            reader = _Reader(body.split("\n"))
            self._own[name.strip()], self._children[name.strip()] = reader.found, reader.children

    def of(self, top: str) -> Inventory:
        """The inventory of a module and all below it."""
        known: dict[str, Inventory] = {}

        def total(name: str) -> Inventory:
            if name not in known:
                known[name] = found = Inventory()
                found.add(self._own[name])
                for child, count in self._children[name].items():
                    found.add(total(child), count)
            return known[name]

        return total(f"\\{top}")


class _Reader:
    """A module: what it has itself, and its children."""

    def __init__(self, lines: list[str]) -> None:
        self.found, self.children = Inventory(), Counter[str]()
        self._wires: dict[str, int] = {}
        self._kept: dict[str, str] = {}  # registers: what is written into each, and the register
        self._memories: dict[str, tuple[int, int, str]] = {}
        self._clocked: set[str] = set()
        self._processes: list[list[str]] = []
        self._read(iter(lines))
        for key in self._memories.values():
            self.found.memories[key] += 1
        for process in self._processes:
            self.found.logic["choices"] += self._choices(process)

    def _read(self, lines: Iterator[str]) -> None:
        style = "logic"
        for line in lines:
            if line.startswith("  wire "):
                wire = _WIRE.match(line)
                assert wire, line
                self._wires[wire[2]] = int(wire[1])
            elif line.startswith("  attribute \\ram_style"):
                style = line.split('"')[1]
            elif line.startswith("  memory "):
                memory = _MEMORY.match(line)
                assert memory, line
                self._memories[memory[3]] = int(memory[2]), int(memory[1]), style
                style = "logic"
            elif line.startswith("  cell "):
                kind = line.split()[1]
                self._cell(kind, dict(_entry(each) for each in _until_end(lines)))
            elif line.startswith("  process "):
                self._processes.append(list(_until_end(lines)))
            elif line == "end":
                return

    def _cell(self, kind: str, entries: dict[str, str]) -> None:
        logic, found = self.found.logic, self.found
        if kind == "$mul":
            if not any(_CONSTANT.match(entries[side]) for side in ("A", "B")):
                a, b = sorted((int(entries["A_WIDTH"]), int(entries["B_WIDTH"])), reverse=True)
                found.products[a, b] += 1
        elif kind in ("$dff", "$adff", "$sdff", "$dffe"):
            logic["registers"] += int(entries["WIDTH"])
            self._kept[_bare(entries["D"])] = _bare(entries["Q"])
        elif kind == "$memrd_v2":
            memory = entries["MEMID"].strip('"').replace("\\\\", "\\")
            if entries["CLK_ENABLE"] == "1" and self._memories[memory][2] != "block":
                logic["registers"] += int(entries["WIDTH"])
        elif kind in _MEMORIES:
            words, width, style = int(entries["DEPTH"]), int(entries["WIDTH"]), entries["STYLE"].strip('"')
            found.memories[words, width, style] += 1
            if style != "block":
                logic["registers"] += width
        elif kind in _SHIFTS:
            if not _CONSTANT.match(entries["B"]):
                logic["shifts"] += int(entries["Y_WIDTH"]) * int(entries["B_WIDTH"])
        elif kind in _KINDS:
            width = max(int(entries[name]) for name in ("A_WIDTH", "B_WIDTH", "WIDTH") if name in entries)
            fixed = any(_CONSTANT.match(entries[side]) for side in ("A", "B") if side in entries)
            logic[_FIXED.get(_KINDS[kind], _KINDS[kind]) if fixed else _KINDS[kind]] += max(
                width, int(entries.get("Y_WIDTH", 0)))
        elif kind.startswith("\\"):
            self.children[kind] += 1

    def _choices(self, process: Iterable[str]) -> int:
        """Bits of all values but one that each target is chosen from. A register that keeps its value, or that a reset
        clears, needs nothing for that."""
        counts: Counter[str] = Counter()
        widths: dict[str, int] = {}
        depth, reset = 0, 0
        for line in process:
            words = line.split()
            if not words:
                continue
            if words[0] == "switch":
                depth += 1
                if not reset and words[1] == "\\rst":
                    reset = depth
            elif words[0] == "end":
                if reset == depth:
                    reset = 0
                depth -= 1
            elif words[0] == "assign" and not reset:
                found = _PART.match(line.strip()[len("assign "):])
                assert found, line
                target, whole = found[1], found[0]
                value = line.strip()[len("assign ") + len(whole):].strip()
                keeps = not depth and self._kept.get(target) == _bare(value)
                counts[whole] += not keeps
                widths[whole] = self._width(found)
        return sum(widths[each] * max(0, count - 1) for each, count in counts.items())

    def _width(self, part: re.Match[str]) -> int:
        name, high, low = part.groups()
        if high is None:
            return self._wires.get(name, 1)
        return int(high) - int(low or high) + 1


def _until_end(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line == "  end":
            return
        yield line


def _entry(line: str) -> tuple[str, str]:
    """The name and the value of a parameter or a connection."""
    _, name, value = line.strip().split(" ", 2)
    return name.lstrip("\\"), value


def _bare(signal: str) -> str:
    return signal.split(" ")[0]
