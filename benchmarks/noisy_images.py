"""MNIST in noise once more (docs/when.md), for longer: shifted images, averaged weights, wider late convolutions."""
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import torch
from torch import nn

from benchmarks.resume import Record
from circulant.sim.arith.circulant import multiplications
from circulant.sim.document import Document
from circulant.training import initialise
from circulant.training.data import Dataset, load_data
from circulant.training.loop.distillation import DistillationTask
from circulant.training.loop.loop import Fit, Recipe, evaluate
from circulant.training.task.task import task_of

__all__ = ["KEPT", "ROWS", "measure", "multiplied"]

KEPT = Path("docs") / "measured" / "noisy-images.jsonl"
"""Errors in per cent by row and seed; a row that is there is not trained again."""

IMAGES, HELD_OUT, NOISE = 6000, 2000, 0.5

RECIPE = Recipe(18, lr=0.01, batch=64, warmup=1, augment="shift", averaging="ema")

LEARNED = 0.5
"""Weight of the dense network's outputs in the loss of the others."""

ROWS = {
    "dense 32": ((32, 32, 64, 64), (1, 1, 1)),
    "circulant k = 16, 32, 16 of 32 to 128": ((32, 64, 128, 128), (16, 32, 16)),
    "dense 13": ((13, 13, 26, 26), (1, 1, 1)),
}
"""Widths of three convolutions of 3 × 3, each with a pooling behind it, and of a hidden layer, and the block sizes of
all but the first; the first network teaches."""


@cache
def images(*, held_out: bool = False) -> Dataset:
    """MNIST's first 6,000 training images and its test part, or the 2,000 training images behind them, with normal
    noise of half the range of a pixel; the same numbers as docs/when.md's."""
    data = load_data("mnist")
    behind = slice(IMAGES, IMAGES + HELD_OUT)
    test_x, test_y = (data.train_x[behind], data.train_y[behind]) if held_out else (data.test_x, data.test_y)
    rng = np.random.default_rng(1)
    x, test_x = ((part + rng.normal(0, NOISE, part.shape)).astype(np.float32)
                 for part in (data.train_x[:IMAGES], test_x))
    return Dataset("noisy-mnist", x, data.train_y[:IMAGES], test_x, test_y, classes=10)


def _network(row: str, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    (first, *later, hidden), sizes = ROWS[row]
    layers: list[nn.Module] = []
    for inputs, outputs in zip((1, first), (first, later[0]), strict=True):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(later[0], later[1], 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
               nn.Linear(9 * later[1], hidden), nn.ReLU(), nn.Linear(hidden, 10)]
    return initialise(nn.Sequential(*layers), dict(zip(("3", "6", "10"), sizes, strict=True)))


def multiplied(row: str) -> int:
    """Real multiplications of an image, without the first convolution and the classifier, as docs/when.md counts."""
    widths, sizes = ROWS[row]
    return sum(9 * times * -(-rows // k) * -(-columns // k) * multiplications(k) for rows, columns, times, k in zip(
        widths[1:], widths[:3], (14 * 14, 7 * 7, 1), sizes, strict=True))


def measure(*, seeds: int = 3, rows: Sequence[str] = tuple(ROWS), recipe: Recipe = RECIPE, held_out: bool = False,
            kept: Path | None = KEPT, note: Callable[[str], None] = lambda text: None) -> Document:
    """Errors in per cent of each row and seed, and multiplications of an image.

    Parameters:
        held_out: training images stand for the test part, for a choice of settings.
    """
    record: Record[dict[str, float]] = Record(kept, dict)
    data = images(held_out=held_out)
    task = task_of(data)

    @cache
    def trained(row: str, seed: int) -> nn.Module:
        model = _network(row, seed)
        first = next(iter(ROWS))
        taught = task if row == first else DistillationTask(task, trained(first, seed), weight=LEARNED)
        fit = Fit(model, data, taught, replace(recipe, seed=seed))
        for _ in range(recipe.epochs):
            fit.run_epoch(measured=False)
        return fit.outcome

    def wrong(row: str, seed: int) -> dict[str, float]:
        return {"errors": 100 * (1 - evaluate(trained(row, seed), data, task=task))}

    found: Document = {}
    table: Document = {}
    for row in rows:
        errors: list[float] = []
        for seed in range(seeds):
            errors.append(record.get(f"{row}, seed {seed}", partial(wrong, row, seed))["errors"])
            note(f"{row}, seed {seed}: {errors[-1]:.2f} %")
        found[row] = {"errors": errors, "multiplications": multiplied(row)}
        spread = f" ± {stdev(errors):.2f}" if seeds > 1 else ""
        table[row] = f"{mean(errors):.2f}{spread} % errors, {multiplied(row):,} multiplications"
    return {"benchmark": "MNIST in noise", "rows": found, "table": table}
