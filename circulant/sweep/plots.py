"""The picture of a sweep: what accuracy costs in weight bits, and in cycles × multipliers; a row an experiment."""
import io
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from circulant.report.plots import INK, png, style
from circulant.sim import metrics
from circulant.sweep.pareto import COSTS, fronts, over_seeds

__all__ = ["draw", "images"]

PALETTE = ("#4c6a92", "#c98b2b", "#3f8f5f", "#8a5a9e", "#b3523b", "#5b9aa0", "#7a7a52")
NEAR = 0.1
"""How far below the best point of an experiment its panel reaches."""


def images(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """The picture as PNG and as SVG, by the ending of the file; the same rows give the same bytes."""
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        draw(name, rows).savefig(buffer, format="svg", metadata={"Date": None})
    return {"png": png(draw(name, rows)), "svg": buffer.getvalue()}


def draw(name: str, rows: Sequence[Mapping[str, Any]]) -> Figure:
    """A panel for each experiment and cost: a dot for each point in the colour of its block size, and the front; a
    point of several seeds is at its means."""
    rows = over_seeds(rows)
    good = [row for row in rows if not row["reason"]]
    labels, sizes = (list(dict.fromkeys(row[column] for row in good)) for column in ("experiment", "block_size"))
    colors = dict(zip(sizes, itertools.cycle(PALETTE), strict=False))
    figure = Figure(figsize=(10, 0.9 + 3.4 * max(1, len(labels))), layout="constrained")
    figure.suptitle(f"{name}: {len(good)} points", fontsize=11, color=INK, x=0.01, ha="left")
    every = figure.subplots(max(1, len(labels)), len(COSTS), squeeze=False)
    on = fronts(rows)
    for label, panels in zip(labels, every, strict=False):
        mine = [at for at, row in enumerate(rows) if row["experiment"] == label and not row["reason"]]
        for axes, cost in zip(panels, COSTS, strict=True):
            _panel(axes, rows, mine, cost=cost, best=on[cost], colors=colors)
    handles = [Line2D([], [], color=color, marker=".", linestyle="", label=f"k = {size}")
               for size, color in colors.items()]
    figure.legend(handles=[*handles, Line2D([], [], color=INK, linewidth=1, label="front")], frameon=False, fontsize=8,
                  ncols=len(handles) + 1, loc="outside lower left")
    return figure


def _panel(axes: Axes, rows: Sequence[Mapping[str, Any]], mine: list[int], cost: str, best: set[int],
           colors: Mapping[str, str]) -> None:
    words, value = COSTS[cost].words, COSTS[cost].value
    edge = sorted((value(rows[at]), rows[at]["quantized"]) for at in mine if at in best)
    axes.plot([x for x, _ in edge], [y for _, y in edge], color=INK, linewidth=1, drawstyle="steps-post")
    axes.scatter([value(rows[at]) for at in mine], [rows[at]["quantized"] for at in mine], 9,
                 [colors[rows[at]["block_size"]] for at in mine], alpha=0.8)
    better, scores = rows[mine[0]]["higher_is_better"], [rows[at]["quantized"] for at in mine]
    if better:
        axes.set_ylim(max(min(scores), max(scores) - NEAR) - 0.005, max(scores) + 0.008)
    else:
        axes.set_ylim(min(scores) - 0.008, min(max(scores), min(scores) + NEAR) + 0.005)
    low, high = axes.get_ylim()
    beyond = sum(not low <= score <= high for score in scores)
    metric = str(rows[mine[0]]["metric"])
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(lambda y, _: metrics.shown(metric, y, 1))
    axes.set_xlabel(words + (f"; {beyond} of {len(mine)} points are outside" if beyond else ""), fontsize=8)
    style(axes, f"{rows[mine[0]]['experiment']}: {metrics.words(metric)} of the golden model")
