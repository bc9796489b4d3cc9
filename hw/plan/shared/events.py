"""Cycles in which something happens in a layer, and the rows of a chart that they make."""
from dataclasses import dataclass, field

__all__ = ["Events", "merged"]


@dataclass
class Events:
    """Cycles in which something happens in a layer, one after the other.

    Parameters:
        issues: of each command, a cycle for each phase.
        blocks: the pointwise unit fetches a block.
        seconds: a block of the second vector can be read.
        results: a block of the output is there.
    """

    issues: tuple[list[int], ...] = field(default_factory=lambda: ([], [], []))
    blocks: list[int] = field(default_factory=list)
    seconds: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    @property
    def all(self) -> list[list[int]]:
        return [*self.issues, self.blocks, self.seconds, self.results]

    def rows(self, phases: int) -> dict[str, list[list[int]]]:
        """The rows of a Gantt chart: by unit the [first, last + 1] cycles at work; the pointwise one takes a block in
        ``phases`` cycles."""
        names = "array: input", "array: recurrent", "array: second", "pointwise", "second vector", "output"
        return {name: merged(cycles, phases if name == "pointwise" else 1)
                for name, cycles in zip(names, self.all, strict=True) if cycles}


def merged(cycles: list[int], length: int) -> list[list[int]]:
    """The [first, last + 1] cycles at work of what takes a length from each cycle on."""
    found: list[list[int]] = []
    for start in sorted(cycles):
        if found and start <= found[-1][1]:
            found[-1][1] = start + length
        else:
            found.append([start, start + length])
    return found
