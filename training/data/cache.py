"""Arrays that are slow to make, kept in the user's cache folder under the hash of what they are made from."""
import hashlib
import io
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.files import cache
from circulant.sim.files.files import discard, opened
from circulant.sim.files.writing import atomic_bytes

__all__ = ["KEPT", "cached"]

KEPT = 12
"""Entries that stay; the largest shipped one (CIFAR-10, decoded) has 184 MB."""


STALE_SECONDS = 24 * 3600


def cached(kind: str, parts: Mapping[str, object], make: Callable[[], dict[str, NDArray[Any]]]
           ) -> dict[str, NDArray[Any]]:
    """The result of ``make``: from the cache, else made and kept there, whole or not at all.

    Parameters:
        kind: begins the name of the entry.
        parts: everything that the arrays depend on: hash of the source, parameters, version of the recipe.

    Raises:
        Refusal: when the cache folder cannot be written to.
    """
    text = "\n".join(f"{name}={value!r}" for name, value in sorted(parts.items()))
    store = cache.store("data")
    entry = store / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()}.npz"
    if (found := _read(entry)) is not None:
        os.utime(entry)
        return found
    discard(entry)  # Whatever it is, it is no entry.
    made = make()
    buffer = io.BytesIO()
    members: dict[str, Any] = dict(made)
    np.savez(buffer, **members)  # Uncompressed: reading has to be fast, and the zip's checksums find damage.
    atomic_bytes(entry, buffer.getvalue())
    _prune(store)
    return made


def _read(entry: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays of an entry, or None where it is missing or damaged."""
    try:
        with opened(entry) as file, np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except Exception:  # A damaged archive fails in a dozen ways; whichever it is, the entry is made anew.
        return None


def _prune(store: Path) -> None:
    entries = sorted(store.glob("*.npz"), key=cache.used, reverse=True)
    stale = [path for path in store.glob(".*.npz.*") if time.time() - cache.used(path) > STALE_SECONDS]
    for path in (*entries[KEPT:], *stale):
        path.unlink(missing_ok=True)
