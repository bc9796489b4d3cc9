"""The rows of a sweep as CSV, for the terminal, as Markdown and for the page; the same columns everywhere."""
import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from circulant.report.seeds import few
from circulant.sim.metrics import shown, words
from circulant.sweep.pareto import SCORES, fronts, over_seeds
from circulant.sweep.rows import Row

__all__ = ["COLUMNS", "columns", "comma_separated", "failures", "markdown", "notes", "tables", "terminal"]

Rows = Sequence[Row]

COLUMNS = {
    "experiment": "experiment", "block_size": "k", "weight_bits": "w", "activation_bits": "a",
    "budget": "budget", "dense": "float", "circulant": "circulant", "quantized": "quantized",
    "weight_memory_bits": "weight bits", "multipliers": "multipliers", "cycles_per_step": "cycles",
    "floor_cycles": "floor", "cells_mm2": "mm²", "inference_nj": "nJ", "cells_mhz": "MHz", "front": "front",
}
"""Columns of the tables for people, with their headings."""

CELLS = ("cells_mm2", "inference_nj", "cells_mhz")
"""Columns that are there only where a row has them."""

EXACT = ("experiment", "block_size", "weight_bits", "activation_bits", "budget", "seed", "measure", "metric", "dense",
         "circulant", "quantized", "weights", "dense_weights", "weight_memory_bits", "memory_bits", "multipliers",
         "cycles_per_step", "floor_cycles", "latency_spaced", "latency_contiguous", "dsps", "block_rams", "luts",
         "flip_flops", "mhz", "cells_mm2", "logic_mm2", "cells_mhz", "inference_nj", "rest_uw", "front",
         "violates", "reason")
"""Columns of the CSV."""

SHORT = 40
"""Rows that a terminal shows; of a longer sweep only those on a front."""

TEN = 10
"""Rows that a page shows; those on more fronts go first."""


def comma_separated(rows: Rows) -> str:
    """CSV (RFC 4180) of all rows with every figure in full; a failed point has its reason and no figures."""
    return columns(_with_fronts(rows), EXACT)


def columns(rows: Rows, names: Sequence[str]) -> str:
    """Some columns as CSV; empty where a row has no such figure."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, extrasaction="ignore", restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def terminal(name: str, rows: Rows) -> Table:
    """The table that ends a sweep: all rows, or of a long sweep those on a front; of several seeds their means."""
    marked = _with_fronts(over_seeds(rows))
    shown = marked if len(marked) <= SHORT else [row for row in marked if row["front"]]
    title = f"{name}: {_counted(rows)}" + ("" if shown is marked else f"; the {len(shown)} that nothing beats")
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=0)
    headings = _headings(rows)
    for column, heading in headings.items():
        left = column in ("experiment", "block_size", "front")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for row in shown:
        table.add_row(*_marked(row, headings), style="red" if row["reason"] else "green" if row["front"] else None)
    return table


def failures(rows: Rows) -> Counter[str]:
    """How many points failed for each reason."""
    return Counter(row["reason"] for row in rows if row["reason"])


def markdown(name: str, rows: Rows, command: str, picture: str, points: str) -> str:
    """A page of the documentation: what was run, the picture, ten points of the fronts, and failures.

    Parameters:
        command: that wrote it.
        picture: the address of the picture from the page.
        points: the address of the CSV file with every point.
    """
    best = [row for row in _with_fronts(over_seeds(rows)) if row["front"]]
    chosen = sorted(sorted(range(len(best)), key=lambda at: -len(best[at]["front"].split()))[:TEN])
    parts = [f"# Sweep `{name}`\n\nWritten by `{command}`; {_counted(rows)}, all in [a CSV file]({points}).\n",
             _notes(rows),
             f"![Accuracy against weight bits, and against cycles × multipliers]({picture})\n" if best else "",
             f"## Points that nothing beats{f', {TEN} of {len(best)}' if len(best) > TEN else ''}\n\n"
             f"{_markdown([best[at] for at in chosen])}"]
    if wrong := failures(rows):
        parts.append("## Points that failed\n\n" + "".join(f"- {count}: {why}\n" for why, count in wrong.items()))
    return "\n".join(parts)


def tables(rows: Rows) -> list[tuple[str, list[str], list[list[str]]]]:
    """The tables of the page: title, headings, cells; why points failed, and every point."""
    wrong = [[why, str(count)] for why, count in failures(rows).items()]
    headings = _headings(rows)
    return [*([("Points that failed", ["reason", "points"], wrong)] if wrong else []),
            ("All points", [*headings.values()], [_marked(row, headings) for row in _with_fronts(over_seeds(rows))])]


def _headings(rows: Rows) -> dict[str, str]:
    """The columns that these rows have."""
    return {name: heading for name, heading in COLUMNS.items()
            if name not in CELLS or any(name in row for row in rows)}


def notes(rows: Rows) -> list[str]:
    """Paragraphs on the columns."""
    return _notes(rows).replace("*", "").strip().split("\n\n")


def _with_fronts(rows: Rows) -> list[Row]:
    on = fronts(rows)
    return [row | Row(front=" ".join(cost for cost, points in on.items() if at in points))
            for at, row in enumerate(rows)]


def _counted(rows: Rows) -> str:
    failed = failures(rows).total()
    return f"{len(rows)} points, {failed} failed" if failed else f"{len(rows)} points"


def _notes(rows: Rows) -> str:
    metrics = sorted({words(str(row["metric"])) for row in rows if row.get("metric")})
    where = {"plan": "predicted exactly from the schedule", "verilog": "predicted exactly from the schedule, and the "
             "multipliers counted in the Verilog", "simulate": "measured under Verilator"}[rows[0]["measure"]]
    return (f"*float*, *circulant*, *quantized*: {' or '.join(metrics) or 'metric'} of the dense baseline, of the "
            "block-circulant network in float and in integers, on the test split, or what data.held_out takes in its "
            f"place. *w*, *a*: bits of weights and activations. *cycles* from step to step are {where}; *floor* is "
            "⌈multiplications / multipliers⌉.\n\n*front* marks the points that no other one of the experiment beats, "
            f"in weight bits (*memory*) or in cycles × multipliers (*work*).{_of_seeds(rows)}\n")


def _of_seeds(rows: Rows) -> str:
    """A sentence on the points that differ in their seed alone, where there are such."""
    most = max(row.get("seeds", 1) for row in over_seeds(rows))
    return (f" Points that differ in their seed alone are one, with the mean of up to {most} seeds ± the standard "
            "deviation; *front* compares the means.") * (most > 1) + few(most)


def _marked(row: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """The cells of a row; one that failed, or is beyond a bound, says so where others have their front."""
    last = "failed" if row["reason"] else "beyond a bound" if row.get("violates") else row["front"]
    return [*(_cell(column, row.get(column, ""), row) for column in names if column != "front"), last]


def _cell(column: str, value: Any, row: Mapping[str, Any]) -> str:
    if value == "":
        return ""
    if column in SCORES:
        spread = row.get(f"{column}_deviation")
        return shown(row["metric"], value) + ("" if spread is None else f" ± {shown(row['metric'], spread)}")
    return value if isinstance(value, str) else f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def _markdown(rows: Rows) -> str:
    headings = _headings(rows)
    lines = [list(headings.values()), ["---"] * len(headings), *(_marked(row, headings) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
