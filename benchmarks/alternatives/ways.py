"""Ways to block-circulant weights, at equal epochs: random start, dense start, stages, ADMM.

The network is a GRU of 64 units on `data.noisy_digits`. All ways learn from the outputs of the dense network of
their seed, but for one tenth of the loss, at the rate of `RATES` that was best on held-out recordings with seed 0.
"""
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks.alternatives.data import noisy_digits
from benchmarks.alternatives.measure import SEEDS
from circulant.sim.files.writing import atomic_bytes
from circulant.training.loop.train import train as train_phases
from circulant.training.models.models import ModelSettings
from circulant.training.settings.training import TrainingSettings

__all__ = ["BLOCKS", "KEPT", "WAYS", "collect", "table", "train"]

KEPT = Path("docs/measured/ways.json")
EPOCHS, RATES, BLOCKS = 12, (0.01, 0.03), (8, 16)
DIRECT = TrainingSettings(method="direct", dense_epochs=EPOCHS, direct_epochs=EPOCHS, learning_rate=RATES[0],
                          batch_size=128, distillation=0.9, evaluate_epochs=EPOCHS)
WAYS = {
    "random": replace(DIRECT, start="random"),
    "dense": replace(DIRECT, start="dense"),
    "stages": replace(DIRECT, start="dense", stages=4),
    "admm": replace(DIRECT, method="admm", admm_epochs=EPOCHS // 2, retrain_epochs=EPOCHS // 2, rho_growth=2.0),
}
"""By name the settings of a way; stages double block sizes three times, and ADMM has half of the epochs."""

MODEL = ModelSettings(kind="gru", hidden=64, dense=("last",))


def train(path: Path = KEPT, seeds: Iterable[int] = SEEDS, say: Callable[[str], None] = lambda line: None) -> None:
    """Train what is missing in the file, and keep every figure there as soon as it is known."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    states: dict[tuple[int, bool], Mapping[str, Any]] = {}

    def score(name: str, k: int, seed: int, *, rate: float, tries: bool) -> float:
        data = noisy_digits(held_out=tries)
        if (seed, tries) not in states:
            base = replace(WAYS["admm"], admm_epochs=0, retrain_epochs=0, distillation=0.0, seed=seed)
            trained = train_phases(data, base, model=MODEL, block_size=1)
            states[seed, tries] = trained.dense
            if not tries:
                found.setdefault("dense network", {})[str(seed)] = trained.scores["dense"]
        settings = replace(WAYS[name], learning_rate=rate, retrain_rate=rate, seed=seed)
        return train_phases(data, settings, model=MODEL, block_size=k, dense=states[seed, tries]).scores["circulant"]

    def keep() -> None:
        atomic_bytes(path, (json.dumps(found, indent=1, sort_keys=True) + "\n").encode())

    rows = [(f"k = {k}, {name}", name, k) for k in BLOCKS for name in WAYS]
    for label, name, k in rows:
        entry = found.setdefault(label, {"tried": {}, "scores": {}})
        for rate in RATES:
            if str(rate) not in entry["tried"]:
                entry["tried"][str(rate)] = score(name, k, 0, rate=rate, tries=True)
                keep()
        entry["rate"] = float(max(entry["tried"], key=entry["tried"].__getitem__))
    for seed in seeds:
        for label, name, k in rows:
            entry = found[label]
            if str(seed) not in entry["scores"]:
                entry["scores"][str(seed)] = score(name, k, seed, rate=entry["rate"], tries=False)
                keep()
                say(f"{label}, seed {seed}: {entry['scores'][str(seed)]:.2%}")


def collect(path: Path = KEPT) -> dict[str, Any]:
    """By way the errors in percent of each seed, the rate, and what was tried; first those of the dense network."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    dense = found.pop("dense network", {})
    rows = {"dense network": {"errors": {seed: 100 * (1 - score) for seed, score in dense.items()}}} if dense else {}
    return rows | {label: {"errors": {seed: 100 * (1 - score) for seed, score in entry["scores"].items()},
                           "rate": entry["rate"], "tried": entry["tried"]}
                   for label, entry in found.items() if entry["scores"]}


def table(rows: Mapping[str, Any]) -> dict[str, str]:
    """The figures for people."""
    lines = {}
    for label, row in rows.items():
        errors = list(row["errors"].values())
        spread = f" ± {stdev(errors):.2f}" if len(errors) > 1 else ""
        lines[label] = f"{mean(errors):.2f}{spread} % errors, seeds {', '.join(row['errors'])}"
    return lines
