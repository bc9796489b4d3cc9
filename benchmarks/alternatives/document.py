"""The tables of docs/when.md, so that no figure is typed by hand."""
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks import marks
from benchmarks.alternatives.comparisons import COMPARISONS

__all__ = ["BEGIN", "END", "document", "write"]

BEGIN, END = "<!-- alternatives: begin -->", "<!-- alternatives: end -->"


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
                parts += [title, "", f"| matrices | errors, % | seeds | bits of weights | multiplications {its.unit} | "
                          "rate |", "|---|---|---|---|---|---|", *map(_line, *_best_first(chosen)), ""]
    return "\n".join(parts).rstrip() + "\n"


def _best_first(rows: Mapping[str, Any]) -> tuple[list[str], list[Mapping[str, Any]]]:
    labels = sorted(rows, key=lambda label: mean(rows[label]["errors"].values()))
    return labels, [rows[label] for label in labels]


def _line(label: str, row: Mapping[str, Any]) -> str:
    errors = [*row["errors"].values()]
    spread = f" ± {stdev(errors):.1f}" if len(errors) > 1 else ""
    return (f"| {label} | {mean(errors):.1f}{spread} | {', '.join(row['errors'])} | {row['weight_bits']:,} | "
            f"{row['multiplications']:,} | {row['rate']:g} |")


def write(path: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace what stands between the two marks of a document.

    Raises:
        click.ClickException: when it has not both marks.
    """
    marks.replace(path, BEGIN, END, document(found))
