"""Block sizes that are learned against uniform ones, and against those of phase I, at equal weight bits."""
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from circulant.experiment import Experiment, load
from circulant.report.plots import COLORS, png, style
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.metrics import shown
from circulant.sweep.point import Point
from circulant.sweep.run import Row, run
from circulant.training.settings import CompressionSettings

__all__ = ["TASKS", "measure", "picture"]

TASKS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "fsdd-gru": ((), ("gru", "linear"), ("linear",)),
    "mnist-cnn": (("data.subset=6000", "training.method=admm", "training.dense_epochs=12", "training.admm_epochs=12",
                   "training.retrain_epochs=16", "training.retrain_rate=0.003"),
                  ("conv2", "fc1", "fc2"), ("fc2",)),
}
"""Keys of each experiment, the matrices that become block-circulant, and those that phase I makes coarser."""

SIZES = (4, 8, 16)
"""Uniform block sizes; each sets the cost that a search is allowed."""

WAYS = {"uniform": COLORS["dense"], "phase I": COLORS["admm"], "learned": COLORS["direct"]}


def measure(seeds: Sequence[int], tasks: Sequence[str] = tuple(TASKS)) -> dict[str, Any]:
    """Train every way at the cost of every uniform size; trainings are kept, so that a second call costs nothing."""
    start, rows = time.process_time(), []
    for task in tasks:
        for seed in seeds:
            points = [(way, k, point) for k in SIZES for way, point in _points(task, k, seed)]
            for (way, k, _), row in zip(points, run([point for *_, point in points]), strict=True):
                if row["reason"]:
                    raise click.ClickException(f"{task}, {way}, k = {k}: {row['reason']}")
                rows.append({"task": task, "way": way, "cost_of": k, "seed": seed, **{name: row[name] for name in (
                    "block_size", "dense", "circulant", "quantized", "weight_memory_bits", "cycles_per_step",
                    "multipliers")}})
                click.echo(_said(rows[-1]), err=True)
    return {"benchmark": "Block sizes: learned, uniform, and of phase I", "rows": rows, "seeds": list(seeds),
            "seconds": time.process_time() - start, "table": {
                f"{row['task']}, at the cost of k = {row['cost_of']}, {row['way']}, seed {row['seed']}": _figures(row)
                for row in rows}}


def _points(task: str, k: int, seed: int) -> list[tuple[str, Point]]:
    """Uniform block sizes, the coarser ones of phase I's third rule, and a search at the cost of the former."""
    keys, modules, coarse = TASKS[task]
    plain = load(task, [*keys, f"training.seed={seed}"])
    sizes = dict.fromkeys(modules, k)
    searched = replace(plain, training=replace(plain.training, method="search", search_epochs=20))
    return [("uniform", _point(plain, sizes)), ("phase I", _point(plain, sizes | dict.fromkeys(coarse, 2 * k))),
            ("learned", _point(searched, sizes))]


def _point(experiment: Experiment, sizes: dict[str, int]) -> Point:
    return Point(experiment.name, replace(experiment, compression=CompressionSettings(sizes)))


def _figures(row: Row) -> str:
    return (f"{shown('accuracy', row['quantized'])} (dense {shown('accuracy', row['dense'])}), "
            f"{row['weight_memory_bits']:,} weight bits, {row['cycles_per_step']:,g} cycles: {row['block_size']}")


def _said(row: Row) -> str:
    return f"{row['task']} k={row['cost_of']} {row['way']} seed {row['seed']}: {_figures(row)}"


def picture(figures: dict[str, Any], path: Path) -> None:
    """Test accuracy against weight bits: a panel for each task, a dot for each training, a line through the means."""
    tasks = list(dict.fromkeys(row["task"] for row in figures["rows"]))
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    for task, axes in zip(tasks, figure.subplots(1, len(tasks), squeeze=False)[0], strict=True):
        for way, color in WAYS.items():
            mine = [row for row in figures["rows"] if (row["task"], row["way"]) == (task, way)]
            axes.plot([row["weight_memory_bits"] for row in mine], [row["quantized"] for row in mine], "o", color=color,
                      alpha=0.5, markersize=5)
            means = []
            for k in SIZES:
                some = [row for row in mine if row["cost_of"] == k]
                means.append([sum(row[name] for row in some) / len(some)
                              for name in ("weight_memory_bits", "quantized")])
            axes.plot(*zip(*sorted(means), strict=True), color=color, label=way)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        axes.yaxis.set_major_formatter(lambda y, _: shown("accuracy", y, 1))
        axes.set_xlabel("weight bits, 12 bits each", fontsize=8)
        axes.legend(frameon=False, fontsize=8)
        style(axes, f"{task}: test accuracy of the golden model")
    atomic_bytes(path, png(figure))
