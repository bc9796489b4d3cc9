"""A circuit and its twin, in which some nets have other values: only what may differ is there twice.

A register is *told apart* when the twin has its own. Of the others both have the same value, which is an assumption
that has to be shown again for the next cycle: the two start alike, so what holds from a cycle to the next holds always.
What memories hold that are written is free, as are registers of the data path: a proof that holds for any such values
holds for the right ones. Of a memory that is written otherwise one word is *watched*, any of them: whether it differs,
and if so the twin reads anything there.
"""
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.formal.aig import FALSE, TRUE, Aig
from benchmarks.formal.netlist import Bit, Box, Cell, Gate, Netlist, sides

__all__ = ["MEMORY", "Contents", "Key", "Machine", "Twin", "Watched", "chosen_word"]


Contents = tuple[str, ...]
"""Contents of a memory, as `benchmarks.formal.netlist.Memory` has them."""


MEMORY = "memory "
"""Before the number of a memory, the name of what it is written."""

Key = tuple[int, Bit] | str

NARROW = 8
"""Bits of a register at the most that is taken for one of the control."""

PROGRAM = 15
"""Bits of a register at the most that belongs to the control where the control depends on it."""


@dataclass(frozen=True)
class Watched:
    """A word of a memory.

    Parameters:
        address: free literals that stay as they are.
        stained: whether the twin has another one there.
    """

    address: tuple[int, ...]
    stained: int


@dataclass(frozen=True)
class Twin:
    """Parameters:
        differs: by what it is, a literal that is true when it differs: registers that are not told apart by their side
            and net, a memory by its number, an output by its name.
        follows: the next values of registers told apart, and of what is known of watched words, by their literals.
    """

    differs: dict[Key, int]
    follows: dict[int, int]


class Machine:
    """A netlist as a graph of AND gates, in which the value of each register is a free literal.

    Members:
        at: literals by net.
        nexts: nets of next values by registers.
        control: registers that decide when something moves, and where to.

    Parameters:
        inner: whether it is a part of a circuit: what is around may use any output in any cycle.
    """

    def __init__(self, circuit: Netlist, reset: str = "rst", *, inner: bool = False) -> None:
        self.aig, self.circuit, self._inner = Aig(), circuit, inner
        self.at: dict[Bit, int] = {0: FALSE, 1: TRUE}
        self.begun = self.aig.input()
        for name, bits in circuit.inputs.items():
            self.at |= {bit: self.aig.either(self.aig.input(), self.begun ^ 1) if name == reset else self.aig.input()
                        for bit in bits}
        self.reset = self.at[circuit.inputs[reset][0]]
        self.at |= {bit: self.aig.input() for bit, _ in circuit.registers}
        self.at |= {bit: FALSE for bits in circuit.choices.values() for bit in bits}
        self.nexts = dict(circuit.registers)
        self._images: dict[int, Contents] = {}
        self._watched: dict[int, Watched] = {}
        self._number = {id(memory): n for n, memory in enumerate(circuit.memories)}
        self._needs: dict[Bit, list[int]] = {}
        self._drives = {bit: cell for cell in circuit.cells for bit in sides(cell)[1]}
        for n, cell in enumerate(circuit.cells):
            needed, driven = sides(cell)
            for bit in needed:
                self._needs.setdefault(bit, []).append(n)
            self.at |= zip(driven, self._values(cell, self.at), strict=True)
        self.control = self._control()

    def twin(self, changed: Mapping[Bit, int], own: Sequence[Mapping[Bit, int]],
             images: Mapping[int, Contents] | None = None, watched: Mapping[int, Watched] | None = None) -> Twin:
        """The twin in which some choices have other literals, and where words are watched what depends on them.

        Three sides are compared with the circuit: the twin; the twin that reads anything where a watched word is
        stained; and the circuit that does. What is written must not depend on what stains hold: so no stain causes
        another, and as any one is without effect, so are all of them.

        Parameters:
            own: of each side the registers told apart, with free literals; of the first one alone where none is
                watched. All begin as those of the circuit.
            images: other contents of memories that are not written, by their number.
            watched: of memories that are written, by their number.
        """
        watched = dict(watched or {})
        all_sides, differs, follows = list[_Both](), dict[Key, int](), dict[int, int]()
        whole = _Both({}, self.at)
        for n, registers in enumerate(own):
            begin = all_sides[0] if n == 1 else whole
            values = {bit: self.aig.mux(self.begun, literal, begin[bit]) for bit, literal in registers.items()}
            self._images, self._watched = dict(images or {}) if n < 2 else {}, watched if n else {}
            side = self._side(({**changed} if n < 2 else {}) | values)
            all_sides.append(side)
            differs |= {(n, q): self._unlike(self.at[d], side[d]) for q, d in self.circuit.registers
                        if q not in registers}
            follows |= {literal: side[self.nexts[bit]] for bit, literal in registers.items()}
            differs |= self._outputs(side, differs)
            for m, memory in enumerate(self.circuit.memories):
                if n == 0 and m in watched:
                    continue
                key, other = f"{MEMORY}{m}", whole
                if m in watched:
                    key, other = f"what is read of stains in {key}", begin
                differs[key] = self.aig.any([differs.get(key, FALSE), *(
                    self._written(other, side, *port) for port in memory.writes)])
        for m, word in watched.items():
            follows |= {literal: literal for literal in word.address}
            follows[word.stained] = self._stains(all_sides[0], m, word)
        return Twin({key: value for key, value in differs.items() if value != FALSE}, follows)

    def counting(self) -> Iterator[tuple[str, tuple[Bit, ...], int]]:
        """Each output, and whether it counts: data of a stream do while they are valid, and nothing does during a
        reset; of an inner part all do always."""
        outputs = self.circuit.outputs
        for name, bits in outputs.items():
            valid = next((outputs[other][0] for suffix, other in (
                ("_tdata", name.replace("_tdata", "_tvalid")), ("_tlast", name.replace("_tlast", "_tvalid")),
                ("_rdata", name.replace("_rdata", "_rvalid"))) if name.endswith(suffix) and other in outputs), None)
            yield name, bits, TRUE if self._inner else self.aig.both(
                self.reset ^ 1, TRUE if valid is None else self.at[valid])

    @cached_property
    def exact(self) -> set[Bit]:
        """Registers of the control, and those of no wide word that what these hold next depends on."""
        size = {bit: len(word) for word in self.circuit.words for bit in word}
        few = {bit for bit in self.nexts if size.get(bit, 1) <= PROGRAM}
        return self.control | self._behind((self.nexts[bit] for bit in self.control & few), few)

    def _side(self, at: dict[Bit, int]) -> "_Both":
        """The literals of all nets, those that are other ones than in the circuit besides ``at``."""
        special = self._watched.keys() | self._images.keys()
        waits = sorted({n for bit in at for n in self._needs.get(bit, ())} | {
            n for n, cell in enumerate(self.circuit.cells)
            if isinstance(cell, tuple) and self._number[id(cell[0])] in special})
        known = set(waits)
        both = _Both(at, self.at)
        while waits:
            n = heapq.heappop(waits)
            cell = self.circuit.cells[n]
            for bit, value in zip(sides(cell)[1], self._values(cell, both, twin=True), strict=True):
                if value == self.at[bit]:
                    continue
                at[bit] = value
                for other in self._needs.get(bit, ()):
                    if other not in known:
                        known.add(other)
                        heapq.heappush(waits, other)
        return both

    def _stains(self, both: "_Literals", n: int, word: Watched) -> int:
        """Whether the watched word differs in the next cycle: the same port must have written the same to both, and
        none another thing behind it."""
        aig, memory = self.aig, self.circuit.memories[n]
        bits = [self._stained(word)] * memory.width
        for places, data, enables in memory.writes:
            here, there = (aig.all(aig.same(at[bit], own) for bit, own in zip(places, word.address, strict=True))
                           for at in (self.at, both))
            for i, (bit, enable) in enumerate(zip(data, enables, strict=True)):
                one, other = aig.both(here, self.at[enable]), aig.both(there, both[enable])
                bits[i] = aig.mux(aig.both(one, other), self._unlike(self.at[bit], both[bit]),
                                  aig.either(aig.either(one, other), bits[i]))
        return aig.any(bits)

    def _stained(self, word: Watched) -> int:
        return self.aig.both(word.stained, self.begun)  # At first both have the same.

    def _outputs(self, side: "_Literals", found: Mapping[Key, int]) -> dict[Key, int]:
        """Whether outputs differ, besides what was found of them."""
        aig, differs = self.aig, dict[Key, int]()
        for name, bits, counts in self.counting():
            unlike = aig.any(self._unlike(self.at[bit], side[bit]) for bit in bits)
            key = f"output {name}"
            differs[key] = aig.either(found.get(key, FALSE), aig.both(counts, unlike))
        return differs

    def _written(self, one: "_Literals", other: "_Literals", places: Iterable[Bit], data: Iterable[Bit],
                 enables: Iterable[Bit]) -> int:
        """Whether a port writes another thing."""
        aig = self.aig
        elsewhere = aig.any(self._unlike(one[bit], other[bit]) for bit in places)
        return aig.any(found for bit, enable in zip(data, enables, strict=True) for found in (
            self._unlike(one[enable], other[enable]),
            aig.both(one[enable], aig.either(elsewhere, self._unlike(one[bit], other[bit])))))

    def _unlike(self, a: int, b: int) -> int:
        return self.aig.same(a, b) ^ 1

    def _values(self, cell: Cell, at: "_Literals", *, twin: bool = False) -> list[int]:
        aig = self.aig
        if isinstance(cell, Gate):
            return [at[cell.a] ^ 1 if cell.b is None else aig.both(at[cell.a], at[cell.b])]
        places, data = sides(cell)
        if not isinstance(cell, Box) and not (memory := cell[0]).writes:
            contents = self._images.get(self._number[id(memory)], memory.contents) if twin else memory.contents
            words = [[TRUE if value == "1" else FALSE for value in word] for word in contents]
            return chosen_word(aig, words, [at[bit] for bit in places])
        if not twin:
            return [aig.input() for _ in data]
        same = aig.all(aig.same(self.at[bit], at[bit]) for bit in places)
        if not isinstance(cell, Box) and (word := self._watched.get(self._number[id(cell[0])])) is not None:
            here = aig.all(aig.same(self.at[bit], own) for bit, own in zip(places, word.address, strict=True))
            same = aig.both(same, aig.both(here, self._stained(word)) ^ 1)
        return [aig.mux(same, self.at[bit], self.at[bit] if same == TRUE else aig.input()) for bit in data]

    def _control(self) -> set[Bit]:
        """Registers that valid and ready of the ports depend on, and what memories are addressed and written by; and
        those of few bits, among which are counts and states that choose data."""
        circuit = self.circuit
        waits = [bit for name, bits in circuit.outputs.items()
                 if name.endswith(("valid", "ready")) or (self._inner and len(bits) <= NARROW) for bit in bits]
        for memory in circuit.memories:
            if memory.writes:
                waits += [bit for places, _ in memory.reads for bit in places]
                waits += [bit for places, _, enables in memory.writes for bit in (*places, *enables)]
        narrow = {bit for word in circuit.words if len(word) <= NARROW for bit in word}
        return self._behind(waits, set(self.nexts)) | narrow

    def _behind(self, nets: Iterable[Bit], among: set[Bit]) -> set[Bit]:
        """Registers, ``among`` some, that nets depend on, through memories that are not written."""
        waits, seen = [*nets], set[Bit]()
        while waits:
            bit = waits.pop()
            if bit in seen:
                continue
            seen.add(bit)
            if bit in among:
                waits.append(self.nexts[bit])
            elif bit in self._drives and not (isinstance(cell := self._drives[bit], tuple) and cell[0].writes):
                waits += sides(cell)[0]
        return seen & among


class _Both:
    """Literals of the twin, which where it has none of its own are those of the circuit."""

    def __init__(self, own: Mapping[Bit, int], other: Mapping[Bit, int]) -> None:
        self._own, self._other = own, other

    def __getitem__(self, bit: Bit) -> int:
        found = self._own.get(bit)
        return self._other[bit] if found is None else found


_Literals = Mapping[Bit, int] | _Both


def chosen_word(aig: Aig, words: Sequence[list[int]], address: Sequence[int]) -> list[int]:
    """The literals at an address, the lowest bit first; those of any word beyond the last one."""
    level = list(words)
    for bit in address:
        level = [[aig.mux(bit, one, zero) for one, zero in zip(level[min(n + 1, len(level) - 1)], level[n],
                                                                strict=True)]
                 if n + 1 < len(level) else level[n] for n in range(0, len(level), 2)]
    return level[0]
