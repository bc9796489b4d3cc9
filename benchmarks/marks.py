"""Sections between two marks of a document, written by a benchmark; the rest is written by hand."""
from pathlib import Path

import click

from circulant.sim.files.writing import atomic_text

__all__ = ["replace"]


def replace(path: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between the two marks of a document.

    Raises:
        click.ClickException: when it has not both marks.
    """
    before = path.read_text("utf-8")
    if before.count(begin) != 1 or before.count(end) != 1:
        raise click.ClickException(f"{path} must have the lines {begin} and {end} once each; put them back")
    head, _, rest = before.partition(begin)
    atomic_text(path, f"{head}{begin}\n\n{text}\n{end}{rest.partition(end)[2]}")
