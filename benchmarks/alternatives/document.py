"""The tables of docs/when.md, so that no figure is typed by hand, and all rows as CSV."""
import csv
import io
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks import marks
from benchmarks.alternatives.comparisons import COMPARISONS
from circulant.sim.files.writing import atomic_text

__all__ = ["BEGIN", "CSV", "END", "document", "write"]

BEGIN, END = "<!-- alternatives: begin -->", "<!-- alternatives: end -->"
CSV = "measured/alternatives.csv"
"""All rows, beside the document."""
BEST = 5
"""Rows of a table; behind them stands the best row of each kind that is not among them."""


def document(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The Markdown of the figures of `collect`, by comparison; those of which nothing was trained are left out."""
    parts = []
    for name, rows in found.items():
        its = COMPARISONS[name]
        titles = {"": "The dense network:", "bits": f"At {its.tables['bits']}:",
                  "multiplications": f"At {its.tables['multiplications']}:"}
        parts += [f"### {its.title[0].upper()}{its.title[1:]}", ""] if rows else []
        for table, title in titles.items():
            chosen = {label: row for label, row in rows.items()
                      if (table in row["tables"] if table else not row["tables"])}
            if chosen:
                parts += [title, "", f"| matrices | errors, % | bits of weights | multiplications {its.unit} |",
                          "|---|---|---|---|", *(_line(label, chosen[label]) for label in _best(chosen)), ""]
    return "\n".join(parts).rstrip() + "\n"


def _best(rows: Mapping[str, Any]) -> list[str]:
    """The rows of a table, the best one first."""
    labels = sorted(rows, key=lambda label: mean(rows[label]["errors"].values()))
    kinds: dict[str, str] = {}
    for label in labels:
        kinds.setdefault(label.partition(" ")[0], label)
    return [label for at, label in enumerate(labels) if at < BEST or label in kinds.values()]


def _line(label: str, row: Mapping[str, Any]) -> str:
    errors = [*row["errors"].values()]
    spread = f" ± {stdev(errors):.1f}" if len(errors) > 1 else ""
    return f"| {label} | {mean(errors):.1f}{spread} | {row['weight_bits']:,} | {row['multiplications']:,} |"


def _comma_separated(found: Mapping[str, Mapping[str, Any]]) -> str:
    """CSV of every row and seed."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("data", "matrices", "tables", "seed", "errors_percent", "weight_bits", "multiplications", "rate"))
    for name, rows in found.items():
        for label, row in rows.items():
            for seed, errors in row["errors"].items():
                writer.writerow((name, label, " ".join(row["tables"]), seed, round(errors, 6), row["weight_bits"],
                                 row["multiplications"], row["rate"]))
    return buffer.getvalue()


def write(path: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace what stands between the two marks of a document, and write all rows beside it.

    Raises:
        click.ClickException: when it has not both marks.
    """
    marks.replace(path, BEGIN, END, document(found))
    atomic_text(path.parent / CSV, _comma_separated(found))
