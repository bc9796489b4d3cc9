"""Whether a part of a circuit and its twin are the same for all that its registers can have been loaded with.

A register is replaced by what it was loaded with last, which is computed from registers that were loaded before, and so
on; where that goes too far, by anything. Registers that load under the same condition have loaded in the same cycle. A
word of a memory is what was written there. So a sum that is wider than its terms need is known not to be so large.

What a register holds from before its first load is not considered: that such contents do not count, simulations with
unknown values show (``tests/test_four_state.py``).
"""
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from benchmarks.formal.aig import FALSE, TRUE, Aig
from benchmarks.formal.check import abc
from benchmarks.formal.machine import chosen_word
from benchmarks.formal.netlist import Bit, Box, Gate, Memory, Netlist

__all__ = ["DEPTH", "same_when_loaded"]

DEPTH = 10
"""Loads that are followed back."""

GATES = 400_000
"""Gates at the most of a proof."""

Moment = tuple["Moment", object] | None
"""A cycle: that of the proof, or the last load before a moment under some condition."""


@dataclass(frozen=True)
class Load:
    """How a register gets its value.

    Parameters:
        when: the net of the condition, or what stands for it, under which it loads; it keeps its value otherwise.
        value: the net of what it loads.
        inverted: whether the value is the inverse of it.
        constants: what it may be set to instead.
        conditions: nets that decide which of these happens.
    """

    when: object
    value: Bit
    inverted: bool
    constants: frozenset[int] = frozenset()
    conditions: frozenset[Bit] = frozenset()


def same_when_loaded(circuit: Netlist, chosen: Mapping[Bit, int], *, seconds: float = 10.0, depth: int = DEPTH) -> bool:
    """Whether outputs, and what is written and loaded, are the same where the nets ``chosen`` are 1 as where they are
    0.

    Parameters:
        circuit: without boxes.
    """
    return _Loaded(circuit, chosen, depth).same(seconds)


@dataclass(frozen=True)
class _Set:
    """A register that a condition sets to a constant, and that is another net otherwise, or its inverse."""

    constant: int
    condition: Bit
    other: Bit
    inverted: bool


class _TooLarge(Exception):
    """More gates than `GATES`."""


class _Loaded:
    def __init__(self, circuit: Netlist, chosen: Mapping[Bit, int], depth: int) -> None:
        self._circuit, self._chosen, self._depth, self._aig = circuit, chosen, depth, Aig()
        self._drives: dict[Bit, Gate | tuple[Memory, int, int]] = {}
        for cell in circuit.cells:
            if isinstance(cell, Gate):
                self._drives[cell.y] = cell
            elif isinstance(cell, Box):
                raise RuntimeError("A multiplier must be gates here")
            else:
                memory, port = cell
                self._drives |= {bit: (memory, port, n) for n, bit in enumerate(memory.reads[port][1])}
        self._nexts = dict(circuit.registers)
        self._touched = self._reached(chosen)
        self._load = cache(self._load_of)
        self._free = cache(lambda moment, key: self._aig.input())
        self._known: dict[tuple[Moment, Bit, bool], int] = {}

    def same(self, seconds: float) -> bool:
        aig, circuit = self._aig, self._circuit
        seen = [bit for bits in circuit.outputs.values() for bit in bits]
        seen += [bit for memory in circuit.memories for places, data, enables in memory.writes
                 for bit in (*places, *data, *enables)]
        for q, d in circuit.registers:
            load = self._load(q)
            seen += [d] if load is None else load.conditions
        try:
            unlike = aig.any(aig.same(self._at(None, bit, False, 0), self._at(None, bit, True, 0)) ^ 1
                             for bit in dict.fromkeys(seen))
        except (_TooLarge, RecursionError):
            return False
        if unlike in (FALSE, TRUE):
            return unlike == FALSE
        with tempfile.TemporaryDirectory(prefix="circulant-loaded-") as temporary:
            folder = Path(temporary)
            aig.write(folder / "unlike.aig", [unlike])
            return "UNSATISFIABLE" in abc("read unlike.aig; cleanup; iprove", folder, seconds)

    def _at(self, moment: Moment, net: Bit, twin: bool, depth: int) -> int:
        """The literal of a net at a moment, in the circuit or its twin."""
        waits = [net]
        while waits:
            bit = waits[-1]
            key = moment, bit, twin
            if key in self._known:
                waits.pop()
                continue
            if len(self._aig) > GATES:
                raise _TooLarge
            drive = self._drives.get(bit)
            if isinstance(drive, Gate):
                sides = [drive.a] if drive.b is None else [drive.a, drive.b]
                if missing := [side for side in sides if (moment, side, twin) not in self._known]:
                    waits += missing
                    continue
                a = self._known[moment, drive.a, twin]
                self._known[key] = a ^ 1 if drive.b is None else self._aig.both(a, self._known[moment, drive.b, twin])
            else:
                self._known[key] = self._leaf(moment, bit, twin, depth)
        return self._known[moment, net, twin]

    def _leaf(self, moment: Moment, bit: Bit, twin: bool, depth: int) -> int:
        """The same of a net that no gate drives."""
        if bit in (0, 1):
            return bit
        if bit in self._chosen:
            return TRUE if twin else FALSE
        if (drive := self._drives.get(bit)) is not None:
            assert not isinstance(drive, Gate)
            return self._read(moment, *drive, twin, depth)
        load = self._load(bit) if bit in self._nexts else None
        if load is None:
            return self._free(moment, bit)  # In the twin it is the same, as what comes next is.
        if depth >= self._depth:
            return self._free(moment, (bit, twin and bit in self._touched))
        value = self._at((moment, load.when), load.value, twin, depth + 1) ^ load.inverted
        for constant in load.constants:
            value = self._aig.mux(self._free(moment, (bit, constant)), constant, value)
        return value

    def _read(self, moment: Moment, memory: Memory, port: int, bit: int, twin: bool, depth: int) -> int:
        if not memory.writes:
            words = [[TRUE if word[bit] == "1" else FALSE] for word in memory.contents]
            places = [self._at(moment, each, twin, depth) for each in memory.reads[port][0]]
            return chosen_word(self._aig, words, places)[0]
        address = memory.reads[port][0]
        word = id(memory), address
        if any(each in self._touched for each in address):
            return self._free(moment, (word, bit, twin))
        if len(memory.writes) > 1 or depth >= self._depth:  # What is written is the same in the twin.
            return self._free(moment, (word, bit))
        return self._at((moment, word), memory.writes[0][1][bit], twin, depth + 1)

    def _reached(self, nets: Iterable[Bit]) -> set[Bit]:
        """All nets that may depend on some, at once or later."""
        uses = dict[Bit, list[Bit]]()
        for q, d in self._circuit.registers:
            uses.setdefault(d, []).append(q)
        for bit, drive in self._drives.items():
            if isinstance(drive, Gate):
                needed = [drive.a] if drive.b is None else [drive.a, drive.b]
            else:
                memory, port, _ = drive
                needed = [*memory.reads[port][0], *(each for places, data, enables in memory.writes
                                                    for each in (*places, *data, *enables))]
            for each in needed:
                uses.setdefault(each, []).append(bit)
        waits, seen = list(nets), set(nets)
        while waits:
            for bit in uses.get(waits.pop(), ()):
                if bit not in seen:
                    seen.add(bit)
                    waits.append(bit)
        return seen

    def _load_of(self, q: Bit) -> Load | None:
        """How a register loads; None where that is not to be seen. The circuit is that of gates as `aigmap` writes a
        choice: not (not (when and value) and not (not when and kept))."""
        load, set_to, conditions = self._peeled(q, self._nexts[q], inverted=False), set[int](), set[Bit]()
        while isinstance(load, _Set):
            set_to.add(load.constant)
            conditions.add(load.condition)
            load = self._peeled(q, load.other, inverted=load.inverted)
        return load and replace(load, constants=frozenset(set_to), conditions=load.conditions | conditions)

    def _peeled(self, q: Bit, net: Bit, *, inverted: bool) -> "Load | _Set | None":
        """The outermost choice: a load, or a constant that it may be set to instead."""
        net, inverted = self._through(net, inverted)
        if net == q:
            return None if inverted else Load("never", 0, False)
        if not self._needs(net, q):
            return Load("always", net, inverted)
        gate = self._drives.get(net)
        if not isinstance(gate, Gate) or gate.b is None:
            return None
        sides = [self._through(each, False) for each in (gate.a, gate.b)]
        if inverted:
            for (one, one_inverted), (other, other_inverted) in (sides, sides[::-1]):
                loads, keeps = self._drives.get(one), self._drives.get(other)
                if not (one_inverted and other_inverted and isinstance(loads, Gate) and isinstance(keeps, Gate)
                        and loads.b is not None and keeps.b is not None):
                    continue
                loading = [self._through(each, False) for each in (loads.a, loads.b)]
                keeping = [self._through(each, False) for each in (keeps.a, keeps.b)]
                if (q, False) not in keeping:
                    continue
                when, when_inverted = keeping[1 - keeping.index((q, False))]
                if (when, not when_inverted) in loading:
                    value, turned = loading[1 - loading.index((when, not when_inverted))]
                    if not self._needs(value, q):
                        return Load((when, when_inverted), value, turned, conditions=frozenset({when}))
        for (one, _), (other, other_inverted) in (sides, sides[::-1]):
            if not self._needs(one, q):
                return _Set(int(inverted), one, other, inverted ^ other_inverted)
        return None

    def _through(self, net: Bit, inverted: bool) -> tuple[Bit, bool]:
        """The net behind inverters."""
        while isinstance(gate := self._drives.get(net), Gate) and gate.b is None:
            net, inverted = gate.a, not inverted
        return net, inverted

    def _needs(self, net: Bit, q: Bit) -> bool:
        """Whether a net depends on a register in the same cycle."""
        waits, seen = [net], set[Bit]()
        while waits:
            bit = waits.pop()
            if bit == q:
                return True
            if bit in seen:
                continue
            seen.add(bit)
            drive = self._drives.get(bit)
            if isinstance(drive, Gate):
                waits += [drive.a] if drive.b is None else [drive.a, drive.b]
            elif drive is not None:
                waits += drive[0].reads[drive[1]][0]
        return False
