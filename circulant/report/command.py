"""The command ``circulant compare``: several runs side by side."""
import os
import sys
from pathlib import Path

import click
from rich.console import Console

from circulant.arguments import JSON, say
from circulant.completion import runs as run_folders
from circulant.experiment import FILE, load
from circulant.run.run_folder import Run
from circulant.sim.files.writing import atomic_text
from circulant.sim.refusal import Refusal

__all__ = ["compare"]


@click.command("compare", short_help="Show the figures of several runs side by side")
@click.argument("runs", metavar="RUN …", nargs=-1, required=True, shell_complete=run_folders,
                type=click.Path(path_type=Path))
@click.option("--page", "target", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write the comparison as an HTML page.")
@JSON
def compare(runs: tuple[Path, ...], target: Path | None, as_json: bool) -> int:
    """Show the figures of finished runs side by side, and the keys of their experiments that differ.

    Each RUN is a run folder whose design has been simulated.

    \b
    Example:
      circulant compare runs/digits-gru runs/small
      circulant compare runs/k4 runs/k8 runs/k16 --page runs/blocks.html
    """
    from circulant.report import compare as beside
    from circulant.report.report import collect

    if len(runs) < 2:
        raise Refusal(f"A comparison must have at least two runs, not {runs[0]} alone; name another run folder")
    for folder in runs:
        if not (folder / FILE).is_file():
            raise Refusal(f"A run must be a folder with {FILE} in it, but {folder} is none; name a folder that "
                          "`circulant run` wrote")
    found = [collect(Run(folder, load(folder))) for folder in runs]
    names = [str(folder) for folder in runs]
    if not as_json:
        Console(soft_wrap=not sys.stdout.isatty()).print(beside.table(names, found))
        if said := beside.doubt(found):
            click.echo(said)
    results = {"runs": dict(zip(names, found, strict=True)),
               "differences": {line.name: dict(zip(names, line.values, strict=True))
                               for line in beside.differences(found)}}
    if target is not None:
        links = [os.path.relpath(folder / "report.html", target.parent) for folder in runs]
        atomic_text(target, beside.page(names, found, links))
    say(results, as_json, *([] if target is None else [str(target)]))
    return 0
