"""The user's cache folder: what is slow to make is kept there, under the hash of everything that it depends on."""
import os
from pathlib import Path

from circulant.sim.refusal import Refusal

__all__ = ["cache_folder", "store"]


def cache_folder() -> Path:
    """The folder CIRCULANT_CACHE, else `circulant` in XDG_CACHE_HOME, else in ~/.cache."""
    if own := os.environ.get("CIRCULANT_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "circulant"


def store(kind: str) -> Path:
    """The part of the cache that keeps one kind of thing; it is made where it is missing.

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
    return folder
