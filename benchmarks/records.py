"""Records of a row's training: its run folder, or the record of it that the repository keeps.

A run folder is gone with the machine that it was made on. A kept record says the same without the weights.
"""
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from benchmarks.experiments import FOLDER, Row
from circulant.experiment import Experiment, load, parse
from circulant.sim import artifact
from circulant.training.settings.training import renamed

__all__ = ["KEPT", "keep", "place", "record"]

KEPT = Path("docs/measured/results")
KIND, VERSION = "circulant-training", 1
TABLES = ("data", "model", "compression", "training")


def record(row: Row, seed: int, below: Path = FOLDER, kept: Path | None = KEPT) -> dict[str, Any] | None:
    """The record of a finished training, from the run folder or else from those that are kept; None without one.

    A record of other settings than the row has now is left out, with a word about it.
    """
    paths = [row.folder(seed, below) / "training.json", *([place(row, seed, kept)] if kept else [])]
    for path in paths:
        if path.exists():
            found = artifact.read_json(path, KIND, VERSION)
            tables = found["experiment"]
            tables = {**tables, "training": renamed(tables["training"])}
            if _tables(parse(tables)) == _tables(_experiment(row, seed)):
                return found
            click.echo(f"{path} is left out: it was trained with other settings than {row.experiment} has for row "
                       f"{row.label} now; delete it to train again", err=True)
    return None


def keep(row: Row, seed: int, below: Path = FOLDER, kept: Path = KEPT) -> None:
    """Keep the record of a finished training, but for ADMM's residuals of each matrix and for the place of the
    model on this machine that it started from."""
    found = record(row, seed, below, None)
    if found is not None:
        if row.base:
            found["experiment"]["training"]["dense"] = (FOLDER / row.experiment / f"{row.base}-s{seed}").as_posix()
        found["history"] = [{key: value for key, value in epoch.items() if key != "matrices"}
                            for epoch in found["history"]]
        del found["hash"]
        artifact.write_json(place(row, seed, kept), KIND, VERSION, found)


def place(row: Row, seed: int, kept: Path) -> Path:
    """The file of a kept record."""
    return kept / row.experiment / f"{row.label}-s{seed}.json"


def _experiment(row: Row, seed: int) -> Experiment:
    _, name, *words = row.arguments(seed)
    return load(name, [word for before, word in pairwise(words) if before == "--set"])


def _tables(experiment: Experiment) -> dict[str, Any]:
    """Settings of a training: not where its dense baseline lies and how long another would take, nor what its circulant
    model would, were there one."""
    tables = experiment.tables(TABLES)
    settings = experiment.training
    fresh = settings.method != "direct" or settings.start == "projected"
    tables["training"]["start"] = "projected" if fresh or not (settings.dense_epochs or settings.dense) else "dense"
    if settings.dense:
        del tables["training"]["dense_epochs"]
    del tables["training"]["dense"]
    if experiment.compression.block_size == 1:
        del tables["model"]["dense"]
        if experiment.training.method == "admm" and not experiment.training.retrain_epochs:
            for name in ("distillation", "hints", "direct_epochs"):
                del tables["training"][name]
    return tables
