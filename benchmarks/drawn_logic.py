"""Look-up tables and flip-flops that Yosys makes of drawn candidates. Factors of `circulant.hw.plan.families` are
fitted to one half of them; the other half, drawn from another seed, is held out and shows its error."""
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.synthesis import Counts, Logic, cells, counts, occupied
from circulant.experiment import Experiment, load
from circulant.hw import Design, generate
from circulant.hw.cost_table import Candidates, CostTable
from circulant.hw.plan.families import FAMILIES
from circulant.hw.planner import plan
from circulant.hw.resources import inventory
from circulant.run.untrained import untrained
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from circulant.training.settings import CompressionSettings

__all__ = ["FAMILY", "KEPT", "PARTS", "Candidate", "Drawn", "candidates", "errors", "experiment", "made", "measure",
           "read"]

FAMILY = "ecp5"
PARTS = {"fitted": (27, 20), "held_out": (26, 28)}
"""Seed and number of candidates."""

KEPT = Path("docs/measured/drawn-logic.json")


@dataclass(frozen=True)
class Candidate:
    """A network over the handwritten digits, and what it is generated for."""

    kind: str
    hidden: int
    recurrent: int
    linear: int
    weight_bits: int
    activation_bits: int
    multipliers: int


class Drawn(Counts):
    """A candidate that was measured; its fields are those of `Candidate`."""

    candidate: Mapping[str, Any]
    found: Logic


def candidates(seed: int) -> Iterator[Candidate]:
    """Random candidates without end, the same ones each time."""
    rng = random.Random(seed)
    while True:
        yield Candidate(rng.choice(("gru", "lstm")), rng.choice((16, 24, 32)), recurrent=rng.choice((2, 4, 8)),
                        linear=rng.choice((1, 2, 4, 8)), weight_bits=rng.randint(4, 12),
                        activation_bits=rng.randint(8, 16), multipliers=rng.randint(9, 32))


def experiment(candidate: Candidate) -> Experiment:
    """The experiment of a candidate."""
    found = load("digits-gru", [f"model.kind={candidate.kind}", f"model.hidden={candidate.hidden}",
                                f"quantization.weight_bits={candidate.weight_bits}",
                                f"quantization.activation_bits={candidate.activation_bits}",
                                f"hardware.multipliers={candidate.multipliers}", f"hardware.family={FAMILY}"])
    return replace(found, compression=CompressionSettings(
        {candidate.kind: candidate.recurrent, "linear": candidate.linear}))


def made(candidate: Candidate) -> Design:
    """The design of a candidate.

    Raises:
        Refusal: when its budget is too small.
    """
    return generate(untrained(experiment(candidate), saturated=False), family=FAMILY,
                    multipliers=candidate.multipliers, objective="throughput")


def measure(path: Path = KEPT) -> None:
    """Synthesize candidates until the file has as many as `PARTS` says; one whose budget is too small is left out."""
    rows = read(path) if path.exists() else {name: [] for name in PARTS}
    for name, (seed, count) in PARTS.items():
        known = [row["candidate"] for row in rows[name]]
        for candidate in candidates(seed):
            if len(rows[name]) >= count:
                break
            if known:  # Those before it that are not in the file had a budget that was too small.
                del known[:asdict(candidate) == known[0]]
                continue
            try:
                design = made(candidate)
            except Refusal:
                continue
            rows[name].append({"candidate": asdict(candidate), **counts(design), "found": cells(design, FAMILY)})
            path.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def read(path: Path = KEPT) -> dict[str, list[Drawn]]:
    """The measured candidates, by `PARTS`."""
    return cast("dict[str, list[Drawn]]", json.loads(path.read_text("utf-8")))


def errors() -> dict[str, NDArray[np.float64]]:
    """The relative errors of DSP blocks and block RAMs against the planner, and of look-up tables and flip-flops
    against Yosys, of each measured candidate that was held out."""
    off: dict[str, list[float]] = {name: [] for name in ("dsp", "bram", "lut", "ff")}
    for row in read()["held_out"]:
        candidate = Candidate(**row["candidate"])

        def uniform(k: int, weights: int, activations: int, candidate: Candidate = candidate) -> Network:
            return untrained(experiment(replace(candidate, recurrent=k, linear=k, weight_bits=weights,
                                                activation_bits=activations)), saturated=False)

        table = CostTable(uniform, sorted({candidate.recurrent, candidate.linear}), family=FAMILY, profile=FAMILY)
        costs = table.cost(Candidates(
            {candidate.kind: np.array([candidate.recurrent]), "linear": np.array([candidate.linear])},
            weight_bits=np.array([candidate.weight_bits]), activation_bits=np.array([candidate.activation_bits]),
            multipliers=np.array([candidate.multipliers])))
        network = untrained(experiment(candidate), saturated=False)
        demand = FAMILIES[FAMILY].demand(inventory(network, plan(network, candidate.multipliers), profile=FAMILY))
        truth = row["found"]
        for name, mine, its in (("dsp", costs.dsps[0], demand.dsps), ("bram", costs.block_rams[0], demand.block_rams),
                                ("lut", costs.luts[0], occupied(FAMILY, truth)),
                                ("ff", costs.flip_flops[0], truth["flip_flops"])):
            off[name].append(float(mine / its - 1) if its else float(mine > 0))
    return {name: np.array(each) for name, each in off.items()}


if __name__ == "__main__":
    measure()
