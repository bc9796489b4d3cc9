"""A circuit and its twin, in which some nets have other values: only what may differ is there twice.

A register is *told apart* when the twin has its own. Of the others both have the same value, which is an assumption
that has to be shown again for the next cycle: the two start alike, so what holds from a cycle to the next holds always.
Memories that are written are not told apart either. What they hold is free, as are registers of the data path: a proof
that holds for any such values holds for the right ones.
"""
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.formal.aig import FALSE, TRUE, Aig
from benchmarks.formal.machine import chosen_word
from benchmarks.formal.netlist import Bit, Box, Cell, Gate, Netlist, sides

__all__ = ["Contents", "Machine", "Twin"]


Contents = tuple[str, ...]
"""Contents of a memory, as `benchmarks.formal.netlist.Memory` has them."""


NARROW = 8
"""Bits of a register at the most that is taken for one of the control."""


@dataclass(frozen=True)
class Twin:
    """Parameters:
        differs: by what it is, a literal that is true when it differs: nets of registers that are not told apart, a
            memory's port by its number, an output by its name.
        follows: the next values of registers told apart, in the twin, by their net.
    """

    differs: dict[Bit | str, int]
    follows: dict[Bit, int]


class Machine:
    """A netlist as a graph of AND gates, in which the value of each register is a free literal.

    Members:
        at: literals by net.
        nexts: nets of next values by registers.
        control: registers that decide when something moves, and where to.
    """

    def __init__(self, circuit: Netlist, reset: str = "rst") -> None:
        self.aig, self.circuit = Aig(), circuit
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
        self._needs: dict[Bit, list[int]] = {}
        for n, cell in enumerate(circuit.cells):
            needed, driven = sides(cell)
            for bit in needed:
                self._needs.setdefault(bit, []).append(n)
            self.at |= zip(driven, self._values(cell, self.at), strict=True)
        self.control = self._control()

    def twin(self, changed: Mapping[Bit, int], images: Mapping[int, Contents] | None = None) -> Twin:
        """The twin in which some nets, registers or choices, have other literals.

        Parameters:
            images: other contents of memories that are not written, by their number.
        """
        at = dict(changed)
        self._images = {id(self.circuit.memories[n]): contents for n, contents in (images or {}).items()}
        waits = sorted({n for bit in at for n in self._needs.get(bit, ())} | {
            n for n, cell in enumerate(self.circuit.cells)
            if self._images and isinstance(cell, tuple) and id(cell[0]) in self._images})
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
        differs: dict[Bit | str, int] = {}
        for q, d in self.circuit.registers:
            if q not in changed and d in at:
                differs[q] = self._unlike(self.at[d], at[d])
        for n, memory in enumerate(self.circuit.memories):
            for places, data, enables in memory.writes:
                if any(bit in at for bit in (*places, *data, *enables)):
                    key = f"memory {n}"
                    differs[key] = self.aig.either(differs.get(key, FALSE), self._written(both, places, data, enables))
        differs |= self._outputs(at)
        return Twin({key: value for key, value in differs.items() if value != FALSE},
                    {q: both[self.nexts[q]] for q in changed if q in self.nexts})

    def _outputs(self, at: Mapping[Bit, int]) -> dict[Bit | str, int]:
        """Whether outputs differ: data of a stream count while they are valid, and nothing does during a reset."""
        aig, found = self.aig, dict[Bit | str, int]()
        outputs = self.circuit.outputs
        for name, bits in outputs.items():
            valid = next((outputs[other][0] for suffix, other in (
                ("_tdata", name.replace("_tdata", "_tvalid")), ("_tlast", name.replace("_tlast", "_tvalid")),
                ("_rdata", name.replace("_rdata", "_rvalid"))) if name.endswith(suffix) and other in outputs), None)
            counts = aig.both(self.reset ^ 1, TRUE if valid is None else self.at[valid])
            unlike = aig.any(self._unlike(self.at[bit], at[bit]) for bit in bits if bit in at)
            found[f"output {name}"] = aig.both(counts, unlike)
        return found

    def _written(self, both: "_Both", places: Iterable[Bit], data: Iterable[Bit], enables: Iterable[Bit]) -> int:
        """Whether a port writes another thing."""
        aig = self.aig
        elsewhere = aig.any(self._unlike(self.at[bit], both[bit]) for bit in places)
        return aig.any(found for bit, enable in zip(data, enables, strict=True) for found in (
            self._unlike(self.at[enable], both[enable]),
            aig.both(self.at[enable], aig.either(elsewhere, self._unlike(self.at[bit], both[bit])))))

    def _unlike(self, a: int, b: int) -> int:
        return self.aig.same(a, b) ^ 1

    def _values(self, cell: Cell, at: "Mapping[Bit, int] | _Both", *, twin: bool = False) -> list[int]:
        aig = self.aig
        if isinstance(cell, Gate):
            return [at[cell.a] ^ 1 if cell.b is None else aig.both(at[cell.a], at[cell.b])]
        places, data = sides(cell)
        if not isinstance(cell, Box) and not (memory := cell[0]).writes:
            contents = self._images.get(id(memory), memory.contents) if twin else memory.contents
            words = [[TRUE if value == "1" else FALSE for value in word] for word in contents]
            return chosen_word(aig, words, [at[bit] for bit in places])
        if not twin:
            return [aig.input() for _ in data]
        same = aig.all(aig.same(self.at[bit], at[bit]) for bit in places)
        return [aig.mux(same, self.at[bit], self.at[bit] if same == TRUE else aig.input()) for bit in data]

    def _control(self) -> set[Bit]:
        """Registers that valid and ready of the ports depend on, and what memories are addressed and written by; and
        those of few bits, among which are counts and states that choose data."""
        circuit = self.circuit
        drives = {bit: n for n, cell in enumerate(circuit.cells) for bit in sides(cell)[1]}
        waits = [bit for name, bits in circuit.outputs.items() if name.endswith(("valid", "ready")) for bit in bits]
        for memory in circuit.memories:
            if memory.writes:
                waits += [bit for places, _ in memory.reads for bit in places]
                waits += [bit for places, _, enables in memory.writes for bit in (*places, *enables)]
        seen: set[Bit] = set()
        while waits:
            bit = waits.pop()
            if bit in seen:
                continue
            seen.add(bit)
            if bit in self.nexts:
                waits.append(self.nexts[bit])
            elif bit in drives and not (isinstance(cell := circuit.cells[drives[bit]], tuple) and cell[0].writes):
                waits += sides(cell)[0]
        narrow = {bit for word in circuit.words if len(word) <= NARROW for bit in word}
        return {bit for bit in seen if bit in self.nexts} | narrow


class _Both:
    """Literals of the twin, which where it has none of its own are those of the circuit."""

    def __init__(self, own: Mapping[Bit, int], other: Mapping[Bit, int]) -> None:
        self._own, self._other = own, other

    def __getitem__(self, bit: Bit) -> int:
        found = self._own.get(bit)
        return self._other[bit] if found is None else found

