"""Paths in an experiment and the Python files that it names: where relative paths start, copies, hashes.

A path in an experiment file starts from the folder of that file, one on the command line from the current folder. A run
folder keeps the Python files as they were when it was trained; the one that the experiment names is preferred to its
copy where it still says the same, as it may read files beside it.
"""
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from circulant.sim.files import files
from circulant.sim.files.user_code import LIMIT, content, parted
from circulant.sim.files.writing import atomic_bytes

__all__ = ["FOLDER", "anchor", "identify", "keep", "restore", "texts"]

FOLDER = "source"
"""Folder in a run folder that has the copies, by table."""

PATHS = (("data", "path"), ("model", "path"), ("training", "dense"))
"""Table and key of every path."""

PYTHON = {"data": "name", "model": "kind"}
"""Tables that may name a Python file, and the key that says so by "python"."""


def anchor(tables: Mapping[str, Any], base: Path) -> None:
    """Make the paths of plain tables absolute, in place."""
    for table, key in PATHS:
        entry = tables.get(table)
        if isinstance(entry, dict) and isinstance(path := entry.get(key), str) and path:
            entry[key] = os.path.normpath(os.path.join(base.absolute(), os.path.expanduser(path)))


def texts(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
    """The contents of the Python files, by table.

    Raises:
        Refusal: when one is missing, or its path names none.
    """
    return {table: content(f"{table}.path", tables[table]["path"]) for table, key in PYTHON.items()
            if tables.get(table, {}).get(key) == "python"}


def identify(tables: Mapping[str, Mapping[str, Any]], known: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Tables in which what is taken of a Python file, and the SHA-256 of the file, stand for its path.

    Parameters:
        known: as `texts`, as it was when the experiment was read.
    """
    found = {table: dict(entry) for table, entry in tables.items()}
    for table, text in known.items():
        if table in found:
            _, name = parted(f"{table}.path", found[table]["path"])
            found[table]["path"] = f"{name} of {hashlib.sha256(text).hexdigest()}"
    return found


def keep(folder: Path, tables: Mapping[str, Mapping[str, Any]], known: Mapping[str, bytes]) -> None:
    """Copy the Python files into a run folder."""
    for table, text in known.items():
        file, _ = parted(f"{table}.path", tables[table]["path"])
        copy = folder / FOLDER / table / file.name
        if not copy.is_file() or copy.read_bytes() != text:
            atomic_bytes(copy, text)


def restore(folder: Path, tables: Mapping[str, Any]) -> None:
    """Use the copies in a run folder instead of files that are missing or have changed."""
    for table, key in PYTHON.items():
        entry = tables.get(table)
        if not isinstance(entry, dict) or entry.get(key) != "python" or not isinstance(entry.get("path"), str):
            continue
        file, name = parted(f"{table}.path", entry["path"])
        copy = folder.absolute() / FOLDER / table / file.name
        if copy.is_file() and _bytes(copy) != _bytes(file):
            entry["path"] = f"{copy}:{name}"


def _bytes(path: Path) -> bytes | None:
    try:
        return files.read_bytes(path, LIMIT)
    except OSError:
        return None
