"""Stains of what a mutant changes: a proof that they reach no output, without the values of data.

Each net has a *stain*, which is true where a twin, in which the mutant is alive, may have another value. Of control the
values are there, in the circuit and in the twin; of data only the stain is, one for a word. So sums and products cost
nothing: what is added to a stained word is stained, and what a choice does not take is not. After Tiwari et al.,
"Complete Information Flow Tracking from the Gates Up" (ASPLOS 2009).
"""
from collections.abc import Iterable, Sequence
from functools import cached_property

from benchmarks.formal.aig import FALSE, TRUE
from benchmarks.formal.induction import WAYS, cone, path
from benchmarks.formal.netlist import Bit, Box, Cell, Gate, sides
from benchmarks.formal.twin import NARROW, Machine

__all__ = ["Stains"]

FEW = 8
"""Bits of data at the most that a net may depend on whose value is looked at."""

MORE = ((f"dc2; scorr -C 5000; dc2; print_stats; {WAYS[0][0]}", 0.5), (WAYS[1][0], 0.5))
"""Commands as in `WAYS`, the first one behind a merging that takes out what is never stained."""


class Stains:
    """The stains of a circuit."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def none(self, changed: Sequence[Bit], seconds: float) -> bool:
        """A proof that no output is ever stained: true where one was found.

        Parameters:
            changed: nets that are false in the circuit and true in the twin.
        """
        found = _Spread(self._machine, changed, self._reached(changed), self._data)
        if found.bad == FALSE:
            return True
        _, text = cone(self._machine.aig, found.bad, found.follows, self._machine.begun)
        return path(text, MORE, seconds) is None

    @cached_property
    def _after(self) -> dict[Bit, list[Bit]]:
        """The nets that depend on each net, in this cycle or the next one."""
        circuit = self._machine.circuit
        pairs = [*map(sides, circuit.cells), *(((d,), (q,)) for q, d in circuit.registers)]
        for memory in circuit.memories:
            read = tuple(bit for _, data in memory.reads for bit in data)
            pairs += [(bits, read) for port in memory.writes for bits in port]
        after: dict[Bit, list[Bit]] = {}
        for needs, drives in pairs:
            for bit in needs:
                after.setdefault(bit, []).extend(drives)
        return after

    def _reached(self, changed: Sequence[Bit]) -> set[Bit]:
        found, waits = set(changed), [*changed]
        while waits:
            new = [bit for bit in self._after.get(waits.pop(), ()) if bit not in found]
            found.update(new)
            waits += new
        return found

    @cached_property
    def _data(self) -> dict[Bit, frozenset[Bit] | None]:
        """The bits of data that nets depend on; None where these are more than `FEW`."""
        machine, circuit = self._machine, self._machine.circuit
        found: dict[Bit, frozenset[Bit] | None] = {
            bit: frozenset([bit]) for bits in circuit.inputs.values() if len(bits) > NARROW for bit in bits}
        found |= {bit: frozenset([bit]) for bit, _ in circuit.registers if bit not in machine.exact}
        for cell in circuit.cells:
            needs, drives = sides(cell)
            sources = [found[bit] for bit in needs if bit in found]
            if isinstance(cell, tuple) and cell[0].writes:
                found |= {bit: frozenset([bit]) for bit in drives}
            elif isinstance(cell, Box) or None in sources:
                found |= dict.fromkeys(drives)
            elif sources:
                union = frozenset[Bit]().union(*(source for source in sources if source is not None))
                found |= dict.fromkeys(drives, union if len(union) <= FEW else None)
        return found


class _Spread:
    """The stains of some changed nets.

    Members:
        bad: whether an output is stained.
        follows: next values of registers, of what they are in the twin, and of stains.
    """

    def __init__(self, machine: Machine, changed: Iterable[Bit], reached: set[Bit],
                 data: dict[Bit, frozenset[Bit] | None]) -> None:
        aig, circuit = machine.aig, machine.circuit
        self._aig, self._at, self._data = aig, machine.at, data
        self._twin, self._stain = dict.fromkeys(changed, TRUE), dict[Bit, int]()
        own = {bit: (aig.input(), aig.input()) for bit in machine.exact & reached}
        words = {rest: aig.input() for word in circuit.words
                 if not reached.isdisjoint(rest := tuple(bit for bit in word if bit not in machine.exact))}
        held = {id(memory): aig.input() for memory in circuit.memories
                if any(not reached.isdisjoint(bits) for port in memory.writes for bits in port)}
        # In the first cycle, that of the reset, both are the same.
        for bit, (twin, stain) in own.items():
            self._twin[bit] = aig.mux(machine.begun, twin, machine.at[bit])
            self._stain[bit] = aig.both(machine.begun, stain)
        for word, stain in words.items():
            self._stain |= dict.fromkeys(word, aig.both(machine.begun, stain))
        self._held = {key: aig.both(machine.begun, stain) for key, stain in held.items()}
        for cell in circuit.cells:
            if not reached.isdisjoint(sides(cell)[1]):
                self._pass(cell)
        self.follows = {machine.at[bit]: machine.at[machine.nexts[bit]] for bit in machine.exact}
        for bit, (twin, stain) in own.items():
            after = machine.nexts[bit]
            self.follows |= {twin: self._other(after), stain: self._stain.get(after, FALSE)}
        for word, literal in words.items():
            self.follows[literal] = aig.any(self._differs(machine.nexts[bit]) for bit in word)
        for memory in circuit.memories:
            if (key := id(memory)) in held:
                self.follows[held[key]] = aig.either(self._held[key], aig.any(
                    self._written(*port) for port in memory.writes))
        self.bad = aig.any(aig.both(counts, self._differs(bit)) for _, bits, counts in machine.counting()
                           for bit in bits)

    def _known(self, bit: Bit) -> bool:
        """Whether its value is looked at."""
        return self._data.get(bit, ()) is not None

    def _other(self, bit: Bit) -> int:
        """Its value in the twin, unless it is stained."""
        return self._twin.get(bit, self._at[bit])

    def _differs(self, bit: Bit) -> int:
        return self._aig.either(self._stain.get(bit, FALSE), self._aig.same(self._at[bit], self._other(bit)) ^ 1)

    def _pass(self, cell: Cell) -> None:
        """Stains and values of the nets that a cell drives."""
        aig, at = self._aig, self._at
        needs, drives = sides(cell)
        stains = [self._stain.get(bit, FALSE) for bit in needs]
        if isinstance(cell, Gate) and cell.b is None:
            self._set(cell.y, self._other(cell.a) ^ 1, stains[0])
        elif isinstance(cell, Gate) and self._known(needs[0]) and self._known(needs[1]):
            a, b = map(self._other, needs)
            self._set(cell.y, aig.both(a, b), aig.any((
                aig.both(*stains), aig.both(stains[0], b), aig.both(a, stains[1]))))
        elif isinstance(cell, Gate):  # Zero at a side that is known hides the other one.
            a, b = (self._differs(bit) for bit in needs)
            hidden, shown = (at[bit] if self._known(bit) else TRUE for bit in needs)
            self._set(cell.y, at[cell.y], aig.any((
                aig.both(a, shown), aig.both(b, hidden), aig.both(a, b))))
        else:
            stain = aig.any(map(self._differs, needs))
            if isinstance(cell, tuple):
                stain = aig.either(stain, self._held.get(id(cell[0]), FALSE))
            for bit in drives:
                self._set(bit, at[bit], stain)

    def _set(self, bit: Bit, twin: int, stain: int) -> None:
        """A value that is not looked at, and another one in the twin, is a stain."""
        if self._known(bit):
            self._twin[bit], self._stain[bit] = twin, stain
        else:
            self._stain[bit] = self._aig.either(stain, self._aig.same(twin, self._at[bit]) ^ 1)

    def _written(self, places: Sequence[Bit], data: Sequence[Bit], enables: Sequence[Bit]) -> int:
        """Whether a port may write another thing, or elsewhere."""
        aig, astray = self._aig, self._aig.any(map(self._differs, places))
        return aig.any(found for bit, enable in zip(data, enables, strict=True) for found in (
            self._differs(enable), aig.both(self._at[enable], aig.either(astray, self._differs(bit)))))
