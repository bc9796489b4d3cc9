"""Logic that Yosys makes of designs, against what `circulant.hw.plan.families` makes of their plans: look-up tables and
flip-flops of designs to which the estimate was fitted, and of others; DSP blocks and block RAMs too."""
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from scipy.optimize import lsq_linear

from benchmarks import drawn_logic, small_cnn
from benchmarks.synthesis import POINTS, Counts, Logic, Point, cells, counts, foretold, network, occupied
from circulant.hw import Design, generate
from circulant.hw.plan.families import FAMILIES
from circulant.sim.quantize.quantize import quantize

__all__ = ["FITTED", "LOGIC", "OWN", "SHARED", "designs", "fit", "fitted", "image", "measure", "of_family", "read"]

LOGIC = Path("docs/measured/logic.json")

MORE = [Point("lstm", 32, 64, 8, 110), Point("gru", 16, 32, 4, 40, weight_bits=18, activation_bits=24)]
"""A larger one, and one whose products take several DSP blocks."""

SHARED = (
    Point("gru", 12, 16, 4, 30, layers=2, objective="latency"),
    Point("lstm", 16, 16, 4, 36, layers=2, objective="area", weight_bits=8, activation_bits=12),
    Point("gru", 20, 24, 8, 44, layers=3, objective="latency", weight_bits=8, activation_bits=12, levels=6),
    Point("lstm", 12, 24, 8, 50, layers=2, objective="latency"),
    Point("gru", 16, 32, 2, 30, objective="latency"),
    Point("lstm", 24, 32, 4, 48, objective="area", weight_bits=8, activation_bits=8),
    Point("linear", 40, 32, 4, 16, layers=2, objective="area", weight_bits=8, activation_bits=8),
)
"""Layers on a shared array."""

SEEDS = (0, 1, 3, 4, 5)
"""Seeds of networks over images, see `small_cnn`."""

OWN = {"ice40": (
    Point("linear", 24, 16, 4, 4, weight_bits=8, activation_bits=8, levels=12),
    Point("linear", 32, 24, 2, 6, weight_bits=8, activation_bits=12, levels=6),
    Point("linear", 40, 24, 8, 8, weight_bits=8, activation_bits=8, levels=9),
    Point("linear", 24, 12, 4, 8, levels=4),
    Point("gru", 8, 16, 4, 6, weight_bits=8, activation_bits=8, levels=12),
    Point("gru", 12, 16, 2, 8, weight_bits=8, activation_bits=12, levels=9),
    Point("gru", 8, 32, 4, 8, weight_bits=8, activation_bits=8, levels=9),
    Point("gru", 10, 24, 4, 8, levels=6),
    Point("gru before", 8, 16, 4, 8, weight_bits=8, activation_bits=8, levels=12),
    Point("gru", 16, 32, 8, 8, weight_bits=8, activation_bits=8, levels=12),
    Point("lstm", 12, 16, 4, 12, weight_bits=8, activation_bits=8, levels=12),
    Point("lstm", 16, 24, 4, 12, weight_bits=8, activation_bits=12, levels=9),
    Point("lstm", 8, 16, 2, 12, levels=9),
    Point("lstm", 12, 24, 4, 12, weight_bits=8, activation_bits=8, levels=12, projection=12),
)}
"""Small designs with few registers, by the families whose devices hold no others."""

FITTED = {"ice40": tuple(f"ice40 {n}" for n in range(1, 15) if n % 3),
          "xcu": (1, 2, 3, 4, 5, 6, 8, 9, 11, "images 0", "images 1", "images 4", "images 5", "shared 1", "shared 3",
                  "shared 7"),
          "ecp5": (1, 2, 3, 4, 5, 6, 8, 9, 11, 12, "images 0", "images 1", "images 5", "shared 1", "shared 3",
                   "shared 7")}
"""Designs to which the factors were fitted, `POINTS` and `MORE` by their numbers. The others were held out."""

SIGNED = ("operands", "tables")
"""Terms whose factors may be less than nothing: registers lie within multipliers, and what follows a small fixed memory
is partly constant."""


class Measured(Counts):
    """A design, the families whose factors it was fitted to, and what Yosys found, by family."""

    design: str
    fitted: list[str]
    found: dict[str, Logic]


def designs() -> Iterator[tuple[int | str, str, Callable[[], Design]]]:
    """A key, a title, and what makes the design."""
    for number, point in enumerate((*POINTS, *MORE), start=1):
        yield number, point.title, partial(_recurrent, point)
    for number, point in enumerate(SHARED, start=1):
        yield f"shared {number}", point.title, partial(_recurrent, point)
    for seed in SEEDS:
        yield f"images {seed}", f"images {seed}", partial(image, seed)


def of_family(family: str) -> Iterator[tuple[str, str, Callable[[], Design]]]:
    """The designs of a family that has its own, generated for its memories."""
    for number, point in enumerate(OWN[family], start=1):
        yield f"{family} {number}", f"{point.title}, for {family}", partial(_recurrent, point, family)


def _recurrent(point: Point, family: str = "") -> Design:
    return generate(network(point), multipliers=point.multipliers, streams=point.streams, levels=point.levels,
                    family=FAMILIES[family].profile.name if family else "generic", objective=point.objective)


def image(seed: int) -> Design:
    model = small_cnn.model(seed)
    made = quantize(model, np.random.default_rng(seed).normal(0, 1, (6, *model.shape)), **small_cnn.BITS)
    return generate(made, multipliers=40 + 10 * seed)


def measure(families: tuple[str, ...] = ("ecp5", "ice40", "xcu"), *, only: tuple[str, ...] = (),
            kept: Path | None = None, note: Callable[[str], None] = lambda text: None) -> Mapping[str, object]:
    """Rows of figures, and a table. Yosys takes half a minute to some minutes for each.

    Parameters:
        only: designs by their keys, see `designs`; empty: all. Of the others the figures are those that are ``kept``.
        kept: figures of an earlier measurement, for the families that are not measured. Those of a design whose
            resources have changed are left out.
    """
    shared = tuple(family for family in families if family not in OWN)
    sets = [(shared, designs)] if shared else []
    sets += [((family,), partial(of_family, family)) for family in families if family in OWN]
    rows = [] if kept is None else read(kept)
    before = {row["design"]: other for row in rows if (other := _of_others(row, families))["found"]}
    found = {row["design"]: row for row in rows} if only else dict(before)
    for chosen, listed in sets:
        for key, title, make in listed():
            if only and str(key) not in only:
                continue
            note(title)
            found[title] = _joined(before.get(title), _row(key, title, make(), chosen))
    rows = list(found.values())
    return {"benchmark": "logic", "table": {f"{row['design']}, {family}": _line(row, family)
                                            for row in rows for family in row["found"]}, "designs": rows}


def _of_others(row: Measured, families: tuple[str, ...]) -> Measured:
    """A row without the figures of some families."""
    return {**row, "fitted": [each for each in row["fitted"] if each not in families],
                  "found": {family: each for family, each in row["found"].items() if family not in families}}


def _joined(old: Measured | None, new: Measured) -> Measured:
    """A row with the figures of an earlier one of the same circuit."""
    if old is None or old["resources"] != new["resources"]:
        return new
    return {**new, "fitted": old["fitted"] + new["fitted"], "found": old["found"] | new["found"]}


def _row(key: int | str, title: str, design: Design, families: tuple[str, ...]) -> Measured:
    found = {family: cells(design, family) for family in families}
    return {"design": title, **counts(design), "fitted": [family for family in families if key in FITTED[family]],
            "found": found}


def read(logic: Path = LOGIC) -> list[Measured]:
    """The figures of `measure` that are kept."""
    return cast("list[Measured]", json.loads(logic.read_text("utf-8"))["designs"])


def fitted(family: str, logic: Path = LOGIC) -> Iterator[tuple[Measured | drawn_logic.Drawn, Logic]]:
    """Designs that the factors of a family are fitted to, and what Yosys found."""
    for row in read(logic):
        if family in row["fitted"]:
            yield row, row["found"][family]
    if family == drawn_logic.FAMILY:
        yield from ((row, row["found"]) for row in drawn_logic.read()["fitted"])


def fit(family: str, logic: Path = LOGIC) -> dict[str, dict[str, float]]:
    """The factors of `circulant.hw.plan.families`, of the terms that it has: least squares of relative errors.

    Parameters:
        logic: figures of `measure`.
    """
    model, rows = FAMILIES[family], list(fitted(family, logic))
    found = [foretold(row) for row, _ in rows]
    terms = [model.quantities(each) for each in found]
    result = {}
    for resource, factors in (("luts", model.luts), ("flip_flops", model.flip_flops)):
        truth = np.array([occupied(family, each) if resource == "luts" else each["flip_flops"] for _, each in rows])
        held = np.array([getattr(replace(model, luts={}, flip_flops={}).demand(each), resource).count
                         for each in found])
        table = np.array([[each.get(name, 0) for name in factors] for each in terms]) / truth[:, None]
        low = [-np.inf if name in SIGNED else 0 for name in factors]
        made = lsq_linear(table, 1 - held / truth, bounds=(low, np.inf)).x
        result[resource] = {name: round(float(value), 3) for name, value in zip(factors, made, strict=True)}
    return result


def _line(row: Measured, family: str) -> str:
    demand, found = FAMILIES[family].demand(foretold(row)), row["found"][family]
    assert demand.luts and demand.flip_flops
    held = "" if family in row["fitted"] else "; held out"
    parts = [f"{estimate.count:,} {name} estimated, {truth:,} found ({estimate.count / truth - 1:+.0%})"
             for name, estimate, truth in (("look-up tables", demand.luts, occupied(family, found)),
                                           ("flip-flops", demand.flip_flops, found["flip_flops"]))]
    return "; ".join(parts) + held
