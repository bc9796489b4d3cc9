"""The results of a sweep, kept in the user's cache folder under the hash of everything that it depends on.

A training depends on the tables of its experiment, on the data themselves and on the versions of circulant and torch;
a point also on the trained model, and on the sources of the golden model and of the generators. Failures are not kept.
"""
import hashlib
import importlib.metadata
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

from circulant import __version__
from circulant.sim import artifact
from circulant.sim.files import cache as folders
from circulant.sim.files.files import discard
from circulant.sim.files.schema import Anything, Mapped, Table, Text
from circulant.sim.refusal import Refusal
from circulant.sweep.rows import Row

__all__ = ["figures", "keep", "point_key", "sources", "training_folder"]

KIND, VERSION = "circulant-point", 3

_FIGURES = Table({"key": Text(100), "figures": Mapped(Anything())})


def training_folder(tables: Mapping[str, Any], data: str) -> Path:
    """The folder of a training, made where it is missing.

    Parameters:
        tables: data, model, compression and training of the experiment.
        data: the digest of the data set.

    Raises:
        Refusal: when the cache cannot be written to.
    """
    from circulant.training.loop.trainer import FREE
    from circulant.training.settings.training import PHASES

    # A store from before there was a search stays good.
    idle = PHASES["search"] if tables["training"]["method"] != "search" else ()
    kept = {name: value for name, value in tables["training"].items() if name not in (*FREE, *idle)}
    key = artifact.digest({**tables, "training": kept, "digest": data, "circulant": __version__,
                           "torch": importlib.metadata.version("torch")})
    folder = folders.store("trained") / key
    if not folder.is_dir():
        discard(folder)
    folder.mkdir(exist_ok=True)
    return folder


def point_key(model: str, tables: Mapping[str, Any], measure: str) -> str:
    """The hash of everything that the figures of a point depend on.

    Parameters:
        model: the hash of the file of the trained model.
        tables: quantization, hardware and board of the experiment, and simulation where it is simulated.
    """
    return artifact.digest({"model": model, **tables, "measure": measure, "sources": sources()})


def figures(key: str) -> Row | None:
    """The object that `keep` kept, or None where there is nothing, or it is damaged or that of another key."""
    try:
        found = artifact.read_json(_path(key), KIND, VERSION, _FIGURES)
    except Refusal:
        return None
    return cast(Row, dict(found["figures"])) if found["key"] == key else None


def keep(key: str, found: Row) -> None:
    """Keep the figures of a point.

    Raises:
        Refusal: when the cache cannot be written to.
    """
    path = _path(key)
    if path.is_symlink() or not path.is_file():  # Whatever it is, it is no entry.
        discard(path)
    artifact.write_json(path, KIND, VERSION, {"key": key, "figures": dict(found)})


def _path(key: str) -> Path:
    return folders.store("points") / f"{key}.json"


@cache
def sources() -> str:
    """SHA-256 of the sources of `circulant.sim` and `circulant.hw`."""
    sha = hashlib.sha256()
    for package in ("circulant.sim", "circulant.hw"):
        for file in sorted(Path(str(resources.files(package))).resolve().rglob("*.py")):
            sha.update(f"{file.name}\n".encode() + file.read_bytes())
    return sha.hexdigest()
