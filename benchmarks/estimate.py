"""Estimates of `circulant estimate` against what Yosys makes of designs and what nextpnr's router reaches.

The designs of Yosys are those of ``python -m benchmarks logic``, whose figures are read; no factor of
`circulant.hw.foreseen` was fitted to any of them. Clocks are routed here, of ten of them that fit an LFE5U-85F with
room to spare, so that the router is not what limits them.
"""
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from benchmarks import designs as shapes
from benchmarks.logic import designs, image
from benchmarks.synthesis import Point, network, occupied
from circulant.boards.device import device
from circulant.boards.estimate.estimate import Options, estimated
from circulant.boards.placement import place
from circulant.hw import Design, generate
from circulant.hw.foreseen import FACTORS, quantities
from circulant.hw.resources import parts
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.refusal import Refusal

__all__ = ["LOGIC", "fit", "measure"]

LOGIC = Path("docs/measured/logic.json")
DEVICES = {"xcu": "XCKU060", "ecp5": "LFE5U-85F"}
ROUTED = (1, 2, 5, 6, 7, 8, 9, "images 0", "images 1", "images 3")
"""Keys of the designs that are routed, see `benchmarks.logic.designs`."""

DRAWN, SEED = 24, 7
"""Layers that are drawn for the fit."""

MORE_IMAGES = (2, 6, 7, 8, 9, 10, 11, 12)
"""Seeds of networks over images for the fit."""

NAMES = ("dsps", "block_rams", "luts", "flip_flops")


def measure(*, logic: Path = LOGIC, routes: bool = True, kept: Path | None = None, mhz: float = 120.0,
            note: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Rows of figures, errors by family, and a table.

    Parameters:
        logic: what ``python -m benchmarks logic`` found.
        routes: place and route ten designs, some minutes each.
        kept: figures of an earlier measurement, whose clocks stand for those that are not routed anew.
        mhz: the clock that nextpnr is asked for.
    """
    found = {row["design"]: row["found"] for row in json.loads(logic.read_text("utf-8"))["designs"]}
    clocked = {} if kept is None else {row["design"]: row["routed_mhz"] for row in json.loads(
        kept.read_text("utf-8"))["designs"] if "routed_mhz" in row}
    rows = []
    for key, title, make in designs():
        note(title)
        design = make()
        made = {family: _estimates(design, family) for family in DEVICES}
        row: dict[str, Any] = {"design": title, "estimated": made, "found": {
            family: {"dsps": each["dsps"], "block_rams": each["block_rams"], "luts": occupied(family, each),
                     "flip_flops": each["flip_flops"]} for family, each in found[title].items()}}
        if routes and key in ROUTED:
            row["routed_mhz"] = _routed(design, mhz)
            note(f"  {row['routed_mhz']:.1f} MHz routed, {made['ecp5']['mhz']:.1f} MHz estimated")
        elif title in clocked:
            row["routed_mhz"] = clocked[title]
        rows.append(row)
    errors = {family: {"designs": len(rows)} | {name: _spread(
        [row["estimated"][family][name] / row["found"][family][name] - 1 for row in rows
         if row["found"][family][name]]) for name in NAMES} for family in DEVICES}
    clocks = [row["estimated"]["ecp5"]["mhz"] / row["routed_mhz"] - 1 for row in rows if "routed_mhz" in row]
    return {"benchmark": "estimate", "table": dict(_table(rows, errors, clocks)), "errors": errors,
            "clock": {"family": "ecp5", "designs": len(clocks), **_spread(clocks)} if clocks else None, "designs": rows}


def _estimates(design: Design, family: str) -> dict[str, float]:
    """The estimate of the plans of a design."""
    budget = design.multipliers
    made = estimated(design.network, design.plans, device(DEVICES[family]), Options(multipliers=budget), budget)
    return {name: made.taken[name].used for name in NAMES} | {"mhz": made.mhz}


def _routed(design: Design, mhz: float) -> float:
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as temporary:
        return place(design.write(Path(temporary) / "design"), DEVICES["ecp5"], target_mhz=mhz).mhz


def _spread(errors: list[float]) -> dict[str, float]:
    return {"rms": round(math.sqrt(sum(each ** 2 for each in errors) / len(errors)), 4),
            "worst": round(max(errors) if max(errors) >= -min(errors) else min(errors), 4)}


def _table(rows: list[dict[str, Any]], errors: dict[str, Any], clocks: list[float]) -> Iterator[tuple[str, str]]:
    for row in rows:
        for family in DEVICES:
            made, found = row["estimated"][family], row["found"][family]
            clock = (f"; {made['mhz']:.1f} and {row['routed_mhz']:.1f} MHz" if family == "ecp5" and "routed_mhz" in row
                     else "")
            yield f"{row['design']}, {family}", ", ".join(
                f"{made[name]:,g} and {found[name]:,g} {name}" for name in NAMES) + clock
    for family, each in errors.items():
        yield f"errors, {family}", ", ".join(
            f"{name} {each[name]['rms']:.1%} rms, {each[name]['worst']:+.1%} worst" for name in NAMES)
    if clocks:
        found = _spread(clocks)
        yield "errors, clock", f"{found['rms']:.1%} rms, {found['worst']:+.1%} worst, of {len(clocks)} designs"


def fit(note: Callable[[str], None] = lambda text: None) -> dict[str, dict[str, float]]:
    """The factors of `circulant.hw.foreseen` from designs that are generated here, none of them among those that
    `measure` compares: non-negative least squares of relative errors; of kinds other than registers relative to
    these, since what matters is the sum."""
    counts, known = [], []
    for title, make in _training():
        note(title)
        try:
            design, levels = make()
        except Refusal:
            continue  # It has no hardware with so few multipliers.
        counts.append(design.manifest["resources"]["logic"])
        known.append(quantities(parts(design.network, design.plans), len(design.network.layers), levels=levels))
    names = list(dict.fromkeys(name for each in known for name in each))
    table = np.array([[each.get(name, 0.0) for name in names] for each in known])
    registers = np.array([each["registers"] for each in counts], float)
    return {kind: {name: round(float(factor), 3) for name, factor in zip(names, nnls(
        table / registers[:, None], np.array([each[kind] for each in counts]) / registers)[0], strict=True)
        if factor > 5e-4} for kind in FACTORS}


def _training() -> Iterator[tuple[str, Callable[[], tuple[Design, int]]]]:
    for point in _drawn():
        yield point.title, partial(_layer, point)
    for name in ("digits-gru", "fsdd-lstm", "lenet5", "crnn", "resnet8"):
        yield name, partial(_shape, name)
    for seed in MORE_IMAGES:
        yield f"images {seed}", partial(_images, seed)


def _layer(point: Point) -> tuple[Design, int]:
    return generate(network(point), multipliers=point.multipliers, streams=point.streams,
                    levels=point.levels, objective="throughput"), point.levels


def _shape(name: str) -> tuple[Design, int]:
    return generate(shapes.network(name), **shapes.DESIGNS[name].options, objective="throughput"), LEVELS


def _images(seed: int) -> tuple[Design, int]:
    return image(seed), LEVELS


def _drawn() -> Iterator[Point]:
    """Layers of every kind, of drawn sizes, widths, multipliers, streams and levels."""
    rng = np.random.default_rng(SEED)
    for n in range(DRAWN):
        cell, block = ("linear", "gru", "lstm", "gru before")[n % 4], int(rng.choice([1, 2, 4, 8, 16]))
        inputs, outputs = int(rng.integers(6, 64)), int(rng.integers(8, 72))
        weights, activations = [(8, 12), (12, 16), (8, 8), (16, 16)][int(rng.integers(4))]
        levels, multipliers = int(rng.choice([4, 4, 6, 9, 12])), int(rng.integers(12, 100))
        yield Point(cell, inputs, outputs, block, multipliers, weight_bits=weights, activation_bits=activations,
                    levels=levels, streams=int(rng.choice([1, 1, 2])) if cell != "linear" else 1)
