"""The figures of a design: what steps, report, sweep and manifest say of one, and its floor."""
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

__all__ = ["Figures", "floor"]


def floor(multiplications: float, multipliers: int) -> int:
    """⌈multiplications / multipliers⌉, in cycles; a circuit without multipliers counts as one with one."""
    return int(-(-multiplications // max(1, multipliers)))


@dataclass(frozen=True)
class Figures:
    """The multipliers of a circuit and the multiplications that it does.

    Members:
        per_step, per_sequence: multiplications at each step, and once in a sequence. A single vector or image is a
            sequence without steps.
    """

    multipliers: int
    per_step: int
    per_sequence: int

    @classmethod
    def of(cls, hardware: Mapping[str, Any]) -> Self:
        """The figures of the field ``hardware`` of a record of ``generate``."""
        return cls(hardware["multipliers"], **hardware["multiplications"])

    @property
    def multiplications(self) -> int:
        """Multiplications of a step, or of a vector."""
        return self.per_step or self.per_sequence

    @property
    def floor(self) -> int:
        """The floor of a step, or of a vector, in cycles."""
        return floor(self.multiplications, self.multipliers)

    def floor_of(self, steps: float) -> int:
        """The floor of a sequence with so many steps, in cycles."""
        return floor(self.per_step * steps + self.per_sequence, self.multipliers)
