"""Estimates of `circulant estimate` against what Yosys makes of designs and what nextpnr's router reaches.

The designs of Yosys are those of ``python -m benchmarks logic``, whose figures are read; some were held out of all
fits. Clocks are routed here, of ten of them that fit an LFE5U-85F with room to spare, so that the router is not what
limits them.
"""
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
from scipy.optimize import nnls

from benchmarks import designs as shapes
from benchmarks.logic import FITTED, LOGIC, Measured, designs, fitted, image, read
from benchmarks.synthesis import Counts, Point, counts, foretold, network, occupied
from circulant.boards.placement import place
from circulant.hw import Design, generate
from circulant.hw.plan.families import FAMILIES
from circulant.hw.stream.pipeline import LEVELS
from circulant.sim.refusal import Refusal

__all__ = ["fit", "measure"]

FAMILY, DEVICE = "ecp5", "LFE5U-85F"
"""Whose clocks are routed."""

MHZ = FAMILIES[FAMILY].mhz(LEVELS)

ROUTED = (1, 2, 5, 6, 7, 8, 9, "images 0", "images 1", "images 3")
"""Keys of the designs that are routed, see `benchmarks.logic.designs`; all have `LEVELS` levels of logic."""

DRAWN, SHARED, SEED = 24, 20, 7
"""Layers that are drawn for the fit, and stacks of layers on one array."""

MORE_IMAGES = (2, 6, 7, 8, 9, 10, 11, 12)
"""Seeds of networks over images for the fit."""

NAMES = ("dsps", "block_rams", "luts", "flip_flops")


class Estimated(TypedDict):
    """A design: by family its figures, see `NAMES`, estimated and found, and the clock in MHz of those routed."""

    design: str
    fitted: list[str]
    estimated: dict[str, dict[str, float]]
    found: dict[str, dict[str, float]]
    routed_mhz: NotRequired[float]


def measure(*, logic: Path = LOGIC, routes: bool = True, kept: Path | None = None, mhz: float = 120.0,
            note: Callable[[str], None] = lambda text: None) -> Mapping[str, object]:
    """Rows of figures, errors by family, and a table.

    Parameters:
        logic: what ``python -m benchmarks logic`` found.
        routes: place and route ten designs, some minutes each.
        kept: figures of an earlier measurement, whose clocks stand for those that are not routed anew.
        mhz: the clock that nextpnr is asked for.
    """
    clocked = {} if kept is None else {row["design"]: row["routed_mhz"] for row in json.loads(
        kept.read_text("utf-8"))["designs"] if "routed_mhz" in row}
    measured, rows = {row["design"]: row for row in read(logic)}, list[Estimated]()
    for key, title, make in designs():
        note(title)
        known = measured[title]
        row: Estimated = {"design": title, "fitted": known["fitted"], "estimated": {
            family: _estimates(known, family) for family in known["found"]}, "found": {
            family: {"dsps": each["dsps"], "block_rams": each["block_rams"], "luts": occupied(family, each),
                     "flip_flops": each["flip_flops"]} for family, each in known["found"].items()}}
        if routes and key in ROUTED:
            row["routed_mhz"] = _routed(make(), mhz)
            note(f"  {row['routed_mhz']:.1f} MHz routed, {MHZ:.1f} MHz estimated")
        elif title in clocked:
            row["routed_mhz"] = clocked[title]
        rows.append(row)
    families = list(rows[0]["found"])
    errors = {family: _errors(rows, family) for family in families}
    apart = {family: [row for row in rows if family not in row["fitted"]] for family in families}
    clocks = [MHZ / row["routed_mhz"] - 1 for row in rows if "routed_mhz" in row]
    return {"benchmark": "estimate", "table": dict(_table(rows, errors, clocks)),
            "errors": {family: {"designs": len(rows), **each} for family, each in errors.items()},
            "held_out": {family: {"designs": len(some), **_errors(some, family)} for family, some in apart.items()},
            "clock": {"family": FAMILY, "designs": len(clocks), **_spread(clocks)} if clocks
            else None, "designs": rows}


def _estimates(row: Measured, family: str) -> dict[str, float]:
    """The estimate of a measured design."""
    demand = FAMILIES[family].demand(foretold(row))
    assert demand.luts is not None and demand.flip_flops is not None
    return {"dsps": demand.dsps, "block_rams": demand.block_rams, "luts": demand.luts.count,
            "flip_flops": demand.flip_flops.count}


def _errors(rows: list[Estimated], family: str) -> dict[str, dict[str, float]]:
    return {name: _spread([row["estimated"][family][name] / row["found"][family][name] - 1 for row in rows
                           if row["found"][family][name]]) for name in NAMES}


def _routed(design: Design, mhz: float) -> float:
    with tempfile.TemporaryDirectory(prefix="circulant-benchmark-") as temporary:
        return place(design.write(Path(temporary) / "design"), DEVICE, target_mhz=mhz).mhz


def _spread(errors: list[float]) -> dict[str, float]:
    return {"rms": round(math.sqrt(sum(each ** 2 for each in errors) / len(errors)), 4),
            "worst": round(max(errors) if max(errors) >= -min(errors) else min(errors), 4)}


def _table(rows: list[Estimated], errors: Mapping[str, Mapping[str, Mapping[str, float]]], clocks: list[float]
           ) -> Iterator[tuple[str, str]]:
    for row in rows:
        for family, found in row["found"].items():
            made = row["estimated"][family]
            clock = f"; {MHZ:.1f} and {row['routed_mhz']:.1f} MHz" if family == FAMILY and "routed_mhz" in row else ""
            yield f"{row['design']}, {family}", ", ".join(
                f"{made[name]:,g} and {found[name]:,g} {name}" for name in NAMES) + clock
    for family, each in errors.items():
        yield f"errors, {family}", ", ".join(
            f"{name} {each[name]['rms']:.1%} rms, {each[name]['worst']:+.1%} worst" for name in NAMES)
    if clocks:
        found = _spread(clocks)
        yield "errors, clock", f"{found['rms']:.1%} rms, {found['worst']:+.1%} worst, of {len(clocks)} designs"


def fit(note: Callable[[str], None] = lambda text: None) -> dict[str, float]:
    """The factors of `circulant.hw.foreseen.REGISTERS`, from designs that are generated here and those that the factors
    of families are fitted to: non-negative least squares of relative errors."""
    rows: list[Counts] = list({str(row.get("design") or row.get("candidate")): row
                               for family in FITTED for row, _ in fitted(family)}.values())
    for title, make in _training():
        note(title)
        with suppress(Refusal):  # It has no hardware with so few multipliers.
            rows.append(counts(make()))
    registers = np.array([row["resources"]["logic"]["registers"] for row in rows], float)
    names = list(dict.fromkeys(name for row in rows for name in row["quantities"] if name != "memories"))
    table = np.array([[row["quantities"].get(name, 0.0) for name in names] for row in rows])
    found = nnls(table / registers[:, None], np.ones(len(rows)))[0]
    return {name: round(float(factor), 3) for name, factor in zip(names, found, strict=True) if factor > 5e-4}


def _training() -> Iterator[tuple[str, Callable[[], Design]]]:
    for point in (*_drawn(), *_shared()):
        yield point.title, partial(_layer, point)
    for name in ("digits-gru", "fsdd-lstm", "lenet5", "crnn", "resnet8"):
        yield name, partial(_shape, name)
    for seed in MORE_IMAGES:
        yield f"images {seed}", partial(image, seed)


def _layer(point: Point) -> Design:
    return generate(network(point), multipliers=point.multipliers, streams=point.streams,
                    levels=point.levels, objective=point.objective)


def _shape(name: str) -> Design:
    return generate(shapes.network(name), **shapes.DESIGNS[name].options, objective="throughput")


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


def _shared() -> Iterator[Point]:
    """Stacks of one to three layers, of which each has one array."""
    rng = np.random.default_rng(SEED + 1)
    for n in range(SHARED):
        cell = ("gru", "lstm", "linear", "gru before")[n % 4]
        weights, activations = [(8, 12), (12, 16), (8, 8), (16, 16)][int(rng.integers(4))]
        yield Point(cell, int(rng.integers(6, 48)), 8 * int(rng.integers(2, 6)), int(rng.choice([2, 4, 8, 16])),
                    int(rng.integers(24, 110)), weight_bits=weights, activation_bits=activations,
                    levels=int(rng.choice([4, 4, 6, 9])), layers=1 + n // 4 % 3,
                    objective=("latency", "area")[int(rng.integers(2))])
