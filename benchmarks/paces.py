"""Random networks whose layers share arrays where they can: the cycles that plans promise, and those of Verilator."""
import re
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.draw import perceptron, recurrent_layers
from benchmarks.resume import Record
from circulant.hw import generate
from circulant.hw.array.plans import sharings
from circulant.hw.beats import AUTO
from circulant.hw.design import Design
from circulant.sim.cosim import SimulationError, verify
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal

__all__ = ["KEPT", "Drawn", "affordable", "draw", "fault", "measure", "planned", "trial"]

KEPT = Path("build") / "paces.jsonl"
"""Outcomes by seed, so that a call that is interrupted goes on; ``make clean`` removes them. One that is no success is
played again."""

STEPS, SHORT = 32, 12
"""Steps of a sequence; of one that layers of both directions take as a whole."""
FULL = 320
"""Steps of a sequence of layers with arrays of their own: the queues between them are full behind so many, also where a
layer is faster by a cycle than the one behind it. Until then the input goes on at the pace of the faster one."""

OBJECTIVES = ("latency", "area", "auto")
CELLS = ("lstm", "gru after", "gru before")
BLOCKS = (1, 2, 4, 8)
WIDE, BEATS = 6, (AUTO, 2, 4)
"""Which of eight networks has beats of several blocks, and how many."""
RIGHT = ("equal", "refused")
FIGURES = {"period": "cycles_per_step", "latency_spaced": "latency_spaced", "latency_contiguous": "latency_contiguous"}
"""The names of figures in a plan, and in a verification."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A network, its test inputs (N, T, inputs) and the options of its design.

    Parameters:
        options: of `circulant.hw.generate`; a budget that is too small is doubled.
    """

    network: Network
    x: NDArray[np.float64]
    options: dict[str, Any]

    @property
    def title(self) -> str:
        layers = ", ".join(f"{layer.kind} {layer.outputs}" for layer in self.network.stages)
        options = ", ".join(f"{name} {each}" for name, each in self.options.items())
        return f"{self.network.flow.size} → {layers}; {options}"

    def longer(self, steps: int) -> Self:
        """The same network, whose sequences have as many steps."""
        x = np.tile(self.x, (1, -(-steps // self.x.shape[1]), 1))[:, :steps]
        return replace(self, x=x, options=self.options | {"max_steps": steps})

    def design(self) -> Design:
        return affordable(self.network, **self.options)


@dataclass(frozen=True)
class Trial:
    """The outcome of one network.

    Parameters:
        outcome: "equal", "different" or "failed"; "refused".
        reason: why, if it is not equal.
        arrays: "shared" or "own".
        planned: period and latencies by name, those that are exact.
        estimated: those that the design says to be about right.
        measured: likewise, all.
    """

    seed: int
    title: str
    outcome: str
    reason: str = ""
    arrays: str = ""
    planned: dict[str, float] | None = None
    estimated: dict[str, float] | None = None
    measured: dict[str, float] | None = None


def affordable(network: Network, *, multipliers: int, **options: Any) -> Design:
    """A design with the first budget, from one on and twice as large each time, that suffices."""
    while True:
        try:
            return generate(network, multipliers=multipliers, **options)
        except Refusal as refusal:
            if not re.search("needs? at least", str(refusal)):
                raise
            multipliers *= 2


def draw(seed: int) -> Drawn:
    """The network of a seed; objectives and levels come in turn, of eight networks one has both directions, one is
    reloadable, one has several streams, and one beats of several blocks: of layers without a state, or every second one
    of cells with arrays of their own."""
    rng, kind, own = np.random.default_rng((37, seed)), seed % 8, seed % 16 == WIDE
    while True:
        cells = [str(cell) for cell in rng.choice(CELLS, rng.integers(1, 4))]
        if kind == 7:
            cells[0] = str(rng.choice(("bidirectional lstm", "bidirectional gru")))
        sizes = rng.choice(BLOCKS, len(cells) + 1) if rng.random() < 0.5 else [rng.choice(BLOCKS)] * (len(cells) + 1)
        inputs, streams = int(rng.integers(1, 12)), int(rng.integers(2, 4)) if kind == 5 else 1
        blocks = [int(k) for k in sizes]
        layers = recurrent_layers(rng, inputs, cells, blocks) if kind != WIDE or own else perceptron(
            rng, inputs, blocks)
        weights, scale, activations = (
            int(rng.integers(2, 9)), str(rng.choice(("matrix", "row"))), int(rng.integers(8, 15)))
        objective = "throughput" if own else OBJECTIVES[seed % len(OBJECTIVES)]
        options = {"objective": "area" if kind == 7 and objective == "latency" else objective,
                   "levels": 4 + seed % 6, "multipliers": int(rng.choice([8, 40, 120])), "streams": streams,
                   "reloadable": kind == 3,
                   "beat_blocks": int(rng.choice(BEATS)) if kind == WIDE else 1,
                   "max_steps": SHORT if kind == 7 else STEPS}
        x = rng.normal(0, 1, (3 * streams, SHORT if kind == 7 else STEPS, inputs))
        try:
            return Drawn(quantize(Model.chain(f"paces_{seed}", inputs, True, layers), x, weight_bits=weights,
                                  weight_scale=scale, activation_bits=activations), x, options)
        except Refusal:
            continue


def planned(design: Design, manifest: Manifest) -> dict[str, float]:
    """The figures that are exact in the plan of a design."""
    found: dict[str, float | None] = {name: getattr(manifest, name) for name in list(FIGURES)[1:]}
    if manifest.repeats is not None:
        found["period"] = manifest.repeats.cycles
    elif manifest.planned_step is not None and not sharings(design.plans):
        layers = design.manifest["layers"]
        found["period"] = max(each["cycles"] for each in layers if each["per"] == "step")
    return {name: cycles for name, cycles in found.items() if cycles is not None}


def trial(seed: int) -> Trial:
    """The design of a seed, generated and played."""
    title = ""
    try:
        drawn = draw(seed)
        title = drawn.title
        design = drawn.design()
        if not sharings(design.plans):
            drawn = drawn.longer(FULL)
            design = drawn.design()
        with tempfile.TemporaryDirectory(prefix="circulant-fuzz-") as temporary:
            folder = design.write(Path(temporary) / "design")
            said = planned(design, Manifest.load(folder))
            seen = verify(folder, drawn.network.vectors(drawn.x), stalls=False)
    except Refusal as refusal:
        return Trial(seed, title, "refused", str(refusal))
    except SimulationError as error:
        return Trial(seed, title, "different", str(error))
    except Exception as error:
        return Trial(seed, title, "failed", fault(error))
    measured = {name: float(getattr(seen, field)) for name, field in FIGURES.items()}
    said_of: Mapping[str, Any] = design.manifest
    about = {name: said_of[name] for name in said_of.get("estimates", ())}
    wrong = [f"{name} {said[name]:g} planned, {measured[name]:g} measured" for name in said
             if abs(said[name] - measured[name]) > 1e-6]
    wrong += [f"{seen.mismatches} words differ"] if seen.mismatches else []
    return Trial(seed, title, "different" if wrong else "equal", "; ".join(wrong),
                 arrays="shared" if sharings(design.plans) else "own", planned=said, estimated=about, measured=measured)


def fault(error: Exception) -> str:
    """An exception with the line of its origin."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"


def measure(*, count: int, first: int = 0, kept: Path | None = KEPT,
            note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Networks of the seeds from ``first`` on: counts, what was compared, and what differs.

    Parameters:
        kept: file of the outcomes so far; None keeps nothing.
        note: told each outcome.
    """
    record, found = Record(kept, Trial), []
    for seed in range(first, first + count):
        found.append(record.get(str(seed), partial(trial, seed), lambda each: each.outcome in RIGHT))
        note(f"{seed}: {found[-1].outcome} {found[-1].reason}: {found[-1].title}")
    counts = Counter(each.outcome for each in found)
    compared = Counter(name for each in found for name in each.planned or {})
    arrays = Counter(each.arrays for each in found)
    return {"networks": count, **{name: counts[name] for name in ("equal", "different", "refused", "failed")},
            "shared": arrays["shared"], "compared": dict(compared), "estimates_off": max(
                [abs(cycles / (each.measured or {})[name] - 1) for each in found
                 for name, cycles in (each.estimated or {}).items()], default=0.0),
            "faults": [asdict(each) for each in found if each.outcome not in RIGHT]}
