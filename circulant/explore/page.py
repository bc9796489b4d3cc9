"""The page of an exploration: decisions of phase I as a tree, designs, resources, and dense networks beside them."""
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from circulant.boards.device import NAMES, device, rounded
from circulant.boards.estimate.measured import errors, measured
from circulant.experiment import Experiment, brief
from circulant.explore.bounds import Bounds
from circulant.explore.designs import Designs
from circulant.explore.fair import Comparison
from circulant.explore.models import Decision, Models
from circulant.explore.seeds import said
from circulant.report.interactive import PALETTE, Choice, Page, Picture, interactive
from circulant.sim.metrics import PARTS, shown, words
from circulant.sweep.pictures import pictures
from circulant.sweep.rows import Row

__all__ = ["COSTS_SAID", "page", "tree"]

RULES = {1: "a block size to start with", 2: "doubled; or dense outside the recurrent layers, or halved",
         3: "larger outside the recurrent layers", 4: "a GRU for the LSTM",
         5: "other units at equal multiplications"}

USUAL = "k = 8, 12 bits"
"""The uniform design in pictures."""

COSTS_SAID = ("Cycles, multipliers, DSP blocks, block RAMs and memory bits are predicted exactly from the plan. "
              "Look-up tables, flip-flops and the clock are estimates, whose errors stand in the last table. The "
              "energy counts products and weights read, at 45 nm, and compares designs alone.")


def page(given: Experiment, *, found: Bounds, models: Models, designs: Designs, fair: Comparison, command: str,
         repeated: Sequence[Row] = ()) -> str:
    """The page as HTML.

    Parameters:
        repeated: rows of other seeds.
    """
    keys = {at: name for name, at in designs.named.items() if name != "uniform"}
    rows = [row | {"key": keys.get(at, f"design {at + 1}"), "experiment": given.name}
            for at, row in enumerate(designs.rows)]
    texts = {row["key"]: brief(replace(point.experiment, name=given.name, data=given.data))
             for row, point in zip(rows, designs.points, strict=True) if not row["reason"]}
    dense = [row | {"key": f"dense {number}", "experiment": given.name}
             for number, row in enumerate(fair.rows, start=1) if not row["reason"]]
    texts |= {f"dense {number}": brief(replace(point.experiment, data=given.data))
              for number, point in enumerate(fair.points, start=1)}
    chosen = designs.rows[designs.chosen]
    marks = [("chosen", "star", [rows[designs.chosen]]), ("dense, equal cost", "diamond", dense)]
    if designs.uniform is not None:
        marks.insert(1, (USUAL, "square", [rows[designs.uniform]]))
    part = designs.points[designs.chosen].experiment.board.device
    told = [f"For {part}: k = {chosen['block_size']}, {chosen['weight_bits']}-bit weights, "
            f"{chosen['activation_bits']}-bit activations: {words(models.metric)} "
            f"{shown(models.metric, chosen['quantized'])} held out (dense {shown(models.metric, models.dense)}), "
            f"{chosen['cycles_per_step']:,g} cycles a step, {chosen['multipliers']:,} multipliers, "
            f"{chosen['weight_memory_bits']:,} weight bits.", *said(designs, repeated),
            " ".join(fair.verdicts), COSTS_SAID]
    more = [row | {"experiment": given.name} for row in repeated]
    made = [tree(models), *pictures(rows, marks, more), _resources(part, rows, designs), _bounds(found)]
    if dense:
        made.insert(2, _compared(rows[designs.chosen], dense))
    return interactive(Page(f"Exploration of {given.name}", f"written by {command}", told, made,
                            [_decided(models), _priced(part, given, chosen)], experiments=texts))


def tree(models: Models) -> Picture:
    """The decisions as a tree: to the right those that follow from one that was kept, below each other the others."""
    places: list[tuple[float, float]] = [(0.0, 0.0)]  # The dense baseline.
    parents, last, branches = [0], 0, dict[int, int]()
    for number, each in enumerate(models.decisions, start=1):
        parents.append(last)
        branch = branches[last] = branches.get(last, -1) + 1
        x, y = places[last]
        places.append((x + 1, y - branch))
        if each.kept:
            last = number
    lines: dict[str, list[float | None]] = {"x": [], "y": []}
    for number in range(1, len(places)):
        (x, y), (px, py) = places[number], places[parents[number]]
        lines["x"] += [px, px + 0.5, px + 0.5, x, None]
        lines["y"] += [py, py, y, y, None]
    labels = [f"dense<br>{shown(models.metric, models.dense)}", *(_node(models, each) for each in models.decisions)]
    hover = ["the dense baseline", *(f"rule {each.step}: {RULES[each.step]}<br>k = {each.block_size}, {each.cell}<br>"
                                     f"{'<br>'.join(textwrap.wrap(each.why, 60))}" for each in models.decisions)]
    colors = ["soft", *(PALETTE[2] if each.kept else PALETTE[4] for each in models.decisions)]
    traces = [{"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False,
               "line": {"color": "soft", "width": 1}, **lines},
              {"type": "scatter", "mode": "markers+text", "showlegend": False, "x": [x for x, _ in places],
               "y": [y for _, y in places], "text": labels, "textposition": "bottom center", "hovertext": hover,
               "hovertemplate": "%{hovertext}<extra></extra>", "marker": {
                   "size": 18, "color": colors, "symbol": ["circle", *("circle" if each.kept else "x"
                                                                       for each in models.decisions)]}}]
    lowest, depth = min(y for _, y in places), max(x for x, _ in places)
    hidden = {"visible": False, "fixedrange": True}
    count = len(models.decisions)
    return Picture("tree", f"Phase I: {count + 1} trainings", [Choice("", traces, {
        "xaxis": hidden | {"range": [-0.6, depth + 0.6]},
        "yaxis": hidden | {"range": [lowest - 0.9, 0.5]}})],
        "Green circles were kept, red crosses left; hover over one for its reason."
        + (f" It ended early: {models.ended}." if models.ended else ""), height=round(170 - 110 * lowest),
        wide=depth > 2)


def _node(models: Models, each: Decision) -> str:
    score = "failed" if each.score is None else shown(models.metric, each.score)
    size = each.block_size.replace(" ", "<br>") if "=" in each.block_size else f"k = {each.block_size}"
    return f"{size}<br>{score}"


def _resources(part: str, rows: Sequence[Mapping[str, Any]], designs: Designs) -> Picture:
    """Shares of the device, of the chosen design, its runners-up and the uniform one."""
    held = device(part)
    named = [(USUAL if name == "uniform" else name, at) for name, at in designs.named.items()]
    traces = [{"type": "bar", "name": NAMES[name], "marker": {"color": color},
               "x": [words for words, at in named if name in rows[at]],
               "y": [rows[at][name] / getattr(held, name) for _, at in named if name in rows[at]],
               "text": [f"{rows[at][name]:,} of {getattr(held, name):,}" for _, at in named if name in rows[at]],
               "textposition": "none", "hovertemplate": "%{text}<extra>%{fullData.name}</extra>"}
              for name, color in zip(NAMES, PALETTE, strict=False) if any(name in rows[at] for _, at in named)]
    return Picture("resources", f"Share of {part}", [Choice("", traces, {
        "barmode": "group", "xaxis": {"type": "category"},
        "yaxis": {"tickformat": ".0%", "rangemode": "tozero", "title": {"text": "share"}}})],
        "DSP blocks and block RAMs are exact; look-up tables and flip-flops are estimates.", 340)


def _compared(chosen: Mapping[str, Any], dense: Sequence[Mapping[str, Any]]) -> Picture:
    """Scores of the design and of the dense networks that cost as much."""
    groups = [("block-circulant", [chosen]),
              ("dense, equal multiplications", [row for row in dense if row["equal"] == "multiplications"]),
              ("dense, equal weight bits", [row for row in dense if row["equal"] == "weight_memory_bits"])]
    scores = [row["quantized"] for _, some in groups for row in some]
    percent = {"tickformat": ".1%"} if chosen["metric"] in PARTS else {}
    span = max(max(scores) - min(scores), 0.01)
    traces = [{"type": "scatter", "mode": "markers", "name": name, "marker": {
        "size": 13, "color": color, "symbol": "star" if name == "block-circulant" else "diamond"},
        "x": [row.get("said", "block-circulant") for row in some], "y": [row["quantized"] for row in some],
        "customdata": [row["key"] for row in some],
        "text": [f"{shown(row['metric'], row['quantized'])}<br>{row['weight_memory_bits']:,} weight bits<br>"
                 f"{row.get('multiplications', 0):,} multiplications" for row in some],
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>"} for (name, some), color in zip(
            groups, PALETTE, strict=False)]
    return Picture("fair", "Against dense networks of equal cost", [Choice("", traces, {
        "xaxis": {"type": "category", "automargin": True}, "yaxis": {
            "title": {"text": f"{words(chosen['metric'])}, axis not from zero"},
            "range": [min(scores) - span / 4, max(scores) + span / 4], **percent}})],
        "Dense networks of fewer units, of 4 and 8 bits, trained for as many epochs in all, on the same samples.", 400)


def _bounds(found: Bounds) -> Picture:
    """Cycles and memory of the untrained network by block size."""
    legal = [each for each in found.costs if not each.reason]
    traces = [{"type": "scatter", "mode": "lines+markers", "name": name, "yaxis": axis,
               "line": {"color": color}, "x": [str(each.block_size) for each in legal],
               "y": [getattr(each, attribute) for each in legal]}
              for name, attribute, axis, color in (("cycles a step", "cycles", "y", PALETTE[0]),
                                                   ("memory bits", "memory_bits", "y2", PALETTE[1]))]
    return Picture("bounds", f"Costs before training: k from {found.low} to {found.high} is worth one", [Choice(
        "", traces, {"xaxis": {"type": "category", "title": {"text": "block size of every matrix"}},
                     "yaxis": {"title": {"text": "cycles"}, "rangemode": "tozero"},
                     "yaxis2": {"title": {"text": "memory bits"}, "overlaying": "y", "side": "right",
                                "rangemode": "tozero", "showgrid": False, "tickmode": "auto"}})],
        f"Below: {found.why[0]}. Above: {found.why[1]}.", 340)


def _decided(models: Models) -> tuple[str, list[str], list[list[str]]]:
    return "Decisions of phase I", ["why", "rule", "block size", "cell", "decision"], [
        [each.why, str(each.step), each.block_size, each.cell, "kept" if each.kept else "left"]
        for each in models.decisions]


def _priced(part: str, given: Experiment, chosen: Mapping[str, Any]) -> tuple[str, list[str], list[list[str]]]:
    """The costs of the chosen design, each with the error of its model."""
    family = device(part).family
    found, clock = errors(family, recurrent=given.model.kind in ("gru", "lstm", "labeller")), measured()["clock"]
    rows = [["cycles from step to step", f"{chosen['cycles_per_step']:,g}", "exact", "circulant run counts them"]]
    for name, title in NAMES.items():
        if name in chosen:
            about = "about " if name in ("luts", "flip_flops") else ""
            rows.append([title, f"{about}{rounded(chosen[name]) if about else chosen[name]:,}", *(
                ["not known", f"no design of the family {family} was measured"] if found is None else
                [_error(found[name]), f"Yosys, {found['designs']} designs" + (
                    f" of {found['of']}" if "of" in found else "")])])
    if "mhz" in chosen:
        rows.append(["clock", f"about {chosen['mhz']:.0f} MHz", *(
            [_error(clock), f"nextpnr, {clock['designs']} designs"] if family == clock["family"] else
            ["not known", f"no design of the family {family} was routed"])])
    return "The cost model and its errors", ["figure", "chosen design", "error", "measured against"], rows


def _error(found: Mapping[str, float]) -> str:
    return f"{found['worst']:+.1%} at worst, {found['rms']:.1%} rms" if found["worst"] else "none"
