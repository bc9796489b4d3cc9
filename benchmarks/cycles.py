"""Cycles of a network's design: planned, and measured under Verilator with stalls, against the golden model."""
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from circulant.hw import generate
from circulant.hw.planner import plan
from circulant.hw.resources import figures
from circulant.sim.cosim import verify
from circulant.sim.document import Document
from circulant.sim.figures import floor
from circulant.sim.golden.network import Network
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal

__all__ = ["Cycles", "measured", "rows", "samples"]


@dataclass(frozen=True)
class Cycles:
    """Cycles that are planned within a budget, and, where it was played, measured.

    Parameters:
        published: by card; None where a network does not fit.
        aimed: period and spaced latency; None for any.
        predicted: latencies by name.
    """

    published: Mapping[str, int | None]
    aimed: Sequence[float | None]
    multipliers: int
    floor_cycles: int
    cycles_predicted: float
    predicted: Mapping[str, int | None]
    estimates: Sequence[str]
    cycles_per_step: float | None = None
    latency_spaced: float | None = None
    latency_contiguous: float | None = None
    words: int = 0
    mismatches: int | None = None

    @property
    def text(self) -> str:
        """A line of the table."""
        spaced = self.predicted["latency_spaced"]
        said = (f"period {self.cycles_predicted:g} and latency {spaced} spaced, {self.predicted['latency_contiguous']} "
                f"contiguous predicted, floor {self.floor_cycles}, {self.multipliers:,} multipliers")
        reached: tuple[float | None, ...] = (self.cycles_predicted, spaced)
        if self.mismatches is not None:
            said += (f"; period {self.cycles_per_step:g} and latency {self.latency_spaced:g} spaced, "
                     f"{self.latency_contiguous:g} contiguous measured, "
                     f"{self.mismatches} mismatches in {self.words:,} words")
            reached = (self.cycles_per_step, self.latency_spaced)
        if self.aimed:
            said += "; aimed at " + ", ".join(
                f"{name} {aim}: {'held' if figure is not None and figure <= aim else 'missed'}"
                for name, aim, figure in zip(("period", "latency"), self.aimed, reached, strict=True) if aim)
        if self.published["V80"] is None:
            return said
        return f"{said}; published latency {' and '.join(str(each or 'none') for each in self.published.values())}"


def samples(made: Network | Model, steps: int, sequences: int = 2) -> np.ndarray:
    """Random inputs of sequences with so many steps, of as many vectors, or of eight images."""
    rng = np.random.default_rng(1)
    if made.flow.grid is not None:
        return rng.normal(0, 0.5, (8, *made.inputs[0].shape))
    x = rng.normal(0, 0.5, (sequences, steps, made.flow.size))
    return x if made.sequence else x.reshape(-1, made.flow.size)


def measured(made: Network, x: np.ndarray | None, *, multipliers: int, published: Mapping[str, int | None],
             aimed: Sequence[float | None] = (), **chosen: Any) -> Cycles:
    """Cycles of a network with options of `circulant.generate`.

    Parameters:
        x: inputs that are played; None plans only.
    """
    planned = figures(made, plan(made, multipliers, **chosen))
    found = Cycles(published, aimed, planned.multipliers, floor(planned.multiplications, multipliers), planned.cycles,
                   predicted=planned.latencies, estimates=planned.estimates)
    if x is None:
        return found
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as folder:
        design = generate(made, multipliers=multipliers, **chosen)
        result = verify(design.write(Path(folder) / "design"), made.vectors(x))
    return replace(found, multipliers=design.multipliers,
                   cycles_per_step=result.cycles_per_step or result.cycles_per_sequence,
                   latency_spaced=result.latency_spaced, latency_contiguous=result.latency_contiguous,
                   words=result.words_compared, mismatches=result.mismatches)


def rows(works: Iterable[tuple[str, Document, Callable[[], Cycles]]], note: Callable[[str], None]
         ) -> tuple[list[Document], dict[str, str]]:
    """Figures of networks behind what is known of each, and a table by title; one that is refused has the reason in the
    place of figures."""
    found: list[Document] = []
    table: dict[str, str] = {}
    for title, known, work in works:
        note(title)
        try:
            cycles = work()
        except Refusal as refusal:
            table[title] = str(refusal)
            continue
        found.append(known | asdict(cycles))
        table[title] = cycles.text
    return found, table
