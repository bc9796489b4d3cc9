"""Fate of each part of a model: the report that a user reads before any work starts."""
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from circulant.sim.document import Document
from circulant.sim.refusal import Refusal
from circulant.training.neutral.making import NO_LAYER

__all__ = ["STATUSES", "ConversionReport", "Entry"]

STATUSES = {
    "converted": "a layer of the golden model",
    "captured": "understood and trained, but the golden model or the hardware has nothing for it: it is not exported",
    "folded": "part of another layer",
    "skipped": "without effect on the result",
    "refused": "neither captured nor converted",
    "not judged": "something before it is refused, so that nobody knows what it would be given",
}
"""The fates of a part of a model."""


CAUSES = 9
"""Causes that a refusal names."""

NAMED = 3
"""Parts of a model that a refusal names for a cause."""


@dataclass(frozen=True)
class Entry:
    """One node of a model.

    Parameters:
        name: its path in the model, or the name that tracing gave it; "forward" and "output" for the model as a whole.
        kind: class of the module, or name of the function.
        status: one of `STATUSES`.
        note: the reason, in words.
        shape: of its result, "N" for the batch; empty where there is none.
    """

    name: str
    kind: str
    status: str
    note: str = ""
    shape: str = ""


def _grouped(entries: tuple[Entry, ...]) -> str:
    """Entries of one cause together, the commonest causes first; no more than `CAUSES` of them."""
    causes: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        causes.setdefault((entry.kind, entry.note), []).append(entry.name)
    common = sorted(causes.items(), key=lambda cause: -len(cause[1]))
    texts = []
    for (kind, note), names in common[:CAUSES]:
        what = f"{f'{len(names)} × ' if len(names) > 1 else ''}{kind}"
        more = f" and {len(names) - NAMED} more" * (len(names) > NAMED)
        texts.append(f"{', '.join(names[:NAMED])}{more} ({': '.join(filter(None, (what, note)))})")
    left = sum(len(names) for _, names in common[CAUSES:])
    return ", ".join([*texts, *([f"and {left} for other reasons"] if left else [])])


@dataclass(frozen=True)
class ConversionReport:
    """Every node of a model with what becomes of it, in the order of its forward method.

    ``str(report)`` is an aligned table, `as_json` the same for machines.
    """

    model: str
    entries: tuple[Entry, ...]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def of(self, status: str) -> tuple[Entry, ...]:
        """The entries of a status."""
        return tuple(entry for entry in self.entries if entry.status == status)

    @property
    def ok(self) -> bool:
        """Whether the model can be captured: nothing is refused."""
        return not self.of("refused")

    @property
    def exportable(self) -> bool:
        """Whether the model also exports: golden model and hardware have a layer for everything."""
        return self.ok and not self.of("captured")

    def require_traced(self) -> None:
        """
        Raises:
            Refusal: when the forward method cannot be traced, saying where; parts may be refused.
        """
        if found := [entry for entry in self.of("refused") if entry.name == "forward"]:
            raise Refusal(f"The forward method of {self.model} must be traceable, as the golden model follows it, "
                          f"but {found[0].note}")

    def require(self) -> None:
        """
        Raises:
            Refusal: naming everything that is refused, at once.
        """
        if refused := self.of("refused"):
            count = "1 part of the model cannot" if len(refused) == 1 else f"{len(refused)} parts of the model cannot"
            raise Refusal(f"{count} be converted: {_grouped(refused)}")

    def require_exportable(self) -> None:
        """
        Raises:
            Refusal: naming everything that is refused, or else all that golden model or hardware lack a layer for.
        """
        self.require()
        if beyond := self.of("captured"):
            plain = tuple(replace(entry, note="") if entry.note.endswith(NO_LAYER) else entry for entry in beyond)
            raise Refusal(f"The golden model must have a layer for everything that is exported, but has none for "
                          f"{_grouped(plain)}; build the model from the layers of docs/models.md that export")

    def as_json(self) -> Document:
        """Plain values: model, ok, exportable, and the entries in their order."""
        return {"model": self.model, "ok": self.ok, "exportable": self.exportable,
                "nodes": [asdict(entry) for entry in self.entries]}

    def __str__(self) -> str:
        rows = [("node", "kind", "becomes", "result", "note"),
                *((e.name, e.kind, e.status, e.shape, e.note) for e in self.entries)]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip()
                 for row in rows]
        counts = ", ".join(f"{len(self.of(status))} {status}" for status in STATUSES if self.of(status))
        return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:], f"{self.model}: {counts or 'nothing'}"])
