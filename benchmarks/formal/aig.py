"""Graphs of AND gates and inverters, as AIGER has them (Biere, Heljanko, Wieringa 2011).

A literal is twice a variable's number, plus one where it is inverted; 0 is false and 1 is true.
"""
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["FALSE", "TRUE", "Aig"]

FALSE, TRUE = 0, 1


class Aig:
    """A graph that is built from its inputs on; equal gates are one gate, and constants disappear."""

    def __init__(self) -> None:
        self._count = 1
        self._gates: dict[tuple[int, int], int] = {}
        self._sides: dict[int, tuple[int, int]] = {}
        self._inputs: list[int] = []

    def input(self) -> int:
        """The literal of a new input."""
        self._inputs.append(self._new())
        return self._inputs[-1]

    def sides(self, literal: int) -> tuple[int, int] | None:
        """The two literals that a gate is the AND of; None of an input."""
        return self._sides.get(literal >> 1)

    def both(self, a: int, b: int) -> int:
        if a > b:
            a, b = b, a
        if a == FALSE or a ^ b == 1:
            return FALSE
        if a in (TRUE, b):
            return b
        gate = self._gates.get((a, b))
        if gate is None:
            gate = self._gates[a, b] = self._new()
            self._sides[gate >> 1] = a, b
        return gate

    def either(self, a: int, b: int) -> int:
        return self.both(a ^ 1, b ^ 1) ^ 1

    def mux(self, chooses: int, one: int, zero: int) -> int:
        if one == zero:
            return one
        return self.either(self.both(chooses, one), self.both(chooses ^ 1, zero))

    def same(self, a: int, b: int) -> int:
        if a == b:
            return TRUE
        return self.either(self.both(a, b), self.both(a ^ 1, b ^ 1))

    def all(self, literals: Iterable[int]) -> int:
        level = list(literals) or [TRUE]
        while len(level) > 1:
            level = [self.both(*level[n:n + 2]) if n + 1 < len(level) else level[n] for n in range(0, len(level), 2)]
        return level[0]

    def any(self, literals: Iterable[int]) -> int:
        return self.all(literal ^ 1 for literal in literals) ^ 1

    def write(self, path: Path, bad: Sequence[int]) -> None:
        """A binary AIGER file of all gates, whose outputs are ``bad``."""
        order = {literal >> 1: n for n, literal in enumerate(self._inputs, 1)}
        for gate in self._gates.values():
            order[gate >> 1] = len(order) + 1
        order[0] = 0

        def name(literal: int) -> int:
            return 2 * order[literal >> 1] + (literal & 1)

        head = (len(order) - 1, len(self._inputs), 0, len(bad), len(self._gates))
        text = [f"aig {' '.join(map(str, head))}", *(str(name(literal)) for literal in bad)]
        body = bytearray()
        for (a, b), gate in self._gates.items():
            high, low = sorted((name(a), name(b)), reverse=True)
            for delta in (name(gate) - high, high - low):
                while delta >= 128:
                    body.append(delta & 127 | 128)
                    delta >>= 7
                body.append(delta)
        path.write_bytes("\n".join(text).encode() + b"\n" + bytes(body))

    def __len__(self) -> int:
        return len(self._gates)

    def _new(self) -> int:
        self._count += 1
        return 2 * (self._count - 1)
