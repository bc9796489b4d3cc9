"""MNIST in noise: what is counted, who teaches, and that nothing is trained twice."""
import csv
from dataclasses import replace

import numpy as np

from benchmarks import alternatives, noisy_images
from circulant.training import Dataset


def test_multiplications_are_counted_as_those_of_the_alternatives():
    with alternatives.KEPT.open(encoding="utf-8", newline="") as file:
        known = {line["matrices"]: int(line["multiplications"]) for line in csv.DictReader(file)
                 if line["data"] == "images"}
    for row in ("dense 32", "dense 13"):
        assert noisy_images.multiplied(row) == known[f"{row}, 12 bits"]


def test_the_block_circulant_row_is_within_the_budget_of_its_table():
    row = next(row for row in noisy_images.ROWS if row.startswith("circulant"))
    assert noisy_images.multiplied(row) <= 505_000


def test_what_was_trained_is_not_trained_again(tmp_path, monkeypatch):
    rng, told, kept = np.random.default_rng(0), list[str](), tmp_path / "kept.jsonl"
    x, y = rng.standard_normal((20, 1, 28, 28)).astype(np.float32), np.arange(20) % 10
    monkeypatch.setattr(noisy_images, "images", lambda held_out: Dataset("tiny", x, y, x, y, classes=10))
    given = {"seeds": 2, "rows": ("dense 13",), "recipe": replace(noisy_images.RECIPE, epochs=1), "kept": kept}
    found = noisy_images.measure(**given, note=told.append)
    assert len(told) == 2 and all(0 <= error <= 100 for error in found["rows"]["dense 13"]["errors"])
    monkeypatch.setattr(noisy_images, "Fit", None)
    assert noisy_images.measure(**given) == found
