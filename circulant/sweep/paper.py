"""Pictures of a sweep or an exploration for a paper: `circulant plot`, each with its conditions and its points."""
import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import click
import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from circulant import __version__
from circulant.report.plots import DPI
from circulant.sim import artifact, metrics
from circulant.sim.files.writing import atomic_bytes
from circulant.sim.refusal import Refusal
from circulant.sweep import sheets
from circulant.sweep.goal import FIGURES, loss
from circulant.sweep.pareto import front, over_seeds
from circulant.sweep.rows import Row

__all__ = ["FORMATS", "KINDS", "draw", "plot", "rows_of", "ticks", "written"]

Rows = Sequence[Row]

KINDS = {"front": ("weight_memory_bits", "work"), "cost": ("cycles_per_step", "multipliers"),
         "sizes": ("block_size", "weight_bits"), "cells": ("cells_mm2", "inference_nj")}
"""The two figures of the panels of each kind of picture, against which the metric is drawn."""

FORMATS = ("pdf", "svg", "png", "csv")

SOURCES = {"sweep.json": "circulant-sweep", "explore.json": "circulant-exploration"}
"""Files that hold rows, and their format."""

WIDTHS = {1: 3.5, 2: 7.16}
"""Inches of one and of two columns of an IEEE page."""

LETTERS = 62
"""Letters of a line in one column."""

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The palette of Okabe and Ito (2008), which colour-blind readers tell apart, without its yellow."""

MARKERS = "os^Dv*P"

LOOK: dict[Any, Any] = {
    "font.size": 8, "axes.labelsize": 8, "legend.fontsize": 7, "pdf.fonttype": 42, "svg.fonttype": "none",
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e6e6e6"}


def rows_of(folder: Path) -> list[Row]:
    """The rows of a sweep's or an exploration's folder that have figures, seeds as one with their means.

    Raises:
        Refusal: when the folder has neither, or no row with figures.
    """
    for name, kind in SOURCES.items():
        if (folder / name).is_file():
            body = artifact.read_json(folder / name, kind, 1)
            every = over_seeds(body["rows"]) if "rows" in body else _explored(body)
            if rows := [row for row in every if not row["reason"]]:
                return rows
            raise Refusal(f"{folder / name} must hold a point with figures, but all failed; run it again")
    raise Refusal(f"A folder to plot must hold {' or '.join(SOURCES)}, but {folder} has none; name one that circulant "
                  "sweep or explore wrote")


def _explored(body: Mapping[str, Any]) -> list[Row]:
    """The designs of an exploration, with those of further seeds, and its dense networks: of one name, so that they
    share their axes."""
    name = body["designs"][0]["experiment"].partition(", k = ")[0]
    alike = [cast(Row, {**row, "experiment": name}) for row in (*body["designs"], *body["repeated"])]
    return over_seeds(alike) + [cast(Row, {**row, "experiment": name}) for row in body["fair"]["rows"]]


def draw(rows: Rows, kind: str, columns: int = 2) -> Figure:
    """The metric against both figures of a kind: every point in view, one colour and one marker for each block size,
    bars of a deviation where there are seeds, and the front.

    Parameters:
        columns: of the page that the picture is as wide as.
    """
    groups = sorted({_group(row) for row in rows}, key=lambda name: [*map(int, re.findall(r"\d+", name))])
    beside = max(1, min(4 * columns, LETTERS * columns // (8 + max(map(len, groups)))))
    with mpl.rc_context(LOOK):
        labels = list(dict.fromkeys(row["experiment"] for row in rows))
        down = len(labels) * 2 // columns
        figure = Figure(figsize=(WIDTHS[columns], 0.5 + 2.3 * down + 0.15 * (len(groups) // beside)),
                        layout="constrained")
        panels = figure.subplots(down, columns, squeeze=False).ravel()
        for at, axes in enumerate(panels):
            mine = [row for row in rows if row["experiment"] == labels[at // 2]]
            _panel(axes, mine, KINDS[kind][at % 2], groups)
            axes.set_title(labels[at // 2], fontsize=8, loc="left")
        seen = {label: handle for axes in panels
                for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        figure.legend([*seen.values()], [*seen], loc="outside lower center", ncols=beside, frameon=False)
        figure.suptitle(textwrap.fill(conditions(rows), LETTERS * columns), fontsize=6, color="#555555", x=0.01,
                        ha="left")
    return figure


def conditions(rows: Rows) -> str:
    """The conditions of the points in words: experiments, measure, widths, seeds, version."""
    bits = sorted({row["activation_bits"] for row in rows})
    seeds = max(row.get("seeds", 1) for row in rows)
    return (f"{', '.join(dict.fromkeys(row['experiment'] for row in rows))}; {len(rows)} points; activations "
            f"{', '.join(map(str, bits))} bits; {seeds} seed{'s' * (seeds > 1)}"
            f"{', mean ± standard deviation' * (seeds > 1)}; cycles: {rows[0].get('measure', 'plan')}; "
            f"circulant {__version__}")


def _group(row: Row) -> str:
    size = str(row["block_size"])
    return "dense" if size == "1" else f"k = {size}"


def _panel(axes: Axes, rows: Rows, name: str, groups: list[str]) -> None:
    text = {"block_size": "block size", "weight_bits": "bits of a weight"}.get(name) or FIGURES[name].words
    order = list(dict.fromkeys(str(row["block_size"]) for row in rows))
    place = {"block_size": lambda row: order.index(str(row["block_size"])),
             "weight_bits": lambda row: row["weight_bits"]}.get(name) or FIGURES[name].value
    metric, repeated = str(rows[0]["metric"]), any("seeds" in row for row in rows)
    for number, group in enumerate(groups):
        mine = [row for row in rows if _group(row) == group]
        if not mine:
            continue
        axes.errorbar([place(row) for row in mine], [row["quantized"] for row in mine],
                      yerr=[row.get("quantized_deviation", 0.0) for row in mine] if repeated else None,
                      linestyle="none", markersize=4, elinewidth=0.8, color=COLORS[number % len(COLORS)],
                      marker=MARKERS[(number + number // len(COLORS)) % len(MARKERS)], label=group)
    if name == "block_size":
        axes.set_xticks(range(len(order)), order)
        axes.margins(x=0.2)
    elif name == "weight_bits":
        axes.set_xticks(sorted({place(row) for row in rows}))
        axes.margins(x=0.1)
    else:
        costs = [(float(place(row)), loss(row)) for row in rows]
        edge = sorted({(costs[at][0], rows[at]["quantized"]) for at in front(costs)})
        axes.plot(*zip(*edge, strict=True), color="#555555", linewidth=0.8, drawstyle="steps-post", label="front")
        axes.set_xscale("log")
        low, high = min(x for x, _ in costs), max(x for x, _ in costs)
        around = (high / low) ** 0.06 if high > low > 0 else 1.1
        axes.set_xlim(low / around, high * around)
        axes.set_xticks(ticks(low / around, high * around))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.6g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="x", rotation=30)
    low, high = axes.get_ylim()
    if metric in metrics.PARTS and high > 1:
        axes.set_ylim(low, 1 + (1 - low) / 20)
    axes.yaxis.set_major_formatter(lambda y, _: metrics.shown(metric, y, 1))
    axes.set_xlabel(text)
    axes.set_ylabel(f"{metrics.words(metric)}, quantized")


def ticks(low: float, high: float) -> list[float]:
    """The values of an axis in logarithms that are named, round ones, three to seven where the bounds leave so many."""
    for parts in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        found = [part * 10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
                 for part in parts if low <= part * 10.0 ** power <= high]
        if 3 <= len(found) <= 7:
            return found
    return [x for x in MaxNLocator(5, integer=high >= 10).tick_values(low, high) if low <= x <= high]


def written(rows: Rows, kind: str, ending: str, columns: int = 2) -> bytes:
    """The file of a picture, or of its points; the same rows give the same bytes."""
    if ending == "csv":
        said = ["said"] * any("said" in row for row in rows)  # Of dense networks how large they are.
        names = list(dict.fromkeys(("experiment", *said, "block_size", "weight_bits", "activation_bits", "seeds",
                                    "metric", "quantized", "quantized_deviation", "weight_memory_bits",
                                    "cycles_per_step", "multipliers",
                                    *(name for name in KINDS[kind] if name in rows[0]))))
        return f"# {conditions(rows)}\n{sheets.columns(rows, names)}".encode()
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
    buffer = io.BytesIO()
    with mpl.rc_context(LOOK | {"svg.hashsalt": "circulant"}):
        draw(rows, kind, columns).savefig(buffer, format=ending, dpi=2 * DPI, bbox_inches="tight", metadata=dated)
    return buffer.getvalue()


@click.command("plot", short_help="Draw a sweep or an exploration for a paper")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False))
@click.option("--kind", type=click.Choice([*KINDS]), default="front", show_default=True,
              help="The metric against weight bits and work, cycles and multipliers, block size and bits of a weight, "
                   "or area and energy of standard cells.")
@click.option("--format", "formats", default="pdf,svg,png,csv", show_default=True, metavar="LIST",
              help="Formats, with commas between them.")
@click.option("--columns", type=click.IntRange(1, 2), default=2, show_default=True, help="Columns of a page.")
def plot(folder: Path, kind: str, formats: str, columns: int) -> int:
    """Draw the points of a folder that circulant sweep or explore wrote: all of them in view, with the conditions.

    \b
    Example:
      circulant plot runs/sweep-recurrent --kind front --format pdf,csv --columns 1
    """
    asked = formats.split(",")
    if wrong := [each for each in asked if each not in FORMATS]:
        raise Refusal(f"--format must list formats among {', '.join(FORMATS)}, not {wrong[0]!r}; leave it out")
    rows = rows_of(folder)
    if kind == "cells":
        rows = [row for row in rows if "inference_nj" in row]
        if not rows:
            raise Refusal(f"--kind cells needs points in standard cells, but {folder} has none; sweep with "
                          "set = [\"hardware.library=sky130hd\"]")
    for ending in asked:
        atomic_bytes(target := folder / f"plot-{kind}.{ending}", written(rows, kind, ending, columns))
        click.echo(target)
    return 0
