"""A Gantt chart over several chips and the links between them."""
from matplotlib.figure import Figure

from circulant.report.plots import COLORS, INK, style
from circulant.sim.chips import Partition

__all__ = ["draw"]

TURNS = 40
"""Samples around the one in full colour, at the most."""


def draw(found: Partition) -> Figure | None:
    """When each chip and each link works on a sample that comes into idle chips, and in pale on the samples around it,
    a period apart; None where that is not known."""
    rows, period = {name: spans for name, spans in found["rows"].items() if spans}, found["period"]
    if not rows or period <= 0:
        return None
    last = max(end for spans in rows.values() for _, end in spans)
    turns = min(TURNS, int(last // period) + 1)
    figure = Figure(figsize=(10, 1.1 + 0.32 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for row, (name, spans) in enumerate(rows.items()):
        for turn in range(-turns, turns + 1):
            axes.broken_barh([(start + turn * period, end - start) for start, end in spans], (row - 0.36, 0.72),
                             facecolors=COLORS["admm" if "→" in name else "dense"], alpha=0.18 if turn else 1.0)
    for at in (0, period):
        axes.axvline(at, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, max(last, period))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_xlabel("cycle, counted from the sample's first block", fontsize=8)
    late = "" if found["latency"] is None else f", {found['latency']:,} cycles from its last block to its result"
    style(axes, f"A sample on {len(found['chips'])} chips: one every {found['period']:,.6g} cycles{late}", "x")
    return figure
