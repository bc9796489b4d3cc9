"""Parts of a generated design, counted in the RTLIL that it is written from, through its hierarchy: products
with the widths of their operands, memories with their shapes and places, registers, and bits of logic by kind.

It holds for every kind of layer, since it reads what was generated; `circulant.hw.resources` foresees the same from a
plan alone. In which form the Verilog is written does not matter.
"""
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from circulant.hw.emit.profile import GENERIC, Profile
from circulant.hw.emit.rtlil import Bits, Cell, Chunk, Module, Process, Switch

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
_MEMORIES = ("\\circulant_rom", "\\circulant_table", "\\circulant_ram", "\\circulant_ram_old",
             "\\circulant_loadable")
"""Modules written by hand."""
_PAIR = "circulant_packedproduct_"
"""Modules with a multiplier of two products begin with this."""
_RESET = (Chunk("\\rst", 0, 1),)

K = TypeVar("K", bound=Hashable)


def _add(mine: Counter[K], its: Counter[K], times: int) -> None:
    for key, count in its.items():
        mine[key] += count * times


@dataclass
class Inventory:
    """Counts of a design.

    Parameters:
        products: multiplications of two variables by the bits of their operands, the wider first.
        memories: by words, bits of a word, and where they lie; see `circulant.hw.emit.profile.Profile`.
        logic: bits by their kinds, see `LOGIC`; what is foreseen has those of `circulant.hw.foreseen.logic`.
        pairs: multipliers of two products, see `circulant.hw.arith.packed_product`, likewise by their operands.
    """

    products: Counter[tuple[int, int]] = field(default_factory=Counter)
    memories: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    logic: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[int, int]] = field(default_factory=Counter)

    @property
    def multipliers(self) -> int:
        """Products of two variables."""
        return self.products.total() + 2 * self.pairs.total()

    @property
    def memory_bits(self) -> int:
        """Bits of all memories."""
        return sum(words * width * count for (words, width, _), count in self.memories.items())

    def add(self, other: "Inventory", times: int = 1) -> None:
        _add(self.products, other.products, times)
        _add(self.memories, other.memories, times)
        _add(self.logic, other.logic, times)
        _add(self.pairs, other.pairs, times)

    def as_json(self) -> Mapping[str, Any]:
        return {"products": [[count, *key] for key, count in sorted(self.products.items())],
                "memories": [[count, *key] for key, count in sorted(self.memories.items())],
                "logic": dict(self.logic),
                **({"pairs": [[count, *key] for key, count in sorted(self.pairs.items())]} if self.pairs else {})}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Inventory":
        return cls(Counter({(a, b): count for count, a, b in entry["products"]}),
                   Counter({(words, width, style): count for count, words, width, style in entry["memories"]}),
                   Counter(entry["logic"]), Counter({(a, b): count for count, a, b in entry.get("pairs", [])}))


class Inventories:
    """Inventories of modules, those of each with all that lies below it.

    Parameters:
        profile: of the family that they are for.
    """

    def __init__(self, profile: Profile = GENERIC) -> None:
        self._profile = profile
        self._own: dict[str, Inventory] = {}
        self._children: dict[str, Counter[str]] = {}

    def add(self, module: Module) -> None:
        """Take in a module."""
        counter = _Counter(module, self._profile)
        self._own[module.name], self._children[module.name] = counter.found, counter.children

    def of(self, top: str) -> Inventory:
        """The inventory of a module and all below it.

        Raises:
            ValueError: when an instantiated module is missing.
        """
        known: dict[str, Inventory] = {}

        def total(name: str) -> Inventory:
            if name not in self._own:
                raise ValueError(f"A design must hold every module that it instantiates, but {name!r} is missing")
            if name not in known:
                known[name] = found = Inventory()
                found.add(self._own[name])
                for child, count in self._children[name].items():
                    found.add(total(child), count)
            return known[name]

        return total(top)


class _Counter:
    """A module: what it has itself, and its children."""

    def __init__(self, module: Module, profile: Profile) -> None:
        self._profile = profile
        self.found, self.children = Inventory(), Counter[str]()
        self._products = self.found.pairs if module.name.startswith(_PAIR) else self.found.products
        self._kept: dict[str, str] = {}  # registers: what is written into each, and the register
        self._styles = {memory.name: profile.place_of(memory.attributes.get(profile.ram, '"logic"').strip('"'))
                        for memory in module.memories.values()}
        for memory in module.memories.values():
            self.found.memories[memory.depth, memory.width, self._styles[memory.name]] += 1
        for cell in module.cells:
            self._cell(cell)
        for process in module.processes:
            counts: Counter[Chunk] = Counter()
            self._choices(process, counts, nested=False)
            self.found.logic["choices"] += sum(bits.width * max(0, count - 1) for bits, count in counts.items())

    def _cell(self, cell: Cell) -> None:
        logic, found, kind, ports = self.found.logic, self.found, cell.kind, cell.ports
        constant = any(_constant(ports[side]) for side in ("A", "B") if side in ports)
        if kind == "$mul":
            if not constant:
                a, b = sorted((cell.number("A_WIDTH"), cell.number("B_WIDTH")), reverse=True)
                self._products[a, b] += 1
        elif kind in ("$dff", "$adff", "$sdff", "$dffe"):
            logic["registers"] += cell.number("WIDTH")
            if len(ports["D"]) == 1:
                self._kept[ports["D"][0].name] = ports["Q"][0].name
        elif kind == "$memrd_v2":
            if cell.number("CLK_ENABLE") and self._styles[cell.memory] != "block":
                logic["registers"] += cell.number("WIDTH")
        elif kind in _MEMORIES:
            words, width = cell.number("DEPTH"), cell.number("WIDTH")
            style = self._profile.place_of(cell.parameters.get("STYLE", '"logic"').strip('"'))
            found.memories[words, width, style] += 1
            if style != "block":
                logic["registers"] += width
        elif kind in _SHIFTS:
            if not _constant(ports["B"]):
                logic["shifts"] += cell.number("Y_WIDTH") * cell.number("B_WIDTH")
        elif kind in _KINDS:
            bits = max(cell.number(name) for name in ("A_WIDTH", "B_WIDTH", "WIDTH", "Y_WIDTH")
                       if name in cell.parameters)
            logic[_FIXED.get(_KINDS[kind], _KINDS[kind]) if constant else _KINDS[kind]] += bits
        elif kind.startswith("\\"):
            self.children[kind[1:]] += 1

    def _choices(self, process: Process, counts: Counter[Chunk], *, nested: bool) -> None:
        """Add the values that each target is chosen from. A register that keeps its value, or that a reset clears,
        needs nothing for that."""
        for each in process:
            if isinstance(each, Switch):
                if each.selector != _RESET:
                    for case in each.cases:
                        self._choices(case.body, counts, nested=True)
            else:
                target, value = each
                keeps = not nested and len(value) == 1 and self._kept.get(target.name, "") == value[0].name != ""
                counts[target] += not keeps


def _constant(bits: Bits) -> bool:
    return len(bits) == 1 and not bits[0].name
