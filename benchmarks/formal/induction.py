"""Whether a circuit and a twin of it, in which some nets have other values, are the same to the world around them.

First nothing is told apart; each register that may then differ in the next cycle, by a path that IC3 (`pdr` of ABC)
finds, is told apart from then on. It ends where no other register, memory or output differs in any cycle, which is a
proof, or where an output does.
"""
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.formal.aig import FALSE, TRUE, Aig
from benchmarks.formal.check import abc
from benchmarks.formal.netlist import Bit
from benchmarks.formal.twin import Machine, Twin

__all__ = ["Answer", "same"]

APART = 400
"""Registers that may be told apart; for more of them the proof would take too long."""

ROUNDS = 60


@dataclass(frozen=True)
class Answer:
    """Parameters:
        proved: whether both are the same.
        why: what differs, or what stopped the proof.
        apart: registers that had to be told apart.
    """

    proved: bool
    why: str
    apart: int


def same(machine: Machine, changed: Mapping[Bit, int], *, seconds: float = 60.0,
         name: Callable[[Bit], str] = str) -> Answer:
    """Whether the twin in which the nets ``changed`` have those literals is the same as the circuit.

    Both begin with the same contents in the registers that are not told apart, with any in the others, and with a
    reset; after it anything may come, resets too.
    """
    aig, own = machine.aig, dict[Bit, int]()
    words = {bit: word for word in machine.circuit.words for bit in word}
    ends = time.monotonic() + seconds
    for _ in range(ROUNDS):
        twin = machine.twin({**changed, **own})
        if not twin.differs:
            return Answer(True, "", len(own))
        seen = _searched(machine, twin, own, max(1.0, ends - time.monotonic()))
        if seen is None:
            return Answer(True, "", len(own))
        if not seen:
            return Answer(False, f"not finished, with {len(own)} registers told apart", len(own))
        if fatal := [each for each in seen if isinstance(each, str)]:
            return Answer(False, f"{', '.join(fatal)} may differ", len(own))
        for bit in seen:
            assert isinstance(bit, int)
            own |= {each: aig.input() for each in words.get(bit, (bit,)) if each not in own}
        if len(own) > APART or time.monotonic() > ends:
            return Answer(False, f"not finished, with {len(own)} registers told apart", len(own))
    return Answer(False, "not finished", len(own))


def _searched(machine: Machine, twin: Twin, own: Mapping[Bit, int], seconds: float) -> set[Bit | str] | None:
    """What differs at the end of a path; None where there is none; empty where the time was too short."""
    real = {machine.at[bit]: machine.at[machine.nexts[bit]] for bit in machine.control | own.keys()}
    real |= {literal: twin.follows[bit] for bit, literal in own.items()}
    with tempfile.TemporaryDirectory(prefix="circulant-twin-") as temporary:
        folder = Path(temporary)
        inputs, latches = _write(machine.aig, folder / "twin.aig", machine.aig.any(twin.differs.values()), real,
                                 machine.begun)
        said = abc(f"read twin.aig; pdr -T {seconds:.0f}; write_cex -a path.cex", folder, seconds + 10)
        if "Property proved" in said or re.search(r"proved|UNSAT", said):
            return None
        if not (folder / "path.cex").is_file():
            return set()
        frames = [line for line in (folder / "path.cex").read_text().splitlines() if re.fullmatch(r"[01x]*", line)]
    return _differs(machine, twin, inputs, latches, frames)


def _write(aig: Aig, path: Path, bad: int, real: Mapping[int, int], begun: int) -> tuple[list[int], list[int]]:
    """The cone of a literal as a binary AIGER file.

    Parameters:
        real: next values of literals that are registers; all others are free.
        begun: the literal that is false in the first cycle alone.

    Returns:
        The inputs and the registers in their order. A register is free in the first cycle: it is followed by the input
        that gives its value then, the same literal with a minus.
    """
    seen: dict[int, None] = {}
    gates: list[int] = []
    waits = [bad >> 1, *(literal >> 1 for literal in [begun])]
    while waits:  # Behind a register its next value, before a gate both of its sides.
        variable = waits.pop()
        if variable < 0:
            gates.append(-variable)
            continue
        if variable in seen or variable == 0:
            continue
        seen[variable] = None
        if 2 * variable in real:
            waits.append(real[2 * variable] >> 1)
        elif (sides := aig.sides(2 * variable)) is not None:
            waits += [-variable, sides[0] >> 1, sides[1] >> 1]
    latches = [2 * variable for variable in seen if 2 * variable in real]
    inputs = [2 * variable for variable in seen
              if 2 * variable not in real and 2 * variable != begun and aig.sides(2 * variable) is None]
    order: dict[int, int] = {0: 0}  # By variable a literal of the file.
    every = [*inputs, *(-literal for literal in latches)]
    for n, literal in enumerate(inputs, 1):
        order[literal >> 1] = 2 * n
    first = {literal: 2 * n for n, literal in enumerate(latches, len(inputs) + 1)}
    count = len(every)
    order[begun >> 1] = 2 * (count + 1)
    held = {literal: 2 * n for n, literal in enumerate(latches, count + 2)}
    count += 1 + len(latches)
    ands: list[tuple[int, int]] = []

    def both(a: int, b: int) -> int:
        ands.append((max(a, b), min(a, b)))
        return 2 * (count + len(ands))

    now = order[begun >> 1]
    for literal in latches:
        order[literal >> 1] = both(both(now, held[literal]) ^ 1, both(now ^ 1, first[literal]) ^ 1) ^ 1
    for variable in gates:
        a, b = aig.sides(2 * variable) or (0, 0)
        order[variable] = both(order[a >> 1] ^ a & 1, order[b >> 1] ^ b & 1)

    def named(literal: int) -> int:
        return order[literal >> 1] ^ literal & 1

    text = [f"aig {count + len(ands)} {len(every)} {1 + len(latches)} 1 {len(ands)}", "1",
            *(str(named(real[literal])) for literal in latches), str(named(bad))]
    body = bytearray()
    for n, (high, low) in enumerate(ands, count + 1):
        for delta in (2 * n - high, high - low):
            while delta >= 128:
                body.append(delta & 127 | 128)
                delta >>= 7
            body.append(delta)
    path.write_bytes("\n".join(text).encode() + b"\n" + bytes(body))
    return every, latches


def _differs(machine: Machine, twin: Twin, inputs: list[int], latches: list[int], frames: list[str]
             ) -> set[Bit | str]:
    """What differs at the end of a path that ABC has written: the state, then the inputs of each cycle."""
    raise NotImplementedError(FALSE, TRUE)
