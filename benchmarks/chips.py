"""Networks over several chips: what the search finds, predicted and measured cycles of all chips and their links under
Verilator, and what the papers compare with."""
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypedDict, cast

import numpy as np

from benchmarks import designs
from benchmarks.resume import Record
from benchmarks.stacks import PAPERS, Shape, network
from circulant.hw.beats import AUTO
from circulant.hw.chips.cluster import Chip, Cluster, Link
from circulant.hw.chips.costs import Costs, Goal
from circulant.hw.chips.folders import generate_chips
from circulant.hw.chips.search import baselines, best, exhaustive, search
from circulant.hw.planner import alternatives, plan
from circulant.hw.resources import period
from circulant.sim.chips import SYSTEM
from circulant.sim.cosim import verify
from circulant.sim.golden.network import Network
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model

__all__ = ["WORKS", "Work", "measure"]


class Row(TypedDict, total=False):
    """The figures of a work."""

    network: str
    chips: list[int]
    links: dict[str, int]
    places: list[str]
    predicted: dict[str, object]
    one_chip: dict[str, float | None]
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
class _Played:
    """Figures of a row that were measured."""

    period: float
    latency_spaced: float
    words: int
    mismatches: int


FEW = 8
"""Steps of sequences of which few are played, as each takes minutes."""


IMAGES = 24
"""Images that are played, of which the last half shows the period: two turns of six, four of three."""


MOST = 0.99
"""The largest input, with which the format of inputs is that of states: rows of the first layer can be divided, too."""


@dataclass(frozen=True)
class Work:
    """A network on chips of so many multipliers.

    Parameters:
        shape: of a stack of recurrent layers; the sizes of linear layers; or the name of a network over images of
            `benchmarks.designs`.
        goal: what is to be small.
        steps: of each of the two sequences, or half of the vectors, that are played; with few none is stalled. Images:
            `IMAGES` of them, not stalled.
        streams: whether they, or samples, may take turns, the whole network on each chip.
    """

    shape: Shape | tuple[int, ...] | str
    block: int
    multipliers: tuple[int, ...]
    goal: Goal = field(default_factory=Goal)
    steps: int = 60
    streams: bool = False

    @property
    def title(self) -> str:
        what = self.shape.title if isinstance(self.shape, Shape) else self.shape if isinstance(self.shape, str) else (
            f"linear {' → '.join(map(str, self.shape))}")
        return f"{what} over {len(self.multipliers)} chips"

    def network(self) -> Network:
        if isinstance(self.shape, str):
            return designs.network(self.shape)
        if isinstance(self.shape, tuple):
            return _linear(self.shape, self.block)
        return network(self.shape, self.block, most=MOST)


def _linear(sizes: tuple[int, ...], block: int) -> Network:
    """Linear layers with random weights."""
    rng, layers = np.random.default_rng(0), list[FloatLinear]()
    for inputs, outputs in pairwise(sizes):
        columns = rng.normal(0, inputs ** -0.5, (outputs // block, inputs // block, block))
        layers.append(FloatLinear(f"fc{len(layers)}", inputs, outputs, columns, rng.normal(0, 0.1, outputs)))
    return quantize(Model.chain("linear", sizes[0], False, tuple(layers)), rng.normal(0, 0.5, (64, sizes[0])))


BOTH = Goal(1.0, 1.0)

WORKS = (
    Work(Shape("lstm", 3, 768), 8, (2760,) * 2, BOTH, FEW), Work(Shape("lstm", 3, 32, inputs=12), 4, (120,) * 2),
    Work(Shape("lstm", 1, 128), 8, (40,) * 2, steps=90), Work(Shape("gru", 1, 128), 8, (40,) * 2, steps=90),
    Work("resnet8", 8, (342, 684), streams=True), Work("resnet8", 8, (342, 684) * 2, streams=True),
    Work(PAPERS[0], 8, (2760,) * 2, BOTH, FEW, streams=True), Work((64, 1024, 64), 8, (342,) * 2))
"""The stack of the issue, three that are simulated in minutes, unequal chips, the layer with a projection, and two
layers with many values between them."""


def measure(works: Sequence[int] = (), *, simulate: bool = True, bits: int = 64, latency: int = 20, levels: int = 6,
            nodes: int = 20, chips: int = 8, kept: Path | None = None,
            note: Callable[[str], None] = lambda text: None) -> Figures:
    """Figures of each work, of the search, and of the baselines of the first stack.

    Parameters:
        works: numbers of `WORKS`, from 1; all where there are none.
        simulate: whether designs are built and simulated, or planned only.
        bits, latency: of the links.
        levels: of logic between two registers.
        nodes, chips: of the search that is timed.
        kept: a file of what was played, which no design of the same bytes is played again; None keeps nothing.
    """
    record = Record(kept, _Played)
    rows, table, compared = list[Row](), dict[str, str](), dict[str, float]()
    for work in [WORKS[n - 1] for n in works] or WORKS:
        cluster = _cluster(work.multipliers, bits, latency)
        rows.append(row := _row(work, cluster, levels, record if simulate else None, note))
        table[work.title] = (f"period {row['predicted']['period']:g} predicted, {row['period']} measured; latency "
                             f"{row['predicted']['latency']} and {row['latency_spaced']}; {row['mismatches']} "
                             f"mismatches; one chip {row['one_chip']}")
        if not compared and not isinstance(work.shape, str):
            note(f"{work.title}: baselines")
            compared = {name: cost for name, (cost, _) in baselines(work.network(), cluster, levels=levels).items()}
    note("search")
    return {"benchmark": "chips", "table": table, "rows": rows, "baselines": compared,
            "search": {"optimal_gap": _gap(), "seconds": _seconds(nodes, chips), "nodes": nodes, "chips": chips}}


def _row(work: Work, cluster: Cluster, levels: int, record: Record[_Played] | None, note: Callable[[str], None]
         ) -> Row:
    note(f"{work.title}: search")
    made = work.network()
    found = search(made, cluster, work.goal, levels=levels, streams=work.streams)
    timing = found.planned.timing
    note(f"{work.title}: period {timing.period:g}, latency {timing.latency} planned; one chip")
    row: Row = {
        "network": work.title, "chips": [each.multipliers for each in cluster.chips], "links": vars(cluster.link),
        "places": found.lines(), "predicted": {"period": timing.period, "latency": timing.latency,
                                               "estimates": list(timing.estimates)},
        "one_chip": _one_chip(work, made, levels), "period": None, "latency_spaced": None, "mismatches": None}
    if record is not None:
        images = isinstance(work.shape, str)
        shape = (IMAGES, *made.inputs[0].shape) if images else (2, work.steps, made.flow.size)
        x = np.clip(np.random.default_rng(1).normal(0, 0.5, shape), -MOST, MOST)
        x = x if made.sequence or images else x.reshape(-1, made.flow.size)
        with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as folder:
            note(f"{work.title}: designs")
            where = generate_chips(found.planned).write(Path(folder) / "chips")
            vectors, stalls = made.vectors(x), work.steps > FEW and not images

            def played() -> _Played:
                result = verify(where / SYSTEM, vectors, stalls=stalls)
                return _Played(result.cycles_per_step, result.latency_spaced, result.words_compared, result.mismatches)

            made_of = sorted(json.loads((where / SYSTEM / "manifest.json").read_text())["files"].items())
            key = hashlib.sha256(repr((made.hash, made_of, x.tobytes(), stalls)).encode()).hexdigest()
            row.update(cast("Row", vars(record.get(key, played))))
    return row


def _one_chip(work: Work, made: Network, levels: int) -> dict[str, float | None]:
    """Period and latency on a chip alone, with the array that serves what is asked for; of unequal chips the periods
    of each."""
    if isinstance(work.shape, str):
        return {f"period_{each}": period(made, plan(made, each, levels=levels)) for each in work.multipliers}
    objective = "auto" if work.goal.latency else "throughput"
    if objective == "throughput":
        return {"period": period(made, plan(made, work.multipliers[0], levels=levels))}
    best, *_ = alternatives(made, work.multipliers[0], levels=levels, objective=objective, beat_blocks=AUTO)
    return {"period": best.period, "latency": best.latency}


def _cluster(multipliers: Sequence[int], bits: int, latency: int) -> Cluster:
    return Cluster(tuple(Chip(f"chip{n}", each) for n, each in enumerate(multipliers)), Link(bits, latency))


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
    best(Costs(made, _cluster((400,) * chips, 64, 20)))
    return time.perf_counter() - start
