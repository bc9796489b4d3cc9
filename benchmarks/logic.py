"""Logic that Yosys makes of designs, against what `circulant.hw.plan.families` estimates: look-up tables and flip-flops
of designs to which the estimate was fitted, and of others; DSP blocks and block RAMs too."""
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import small_cnn
from benchmarks.synthesis import POINTS, Point, network, occupied
from circulant.boards.synthesis import synthesize
from circulant.hw import Design, generate
from circulant.hw.emit.inventory import Inventory
from circulant.hw.plan.families import FAMILIES
from circulant.sim.quantize.quantize import quantize

__all__ = ["designs", "image", "measure"]

MORE = [Point("lstm", 32, 64, 8, 110), Point("gru", 16, 32, 4, 40, weight_bits=18, activation_bits=24)]
"""A larger one, and one whose products take several DSP blocks."""

SEEDS = (0, 1, 3, 4, 5)
"""Seeds of networks over images, see `small_cnn`."""

FITTED = {"xcu": (1, 2, 4, 5, 6, 8, 9, 11, "images 0", "images 1", "images 4", "images 5"),
          "ecp5": (1, 2, 4, 5, 6, 8, 9, 11, 12, "images 0", "images 1", "images 5")}
"""Designs to which the factors were fitted, so that the greatest relative error is least; `POINTS` and `MORE` by their
numbers. The others were held out."""


def designs() -> Iterator[tuple[int | str, str, Callable[[], Design]]]:
    """A key, a title, and what makes the design."""
    for number, point in enumerate((*POINTS, *MORE), start=1):
        yield number, point.title, partial(_recurrent, point)
    for seed in SEEDS:
        yield f"images {seed}", f"images {seed}", partial(image, seed)


def _recurrent(point: Point) -> Design:
    return generate(network(point), multipliers=point.multipliers, streams=point.streams, objective="throughput")


def image(seed: int) -> Design:
    model = small_cnn.model(seed)
    made = quantize(model, np.random.default_rng(seed).normal(0, 1, (6, *model.shape)), **small_cnn.BITS)
    return generate(made, multipliers=40 + 10 * seed)


def measure(families: tuple[str, ...] = ("ecp5", "xcu"), note: Callable[[str], None] = lambda text: None
            ) -> dict[str, Any]:
    """Rows of figures, and a table. Yosys takes half a minute to some minutes for each."""
    rows = []
    for key, title, make in designs():
        note(title)
        design = make()
        with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as temporary:
            folder = design.write(Path(temporary) / "design")
            made = {family: synthesize(folder, family) for family in families}
        rows.append({"design": title, "resources": design.manifest["resources"],
                     "fitted": [family for family in families if key in FITTED[family]],
                     "found": {family: {name: getattr(each, name) for name in (
                         "dsps", "block_rams", "luts", "lut_rams", "carries", "flip_flops")}
                         for family, each in made.items()}})
    return {"benchmark": "logic", "table": {f"{row['design']}, {family}": _line(row, family)
                                            for row in rows for family in row["found"]}, "designs": rows}


def _line(row: dict[str, Any], family: str) -> str:
    demand, found = FAMILIES[family].demand(Inventory.from_json(row["resources"])), row["found"][family]
    assert demand.luts and demand.flip_flops
    held = "" if family in row["fitted"] else "; held out"
    parts = [f"{estimate.count:,} {name} estimated, {truth:,} found ({estimate.count / truth - 1:+.0%})"
             for name, estimate, truth in (("look-up tables", demand.luts, occupied(family, found)),
                                           ("flip-flops", demand.flip_flops, found["flip_flops"]))]
    return "; ".join(parts) + held
