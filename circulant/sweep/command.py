"""The command ``circulant sweep``: run a sweep file, and write what comes out."""
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem
from rich.console import Console

from circulant.arguments import CLUSTER, JOBS, JSON, say, workers
from circulant.completion import that_begin
from circulant.exits import FAILED, WRONG
from circulant.extras import TRAINING, extras
from circulant.progress import Bars, Show
from circulant.sim import artifact
from circulant.sim.files.writing import atomic_bytes, atomic_text
from circulant.sweep.grid import Sweep, read, shipped

if TYPE_CHECKING:
    from circulant.sweep.rows import Row
    from circulant.sweep.run import Jobs

__all__ = ["sweep"]

KIND, VERSION = "circulant-sweep", 1
WIDE = 140
"""Characters of a line that is not for a terminal."""


def _known(context: click.Context, parameter: click.Parameter, given: str) -> list[CompletionItem]:
    """Shipped sweeps, and files as the shell finds them."""
    return [*that_begin(shipped(), given), CompletionItem(given, type="file")]


@click.command("sweep", short_help="Evaluate block sizes × bit widths × multipliers",
               epilog=f"SWEEP is a shipped sweep ({', '.join(shipped())}) or a .toml file; docs/sweep.md describes its "
                      "keys.")
@click.argument("source", metavar="SWEEP", shell_complete=_known)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Folder of the results.  [default: runs/sweep-NAME]")
@JOBS
@CLUSTER
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write a page of Markdown, its picture into the folder images beside it, and all points as CSV "
                   "into the folder measured.")
@JSON
def sweep(source: str, out: Path | None, jobs: int, cluster: str | None, markdown: Path | None,
          as_json: bool) -> int:
    """Train an experiment at each block size, and evaluate it at every combination of bit widths and multipliers, or at
    those that a search proposes.

    Every point becomes a row: accuracy, weight bits, multipliers, cycles. The row of a point that fails gives the
    reason, and the other points continue. Results are cached, so the same command continues after an interruption.

    \b
    Example:
      circulant sweep recurrent --jobs 4
      circulant sweep mine.toml --out runs/mine --markdown docs/mine.md
    """
    from circulant.sweep import sheets

    given, where = read(source), workers(jobs, cluster)
    out = out or Path("runs") / f"sweep-{given.name}"
    options = [f"--out {out}"] if out != Path("runs") / f"sweep-{given.name}" else []
    again = " ".join(["circulant sweep", source, *options, *([f"--jobs {jobs}"] if jobs > 1 else []),
                      *([f"--cluster {cluster}"] if cluster else [])])
    if cluster is None:
        with extras("circulant sweep", *TRAINING):
            pass
    try:
        with Bars(Console(stderr=True)) as bars:
            rows = _rows(given, out, where, bars)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Interrupted; what is computed is kept: go on with `{again}`") from None
    _write(given, rows, out, markdown)
    if not as_json and not all(row["reason"] for row in rows):  # What all failed for is said once, below.
        Console(width=None if sys.stdout.isatty() else WIDE).print(sheets.terminal(given.name, rows))
    say({"file": out / "explore.html", "page": out / "explore.html", "name": given.name, "rows": rows}, as_json,
        f"{out / 'explore.html'}: the points as pictures and as a table")
    failed = sheets.failures(rows)
    for why, count in failed.items():
        click.echo(f"{count} of {len(rows)} points failed: {why}", err=True)
    codes = {row.get("code", FAILED) for row in rows if row["reason"]}
    return WRONG if WRONG in codes else max(codes) if failed.total() == len(rows) else 0


def _rows(given: Sweep, out: Path, jobs: "Jobs", show: Show) -> "list[Row]":
    if given.search is None:
        from circulant.sweep.run import run

        return run(given.points, measure=given.measure, jobs=jobs, show=show)
    with extras("a search", "optuna"):
        from circulant.sweep.search import search

    return search(given, out, jobs=jobs, show=show)


def _write(given: Sweep, rows: "list[Row]", out: Path, markdown: Path | None) -> None:
    from circulant.sweep import paper, sheets
    from circulant.sweep.page import page
    from circulant.sweep.pareto import over_seeds

    good, points = [row for row in over_seeds(rows) if not row["reason"]], sheets.comma_separated(rows)
    drawn = {ending: paper.written(good, "front", ending) for ending in ("png", "svg") if good}
    command = f"circulant sweep {given.source}"
    for ending, data in drawn.items():
        atomic_bytes(out / f"pareto.{ending}", data)
    atomic_text(out / "points.csv", points)
    atomic_text(out / "explore.html", page(given.name, rows, given.spaces, command))
    atomic_text(out / "sweep.md", sheets.markdown(given.name, rows, command, "pareto.png", "points.csv"))
    artifact.write_json(out / "sweep.json", KIND, VERSION, {"name": given.name, "rows": rows})
    if markdown is not None:
        picture, table = f"images/sweep-{given.name}.png", f"measured/sweep-{given.name}.csv"
        if good:
            atomic_bytes(markdown.parent / picture, drawn["png"])
        atomic_text(markdown.parent / table, points)
        atomic_text(markdown, sheets.markdown(given.name, rows, f"{command} --markdown {markdown}", picture, table))
