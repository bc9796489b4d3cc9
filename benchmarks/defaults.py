"""Points that `train_admm` and `train_direct` lose with default settings, on small sets that nobody tuned them for."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from torch import nn

import circulant
from benchmarks.resume import Record
from circulant.sim.document import Document
from circulant.training.loop.notes import guess
from circulant.training.models.sequences import SequenceClassifier
from circulant.training.settings import TrainingSettings

__all__ = ["EPOCHS", "KEPT", "SETS", "measure"]

EPOCHS = TrainingSettings.admm_epochs
"""Epochs of ADMM, and as many of retraining. Direct and dense training have both."""

RATES = (1e-2, 2.5e-3)
"""Learning rates of the dense network, of which the one counts whose mean over the seeds is better: the better score
of each seed would be chosen on the test set. Block-circulant networks take their default."""

PLAIN: Any = {"averaging": "none", "optimizer": "adam", "weight_decay": 0.0, "label_smoothing": 0.0}
"""Settings of the dense network: those of a loop that torch's tutorials have, without the recipe of `train_direct`."""

KEPT = Path("build") / "defaults.jsonl"
"""Results by set, way and seed, so that a call that is interrupted goes on; ``make clean`` removes them."""


@dataclass(frozen=True)
class Set:
    """A set of samples and the network that learns it.

    Parameters:
        load: gives the data and the test set, as `train_admm` takes them.
        model: the network, with fresh weights.
    """

    load: Callable[[], tuple[Any, Any]]
    model: Callable[[], nn.Module]


def _named(name: str, **options: Any) -> Callable[[], tuple[Any, Any]]:
    return lambda: (circulant.load_data(name, **options), None)


def _read(reader: Callable[..., Any]) -> tuple[Any, Any]:
    """The arrays of a reader of scikit-learn."""
    x, y = reader(return_X_y=True)
    order, cut = np.random.default_rng(0).permutation(len(x)), len(x) * 2 // 3
    x = ((x - x[order[:cut]].mean(0)) / x[order[:cut]].std(0)).astype(np.float32)
    return (x[order[:cut]], y[order[:cut]]), (x[order[cut:]], y[order[cut:]])


def _perceptron(inputs: int, hidden: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                         nn.Linear(hidden, classes))


def _convolutions(side: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * (side // 4) ** 2, 64), nn.ReLU(),
                         nn.Linear(64, classes))


MNIST = partial(_named, "mnist", subset=6000)

SETS = {
    "digits, GRU over rows": Set(_named("digits"), lambda: SequenceClassifier(8, 64, 10)),
    "digits, perceptron": Set(_named("digits", layout="flat"), lambda: _perceptron(64, 64, 10)),
    "digits, CNN": Set(_named("digits", layout="image"), lambda: _convolutions(8, 10)),
    "breast cancer, perceptron": Set(partial(_read, load_breast_cancer), lambda: _perceptron(30, 64, 2)),
    "wine, perceptron": Set(partial(_read, load_wine), lambda: _perceptron(13, 32, 3)),
    "FSDD, GRU, lengths differ": Set(_named("fsdd", longest=80), lambda: SequenceClassifier(32, 64, 10)),
    "MNIST 6,000, CNN": Set(MNIST(), lambda: _convolutions(28, 10)),
    "MNIST 6,000, LSTM over rows": Set(MNIST(layout="rows"), lambda: SequenceClassifier(28, 64, 10, cell="lstm")),
    "MNIST 6,000, perceptron": Set(MNIST(layout="flat"), lambda: _perceptron(784, 128, 10)),
}


def _trained(name: str, way: str, seed: int, epochs: int) -> dict[str, float]:
    """The score of one training, in per cent, and that of guessing. A way is "admm", "direct", or a learning rate of
    the dense network."""
    data, test = SETS[name].load()
    torch.manual_seed(seed)
    model = SETS[name].model()
    if way == "admm":
        found = circulant.train_admm(model, data, test=test, seed=seed, progress=False,
                                     epochs=epochs, retrain_epochs=epochs)
    elif way == "direct":
        found = circulant.train_direct(model, data, test=test, seed=seed, progress=False,
                                       epochs=2 * epochs)
    else:
        found = circulant.train_direct(model, data, test=test, seed=seed, progress=False, block_size=1,
                                       epochs=2 * epochs, dense_epochs=0, lr=float(way), **PLAIN)
    return {"score": 100 * found.score, "guess": 100 * (guess(found.data, found.task) or 0.0)}


def measure(*, seeds: int = 3, epochs: int = EPOCHS, sets: tuple[str, ...] = tuple(SETS), kept: Path | None = KEPT,
            note: Callable[[str], None] = lambda text: None) -> Document:
    """Scores of both ways on every set, and points lost against the dense network of the same seed.

    Parameters:
        epochs: of ADMM; see `EPOCHS`.
        kept: file of the results so far; None keeps nothing.
        note: told each result.
    """
    record: Record[dict[str, float]] = Record(kept, dict)
    losses: dict[str, dict[str, float]] = {"admm": {}, "direct": {}}
    rows, chance = dict[str, Document](), []
    for name in sets:
        scores: dict[str, list[float]] = {way: [] for way in (*map(str, RATES), *losses)}
        for seed in range(seeds):
            found = {}
            for way in (*map(str, RATES), *losses):
                found[way] = record.get(f"{name}, {way}, seed {seed}, {epochs} epochs",
                                        partial(_trained, name, way, seed, epochs))
                note(f"{name}, {way}, seed {seed}: {found[way]['score']:.2f} %")
            for way in found:
                scores[way].append(found[way]["score"])
                if way in losses and found[way]["score"] <= found[way]["guess"]:
                    chance.append(f"{name}, {way}, seed {seed}")
        scores["dense"] = max((scores.pop(str(rate)) for rate in RATES), key=mean)
        means = {way: mean(each) for way, each in scores.items()}
        rows[name] = {**means, "seeds": scores}
        for way, each in losses.items():
            each[name] = means["dense"] - means[way]
    sums = {way: {"mean": mean(each.values()), "worst": max(each.values())} for way, each in losses.items()}
    return {"benchmark": "Default settings of training, k = 8", "seeds": seeds, "epochs": epochs, "losses": sums,
            "sets": {name: {"dense": row["dense"], "circulant": row["admm"], "loss": losses["admm"][name],
                            "seeds": row["seeds"]} for name, row in rows.items()},
            "direct": {name: {"dense": row["dense"], "circulant": row["direct"], "loss": losses["direct"][name]}
                       for name, row in rows.items()}, "at_chance": chance,
            "table": {name: f"dense {row['dense']:.2f} %, train_admm {-losses['admm'][name]:+.2f} points, train_direct "
                            f"{-losses['direct'][name]:+.2f}" for name, row in rows.items()} | {
                f"train_{way}, mean and worst": f"{-each['mean']:+.2f}, {-each['worst']:+.2f} points"
                for way, each in sums.items()} | {"at chance": ", ".join(chance) or "none"}}
