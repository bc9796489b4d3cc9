"""The picture of a comparison: errors against bits of weights, and against multiplications."""
from collections.abc import Mapping
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from benchmarks.alternatives.comparisons import COMPARISONS
from circulant.report.plots import COLORS, INK, png, style

__all__ = ["draw"]

COSTS = {"weight_bits": "bits of weights", "multiplications": "multiplications"}
FAMILIES = {"circulant": ("block-circulant", COLORS["dense"], "o"), "dense": ("dense", COLORS["search"], "s"),
            "": ("low rank, pruned, Monarch", "#9aa0a8", "^")}
"""By the first word of a row: its name, colour and mark."""
PLACES = [(x, y) for y in (0, 8, -8) for x in (6, -6)]
"""Where a name may stand, in points from its own."""


def draw(name: str, rows: Mapping[str, Any]) -> bytes:
    """The picture as PNG: a point for each row of a comparison, the mean of its seeds.

    Parameters:
        name: of the comparison.
        rows: as `collect` gives them.
    """
    its = COMPARISONS[name]
    figure = Figure(figsize=(10, 4), layout="constrained")
    every = figure.subplots(1, 2, sharey=True)
    for axes, (cost, words) in zip(every, COSTS.items(), strict=True):
        for family, (label, color, mark) in FAMILIES.items():
            mine = [entry for row, entry in rows.items() if _family(row) == family]
            axes.scatter([entry[cost] for entry in mine], [_errors(entry) for entry in mine], 34, color, marker=mark,
                         label=label, zorder=3)
        _scale(axes)
        style(axes, f"{its.title}: errors, %", "both")
        axes.set_xlabel(words + (f" {its.unit}" if cost == "multiplications" else ""), fontsize=8)
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
