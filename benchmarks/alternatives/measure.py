"""Trainings of a comparison, with their figures kept in a file.

A network learns from the targets and from the outputs of the dense one with its seed, half and half, from random
weights, at the rate that was best for its structure on held-out samples with seed 0.
"""
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from torch import nn

from benchmarks.alternatives.comparisons import Comparison
from benchmarks.alternatives.rows import Row
from circulant.sim.files.writing import atomic_bytes
from circulant.training.data import Dataset
from circulant.training.loop.distillation import DistillationTask
from circulant.training.loop.loop import Fit, evaluate
from circulant.training.task.task import task_of

__all__ = ["SEEDS", "collect", "table", "train"]

SEEDS = (0, 1, 2)


def train(its: Comparison, path: Path | None = None, only: Iterable[str] = (), seeds: Iterable[int] = SEEDS,
          say: Callable[[str], None] = lambda line: None) -> None:
    """Train what is missing in the file of figures, and keep every figure there as soon as it is known.

    Parameters:
        path: in place of the comparison's own file.
        only: labels of rows; all where there are none.
    """
    path = path or its.kept
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    chosen = set(only)
    rows = [row for row in its.rows if not chosen or row.label in chosen]
    teachers: dict[tuple[int, bool], nn.Module] = {}
    parts: dict[bool, Dataset] = {}

    def keep() -> None:
        atomic_bytes(path, (json.dumps(found, indent=1, sort_keys=True) + "\n").encode())

    def score(row: Row, seed: int, rate: float, *, tries: bool) -> float:
        if tries not in parts:
            parts[tries] = its.data(held_out=tries)
        if (seed, tries) not in teachers:
            teachers[seed, tries] = _trained(its, its.rows[0], parts[tries], seed, its.recipe.lr,
                                             epochs=its.recipe.epochs)[0]
        epochs = its.tried if tries else its.recipe.epochs
        return _trained(its, row, parts[tries], seed, rate, epochs=epochs, teacher=teachers[seed, tries])[1]

    for row in rows:
        entry = found.setdefault(row.label, {"tried": {}, "scores": {}, "seconds": 0.0})
        for rate in its.rates:
            if str(rate) not in entry["tried"]:
                entry["tried"][str(rate)] = score(row, 0, rate, tries=True)
                keep()
        entry["rate"] = float(max(entry["tried"], key=entry["tried"].__getitem__))
        say(f"{row.label}: rate {entry['rate']}")
    for seed in seeds:
        for row in rows:
            entry = found[row.label]
            if str(seed) in entry["scores"]:
                continue
            began = time.process_time()
            entry["scores"][str(seed)] = score(row, seed, entry["rate"], tries=False)
            entry["seconds"] = time.process_time() - began
            keep()
            say(f"{row.label}, seed {seed}: {entry['scores'][str(seed)]:.2%}, {entry['seconds']:.0f} s")


def _trained(its: Comparison, row: Row, data: Dataset, seed: int, rate: float, *, epochs: int,
             teacher: nn.Module | None = None) -> tuple[nn.Module, float]:
    """A network, and the part of the test set that it gets right."""
    torch.manual_seed(seed)
    model, task = its.network(row), task_of(data)
    taught = task if teacher is None else DistillationTask(task, teacher, weight=0.5)
    phase = Fit(model, data, taught, replace(its.recipe, epochs=epochs, lr=rate, seed=seed))
    for _ in range(epochs):
        phase.run_epoch(measured=False)
    metric = evaluate(model, data, task=task)
    return model, metric if task.higher_is_better else 1 - metric


def collect(its: Comparison, path: Path | None = None) -> dict[str, Any]:
    """Figures of all rows that have been trained: errors in percent by seed, costs, rates."""
    path = path or its.kept
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    rows: dict[str, Any] = {}
    for row in its.rows:
        entry = found.get(row.label)
        if entry is not None and entry["scores"]:
            bits, products = its.network(row).size
            errors = {seed: 100 * (1 - score) for seed, score in entry["scores"].items()}
            rows[row.label] = {"tables": list(row.tables), "hidden": row.hidden, "weight_bits": bits,
                               "multiplications": products, "rate": entry["rate"], "tried": entry["tried"],
                               "errors": errors, "processor_seconds": entry["seconds"]}
    return rows


def table(its: Comparison, rows: Mapping[str, Any]) -> dict[str, str]:
    """The figures for people, a table for each cost, the best row first."""
    lines = {}
    for name, title in {"": "the dense network", **its.tables}.items():
        found = {label: row for label, row in rows.items() if (name in row["tables"] if name else not row["tables"])}
        for label, row in sorted(found.items(), key=lambda item: mean(item[1]["errors"].values())):
            errors = list(row["errors"].values())
            spread = f" ± {stdev(errors):.2f}" if len(errors) > 1 else ""
            lines[f"{its.title}, {title}: {label}"] = (
                f"{mean(errors):.2f}{spread} % errors ({len(errors)} seeds), {row['weight_bits']:,} bits, "
                f"{row['multiplications']:,} multiplications")
    return lines
