"""The command line of the benchmarks: measure, then show as a table for people and, if wanted, as JSON."""
import json
import sys
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from benchmarks import digits, golden
from circulant.sim.refusal import Refusal

BENCHMARKS: dict[str, Callable[[tuple[str, ...]], dict[str, Any]]] = {
    "digits": digits.measure, "golden": golden.measure}


@click.command(epilog="Benchmarks: " + ", ".join(BENCHMARKS))
@click.argument("name", type=click.Choice(list(BENCHMARKS)))
@click.option("--json", "path", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE",
              help="Write the figures as JSON; - is standard output, and the table then goes to standard error.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change a key of the experiment.")
def main(name: str, path: str | None, overrides: tuple[str, ...]) -> None:
    """Measure the figures of one table of the README."""
    try:
        figures = BENCHMARKS[name](overrides)
    except Refusal as refusal:
        raise click.ClickException(str(refusal)) from None
    table = Table("figure", "value", title=name, title_justify="left")
    for figure, value in figures["table"].items():
        table.add_row(figure, value)
    Console(stderr=path == "-").print(table)
    if path is not None:
        with click.open_file(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
