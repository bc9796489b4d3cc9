"""Networks over several chips: what the search finds, predicted and measured cycles of all chips and their links under
Verilator, and what the papers compare with."""
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np

from benchmarks.stacks import Shape, network
from circulant.hw.chips.cluster import Chip, Cluster, Link
from circulant.hw.chips.costs import Costs, Goal
from circulant.hw.chips.cut import Place
from circulant.hw.chips.folders import SYSTEM, generate_chips
from circulant.hw.chips.search import baselines, best, exhaustive, search
from circulant.sim.cosim import verify
from circulant.sim.golden.network import Network

__all__ = ["WORKS", "Work", "measure"]


class Row(TypedDict, total=False):
    """The figures of a work."""

    network: str
    chips: list[int]
    links: dict[str, int]
    places: list[str]
    predicted: dict[str, object]
    one_chip: dict[str, float]
    period: float | None
    latency_spaced: float | None
    words: int
    mismatches: int | None


class Figures(TypedDict):
    """The figures of the benchmark."""

    benchmark: str
    table: dict[str, str]
    rows: list[Row]
    baselines: dict[str, float]
    search: dict[str, float]


@dataclass(frozen=True)
class Work:
    """A stack of recurrent layers on so many chips of so many multipliers."""

    shape: Shape
    block: int
    chips: int
    multipliers: int


WORKS = (Work(Shape("lstm", 3, 768), 8, 2, 2760), Work(Shape("lstm", 3, 32, inputs=12), 4, 2, 120))
"""The stack of the issue, and one that is simulated in minutes."""


def _cluster(chips: int, multipliers: int, bits: int, latency: int) -> Cluster:
    return Cluster(tuple(Chip(f"chip{n}", multipliers) for n in range(chips)), Link(bits, latency))


def measure(works: Sequence[int] = (), *, simulate: bool = True, steps: int = 60, bits: int = 64, latency: int = 20,
            nodes: int = 20, chips: int = 8, note: Callable[[str], None] = lambda text: None) -> Figures:
    """Figures of each work, of the search, and of the baselines of the first work.

    Parameters:
        works: numbers of `WORKS`, from 1; all where there are none.
        simulate: whether designs are built and simulated, or planned only.
        steps: of each of the two sequences that are played.
        bits, latency: of the links.
        nodes, chips: of the search that is timed.
    """
    rows, table, compared = list[Row](), dict[str, str](), dict[str, float]()
    for work in [WORKS[n - 1] for n in works] or WORKS:
        made, title = network(work.shape, work.block), f"{work.shape.title} over {work.chips} chips"
        note(title)
        cluster = _cluster(work.chips, work.multipliers, bits, latency)
        rows.append(row := _row(made, cluster, title, steps if simulate else 0))
        table[title] = (f"period {row['predicted']['period']:g} predicted, {row['period']} measured; latency "
                        f"{row['predicted']['latency']} and {row['latency_spaced']}; {row['mismatches']} mismatches")
        costs = Costs(made, cluster)
        compared = compared or {name: cost for name, (cost, _) in baselines(made, cluster, costs=costs).items()}
    note("search")
    return {"benchmark": "chips", "table": table, "rows": rows, "baselines": compared,
            "search": {"optimal_gap": _gap(), "seconds": _seconds(nodes, chips), "nodes": nodes, "chips": chips}}


def _row(made: Network, cluster: Cluster, title: str, steps: int) -> Row:
    found = search(made, cluster)
    timing, costs = found.planned.timing, Costs(made, cluster)
    row: Row = {
        "network": title, "chips": [each.multipliers for each in cluster.chips], "links": vars(cluster.link),
        "places": found.lines(), "predicted": {"period": timing.period, "latency": timing.latency,
                                               "estimates": list(timing.estimates)},
        "one_chip": {"period": costs.cost({name: Place((0,)) for name in costs.nodes})},
        "period": None, "latency_spaced": None, "mismatches": None}
    if steps:
        x = np.random.default_rng(1).normal(0, 0.5, (2, steps, made.flow.size))
        with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as folder:
            where = generate_chips(found.planned).write(Path(folder) / "chips")
            result = verify(where / SYSTEM, made.vectors(x))
        row.update({"period": result.cycles_per_step, "latency_spaced": result.latency_spaced,
                    "words": result.words_compared, "mismatches": result.mismatches})
    return row


def _gap() -> float:
    """The share by which the search is above the best of all placements, the worst of some clusters."""
    made = network(Shape("lstm", 4, 16, inputs=8), 4)
    gaps = []
    for multipliers in ((60, 60, 60), (100, 60, 40), (150, 50, 50)):
        costs = Costs(made, Cluster(tuple(Chip(f"chip{n}", each) for n, each in enumerate(multipliers)), Link(64, 20)),
                      Goal())
        least, _ = exhaustive(costs)
        gaps.append(costs.cost(best(costs)[0]) / least - 1)
    return max(gaps)


def _seconds(nodes: int, chips: int) -> float:
    """Seconds of a search, ladders included."""
    made = network(Shape("lstm", nodes, 32), 8)
    start = time.perf_counter()
    best(Costs(made, _cluster(chips, 400, 64, 20)))
    return time.perf_counter() - start
