"""The figures of a design: one record that manifest, steps, report, sweep and estimate share, and the floor."""
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from circulant.sim.document import Document

__all__ = ["LATENCIES", "Figures", "floor"]

LATENCIES = ("latency_spaced", "latency_contiguous")
"""The latencies of a sample: into an idle circuit, and in a closed loop."""


def floor(multiplications: float, multipliers: int) -> int:
    """⌈multiplications / multipliers⌉, in cycles; a circuit without multipliers counts as one with one."""
    return int(-(-multiplications // max(1, multipliers)))


@dataclass(frozen=True)
class Figures:
    """The figures of a design, planned, or counted in its Verilog.

    Members:
        multipliers: in the circuit.
        per_step, per_sequence: multiplications at each step, and once in a sequence. A single vector or image is a
            sequence without steps.
        memory_bits: of all memories.
        cycles: of the slowest layer that works at each step; of a vector or an image, where there are no steps.
        latency_spaced, latency_contiguous: planned cycles from the last beat of a sample to the last one of its result;
            None where they are not known.
        estimates: the cycles and latencies that are no exact plan.
    """

    multipliers: int
    per_step: int
    per_sequence: int
    memory_bits: int = 0
    cycles: float = 0.0
    latency_spaced: int | None = None
    latency_contiguous: int | None = None
    estimates: tuple[str, ...] = ()

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Self:
        """The figures of a manifest, or of the field ``hardware`` in a record of ``generate``."""
        layers = entry.get("layers", ())
        often = [each for each in layers if each.get("per") == "step"] or layers
        return cls(entry["multipliers"], **entry["multiplications"], memory_bits=entry.get("memory_bits", 0),
                   cycles=max((each["cycles"] for each in often), default=0.0),
                   latency_spaced=entry.get("latency_spaced"), latency_contiguous=entry.get("latency_contiguous"),
                   estimates=tuple(entry.get("estimates", ())))

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

    @property
    def latencies(self) -> dict[str, int | None]:
        """The latencies by their names in a manifest."""
        return {name: getattr(self, name) for name in LATENCIES}

    def as_json(self) -> Document:
        """The entries of a manifest; its cycles stand with the layers."""
        return {"multipliers": self.multipliers, "memory_bits": self.memory_bits, "multiplications": {
            "per_step": self.per_step, "per_sequence": self.per_sequence}, **self.latencies,
            **({"estimates": list(self.estimates)} if self.estimates else {})}
