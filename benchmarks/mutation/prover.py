"""Whether mutants that survive are the circuit itself in other words: proofs with all that is around them.

Of three kinds, in this order. Yosys finds that nothing depends on the mutant's value. `benchmarks.formal.induction`
proves that the whole circuit with the mutant does the same. Yosys proves that the mutant's module by itself does.
"""
from collections.abc import Sequence

from benchmarks.formal.aig import TRUE
from benchmarks.formal.check import available
from benchmarks.formal.induction import same
from benchmarks.formal.netlist import netlist
from benchmarks.formal.twin import Machine
from benchmarks.mutation import equivalence
from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.selected import selected
from circulant.sim.cosim.manifest import Manifest

__all__ = ["Prover", "available"]

SECONDS = 10.0
"""Time of a proof about the whole circuit."""


class Prover:
    """A design with all its mutants.

    Parameters:
        planted: all mutants of the Verilog.
    """

    def __init__(self, manifest: Manifest, verilog: str, planted: Sequence[Mutant]) -> None:
        self._verilog = verilog
        self._circuit = netlist(selected(verilog, planted), manifest.top, images=manifest.images, boxes=True)
        self._machine = Machine(self._circuit, manifest.reset)

    def mutant(self, mutant: Mutant) -> dict[str, str]:
        """How a mutant was proved, or why it was not."""
        chosen = self._circuit.choices.get(str(mutant.number))
        if chosen is None:
            return {"proved": "nothing depends on it"}
        answer = same(self._machine, dict.fromkeys(chosen, TRUE), seconds=SECONDS)
        if answer.proved:
            return {"proved": f"the circuit is the same, with {answer.apart} registers told apart"}
        if equivalence.available() and equivalence.equivalent(self._verilog, mutant):
            return {"proved": "the module is the same"}
        return {"proved": "", "why": answer.why}

    def image(self, was: str, now: str) -> dict[str, str]:
        """The same of an image of a memory.

        Parameters:
            was, now: its text, as it is and as it is changed.
        """
        found = [n for n, memory in enumerate(self._circuit.memories)
                 if not memory.writes and memory.contents == _words(was, memory.width, memory.depth)]
        if not found:
            return {"proved": "", "why": "no memory has the image as a whole"}
        changed = {n: _words(now, memory.width, memory.depth) for n in found
                   for memory in [self._circuit.memories[n]]}
        answer = same(self._machine, {}, changed, seconds=SECONDS)
        return {"proved": "the circuit is the same"} if answer.proved else {"proved": "", "why": answer.why}


def _words(text: str, width: int, depth: int) -> tuple[str, ...]:
    """The words of an image, the lowest bit of each first."""
    words = tuple(format(int(line, 16), f"0{width}b")[::-1] for line in text.split())
    return words if len(words) == depth else ()
