"""Temporary files and folders beside what they become: named after their process, and swept when that is dead.

A name is ``.<name>.<origin>-<process>.<random>``. The origin is a hash of the machine and its space of process numbers,
so that a process of another machine that shares the disk is not taken for a dead one.
"""
import hashlib
import os
import platform
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from circulant.sim.files.files import discard

__all__ = ["STALE_SECONDS", "folder", "prefix", "sweep"]

STALE_SECONDS = 24 * 3600
"""Age at which a temporary of another machine, or of another space of process numbers, counts as left."""

_NAME = re.compile(r"\.(?P<name>.+)\.(?P<origin>[0-9a-f]{8})-(?P<process>\d{1,10})\.[a-z0-9_]{8}")

_SWEPT: set[tuple[int, str]] = set()


def prefix(name: str) -> str:
    """The prefix of a temporary that is to become ``name``, for `tempfile`."""
    return f".{name}.{_origin()}-{os.getpid()}."


@contextmanager
def folder(where: Path | None = None) -> Iterator[Path]:
    """A folder to work in until the block ends; those that killed processes left beside it are swept.

    Parameters:
        where: the folder around it, that of the system where none is given.
    """
    around = where or Path(tempfile.gettempdir())
    sweep(around)
    with tempfile.TemporaryDirectory(dir=around, prefix=prefix("circulant")) as made:
        yield Path(made)


def sweep(folder: Path, *, again: bool = False) -> None:
    """Remove what killed processes left in a folder; once in each process, as a folder can hold many files, or again.

    A folder that was put aside when its process was killed, before the new one took its place, is put back.
    """
    key = os.getpid(), str(folder.absolute())
    if key in _SWEPT and not again:
        return
    _SWEPT.add(key)
    with suppress(OSError):
        for entry in os.scandir(folder):
            found = _NAME.fullmatch(entry.name)
            if found and _left(found["origin"], int(found["process"]), Path(entry.path)):
                _restore(Path(entry.path), folder / found["name"])
                with suppress(OSError):  # That of another user stays.
                    discard(Path(entry.path))


def _restore(temporary: Path, folder: Path) -> None:
    """See `circulant.sim.files.writing.replaced_folder`."""
    with suppress(OSError):
        if (temporary / "old").is_dir() and not folder.exists():
            (temporary / "old").rename(folder)


def _left(origin: str, process: int, path: Path) -> bool:
    if origin == _origin():
        return not _alive(process)
    try:
        return time.time() - path.lstat().st_mtime > STALE_SECONDS
    except OSError:
        return False


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@cache
def _origin() -> str:
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return hashlib.sha256(f"{platform.node()} {space}".encode()).hexdigest()[:8]
