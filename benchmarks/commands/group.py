"""The frame of all commands of the benchmarks: their group, the option --json, and how figures are shown."""
import json
from collections.abc import Callable, Mapping
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from circulant.sim.document import Document
from circulant.sim.refusal import Refusal


class _Refused(click.ClickException):
    exit_code = 2


class _Benchmarks(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Refusal as refusal:
            raise _Refused(str(refusal)) from None


as_json = click.option(
    "--json", "path", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE",
    help="Write the figures as JSON; - is standard output, and the table then goes to standard error.")


@click.group(cls=_Benchmarks, epilog="Example: python -m benchmarks digits --json -")
def main() -> None:
    """Measure the figures of the README and of docs/results.md."""


def note(text: str) -> None:
    """A line about the progress, on standard error."""
    click.echo(text, err=True)


def show(figures: Mapping[str, object], path: str | None, title: str = "", rows: dict[str, str] | None = None) -> None:
    """The figures as a table for people and, where there is a path, as JSON."""
    table = Table("figure", "value", title=title or str(figures["benchmark"]), title_justify="left")
    shown = figures["table"] if rows is None else rows
    assert isinstance(shown, dict)
    for figure, value in shown.items():
        table.add_row(figure, value)
    Console(stderr=path == "-").print(table)
    if path is not None:
        with click.open_file(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
            file.write("\n")


def add(name: str, measure: Callable[[tuple[str, ...]], Document], summary: str) -> None:
    """A command whose only option is --set."""
    @main.command(name, help=summary, epilog=f"Example: python -m benchmarks {name} --json -")
    @click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change a key of the experiment.")
    @as_json
    def run(path: str | None, overrides: tuple[str, ...]) -> None:
        show(measure(overrides), path)
