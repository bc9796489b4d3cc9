"""A netlist in a graph of AND gates: registers are latches, memories too; what is free is an input."""
from collections.abc import Callable, Sequence

from benchmarks.formal.aig import FALSE, TRUE, Aig
from benchmarks.formal.netlist import Bit, Box, Gate, Memory, Netlist

__all__ = ["Word", "chosen_word", "machine", "start"]

Word = list[int]
"""Literals, the lowest bit first."""


def chosen_word(aig: Aig, words: Sequence[Word], address: Sequence[int]) -> Word:
    """The word at an address; any of them beyond the last one."""
    level = list(words)
    for bit in address:
        level = [[aig.mux(bit, one, zero) for one, zero in zip(level[min(n + 1, len(level) - 1)], level[n],
                                                                strict=True)]
                 if n + 1 < len(level) else level[n] for n in range(0, len(level), 2)]
    return level[0]


def start(aig: Aig, begun: int, value: str, latch: int) -> int:
    """The value of a latch, which in the first cycle is ``value``: "0", "1", or for "x" anything."""
    if value == "0":
        return latch
    return aig.mux(begun, latch, TRUE if value == "1" else aig.input())


def machine(aig: Aig, circuit: Netlist, inputs: Callable[[str, int], Word]) -> dict[str, Word]:
    """Add a circuit whose registers begin at their initial values, those without one anywhere.

    Parameters:
        inputs: gives the literals of an input port by its name and width.

    Returns:
        The literals of its output ports.
    """
    begun = aig.latch()
    aig.follow(begun, TRUE)
    at: dict[Bit, int] = {0: FALSE, 1: TRUE}
    for name, bits in circuit.inputs.items():
        at |= zip(bits, inputs(name, len(bits)), strict=True)
    latches: list[tuple[int, Bit]] = []
    for q, d in circuit.registers:
        latch = aig.latch()
        at[q] = start(aig, begun, circuit.starts.get(q, "x"), latch)
        latches.append((latch, d))
    held: dict[int, list[tuple[Word, Word]]] = {}
    for n, memory in enumerate(circuit.memories):
        words = []
        for contents in memory.contents:
            own = [aig.latch() for _ in contents] if memory.writes else []
            words.append((own, [start(aig, begun, value, latch) for value, latch in zip(contents, own, strict=True)]
                          if memory.writes else [TRUE if value == "1" else FALSE for value in contents]))
        held[n] = words
    place = {id(memory): n for n, memory in enumerate(circuit.memories)}
    for cell in circuit.cells:
        if isinstance(cell, Gate):
            at[cell.y] = at[cell.a] ^ 1 if cell.b is None else aig.both(at[cell.a], at[cell.b])
        elif isinstance(cell, Box):
            raise RuntimeError("A multiplier must be gates here")
        else:
            memory, port = cell
            address, data = memory.reads[port]
            word = chosen_word(aig, [word for _, word in held[place[id(memory)]]], [at[bit] for bit in address])
            at |= zip(data, word, strict=True)
    for latch, d in latches:
        aig.follow(latch, at[d])
    for n, memory in enumerate(circuit.memories):
        for place_of_word, (own, word) in enumerate(held[n]):
            after = written(aig, memory, place_of_word, word, at)
            for latch, value in zip(own, after, strict=False):
                aig.follow(latch, value)
    return {name: [at[bit] for bit in bits] for name, bits in circuit.outputs.items()}


def written(aig: Aig, memory: Memory, address: int, word: Word, at: dict[Bit, int]) -> Word:
    """A word of a memory in the next cycle."""
    after = list(word)
    for places, data, enables in memory.writes:
        here = aig.all(at[bit] ^ 1 ^ (address >> n & 1) for n, bit in enumerate(places))
        after = [aig.mux(aig.both(here, at[enable]), at[bit], old)
                 for old, bit, enable in zip(after, data, enables, strict=True)]
    return after
