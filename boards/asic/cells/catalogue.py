"""Libraries by name, and where their files are found."""
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path

from circulant.boards.asic.cells.library import Library
from circulant.sim.refusal import Refusal, nearest

__all__ = ["Known", "corner", "known", "library"]


@dataclass(frozen=True)
class Known:
    """A library that is known by name.

    Parameters:
        title: for people.
        files: below the folder of data.
        mhz: clock that is asked for where nobody says one.
        dont_use: patterns of cells that mapping leaves alone.
        pdk, cells: names of process and cells in LibreLane; empty where it does not know them.
        layer, supplies: a metal for pins of macros, and the names of power and ground.
    """

    title: str
    files: tuple[str, ...]
    mhz: float
    dont_use: tuple[str, ...]
    pdk: str
    cells: str
    layer: str = "metal3"
    supplies: tuple[str, str] = ("VDD", "VSS")


OWN = Known("a library of your own", (), 100.0, (), pdk="", cells="")
"""A library of which nothing but its files is known."""


@cache
def known() -> dict[str, Known]:
    """The libraries that are known by name."""
    text = (resources.files("circulant.boards.asic.cells") / "libraries.toml").read_text("utf-8")
    return {name: Known(**entry | {"files": tuple(entry["files"]), "mhz": float(entry["mhz"]),
                                   "dont_use": tuple(entry["dont_use"]), "supplies": tuple(entry["supplies"])})
            for name, entry in tomllib.loads(text).items()}


def library(names: tuple[str, ...]) -> tuple[Library, Known]:
    """A library by its name, or by its liberty files.

    Raises:
        Refusal: when a name is unknown, a file is missing, or the files have no flip-flop.
    """
    name = names[0] if names else ""
    if name in known():
        entry = known()[name]
        folder = Path(os.environ.get("CIRCULANT_DATA") or _beside())
        missing = [file for file in entry.files if not (folder / file).is_file()]
        if missing:
            raise Refusal(f"The library {name} must lie in {folder}, but {missing[0]} is not there; name the folder "
                          "that holds it in CIRCULANT_DATA, or give your .lib files in its place")
        return _left_alone(Library.read([folder / file for file in entry.files], name), entry.dont_use), entry
    return _own(names), OWN


def corner(names: str) -> Library:
    """Liberty files, with commas between their names, as one library.

    Raises:
        Refusal: when a file is missing, or they have no flip-flop.
    """
    return _own(names.split(","))


def _own(names: Sequence[str]) -> Library:
    files = [Path(each) for each in names]
    for file in files:
        if not file.is_file():
            raise Refusal(f"A library must be one of {', '.join(known())} or a liberty file, not {str(file)!r}"
                          f"{nearest(str(file), known())}")
    return Library.read(files, files[0].name.split(".lib")[0])


def _left_alone(found: Library, patterns: tuple[str, ...]) -> Library:
    """The library with more cells that no step chooses; clock gates are placed on purpose, whatever it says of them."""
    cells = {name: replace(cell, dont_use=cell.dont_use or any(fnmatchcase(name, pattern) for pattern in patterns))
             for name, cell in found.cells.items()}
    return replace(found, cells=cells)


def _beside() -> Path:
    """The folder of data beside the project, where `circulant.training.data.files` looks, too."""
    return Path(__file__).resolve().parents[4] / "shared" / "data"
