"""The cost of training beside that of an ordinary model: an epoch of ADMM, one with Muon, a block-circulant Linear.

Both sides of a ratio are measured in turns in one process, each by its median, and the ratio is the median of those of
the turns, so that what else the machine does falls on both. With one thread (OMP_NUM_THREADS=1) it is processor time,
which does not count what others do.
"""
import os
import platform
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import click
import numpy as np
import torch
from torch import nn

from circulant.training import Admm, Dataset, ModelSettings, compress, task_of
from circulant.training.blocks.product import faster
from circulant.training.loop.loop import Fit, Recipe
from circulant.training.models.models import build

__all__ = ["admm", "crossover", "linear", "measure", "muon"]

BATCH, FEATURES, CLASSES = 16, 40, 40


def measure(overrides: tuple[str, ...] = ()) -> dict[str, Any]:
    """All of them: the figures, and a table."""
    if overrides:
        raise click.UsageError("The benchmark 'training' is of fixed models, so --set changes nothing; leave it out")
    figures: dict[str, Any] = {"admm": admm(), "muon": muon(), "linear": linear(), "crossover": crossover()}
    machine = {"system": platform.platform(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}
    return {"benchmark": "training", "table": table(figures), "machine": machine,
            "admm_epoch_ratio": figures["admm"]["ratio"], "muon_epoch_ratio": figures["muon"]["ratio"],
            "linear1024_k16_ratio": figures["linear"]["ratio"], **figures}


def admm(*, hidden: int = 256, layers: int = 2, batches: int = 8, steps: int = 60, repeats: int = 11) -> dict[str, Any]:
    """An epoch of ADMM against one of the same dense model: an LSTM labels sequences of speech frames by CTC."""
    data = speech(BATCH * batches, steps)
    sides: dict[str, Callable[[], Any]] = {}
    updates: list[float] = []
    for name in ("dense", "admm"):
        model = build(ModelSettings("labeller", hidden, layers, cell="lstm"), data.shape, data.classes)
        admm = Admm(model, 8, rho=1e-2) if name == "admm" else None
        fit = Fit(model, data, task_of(data), Recipe(epochs=repeats + 1, lr=1e-4, batch=BATCH),
                  add_gradient=admm.add_penalty_gradient if admm else None)

        def epoch(fit: Fit = fit, admm: Admm | None = admm) -> None:
            fit.run_epoch()
            if admm is not None:
                updates.append(_seconds(admm.update))

        sides[name] = epoch
    found = _turns(sides, repeats, warm=1)
    return {"model": f"LSTM {layers} x {hidden}, {BATCH} sequences of up to {steps} steps of {FEATURES} features",
            "dense_seconds": found["dense"], "admm_seconds": found["admm"], "update_seconds": median(updates),
            "ratio": found["ratio"]}


def muon(*, hidden: int = 256, layers: int = 2, block_size: int = 8, batches: int = 8, steps: int = 60,
         repeats: int = 11) -> dict[str, Any]:
    """An epoch with Muon against one with Adam of the same model, its recurrent layers block-circulant."""
    data = speech(BATCH * batches, steps)
    sides: dict[str, Callable[[], Any]] = {}
    for name in ("adam", "muon"):
        model = build(ModelSettings("labeller", hidden, layers, cell="lstm"), data.shape, data.classes)
        recipe = Recipe(epochs=repeats + 1, lr=1e-4, batch=BATCH, optimizer=name)
        sides[name] = Fit(compress(model, {"lstm": block_size}), data, task_of(data), recipe).run_epoch
    found = _turns(sides, repeats, warm=1)
    return {"model": f"LSTM {layers} x {hidden}, k = {block_size}", "adam_seconds": found["adam"],
            "muon_seconds": found["muon"], "ratio": found["ratio"]}


def linear(*, side: int = 1024, block_size: int = 16, batch: int = 64, repeats: int = 60) -> dict[str, Any]:
    """A step (forward and backward) of a block-circulant Linear against the dense one."""
    torch.manual_seed(0)
    dense = nn.Linear(side, side)
    x = torch.randn(batch, side, requires_grad=True)
    found = _turns({"dense": _step(dense, x), "circulant": _step(compress(dense, block_size), x)}, repeats, warm=5)
    return {"side": side, "block_size": block_size, "batch": batch, "dense_seconds": found["dense"],
            "circulant_seconds": found["circulant"], "ratio": found["ratio"],
            "path": faster(batch, side // block_size, side // block_size, block_size)}


def crossover(*, sides: tuple[int, ...] = (256, 1024), block_sizes: tuple[int, ...] = (4, 8, 16, 32),
              batches: tuple[int, ...] = (1, 8, 64, 256, 1024), repeats: int = 9) -> list[dict[str, Any]]:
    """`linear` for many shapes."""
    return [linear(side=side, block_size=k, batch=batch, repeats=repeats)
            for side in sides for batch in batches for k in block_sizes]


def table(figures: Mapping[str, Any]) -> dict[str, str]:
    """The rows for people."""
    whole, muons, one = figures["admm"], figures["muon"], figures["linear"]
    rows = {
        f"epoch of ADMM against a dense one, {whole['model']}":
            f"{whole['ratio']:.3f}x ({whole['admm_seconds']:.2f} s, {whole['dense_seconds']:.2f} s)",
        "update of Z and U, once for each epoch": f"{1e3 * whole['update_seconds']:.0f} ms",
        f"epoch with Muon against one with Adam, {muons['model']}":
            f"{muons['ratio']:.3f}x ({muons['muon_seconds']:.2f} s, {muons['adam_seconds']:.2f} s)",
        f"Linear {one['side']} x {one['side']}, k = {one['block_size']}, batch {one['batch']}, against the dense one":
            f"{one['ratio']:.2f}x ({1e3 * one['circulant_seconds']:.2f} ms, {1e3 * one['dense_seconds']:.2f} ms)",
    }
    shapes: dict[tuple[int, int], list[str]] = {}
    for entry in figures["crossover"]:
        mark = "*" if entry["path"] == "spectrum" else ""
        shapes.setdefault((entry["side"], entry["batch"]), []).append(
            f"k = {entry['block_size']}: {entry['ratio']:.2f}x{mark}")
    for (side, batch), entries in shapes.items():
        rows[f"Linear {side} x {side}, batch {batch} (* by transforms)"] = ", ".join(entries)
    return rows


def speech(count: int, steps: int, seed: int = 0) -> Dataset:
    """Noise in the shape of speech: frames, lengths, phones."""
    rng = np.random.default_rng(seed)
    parts: list[Any] = []
    for number in (count, BATCH):
        lengths = rng.integers(steps * 3 // 4, steps + 1, number)
        lengths[0] = steps
        symbols = rng.integers(5, steps // 8, number)
        y = rng.integers(1, CLASSES, (number, steps // 8)) * (np.arange(steps // 8) < symbols[:, None])
        parts.append((rng.normal(size=(number, steps, FEATURES)).astype(np.float32), y, lengths, symbols))
    (x, y, lengths, symbols), (test_x, test_y, test_lengths, test_symbols) = parts
    return Dataset("noise", train_x=x, train_y=y, test_x=test_x, test_y=test_y, classes=CLASSES, task="ctc",
                   train_lengths=lengths, test_lengths=test_lengths, train_target_lengths=symbols,
                   test_target_lengths=test_symbols)


def _step(layer: nn.Module, x: torch.Tensor) -> Callable[[], None]:
    def step() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x).sum().backward()

    return step


def _turns(sides: Mapping[str, Callable[[], Any]], repeats: int, *, warm: int) -> dict[str, float]:
    """Median seconds of each of two sides, and ``ratio``, the median over the turns of the second to the first.

    The order within a turn is reversed each time.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for turn in range(warm + repeats):
        for name in names if turn % 2 else reversed(names):
            spent = _seconds(sides[name])
            if turn >= warm:
                seconds[name].append(spent)
    one, other = seconds.values()
    ratio = median(late / early for early, late in zip(one, other, strict=True))
    return {"ratio": ratio, **{name: median(spent) for name, spent in seconds.items()}}


def _seconds(work: Callable[[], Any]) -> float:
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    work()
    return clock() - start
