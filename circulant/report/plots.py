"""The pictures of a report, as PNG: training, accuracy of each stage, cycles against the floor, schedule, ranges."""
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from circulant.report.summary import stages
from circulant.sim import metrics

__all__ = ["COLORS", "INK", "draw", "png", "style"]

PHASES = {"dense": "dense", "admm": "ADMM", "retrain": "retraining", "direct": "direct",
          "search": "search of block sizes"}
COLORS = {"dense": "#4c6a92", "admm": "#c98b2b", "retrain": "#3f8f5f", "direct": "#8a5a9e",
          "search": "#b3523b"}
INK, GRID = "#2b2f36", "#e3e5e8"
DPI = 150
"""Pixels per inch: sharp on a dense screen."""


def draw(report: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """PNG data by the picture's name, from the figures of a report and the epochs of its training."""
    from circulant.report import gantt

    pictures = {"accuracy": _stages(report), "cycles": _cycles(report)}
    if history:
        pictures["training"] = _training(history, report["metric"])
    if report.get("ranges"):
        pictures["ranges"] = _ranges(report["ranges"])
    if "target" in report.get("outcome", {}):
        pictures["error"] = _errors(report["outcome"])
    if (strips := gantt.draw(report["hardware"].get("layers", []))) is not None:
        pictures["schedule"] = strips
    if "chips" in report and (rows := gantt.draw_chips(report["chips"])) is not None:
        pictures["chips"] = rows
    return {name: png(figure) for name, figure in pictures.items()}


def _training(history: Sequence[Mapping[str, Any]], metric: str) -> Figure:
    """Loss and metric by epoch, and residuals where ADMM has run."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    loss, score, *rest = figure.subplots(1, 3 if any("primal" in entry for entry in history) else 2)
    for phase, label in PHASES.items():
        epochs = [(at, entry) for at, entry in enumerate(history, start=1) if entry["phase"] == phase]
        if not epochs:
            continue
        x = [at for at, _ in epochs]
        loss.plot(x, [entry["loss"] for _, entry in epochs], color=COLORS[phase], label=label)
        seen = [(at, entry[metric]) for at, entry in epochs if metric in entry]  # It may be measured less often.
        if seen:
            score.plot([at for at, _ in seen], [value for _, value in seen], color=COLORS[phase], label=label)
        if phase == "admm" and rest:
            epochs = [(at, entry) for at, entry in epochs if "primal" in entry]  # Z and U may be updated less often.
            for part, dash in (("primal", "-"), ("dual", "--")):
                values = [max(entry[part], 1e-12) for _, entry in epochs]
                rest[0].plot([at for at, _ in epochs], values, dash, color=COLORS[phase], label=part)
    titles = "training loss", f"test {metrics.words(metric)}", "residuals of ADMM"
    for axes, title in zip((loss, score, *rest), titles, strict=False):
        style(axes, title)
        axes.set_xlabel("epoch")
        if axes.has_data():
            axes.legend(frameon=False, fontsize=8)
    for axes in (loss, *rest):
        if axes.has_data():
            axes.set_yscale("log")
    return figure


def _stages(report: Mapping[str, Any]) -> Figure:
    measured = stages(report)
    names, values = list(measured.values()), [report[report["metric"]][stage] for stage in measured]
    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.subplots()
    metric = report["metric"]
    title = f"test {metrics.words(metric)} of each stage"
    if metric == "accuracy" and (least := math.floor(20 * min(values) - 1) / 20) > 0:
        axes.plot(names, values, "o", color=COLORS["dense"], markersize=9)  # Bars would have to begin at zero.
        axes.set_ylim(least, 1 + (1 - least) / 8)
        axes.set_yticks([tick / 100 for tick in range(round(100 * least), 101, 5 if least < 0.9 else 1)])
        axes.set_xlim(-0.5, len(names) - 0.5)
        title += f", axis from {least:.0%}"
    else:
        axes.bar(names, values, width=0.55, color=COLORS["dense"])
    for name, value in zip(names, values, strict=True):
        axes.annotate(metrics.shown(metric, value), (name, value), xytext=(0, 7), textcoords="offset points",
                      ha="center", fontsize=9, color=INK)
    if metric in metrics.PARTS:
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    style(axes, title)
    return figure


def _cycles(report: Mapping[str, Any]) -> Figure:
    hw = report["hardware"]
    measured = (hw["cycles_per_step"], hw["cycles_per_sequence"])
    floors = (hw["floor_cycles"], hw["floor_cycles_sequence"])
    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.subplots()
    for values, label, color, at in ((measured, "measured", COLORS["dense"], -0.19),
                                     (floors, "floor", "#b8bec7", 0.19)):
        bars = axes.barh([y + at for y in (0, 1)], values, height=0.36, label=label, color=color)
        axes.bar_label(bars, [f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for value in values], padding=3,
                       fontsize=9, color=INK)
    axes.set_yticks((0, 1), ("step", "sequence"))
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.legend(frameon=False, fontsize=8)
    style(axes, f"cycles with {hw['multipliers']} multipliers", grid="x")
    return figure


def _errors(outcome: Mapping[str, Any]) -> Figure:
    """Outputs against targets, with the line on which both are equal, and a histogram of their differences."""
    wanted, found = np.asarray(outcome["target"]), np.asarray(outcome["output"])
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    pairs, errors = figure.subplots(1, 2)
    ends = [min(wanted.min(), found.min()), max(wanted.max(), found.max())]
    pairs.plot(ends, ends, color=INK, linewidth=0.8)
    pairs.plot(wanted, found, ".", color=COLORS["dense"], markersize=4, alpha=0.5)
    pairs.set_xlabel("target", fontsize=8)
    pairs.set_ylabel("output", fontsize=8)
    errors.hist(found - wanted, 41, color=COLORS["dense"])
    errors.set_xlabel(f"output − target; RMS {outcome['rmse']:.4g}, at most {outcome['worst']:.4g}", fontsize=8)
    style(pairs, "outputs against targets", "both")
    style(errors, f"how often each error occurs, {len(found):,} of the test set")
    return figure


def _ranges(ranges: Sequence[Mapping[str, Any]]) -> Figure:
    """A strip for each tensor: how many of its values take so many bits of the format, with the analytic worst case."""
    most = max(each["format"]["width"] for each in ranges)
    shares = np.full((len(ranges), most), np.nan)
    for row, each in enumerate(ranges):
        shares[row, :each["format"]["width"]] = np.log10(np.maximum(each["bits"], 1e-9)) - np.log10(each["count"])
    figure = Figure(figsize=(10, 1.4 + 0.24 * len(ranges)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(np.ma.masked_invalid(shares), aspect="auto", cmap="Blues", vmin=-6, vmax=0,
                        interpolation="nearest", zorder=1)  # The grid is behind it, at 0.5.
    for row, each in enumerate(ranges):
        width, step = each["format"]["width"], 2.0 ** -each["format"]["frac"]
        axes.plot([width - 0.5] * 2, [row - 0.45, row + 0.45], color=COLORS["retrain"], linewidth=2)
        worst = math.log2(max(each["worst"] / step, 1))
        axes.plot(min(worst + 0.5, most), row, "|" if worst + 0.5 <= most else ">", color=COLORS["admm"], markersize=9)
    axes.set_yticks(range(len(ranges)), [f"{each['name']}  {each['format']['width']}.{each['format']['frac']}"
                                         for each in ranges])
    axes.set_xlim(-0.6, most + 0.2)
    axes.set_xlabel("bits in use, sign not counted; green: end of the format; orange: analytic worst case")
    figure.colorbar(image, ax=axes, label="log10 of the share of values", shrink=0.6)
    style(axes, "tensors against their formats (width.fraction bits)", grid="x")
    return figure


def style(axes: Axes, title: str, grid: Literal["x", "y", "both"] = "y") -> None:
    """The look of all pictures: no frame, a light grid behind, the title at the left."""
    axes.set_title(title, fontsize=10, loc="left", color=INK)
    axes.grid(axis=grid, color=GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)


def png(figure: Figure) -> bytes:
    """PNG data of a figure."""
    figure.set_dpi(DPI)
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()
