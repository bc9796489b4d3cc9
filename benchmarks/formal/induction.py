"""Whether a circuit and a twin of it, in which some nets have other values, are the same to the world around them.

First nothing is told apart; each register that may then differ in the next cycle, by a path that IC3 (`pdr` of ABC)
finds, is told apart from then on, and of each memory one word is watched. It ends where no other register, memory or
output differs in any cycle, which is a proof, or where an output does.
"""
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.formal.aig import FALSE, TRUE, Aig
from benchmarks.formal.netlist import Bit
from benchmarks.formal.tools import abc
from benchmarks.formal.twin import MEMORY, Contents, Key, Machine, Twin, Watched

__all__ = ["WAYS", "Answer", "cone", "path", "same"]

APART = 400
"""Registers that may be told apart; for more of them the proof would take too long."""

ROUNDS = 60

WAYS = (("pdr", 0.2), ("dc2; scorr -C 10000; print_stats; pdr -nct", 0.8))
"""Commands of ABC, and the share of the time of each. Most paths and proofs are short; for the others signals that are
equal are merged first, and clauses are generalised with more effort and fewer registers."""

NOTHING_LEFT = re.compile(r"lat = +0 +and = +0 ")
"""Statistics of a circuit that merging has emptied: what differs is a constant, and without a path it is false."""


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


def same(machine: Machine, changed: Mapping[Bit, int], images: Mapping[int, Contents] | None = None, *,
         seconds: float = 60.0) -> Answer:
    """Whether the twin in which the nets ``changed`` have those literals is the same as the circuit.

    Both begin with the same contents in the registers that are not told apart, with any in the others, and with a
    reset; after it anything may come, resets too.
    """
    aig, watched = machine.aig, dict[int, Watched]()
    own: list[dict[Bit, int]] = [{}]
    words = {bit: word for word in machine.circuit.words for bit in word}
    ends = time.monotonic() + seconds
    for _ in range(ROUNDS):
        twin, apart = machine.twin(changed, own, images, watched), len(set[Bit]().union(*own))
        seen = _searched(machine, twin, set[Bit]().union(*own), max(1.0, ends - time.monotonic())) if twin.differs \
            else None
        if seen is None:
            return Answer(True, "", apart)
        if not seen:
            return Answer(False, f"not finished, with {apart} registers told apart", apart)
        if fatal := [each for each in seen if isinstance(each, str) and not each.startswith(MEMORY)]:
            return Answer(False, f"{', '.join(fatal)} may differ", apart)
        for key in seen:
            if isinstance(key, str):
                number = int(key.removeprefix(MEMORY))
                places, _ = machine.circuit.memories[number].reads[0]
                watched[number] = Watched(tuple(aig.input() for _ in places), aig.input())
                own = own if len(own) > 1 else [own[0], {bit: aig.input() for bit in own[0]}, {}]
            else:
                side, q = key
                own[side] |= {each: aig.input() for each in words.get(q, (q,)) if each not in own[side]}
        if apart > APART or time.monotonic() > ends:
            return Answer(False, f"not finished, with {apart} registers told apart", apart)
    return Answer(False, "not finished", apart)


def _searched(machine: Machine, twin: Twin, apart: Iterable[Bit], seconds: float) -> set[Key] | None:
    """The keys of what differs at the end of a path; None where no path is; empty where the time was too short."""
    real = {machine.at[bit]: machine.at[machine.nexts[bit]] for bit in machine.control.union(apart)}
    real |= twin.follows
    bad = machine.aig.any(twin.differs.values())
    if bad == TRUE:  # Whatever comes: there is no path to find.
        return {key for key, literal in twin.differs.items() if literal == TRUE} or set(twin.differs)
    variables, text = cone(machine.aig, bad, real, machine.begun)
    frames = path(text, WAYS, seconds)
    if not frames:
        return None if frames is None else set()
    values = _walked(machine, variables, real, frames)
    return {key for key, literal in twin.differs.items() if values(literal)}


def path(text: bytes, ways: Iterable[tuple[str, float]], seconds: float) -> list[str] | None:
    """The inputs of each cycle of a path to what is bad; None where none is, empty where the time was too short.

    Parameters:
        text: a binary AIGER file.
        ways: see `WAYS`.
    """
    with tempfile.TemporaryDirectory(prefix="circulant-path-") as temporary:
        folder = Path(temporary)
        (folder / "bad.aig").write_bytes(text)
        for how, share in ways:
            limit = max(1.0, share * seconds)
            said = abc(f"read bad.aig; {how} -T {limit:.0f}; write_cex -a path.cex", folder, 2 * limit + 20)
            if (found := folder / "path.cex").is_file():
                lines = found.read_text().splitlines()
                return [line for line in lines if line and set(line) <= set("01")][1:]  # The first line is the state.
            if "Property proved" in said or NOTHING_LEFT.search(said):
                return None
    return []


def _walked(machine: Machine, variables: list[int], real: Mapping[int, int], frames: list[str]
            ) -> Callable[[int], bool]:
    """The values of literals in the last cycle of a path, of which the inputs of each cycle are given."""
    held: dict[int, bool] = {}
    for n, frame in enumerate(frames):
        known: dict[int, bool] = {0: False, machine.begun >> 1: n > 0}
        for literal, bit in zip(variables, frame, strict=True):
            if literal not in real or n == 0:
                known[literal >> 1] = bit == "1"
        if n:
            known |= {literal >> 1: value for literal, value in held.items()}
        values = _values(machine.aig, known)
        if n + 1 < len(frames):
            held = {literal: values(after) for literal, after in real.items() if literal in set(variables)}
    return values


def _values(aig: Aig, known: dict[int, bool]) -> Callable[[int], bool]:
    """The values of literals where those of some variables are known; of others that are no gates it is false."""
    def value(literal: int) -> bool:
        waits = [literal >> 1]
        while waits:
            variable = waits[-1]
            if variable in known:
                waits.pop()
                continue
            sides = aig.sides(2 * variable)
            if sides is None:
                known[variable] = False
            elif missing := [side >> 1 for side in sides if side >> 1 not in known]:
                waits += missing
            else:
                a, b = sides
                known[variable] = known[a >> 1] ^ bool(a & 1) and known[b >> 1] ^ bool(b & 1)
        return known[literal >> 1] ^ bool(literal & 1)
    return value


def cone(aig: Aig, bad: int, real: Mapping[int, int], begun: int) -> tuple[list[int], bytes]:
    """A binary AIGER file of what a literal depends on.

    Parameters:
        real: next values of literals that are registers, free in the first cycle; all others without sides are free.
        begun: the literal that is false in the first cycle alone.

    Returns:
        The literal of each input, that of a register where the input is its value in the first cycle; and the file.
    """
    seen: set[int] = set()
    gates: list[int] = []
    done: set[int] = set()
    roots = [bad >> 1, begun >> 1]
    while roots:  # Behind a register its next value; a gate behind both of its sides.
        waits = [roots.pop()]
        while waits:
            variable = waits[-1]
            sides = aig.sides(2 * variable)
            if variable in done or variable == 0:
                waits.pop()
            elif sides is None or variable in seen:
                waits.pop()
                seen.add(variable)
                done.add(variable)
                if sides is not None:
                    gates.append(variable)
                elif 2 * variable in real:
                    roots.append(real[2 * variable] >> 1)
            else:
                seen.add(variable)
                waits += [side >> 1 for side in sides if side >> 1 not in done]
    leaves = sorted(seen.difference(gates, [begun >> 1]))
    latches = [2 * variable for variable in leaves if 2 * variable in real]
    variables = [2 * variable for variable in leaves]
    order = {0: 0} | {literal >> 1: 2 * n for n, literal in enumerate(variables, 1)}
    first = {literal: order[literal >> 1] for literal in latches}
    now = order[begun >> 1] = 2 * (len(variables) + 1)
    held = {literal: 2 * n for n, literal in enumerate(latches, len(variables) + 2)}
    count = len(variables) + 1 + len(latches)
    ands: list[tuple[int, int]] = []

    def both(a: int, b: int) -> int:
        ands.append((max(a, b), min(a, b)))
        return 2 * (count + len(ands))

    for literal in latches:
        order[literal >> 1] = both(both(now, held[literal]) ^ 1, both(now ^ 1, first[literal]) ^ 1) ^ 1
    for variable in gates:
        a, b = aig.sides(2 * variable) or (FALSE, FALSE)
        order[variable] = both(order[a >> 1] ^ a & 1, order[b >> 1] ^ b & 1)

    def named(literal: int) -> int:
        return order[literal >> 1] ^ literal & 1

    text = [f"aig {count + len(ands)} {len(variables)} {1 + len(latches)} 1 {len(ands)}", "1",
            *(str(named(real[literal])) for literal in latches), str(named(bad))]
    body = bytearray()
    for n, (high, low) in enumerate(ands, count + 1):
        for delta in (2 * n - high, high - low):
            while delta >= 128:
                body.append(delta & 127 | 128)
                delta >>= 7
            body.append(delta)
    return variables, "\n".join(text).encode() + b"\n" + bytes(body)
