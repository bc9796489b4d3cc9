"""Share and schedule of each layer of a design: Gantt charts of a step and of chips, a table, and what limits it.

Everything comes from the entries ``layers`` of a design's manifest, as `circulant.hw.plan` computed them.
"""
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from circulant.report.plots import COLORS, INK, style
from circulant.sim.chips import Partition
from circulant.sim.design import LayerEntry
from circulant.sim.figures import Figures

__all__ = ["arrays", "closing", "draw", "draw_chips", "engines", "rows"]

Layers = Sequence[LayerEntry]

UNITS = {"array": COLORS["dense"], "pointwise": COLORS["admm"], "second vector": COLORS["direct"],
         "output": COLORS["retrain"]}
"""Colours by the part of a row's name before the colon."""

TURNS = 40
"""Samples around the one in full colour, at the most."""


def arrays(layers: Layers) -> Iterator[LayerEntry]:
    """The entries of all arrays: of a bidirectional layer those of its two directions, of a residual sum those of its
    branches."""
    for layer in layers:
        if "body" in layer:
            yield from arrays([*layer["body"], *layer["shortcut"]])
            continue
        directions = (("forward", layer.get("forward")), ("backward", layer.get("backward")))
        for name, each in directions:
            if each is not None:
                yield {**each, "name": f"{layer['name']}, {name}", "per": layer.get("per", "")}
        if all(each is None for _, each in directions):
            yield layer


def rows(layers: Layers) -> list[dict[str, str]]:
    """A row of words for each array: what it has, its cycles, its floor, and what limits it."""
    found = []
    for each in arrays(layers):
        shape = f"{each['rows']} × {each['columns']} lanes" if "rows" in each else ""
        if each.get("fold", 1) > 1:
            shape += f", folded over {each['fold']} cycles"
        cycles, least = each["cycles"], each["floor"]
        found.append({"name": each["name"], "kind": each["kind"], "array": shape,
                      "chains": f"{each.get('chains', '')}", "elements": f"{each.get('elements') or ''}",
                      "cycles": f"{round(cycles, 2):,}", "floor": f"{least:,} ({cycles / least:.2f}×)" if least else "",
                      "limit": each.get("limit", "")})
    return found


def closing(hardware: Mapping[str, Any]) -> str:
    """In words the period of a step, the latencies of a sample, how far the period is from the floor, and what limits
    the slowest layer.

    That may be near its own floor: the multipliers of the others then wait for it.
    """
    layers = list(arrays(hardware["layers"]))
    often = [each for each in layers if each.get("per") == "step"] or layers
    slowest = max(often, key=lambda each: each["cycles"])
    cycles, least = slowest["cycles"], Figures.of(hardware).floor
    unit = "step" if hardware["multiplications"]["per_step"] else "vector"
    said = f"{round(cycles, 2):,} cycles per {unit}, {cycles / least:.2f} times the floor of {least:,}"
    if late := _latencies(hardware):
        said += f"; latency {late}"
    what, _, why = slowest.get("limit", "").partition(": ")
    own = slowest.get("floor") or least
    share = f", which takes {cycles / own:.2f} times its own floor of {own:,}" if own != least else ""
    return said + (f"; limited by {what} in layer {slowest['name']!r}{share}: {why}" if why else "")


def engines(hardware: Mapping[str, Any]) -> list[str]:
    """A line for each of the engines that a network could have within its budget, the chosen ones first; none where
    nothing was compared."""
    said: list[str] = []
    for each in hardware.get("alternatives") or []:
        late = (found := _latencies(each)) and f", latency {found}"
        why = f", as {each['reason']}" if each.get("reason") else ""
        cycles = f"{'about ' if each.get('estimate') else ''}{round(each['cycles'], 2):,}"
        said.append(f"{'or ' if said else 'chosen: '}{each['engines']}: {cycles} cycles a step{late}, "
                    f"{each['multipliers']:,} multipliers, {each['memory_bits']:,} memory bits{why}")
    return said


def _latencies(planned: Mapping[str, Any]) -> str:
    """The latencies that are planned, in words; empty where none is."""
    return ", ".join(f"{'about ' if each in planned.get('estimates', ()) else ''}{planned[each]:,} cycles {name}"
                     for name in ("spaced", "contiguous") if planned.get(each := f"latency_{name}") is not None)


def draw(layers: Layers) -> Figure | None:
    """A strip for each array with a chart: when its units work on one step, and in pale on the steps around it; of an
    array that layers share, when it works for each of them on a sample in a closed loop.

    None where no layer has a chart, as linear layers do one thing all the time.
    """
    charted = [each for each in arrays(layers) if each.get("chart")]
    if not charted:
        return None
    heights = [len(each["chart"]["rows"]) + 1.6 + 0.6 * _title(each).count("\n") for each in charted]
    figure = Figure(figsize=(10, 0.5 + 0.3 * sum(heights)), layout="constrained")
    every = figure.subplots(len(charted), 1, squeeze=False, height_ratios=heights)
    for each, axes in zip(charted, every[:, 0], strict=True):
        _strip(axes, each)
    return figure


def draw_chips(found: Partition) -> Figure | None:
    """When each chip and each link between them works on a sample that comes into idle chips, and in pale on the
    samples around it, a period apart; None where that is not known."""
    units, period = {name: spans for name, spans in found["rows"].items() if spans}, found["period"]
    if not units or period <= 0:
        return None
    figure = Figure(figsize=(10, 1.1 + 0.32 * len(units)), layout="constrained")
    axes = figure.subplots()
    _bars(axes, units, period, [COLORS["admm" if "→" in name else "dense"] for name in units])
    axes.set_xlabel("cycle, counted from the sample's first block", fontsize=8)
    late = "" if found["latency"] is None else f", {found['latency']:,} cycles from its last block to its result"
    style(axes, f"A sample on {len(found['chips'])} chips: one every {found['period']:,.6g} cycles{late}", "x")
    return figure


def _strip(axes: Axes, entry: Mapping[str, Any]) -> None:
    period, units = entry["chart"].get("period", 0), entry["chart"]["rows"]
    _bars(axes, units, period, [UNITS[name.partition(":")[0]] for name in units])
    axes.set_xlabel("cycle, counted from " + ("the step's first recurrent product" if period else
                                              "the sample's last block; behind its result, shares of the next sample"),
                    fontsize=8)
    style(axes, _title(entry), "x")


def _bars(axes: Axes, units: Mapping[str, Sequence[Sequence[float]]], period: float, colors: Sequence[str]) -> None:
    """A row of bars for each unit, from start to end of its work, again in pale each period before and after; 0 for
    none."""
    first = min(start for spans in units.values() for start, _ in spans)
    last = max(stop for spans in units.values() for _, stop in spans)
    turns = min(TURNS, int((last - first) // period) + 1) if period else 0
    for row, (spans, color) in enumerate(zip(units.values(), colors, strict=True)):
        for turn in range(-turns, turns + 1):
            axes.broken_barh([(start + turn * period, stop - start) for start, stop in spans], (row - 0.36, 0.72),
                             facecolors=color, alpha=0.2 if turn else 1.0)
    for at in {0, period}:
        axes.axvline(at, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xlim(min(first, 0), max(last, period))
    axes.set_ylim(len(units) - 0.5, -0.5)
    axes.set_yticks(range(len(units)), list(units))


def _title(entry: Mapping[str, Any]) -> str:
    """The title of a strip, in lines that its width holds."""
    if "period" not in entry["chart"]:
        served = dict.fromkeys(row.partition(": ")[2].rpartition(", ")[0] for row in entry["chart"]["rows"])
        return textwrap.fill(f"A sample on the array of {', '.join(served)}; a step every {entry['cycles']:,.6g} "
                             f"cycles; limited by {entry['limit']}", 110)
    every = f"a step every {round(entry['chart']['period'], 2):,} cycles (floor {entry['floor']:,})"
    return textwrap.fill(f"{entry['name']}: {every}, limited by {entry['limit']}", 110)
