"""Block-circulant matrices against dense, low-rank, pruned and Monarch ones, at equal cost: figures and picture.

The networks were trained once; the figures are in `KEPT`, and docs/when.md names the commit that has the trainings.
"""
import csv
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from circulant.report.plots import COLORS, INK, png, style
from circulant.sim.document import Document

__all__ = ["COMPARISONS", "KEPT", "collect", "draw", "table"]

KEPT = Path(__file__).parent.parent / "docs" / "measured" / "alternatives.csv"
"""Every row and seed that was trained."""
COMPARISONS = {"digits": ("spoken digits in noise", "a step"), "images": ("MNIST in noise", "an image")}
"""Titles of the comparisons, and what their multiplications are counted for, by name."""
COSTS = {"weight_bits": "bits of weights", "multiplications": "multiplications"}
FAMILIES = {"circulant": ("block-circulant", COLORS["dense"], "o"), "dense": ("dense", COLORS["search"], "s"),
            "": ("low rank, pruned, Monarch", "#9aa0a8", "^")}
"""By the first word of a row: its name, colour and mark."""
PLACES = [(x, y) for y in (0, 8, -8) for x in (6, -6)]
"""Where a name may stand, in points from its own."""


def collect(name: str) -> Document:
    """Figures of all rows of a comparison in the order of `KEPT`: errors in percent by seed, costs, rates."""
    rows: dict[str, Any] = {}
    with KEPT.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["data"] == name:
                row = rows.setdefault(line["matrices"], {
                    "tables": line["tables"].split(), "weight_bits": int(line["weight_bits"]),
                    "multiplications": int(line["multiplications"]), "rate": float(line["rate"]), "errors": {}})
                row["errors"][line["seed"]] = float(line["errors_percent"])
    return rows


def table(name: str, rows: Mapping[str, Any]) -> dict[str, str]:
    """The figures for people, the dense network first, then a table for each cost with the best row first."""
    title, unit = COMPARISONS[name]
    lines = {}
    for cost, words in {"": "the dense network", "bits": "equal bits of weights, with indices",
                        "multiplications": f"equal multiplications {unit}"}.items():
        found = {label: row for label, row in rows.items() if (cost in row["tables"] if cost else not row["tables"])}
        for label, row in sorted(found.items(), key=lambda item: _errors(item[1])):
            errors = list(row["errors"].values())
            lines[f"{title}, {words}: {label}"] = (
                f"{mean(errors):.2f} ± {stdev(errors):.2f} % errors ({len(errors)} seeds), "
                f"{row['weight_bits']:,} bits, {row['multiplications']:,} multiplications")
    return lines


def draw(name: str, rows: Mapping[str, Any]) -> bytes:
    """The picture as PNG: a point for each row of a comparison, the mean of its seeds.

    Parameters:
        name: of the comparison.
        rows: as `collect` gives them.
    """
    title, unit = COMPARISONS[name]
    figure = Figure(figsize=(10, 4), layout="constrained")
    every = figure.subplots(1, 2, sharey=True)
    for axes, (cost, words) in zip(every, COSTS.items(), strict=True):
        for family, (label, color, mark) in FAMILIES.items():
            mine = [entry for row, entry in rows.items() if _family(row) == family]
            axes.scatter([entry[cost] for entry in mine], [_errors(entry) for entry in mine], 34, color, marker=mark,
                         label=label, zorder=3)
        _scale(axes)
        style(axes, f"{title}: errors, %", "both")
        axes.set_xlabel(words + (f" {unit}" if cost == "multiplications" else ""), fontsize=8)
        axes.set_ylim(bottom=0)
        axes.margins(x=0.12)
    every[0].legend(frameon=False, fontsize=8)
    figure.draw_without_rendering()  # Only then is it known where a point lies.
    for axes, cost in zip(every, COSTS, strict=True):
        _name(axes, {row: (entry[cost], _errors(entry)) for row, entry in rows.items()})
    return png(figure)


def _name(axes: Axes, points: Mapping[str, tuple[float, float]]) -> None:
    """Write names beside the points of the first two families, where they cover neither point nor name."""
    taken = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in axes.transData.transform([*points.values()])]
    for row, point in points.items():
        if family := _family(row):
            for place in PLACES:
                text = axes.annotate(row.removeprefix(f"{family} "), point, place, textcoords="offset points",
                                     fontsize=7, color=INK, ha="left" if place[0] > 0 else "right", va="center")
                box = text.get_window_extent()
                if axes.bbox.x0 < box.x0 and box.x1 < axes.bbox.x1 and not any(box.overlaps(other) for other in taken):
                    break
                text.remove()
            else:
                continue
            taken.append(box)


def _scale(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _family(row: str) -> str:
    first = row.partition(" ")[0]
    return first if first in FAMILIES else ""


def _errors(entry: Mapping[str, Any]) -> float:
    return mean(entry["errors"].values())
