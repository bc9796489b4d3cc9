"""The user's cache folder: what is slow to make is kept there, under the hash of everything that it depends on.

A program or library that is kept has its own SHA-256 behind its last byte, where no loader looks. So an entry that is
empty, cut or changed is noticed before it runs.
"""
import hashlib
import os
from pathlib import Path

from circulant.sim.files import files, temporaries
from circulant.sim.refusal import Refusal

__all__ = ["cache_folder", "damage", "sealed", "store", "used"]


def cache_folder() -> Path:
    """The folder CIRCULANT_CACHE, else `circulant` in XDG_CACHE_HOME, else in ~/.cache."""
    if own := os.environ.get("CIRCULANT_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "circulant"


def store(kind: str) -> Path:
    """The part of the cache that keeps one kind of thing, made where it is missing; what killed processes left in it is
    swept.

    Raises:
        Refusal: when it cannot be written to.
    """
    folder = cache_folder() / kind
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError
    except OSError:
        raise Refusal(f"The cache folder {folder} must be writable, but it is not; name another one in "
                      "CIRCULANT_CACHE") from None
    temporaries.sweep(folder)
    return folder


def used(path: Path) -> float:
    """The time at which an entry was used last, in seconds; 0 where it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def sealed(data: bytes) -> bytes:
    """A program with its SHA-256 behind it."""
    return data + hashlib.sha256(data).digest()


def damage(path: Path, *, program: bool = False) -> str:
    """The fault of an entry that `sealed` made, in a few words; empty without one.

    Parameters:
        program: whether it has to be executable.
    """
    try:
        data = files.read_bytes(path)
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return files.reason(error)
    if not data:
        return "empty"
    if data != sealed(data[:-32]):
        return "cut or changed"
    return "" if not program or os.access(path, os.X_OK) else "not executable"
