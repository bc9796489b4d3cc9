"""A folder for an experiment of a user's own: the experiment file, a network and data that run as they are."""
import re
from importlib import resources
from pathlib import Path

import click

from circulant.sim.files.writing import atomic_text
from circulant.sim.refusal import Refusal

__all__ = ["create", "new"]

TASKS = {"classification": "{gru = 8, linear = 4}", "regression": "{gru = 8}", "per-step": "{gru = 8}",
         "images": "{second = 4, linear = 4}", "lengths": "{gru = 4}"}
"""The block sizes of the network of each task; its files lie in a folder of its name."""

RECIPES = ("distillation = 0.5          # part of the loss that is the distance from the dense baseline's outputs\n",
           """\
optimizer = "adamw"
weight_decay = 0.3          # with the next one, against overfitting
label_smoothing = 0.1
""")
"""Settings of a training of recurrent layers, and of others."""


def create(folder: str | Path, task: str = "classification") -> list[Path]:
    """Write the files, which are called after the folder; returns their paths.

    Parameters:
        task: in `TASKS`.

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
    values = {"name": name, "blocks": TASKS[task], "hidden": 16 if task == "images" else 32,
              "budget": 0 if task in ("regression", "per-step") else 0.5, "recipe": RECIPES[task == "images"]}
    for template, target in (("experiment.toml", f"{name}.toml"), (f"{task}/net.py.txt", "net.py"),
                             (f"{task}/data.py.txt", "data.py")):
        text = resources.files("circulant").joinpath("templates/new", template).read_text("utf-8")
        atomic_text(path := folder / target, text.format(**values))
        made.append(path)
    return made


@click.command("new", short_help="Write a folder for your own network and data")
@click.argument("name")
@click.option("--task", type=click.Choice([*TASKS]), default="classification", show_default=True,
              help="Kind of data and network that the files begin with.")
def new(name: str, task: str) -> int:
    """Write an experiment with a model file and a data file. It runs as it is; edit the files for your own network.

    NAME is a folder that must not exist yet. The command writes NAME.toml, net.py and data.py into it.

    \b
    Example:
      circulant new mine
      circulant new meter --task regression
      circulant run mine
    """
    for path in create(name, task):
        click.echo(path)
    click.echo(f"Next: circulant run {name}")
    return 0
