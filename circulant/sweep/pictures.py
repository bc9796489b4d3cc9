"""The pictures of a page of points: fronts, parallel coordinates, widths and seeds, loss beside that of the papers."""
import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Literal

from circulant.report.interactive import PALETTE, SCALE, Choice, Picture, Trace
from circulant.sim import metrics
from circulant.sweep.goal import FIGURES, Figure, loss
from circulant.sweep.pareto import front, over_seeds
from circulant.sweep.rows import Row

__all__ = ["COSTS", "Mark", "pictures"]

Rows = Sequence[Row]

COSTS = ("weight_memory_bits", "cycles_per_step", "work", "multipliers", "memory_bits", "energy", "latency_spaced",
         "latency_contiguous", "dsps", "block_rams", "luts", "flip_flops", "cells_mm2", "inference_nj", "rest_uw")
"""Figures that accuracy is shown against, where the rows have them."""

Axis = Literal["block_size", "weight_bits"]

AXES: tuple[tuple[Axis, Axis, str], ...] = (("block_size", "weight_bits", "bits of a weight"),
                                            ("weight_bits", "block_size", "block size"))
"""A line for each of the first, along the second, which is called so."""

Mark = tuple[str, str, Rows]
"""Points that stand out: in words, the symbol of plotly.js, the rows."""


def pictures(rows: Rows, marks: Sequence[Mark] = (), repeated: Rows = ()) -> list[Picture]:
    """The pictures of rows; failed ones are left out.

    Parameters:
        rows: each with ``key``, that of its experiment.
        marks: shown besides, in every picture of a front.
        repeated: of other seeds, all with the same activations and budget, for the picture of their spread alone.
    """
    good = [row for row in rows if not row["reason"]]
    found: list[Picture] = []
    for label in dict.fromkeys(row["experiment"] for row in good):
        every = [row for row in good if row["experiment"] == label]
        mine = over_seeds(every)
        its = [(words, symbol, [row for row in some if row["experiment"] == label]) for words, symbol, some in marks]
        more = [row for row in repeated if row["experiment"] == label and not row["reason"]]
        found += [_fronts(label, mine, its), _parallel(label, mine), _widths(label, every, more)]
    if any("dense_weights" in row for row in good):
        found.append(_papers(over_seeds(good)))
    return found


def _fronts(label: str, rows: Rows, marks: Sequence[Mark]) -> Picture:
    """Score against each cost: a dot for each point, and the line of those that nothing beats."""
    choices = []
    for name in COSTS:
        figure = FIGURES[name]
        mine = [row for row in rows if figure.known(row)]
        if not mine:
            continue
        kept = [row for row in mine if not row.get("violates")]
        best = sorted((kept[at] for at in front([(figure.cost(row), loss(row)) for row in kept])), key=figure.value)
        traces = [*_dots(mine, figure), {
            "type": "scatter", "mode": "lines", "name": "front", "hoverinfo": "skip",
            "line": {"color": "ink", "width": 1.5, "shape": "hv"},
            "x": [figure.value(row) for row in best], "y": [row["quantized"] for row in best]}]
        for number, (words, symbol, some) in enumerate(marks):
            if shown := [row for row in some if figure.known(row)]:
                traces.append(_scatter(shown, figure, words, {
                    "symbol": symbol, "size": 13, "color": PALETTE[-1 - number % 3],
                    "line": {"color": "ink", "width": 1.5}}))
        marked = [row["quantized"] for _, _, some in marks for row in some if figure.known(row)]
        choices.append(Choice(f"against {figure.words}", traces, {
            "xaxis": {"type": "log", "title": {"text": figure.words}, "tickformat": ",~r",
                      "dtick": _ticks([figure.value(row) for row in mine])},
            "yaxis": _score_axis(mine[0], [row["quantized"] for row in mine], marked)}))
    metric = metrics.words(rows[0]["metric"])
    return Picture(f"front-{label}", f"{label}: {metric} and what it costs", choices,
                   f"The {metric} is that of the golden model, which the hardware equals bit for bit. Hover over a "
                   "point for its figures, click it for its experiment file. The axis shows what lies near the best "
                   "points, and the marked ones: double-click for all.")


def _ticks(values: Sequence[float]) -> str:
    """Ticks of a logarithmic axis in the words of plotly.js: 1, 2 and 5, or all digits where few would show."""
    return "D1" if max(values) < 5 * min(values) else "D2"


def _dots(rows: Rows, figure: Figure) -> list[Trace]:
    """A trace for each block size; where there are many, one whose colour is the number of weights."""
    sizes = list(dict.fromkeys(row["block_size"] for row in rows))
    if len(sizes) <= len(PALETTE):
        return [_scatter([row for row in rows if row["block_size"] == size], figure, f"k = {size}",
                         {"color": color, "size": 7, "opacity": 0.8})
                for size, color in zip(sorted(sizes, key=_order), PALETTE, strict=False)]
    counts = [math.log10(row["weights"]) for row in rows]
    ticks = sorted({row["weights"] for row in rows})
    shown = [ticks[at] for at in sorted({0, len(ticks) // 3, 2 * len(ticks) // 3, len(ticks) - 1})]
    return [_scatter(rows, figure, "points", {
        "color": counts, "colorscale": SCALE, "size": 7, "opacity": 0.85, "colorbar": {
            "title": {"text": "weights", "font": {"size": 11}}, "thickness": 10, "len": 0.85,
            "tickvals": [math.log10(count) for count in shown], "ticktext": [f"{count:,}" for count in shown]}})]


def _scatter(rows: Rows, figure: Figure, name: str, marker: Mapping[str, Any]) -> Trace:
    return {"type": "scatter", "mode": "markers", "name": name, "marker": marker,
            "x": [figure.value(row) for row in rows], "y": [row["quantized"] for row in rows],
            "customdata": [row.get("key", "") for row in rows], "text": [_hover(row) for row in rows],
            "hovertemplate": "%{text}<extra></extra>"}


def _hover(row: Row) -> str:
    """All figures of a point, a line for each."""
    spread = (f" ± {metrics.shown(row['metric'], row['quantized_deviation'])}, {row['seeds']} seeds"
              if "seeds" in row else "")
    lines = [f"<b>{metrics.shown(row['metric'], row['quantized'])}{spread}</b> {row.get('said', '')}".strip(),
             f"k = {row['block_size']}", f"{row['weight_bits']}-bit weights, {row['activation_bits']}-bit activations"]
    for name in COSTS:
        if FIGURES[name].known(row):
            lines += [f"{FIGURES[name].value(row):,.6g} {FIGURES[name].words}"]
    if "mhz" in row:
        lines.append(f"{row['cycles_per_step'] / row['mhz']:,.3g} µs at {row['mhz']:.0f} MHz (estimate)")
    if row.get("violates"):
        lines.append(f"beyond a bound: {row['violates']}")
    return "<br>".join(lines)


def _score_axis(row: Row, scores: Sequence[float], shown: Sequence[float] = ()) -> Trace:
    """The axis of a score, from near the worst of the better half, as a far point would flatten the others; or from the
    worst of ``shown``, which stay in view."""
    better = row["higher_is_better"]
    ranked = sorted(scores, reverse=better)
    best, middle = ranked[0], ranked[len(ranked) // 2]
    span = max(abs(best - middle) * 1.5, 0.01)
    low, high = (best - span, best + span / 8) if better else (best - span / 8, best + span)
    if shown:
        low, high = min(low, min(shown) - span / 8), max(high, max(shown) + span / 8)
    form = {"tickformat": ".1%"} if row["metric"] in metrics.PARTS else {}
    return {"title": {"text": f"{metrics.words(row['metric'])}, axis not from zero"}, "range": [low, high], **form}


def _parallel(label: str, rows: Rows) -> Picture:
    """A line for each point through an axis for each setting and figure."""
    dimensions: list[Trace] = []
    tables = [_table(row["block_size"]) for row in rows]
    names = [*dict.fromkeys(name for table in tables for name in table)]
    if len(names) > 1:  # One size for all is that of each.
        names = [name for name in names if name != "k"]
        tables = [dict.fromkeys(names, table["k"]) if "k" in table else table for table in tables]
    for name in names:
        values = sorted({int(table.get(name, 1)) for table in tables})
        dimensions.append({"label": "block size" if name == "k" else f"k of {name}",
                           "values": [math.log2(int(table.get(name, 1))) for table in tables],
                           "tickvals": [math.log2(value) for value in values], "ticktext": list(map(str, values))})
    if all(isinstance(row["weight_bits"], int) for row in rows):
        dimensions.append({"label": "weight bits each", "values": [row["weight_bits"] for row in rows]})
    dimensions.append({"label": "activation bits", "values": [row["activation_bits"] for row in rows]})
    for name in ("multipliers", "cycles_per_step", "weight_memory_bits"):
        figure = FIGURES[name]
        logs = [math.log10(max(figure.value(row), 1)) for row in rows]
        ticks = sorted({round(min(logs) + n * (max(logs) - min(logs)) / 4, 3) for n in range(5)})
        dimensions.append({"label": figure.words, "values": logs, "tickvals": ticks,
                           "ticktext": [f"{10 ** tick:,.3g}" if tick < 3 else f"{round(10 ** tick, -2):,.0f}"
                                        for tick in ticks]})
    scores = [row["quantized"] for row in rows]
    percent = rows[0]["metric"] in metrics.PARTS
    dimensions.append({"label": metrics.words(rows[0]["metric"]), "values": scores,
                       **({"tickformat": ".1%"} if percent else {})})
    ranked = sorted(scores)
    trace = {"type": "parcoords", "dimensions": dimensions, "labelangle": -12,
             "labelfont": {"color": "ink", "size": 11}, "tickfont": {"color": "ink", "size": 10},
             "rangefont": {"color": "soft", "size": 9},
             "line": {"color": scores, "colorscale": SCALE, "cmin": ranked[len(ranked) // 4],
                      "cmax": ranked[-1],
                      "reversescale": not rows[0]["higher_is_better"]}}
    margin = {"l": 60, "r": 60, "t": 70, "b": 24}
    return Picture(f"parallel-{label}", f"{label}: all settings and figures at once",
                   [Choice("", [trace], {"margin": margin})],
                   "A line is a point. Drag along an axis to keep what lies within; drag its name to move it.",
                   height=400, wide=True)


def _table(block_size: str) -> dict[str, str]:
    """A block size by its matrix; "k" stands for all."""
    return dict(part.split("=") for part in block_size.split()) if "=" in block_size else {"k": block_size}


def _widths(label: str, rows: Rows, repeated: Rows = ()) -> Picture:
    """The best score of each block size and width; bars span the seeds."""
    best = "The best of all activations and budgets"
    if repeated:  # A best of more points would be no fair one.
        bits, budget = repeated[0]["activation_bits"], repeated[0]["budget"]
        rows = [*(row for row in rows if (row["activation_bits"], row["budget"]) == (bits, budget)), *repeated]
        best = f"With {bits}-bit activations and all multipliers"
    choices, many = [], len({row["block_size"] for row in rows}) > len(PALETTE)
    for over, along, words in AXES:
        traces: list[Trace] = []
        rows = [row | Row(block_size=row["block_size"].partition(" ")[0]) for row in rows] if many else rows
        groups = sorted(dict.fromkeys(row[over] for row in rows), key=_order)
        for number, group in enumerate(groups):
            mine = [row for row in rows if row[over] == group]
            at = sorted(dict.fromkeys(row[along] for row in mine), key=_order)
            spread = [_seeds([row for row in mine if row[along] == value]) for value in at]
            color = PALETTE[number % len(PALETTE)]
            traces.append({
                "type": "scatter", "mode": "lines+markers", "name": f"k = {group}" if over == "block_size" else
                f"{group} bits", "x": [str(value) for value in at], "y": [mean for mean, *_ in spread],
                "line": {"color": color, "width": 1.5}, "marker": {"size": 6}, "error_y": {
                    "type": "data", "symmetric": False, "array": [up for _, up, _, _ in spread],
                    "arrayminus": [down for _, _, down, _ in spread], "thickness": 1, "width": 3},
                "text": [f"{metrics.shown(rows[0]['metric'], mean)}, {count} seed{'s' * (count > 1)}"
                         for mean, *_, count in spread], "hovertemplate": "%{text}<extra>%{fullData.name}</extra>"})
        order = [str(value) for value in sorted(dict.fromkeys(row[along] for row in rows), key=_order)]
        scores: list[float] = [score for trace in traces for score in trace["y"]]
        choices.append(Choice(f"against {words}", traces, {
            "xaxis": {"type": "category", "categoryorder": "array", "categoryarray": order, "title": {"text": words}},
            "yaxis": _score_axis(rows[0], scores)}))
    seeds = len({row.get("seed", 0) for row in rows})
    about = (f"; the mean of {'up to ' * bool(repeated)}{seeds} seeds, and bars from the worst to the best."
             if seeds > 1 else ". All are of one seed: differences of a few samples may be chance.")
    return Picture(f"widths-{label}", f"{label}: {metrics.words(rows[0]['metric'])} by block size and width", choices,
                   best + (" and of all other block sizes" if many else "") + about)


def _seeds(rows: Rows) -> tuple[float, float, float, int]:
    """Mean over seeds of the best score, how far the best and the worst seed are from it, and how many there are."""
    choose = max if rows[0]["higher_is_better"] else min
    best = [choose(row["quantized"] for row in rows if row.get("seed", 0) == seed)
            for seed in dict.fromkeys(row.get("seed", 0) for row in rows)]
    mean = sum(best) / len(best)
    return mean, max(best) - mean, mean - min(best), len(best)


def _papers(rows: Rows) -> Picture:
    """Points of the metric lost against the network with k = 1, by compression; the papers' beside ours.

    The baseline of a training has other epochs than what is trained on from it, so that nothing is compared with it.
    """
    seen = {(row["experiment"], row["block_size"], row["circulant"]): row for row in rows
            if "dense_weights" in row and "circulant" in row}.values()
    dense = {row["experiment"]: row["circulant"] for row in seen if set(_table(row["block_size"]).values()) == {"1"}}
    without = [label for label in dict.fromkeys(row["experiment"] for row in seen) if label not in dense]
    traces: list[Trace] = []
    for number, label in enumerate(dense):
        mine = sorted((row for row in seen if row["experiment"] == label),
                      key=lambda row: row["dense_weights"] / row["weights"])
        sign = 100 if mine[0]["higher_is_better"] else -100
        traces.append({"type": "scatter", "mode": "markers", "name": label,
                       "marker": {"color": PALETTE[number % len(PALETTE)], "size": 9},
                       "x": [row["dense_weights"] / row["weights"] for row in mine],
                       "y": [sign * (dense[label] - row["circulant"]) for row in mine],
                       "text": [f"k = {row['block_size']}" for row in mine],
                       "hovertemplate": "%{text}: %{y:.2f} points at %{x:.1f} : 1<extra>%{fullData.name}</extra>"})
    traces += [{"type": "scatter", "mode": "lines+markers", "name": paper["name"],
                "line": {"color": "soft", "width": 1, "dash": "dot"},
                "marker": {"symbol": paper["symbol"], "size": 10, "color": "soft"},
                "x": [each["compression"] for each in paper["points"]],
                "y": [each["lost"] for each in paper["points"]],
                "text": [f"k = {each['block_size']}, {each['bits']} bits" for each in paper["points"]],
                "hovertemplate": "%{text}: %{y:.2f} points at %{x:.1f} : 1<extra>%{fullData.name}</extra>"}
               for paper in _published()]
    return Picture("papers", "What compression costs, here and in the papers", [Choice("", traces, {
        "xaxis": {"type": "log", "title": {"text": "compression: dense numbers for one stored"},
                  "dtick": _ticks([x for trace in traces for x in trace["x"]])},
        "yaxis": {"title": {"text": "points of the metric lost against dense"}, "zeroline": True}})],
        ("Ours are before quantization, on the samples that the points were chosen by, and lost against the network "
         "with k = 1, which had as many epochs. " if dense else "") +
        (f"Those of {', '.join(without)} are not here: their dense baselines had other epochs than they, and no point "
         "has k = 1, which would have the same; add 1 to the block sizes. " if without else "") +
        "The papers' are phone error rates on TIMIT, of larger networks: what can be compared is how the loss grows.")


@cache
def _published() -> Sequence[Mapping[str, Any]]:
    text = resources.files("circulant").joinpath("templates", "papers.toml").read_text("utf-8")
    found: Sequence[Mapping[str, Any]] = tomllib.loads(text)["paper"]
    return found


def _order(value: Any) -> tuple[float, str]:
    """Numbers by size; tables of block sizes by the first one."""
    words = str(value)
    digits = words.partition("=")[2].partition(" ")[0] or words
    return (float(digits) if digits.isdigit() else math.inf), words
