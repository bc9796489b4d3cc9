"""Files between the folders: named, versioned, hashed, and written whole or not at all.

A file is written under a temporary name and renamed, so that a killed run leaves the old file or the new one. A
reader checks name, version and hash, and says file, field, rule and value when it refuses.
"""
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.refusal import Refusal, unusable

__all__ = ["atomic_bytes", "atomic_text", "digest", "digest_arrays", "naming", "read_json", "read_npz",
           "replaced_folder", "write_json", "write_npz"]


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """A block that writes ``path``.

    Raises:
        Refusal, ToolError: in place of an error of the operating system, which names a temporary file or nothing.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise unusable(path, error) from None


def atomic_bytes(path: str | Path, data: bytes) -> None:
    """Write ``data`` to ``path`` through a temporary file in the same folder and a rename.

    Raises:
        Refusal, ToolError: as `naming`.
    """
    with naming(path):
        _replace(Path(path), data)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def atomic_text(path: str | Path, text: str) -> None:
    atomic_bytes(path, text.encode())


@contextmanager
def replaced_folder(folder: str | Path) -> Iterator[Path]:
    """A fresh folder to write into, which takes the place of ``folder`` when the block ends, and not when it fails.

    A run that is killed leaves the old folder, the new one, or, between two renames, the old one under a hidden name
    beside it; never a mixture.

    Raises:
        Refusal, ToolError: as `naming`.
    """
    with naming(folder), _replaced(Path(folder)) as fresh:
        yield fresh


@contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        fresh, old = Path(temporary) / "new", Path(temporary) / "old"
        fresh.mkdir()
        yield fresh
        try:
            if folder.exists():
                folder.rename(old)
            fresh.rename(folder)
        except BaseException:
            if old.exists() and not folder.exists():
                old.rename(folder)
            raise


def digest(body: Any) -> str:
    """SHA-256 of the canonical JSON text of ``body``."""
    body = json.loads(json.dumps(body))  # Keys become text before they are sorted, as they are after reading.
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def digest_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over names, types, shapes and contents."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def write_json(path: str | Path, kind: str, version: int, body: Mapping[str, Any]) -> str:
    """Write ``body`` with the header fields ``format``, ``version`` and ``hash``; returns the hash."""
    sha = digest(body)
    document = {"format": kind, "version": version, "hash": sha, **body}
    atomic_text(path, json.dumps(document, indent=1) + "\n")
    return sha


def read_json(path: str | Path, kind: str, version: int) -> dict[str, Any]:
    """The body of a file that `write_json` wrote, without the header but with its ``hash``.

    Raises:
        Refusal: when the file is missing, is no JSON, or its name, version or hash is wrong.
    """
    path = Path(path)
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        raise Refusal(f"{path} must exist, but it is missing; run the step that writes it first") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Refusal(f"{path} must be a JSON file, but it is not ({error}); write it anew") from None
    if not isinstance(document, dict):
        raise Refusal(f"{path} must hold a JSON object, not a {type(document).__name__}; write it anew")
    _check_header(path, document, kind, version)
    sha = document.pop("hash", None)
    body = {key: value for key, value in document.items() if key not in ("format", "version")}
    _check_hash(path, sha, digest(body))
    return {**body, "hash": sha}


def write_npz(path: str | Path, kind: str, version: int, arrays: Mapping[str, NDArray[Any]], **meta: Any) -> str:
    """Write arrays and their header to a compressed ``.npz``; returns the hash."""
    sha = digest({"arrays": digest_arrays(arrays), "meta": meta})
    header = json.dumps({"format": kind, "version": version, "hash": sha, "meta": meta})
    buffer = io.BytesIO()
    members: dict[str, Any] = {"header": np.frombuffer(header.encode(), np.uint8), **arrays}
    np.savez_compressed(buffer, **members)
    atomic_bytes(path, buffer.getvalue())
    return sha


def read_npz(path: str | Path, kind: str, version: int) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and meta data (with ``hash``) of a file that `write_npz` wrote.

    Raises:
        Refusal: when the file is missing, is no such archive, or its name, version or hash is wrong.
    """
    path = Path(path)
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError:
        raise Refusal(f"{path} must exist, but it is missing; run the step that writes it first") from None
    except Exception as error:  # A damaged archive fails in a dozen ways, from zlib.error to NotImplementedError.
        raise Refusal(f"{path} must be a {kind} archive, but it is not ({error}); write it anew") from None
    _check_header(path, header, kind, version)
    _check_hash(path, header["hash"], digest({"arrays": digest_arrays(arrays), "meta": header["meta"]}))
    return arrays, {**header["meta"], "hash": header["hash"]}


def _check_header(path: Path, header: dict[str, Any], kind: str, version: int) -> None:
    if header.get("format") != kind:
        raise Refusal(f"{path}: field 'format' must be {kind!r}, not {header.get('format')!r}; give the right file")
    if header.get("version") != version:
        raise Refusal(f"{path}: field 'version' must be {version}, not {header.get('version')!r}; "
                      "write the file anew with this version of circulant")


def _check_hash(path: Path, given: Any, computed: str) -> None:
    if given != computed:
        raise Refusal(f"{path}: field 'hash' must be that of the contents ({computed[:12]}…), not {str(given)[:12]!r}; "
                      "the file was changed or damaged: run the step that writes it again")
