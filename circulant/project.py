"""A folder for an experiment of a user's own: the experiment file, a network and data that run as they are."""
import re
from importlib import resources
from pathlib import Path

import click

from circulant.sim.files.writing import atomic_text
from circulant.sim.refusal import Refusal

__all__ = ["create", "new"]

FILES = {"experiment.toml": "{name}.toml", "net.py.txt": "net.py", "data.py.txt": "data.py"}
"""Templates, and what they become."""


def create(folder: str | Path) -> list[Path]:
    """Write the files, which are called after the folder; returns their paths.

    Raises:
        Refusal: when the folder holds anything, or its name cannot be that of an experiment.
    """
    folder = Path(folder)
    name = folder.absolute().name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise Refusal(f"The name of an experiment must begin with a letter, followed by letters, digits, '_' and '-', "
                      f"not {name!r}; choose another name")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refusal(f"{folder} must be a new folder, but something with this name exists; choose another name, or "
                      "remove it")
    made = []
    for template, target in FILES.items():
        text = resources.files("circulant").joinpath("templates", "new", template).read_text("utf-8")
        atomic_text(path := folder / target.format(name=name), text.format(name=name))
        made.append(path)
    return made


@click.command("new", short_help="Write a folder for your own network and data")
@click.argument("name")
def new(name: str) -> int:
    """Write an experiment with a model file and a data file. It runs as it is; edit the files for your own network.

    NAME is a folder that must not exist yet. The command writes NAME.toml, net.py and data.py into it.

    \b
    Example:
      circulant new mine
      circulant run mine
    """
    for path in create(name):
        click.echo(path)
    click.echo(f"Next: circulant run {name}")
    return 0
