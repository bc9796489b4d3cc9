"""Trainings of the comparison, on spoken digits in noise with a class for each digit of each speaker.

A network learns from labels and from the outputs of the dense one of 64 units with its seed, half and half, from random
weights, at the rate of `RATES` that was best for its structure on held-out recordings with seed 0.
"""
import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.alternatives.rows import INPUTS, ROWS, TABLES, TEACHER, Row
from circulant.sim.artifact import atomic_bytes
from circulant.training.data import Dataset, files, load_data
from circulant.training.loop.distillation import DistillationTask
from circulant.training.loop.loop import Fit, Recipe, evaluate
from circulant.training.task.task import task_of

__all__ = ["KEPT", "Gru", "collect", "noisy_digits", "size", "table", "train"]

KEPT = Path("docs/measured/alternatives.json")
CLASSES, SPEAKERS, BANDS, STACK = 60, 6, 16, 8
NOISE, COPIES, HELD_OUT = 1.0, 4, 300
EPOCHS, TRIED_EPOCHS, BATCH = 12, 4, 128
RATES = (0.01, 0.03, 0.06)
SEEDS = (0, 1, 2)


class Gru(nn.Module):
    """A GRU over steps of 80 ms and a dense classifier of its last state; its two matrices have a row's structure."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        scale = (3 * row.hidden) ** -0.5  # The deviation of torch's uniform numbers up to 1 / √hidden.
        self.hidden = row.hidden
        self.inputs, self.states = row.make(row.hidden, INPUTS, scale), row.make(row.hidden, row.hidden, scale)
        self.bias = nn.Parameter(torch.zeros(3 * row.hidden))
        self.head = nn.Linear(row.hidden, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        driven, matrix = x @ self.inputs().T + self.bias, self.states().T
        h = x.new_zeros(len(x), self.hidden)
        for t in range(x.shape[1]):
            (r, z, n), (hr, hz, hn) = driven[:, t].chunk(3, 1), (h @ matrix).chunk(3, 1)
            z = torch.sigmoid(z + hz)
            h = torch.lerp(torch.tanh(n + torch.sigmoid(r + hr) * hn), h, z)
        logits: Tensor = self.head(h)
        return logits


def size(row: Row) -> tuple[int, int]:
    """Bits of the weights, and multiplications of a step, of both matrices."""
    model = Gru(row)
    return model.inputs.size + model.states.size


def noisy_digits(*, held_out: bool = False) -> Dataset:
    """FSDD's official parts with normal noise on the normalised bands, the test part four times with other noise.

    Parameters:
        held_out: recordings of the training part stand for the test part.
    """
    data = load_data("fsdd", steps=STACK * 10)
    archive = files.load_npz(files.root() / "fsdd" / "fsdd.npz", ("label", "speaker", "is_test"))
    test = archive["is_test"].astype(bool)
    parts = []
    for x, y, chosen in ((data.train_x, data.train_y, ~test), (data.test_x, data.test_y, test)):
        assert np.array_equal(y, archive["label"][chosen]), "recordings are in the order of the archive"
        labels = y * SPEAKERS + archive["speaker"][chosen]
        parts.append((x[..., :BANDS].reshape(len(x), -1, STACK * BANDS), labels.astype(np.int64)))
    (train_x, train_y), (test_x, test_y) = parts
    if held_out:
        order = np.random.default_rng(0).permutation(len(train_x))
        held, rest = order[:HELD_OUT], order[HELD_OUT:]
        test_x, test_y, train_x, train_y = train_x[held], train_y[held], train_x[rest], train_y[rest]
    test_x, test_y = np.concatenate([test_x] * COPIES), np.concatenate([test_y] * COPIES)
    rng = np.random.default_rng(1)
    noisy = [(x + rng.normal(0, NOISE, x.shape)).astype(np.float32) for x in (train_x, test_x)]
    return Dataset("noisy-digits", noisy[0], train_y, test_x=noisy[1], test_y=test_y, classes=CLASSES)


def train(path: Path = KEPT, only: Iterable[str] = (), seeds: Iterable[int] = SEEDS,
          say: Callable[[str], None] = lambda line: None) -> None:
    """Train what is missing in the file, and keep every figure there as soon as it is known."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    chosen = set(only)
    teachers: dict[tuple[int, bool], nn.Module] = {}

    def keep() -> None:
        atomic_bytes(path, (json.dumps(found, indent=1, sort_keys=True) + "\n").encode())

    def teacher(seed: int, tries: bool) -> nn.Module:
        if (seed, tries) not in teachers:
            teachers[seed, tries] = _trained(TEACHER, noisy_digits(held_out=tries), seed, RATES[0], epochs=EPOCHS)[0]
        return teachers[seed, tries]

    for row in ROWS:
        if chosen and row.label not in chosen:
            continue
        entry = found.setdefault(row.label, {"tried": {}, "scores": {}, "seconds": 0.0})
        for rate in RATES:
            if str(rate) not in entry["tried"]:
                entry["tried"][str(rate)] = _trained(row, noisy_digits(held_out=True), 0, rate,
                                                     epochs=TRIED_EPOCHS, teacher=teacher(0, True))[1]
                keep()
        entry["rate"] = float(max(entry["tried"], key=entry["tried"].__getitem__))
        say(f"{row.label}: rate {entry['rate']}")
    for seed in seeds:
        for row in (row for row in ROWS if not chosen or row.label in chosen):
            entry = found[row.label]
            if str(seed) in entry["scores"]:
                continue
            began = time.process_time()
            score = _trained(row, noisy_digits(), seed, entry["rate"], epochs=EPOCHS,
                             teacher=teacher(seed, False))[1]
            entry["scores"][str(seed)] = score
            entry["seconds"] = time.process_time() - began
            keep()
            say(f"{row.label}, seed {seed}: {score:.2%}, {entry['seconds']:.0f} s")


def _trained(row: Row, data: Dataset, seed: int, rate: float, *, epochs: int,
             teacher: nn.Module | None = None) -> tuple[nn.Module, float]:
    torch.manual_seed(seed)
    model, task = Gru(row), task_of(data)
    taught = task if teacher is None else DistillationTask(task, teacher, weight=0.5)
    phase = Fit(model, data, taught, Recipe(epochs, lr=rate, batch=BATCH, seed=seed))
    for _ in range(epochs):
        phase.run_epoch(measured=False)
    return model, evaluate(model, data, task=task)


def collect(path: Path = KEPT) -> dict[str, Any]:
    """Figures of all rows that have been trained: errors in percent by seed, costs, rates."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    rows: dict[str, Any] = {}
    for row in ROWS:
        entry = found.get(row.label)
        if entry is not None and entry["scores"]:
            bits, products = size(row)
            errors = {seed: 100 * (1 - score) for seed, score in entry["scores"].items()}
            rows[row.label] = {"tables": list(row.tables), "hidden": row.hidden, "weight_bits": bits,
                               "multiplications": products, "rate": entry["rate"], "tried": entry["tried"],
                               "errors": errors, "processor_seconds": entry["seconds"]}
    return rows


def table(rows: Mapping[str, Any]) -> dict[str, str]:
    """The figures for people, a table for each cost, the best row first."""
    lines = {}
    for name, title in {"": "the dense network", **TABLES}.items():
        found = {label: row for label, row in rows.items() if (name in row["tables"] if name else not row["tables"])}
        for label, row in sorted(found.items(), key=lambda item: mean(item[1]["errors"].values())):
            errors = list(row["errors"].values())
            spread = f" ± {stdev(errors):.2f}" if len(errors) > 1 else ""
            lines[f"{title}: {label}"] = (f"{mean(errors):.2f}{spread} % errors ({len(errors)} seeds), "
                                         f"{row['weight_bits']:,} bits, {row['multiplications']:,} multiplications")
    return lines
