"""Whether mutants that survive are the circuit itself in other words: proofs with all that is around them.

Of four kinds. Yosys finds, first of all, that nothing depends on the mutant's value. `benchmarks.formal.induction`
proves that the mutant's module does the same whatever is around it, or else the module that this one is in, and so on
up to the whole circuit: the smaller the part, the sooner a proof ends; and `benchmarks.formal.stains` that what differs
within reaches no output. Of the smallest parts `benchmarks.formal.loaded`
proves it for all that their registers can be loaded with.
"""
import os
import re
from collections.abc import Iterator
from functools import cache

from benchmarks.formal.aig import TRUE
from benchmarks.formal.induction import same
from benchmarks.formal.loaded import same_when_loaded
from benchmarks.formal.netlist import Box, netlist
from benchmarks.formal.parts import RESET, parts
from benchmarks.formal.stains import Stains
from benchmarks.formal.tools import available
from benchmarks.formal.twin import Machine
from benchmarks.mutation.mutants import Mutant, fixed, selected
from circulant.sim.cosim.manifest import Manifest

__all__ = ["Prover", "available"]

SECONDS = 60.0
"""Time of a proof about a part of the circuit, or all of it, on an idle processor; see `patience`."""

LARGEST = 12_000
"""Registers of a part at the most for which a proof is tried, and of the whole circuit any number."""

STAINED = 40_000
"""The same for a proof that no output is reached, which looks at no values of data."""

LOADED = 2
"""Parts, from the inside out, for which it is proved for what they are loaded with."""

MULTIPLIERS, MEMORY = 64, 1 << 15
"""Multipliers of such a part at the most, and bits of its memories: these are gates and registers there, and those of a
convolution with 150 multipliers are millions."""


def patience() -> float:
    """Seconds by the clock that come to `SECONDS` of a processor, as others share it now."""
    return SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Prover:
    """A design with all its mutants.

    Parameters:
        verilog: without mutants.
        whole: with all of them.
    """

    def __init__(self, manifest: Manifest, verilog: str, whole: str) -> None:
        self._verilog, self._manifest, self._whole = verilog, manifest, whole
        text = selected(whole)
        self._circuit = cache(lambda name: netlist(text, name, images=manifest.images, boxes=True))
        self._machine = cache(self._made)
        self._stains = cache(lambda name: Stains(self._machine(name)))

    def mutant(self, mutant: Mutant) -> dict[str, str]:
        """How a mutant was proved, or why it was not."""
        why, within = "", list(self._parts(mutant.module))
        for n, part in enumerate(within):
            circuit, whole = self._circuit(part), part == self._manifest.top
            chosen = circuit.choices.get(str(mutant.number))
            if chosen is None:
                return {"proved": "nothing depends on it"}
            if len(circuit.registers) <= LARGEST or whole:
                answer = same(self._machine(part), dict.fromkeys(chosen, TRUE), seconds=patience())
                if answer.proved:
                    return {"proved": "the circuit is the same" if whole else
                            f"a part of the circuit is the same, {part}, with {answer.apart} registers told apart"}
                why = answer.why
            if len(circuit.registers) <= STAINED and self._stains(part).none(chosen, patience()):
                return {"proved": f"no output is reached, of {part}"}
            few = sum(isinstance(cell, Box) for cell in circuit.cells) <= MULTIPLIERS and sum(
                memory.width * memory.depth for memory in circuit.memories) <= MEMORY
            if n < LOADED and few and not whole and self._loaded(part, mutant):
                return {"proved": f"the same for all that registers can be loaded with, {part}"}
        return {"proved": "", "why": why}

    def _loaded(self, part: str, mutant: Mutant) -> bool:
        one, other = (fixed(self._whole, alive) for alive in (0, mutant.number))
        return same_when_loaded(one, other, part, self._manifest.images, seconds=patience())

    def _made(self, part: str) -> Machine:
        whole = part == self._manifest.top
        return Machine(self._circuit(part), self._manifest.reset if whole else RESET, inner=not whole)

    def _parts(self, module: str) -> Iterator[str]:
        return parts(self._verilog, module, self._manifest.top)

    def image(self, name: str, was: str, now: str) -> dict[str, str]:
        """The same of an image of a memory.

        Parameters:
            was, now: its text, as it is and as it is changed.
        """
        place = self._verilog.index(f'"{name}"')
        module, why = re.findall(r"^module (\w+) ", self._verilog[:place], re.MULTILINE)[-1], ""
        for part in self._parts(module):
            machine = self._machine(part)
            memories = machine.circuit.memories
            found = [n for n, memory in enumerate(memories)
                     if not memory.writes and memory.contents == _words(was, memory.width, memory.depth)]
            if not found:
                why = why or "no memory has the image as a whole"
                continue
            answer = same(machine, {}, {n: _words(now, memories[n].width, memories[n].depth) for n in found},
                          seconds=patience())
            if answer.proved:
                return {"proved": "the circuit is the same" if part == self._manifest.top else
                        f"a part of the circuit is the same, {part}"}
            why = answer.why
        return {"proved": "", "why": why}


def _words(text: str, width: int, depth: int) -> tuple[str, ...]:
    """The words of an image, the lowest bit of each first."""
    words = tuple(format(int(line, 16), f"0{width}b")[::-1] for line in text.split())
    return words if len(words) == depth else ()
