"""Files between the folders: named, versioned and hashed.

A reader takes regular files within bounds only, checks name, version, hash and, by a rule of `sim.files.schema`, every
field, and says file, field, rule and value when it refuses.
"""
import hashlib
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from circulant.sim.files import files
from circulant.sim.files.arrays import read_arrays
from circulant.sim.files.schema import SHA, Int, Rule, Table, Text, require, shown
from circulant.sim.files.writing import atomic_bytes, atomic_text
from circulant.sim.refusal import Refusal

__all__ = ["DEPTH", "digest", "digest_arrays", "npz_hash", "read_json", "read_json_of", "read_npz",
           "write_json", "write_npz"]

DEPTH = 60
"""Brackets within brackets of a JSON document."""

DIGITS = 100
"""Digits of a number in a file, at the most."""

_HEADER = Table({"format": Text(200), "version": Int(0, 1_000_000), "hash": SHA, "meta": Table({}, open=True)})


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
    """Write ``body`` with the header fields ``format``, ``version`` and ``hash``; returns the hash.

    Raises:
        Refusal: when a number is not finite, which no reader would take.
    """
    sha = digest(body)
    try:
        text = json.dumps({"format": kind, "version": version, "hash": sha, **body}, indent=1, allow_nan=False)
    except ValueError:
        raise Refusal(f"{path} must hold finite numbers, but a number to be written is infinite or NaN; find out where "
                      "it comes from") from None
    atomic_text(path, text + "\n")
    return sha


def read_json(path: str | Path, kind: str, version: int, rule: Rule | None = None) -> dict[str, Any]:
    """The body of a file that `write_json` wrote, without the header but with its ``hash``.

    Parameters:
        rule: that the body keeps to.

    Raises:
        Refusal: when the file is missing, is no regular file, no JSON or larger than a text may be, its name, version
            or hash is wrong, or its body breaks the rule.
    """
    return read_json_of(path, kind, {version: rule})[1]


def read_json_of(path: str | Path, kind: str, rules: Mapping[int, Rule | None]) -> tuple[int, dict[str, Any]]:
    """Version and body of a file that may be of several versions; see `read_json`.

    Parameters:
        rules: by version, that the body keeps to; the newest first.
    """
    path = Path(path)
    try:
        document = _parsed(files.read_bytes(path, files.TEXT_LIMIT))
    except FileNotFoundError:
        raise Refusal(f"{path} must exist, but it is missing; run the step that writes it first") from None
    except (OSError, ValueError) as error:  # JSONDecodeError and UnicodeDecodeError are such.
        raise Refusal(f"{path} must be a JSON file, but it is not ({files.reason(error)}); write it again") from None
    if not isinstance(document, dict):
        raise Refusal(f"{path} must hold a JSON object, not a {type(document).__name__}; write it again")
    _check_header(path, document, kind, *rules)
    sha, version = document.pop("hash", None), document["version"]
    body = {key: value for key, value in document.items() if key not in ("format", "version")}
    _check_hash(path, sha, digest(body))
    if (rule := rules[version]) is not None:
        require(rule, body, path)
    return version, {**body, "hash": sha}


def write_npz(path: str | Path, kind: str, version: int, arrays: Mapping[str, NDArray[Any]], **meta: Any) -> str:
    """Write arrays and their header to a compressed ``.npz``; returns the hash."""
    sha = digest({"arrays": digest_arrays(arrays), "meta": meta})
    header = json.dumps({"format": kind, "version": version, "hash": sha, "meta": meta})
    buffer = io.BytesIO()
    members: dict[str, Any] = {"header": np.frombuffer(header.encode(), np.uint8), **arrays}
    np.savez_compressed(buffer, **members)
    atomic_bytes(path, buffer.getvalue())
    return sha


def read_npz(path: str | Path, kind: str, version: int, rule: Rule | None = None, *, former: tuple[int, ...] = ()
             ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and meta data (with ``hash``) of a file that `write_npz` wrote.

    Parameters:
        rule: that the meta data keep to.
        former: older versions that are read, too.

    Raises:
        Refusal: when the file is missing, is no such archive, or its name, version or hash is wrong, or its meta data
            break the rule.
    """
    path = Path(path)
    arrays, header = _read_archive(path, kind, (version, *former))
    _check_hash(path, header["hash"], digest({"arrays": digest_arrays(arrays), "meta": header["meta"]}))
    if rule is not None:
        require(rule, header["meta"], path)
    return arrays, {**header["meta"], "hash": header["hash"]}


def npz_hash(path: str | Path) -> str:
    """The hash that a file which `read_npz` has taken says of itself.

    Raises:
        Refusal: when it says none.
    """
    path = Path(path)
    return str(_read_archive(path, None, (), ("header",))[1]["hash"])


def _read_archive(path: Path, kind: str | None, versions: tuple[int, ...], only: tuple[str, ...] = ()
                  ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and header."""
    what = f"a {kind} archive" if kind else "an archive"
    try:
        with files.opened(path) as file:
            arrays = read_arrays(file, only=only)
        header = _parsed(arrays.pop("header").tobytes())
    except FileNotFoundError:
        raise Refusal(f"{path} must exist, but it is missing; run the step that writes it first") from None
    except KeyError:
        raise Refusal(f"{path} must be {what}, but it is not (it has no header); write it again") from None
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} must be {what}, but it is not ({files.reason(error)}); write it again") from None
    if not isinstance(header, dict):
        raise Refusal(f"{path} must hold a JSON object as its header, not a {type(header).__name__}; write it again")
    if kind is not None:
        _check_header(path, header, kind, *versions)
    require(_HEADER, header, path)
    return arrays, header


def _parsed(text: bytes) -> Any:
    """The value of a JSON text, whose numbers are finite and have few digits, and whose brackets are not deep.

    Raises:
        ValueError: when it is none.
    """
    try:
        value = json.loads(text, parse_int=_integer, parse_float=_real, parse_constant=_real)
        if _depth(value) > DEPTH:
            raise RecursionError
    except RecursionError:
        raise ValueError(f"it has more than {DEPTH} brackets within each other") from None
    return value


def _integer(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits, more than {DIGITS}")
    return int(digits)


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"a number must be finite, not {shown(text)}")
    return value


def _depth(value: Any) -> int:
    """The depth of nested brackets."""
    level, depth = [value], 0
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def _check_header(path: Path, header: dict[str, Any], kind: str, *versions: int) -> None:
    if header.get("format") != kind:
        raise Refusal(f"{path}: field 'format' must be {kind!r}, not {shown(header.get('format'))}; "
                      "give the right file")
    if type(header.get("version")) is not int or header["version"] not in versions:
        raise Refusal(f"{path}: field 'version' must be {versions[0]}, not {shown(header.get('version'))}; "
                      "write the file again with this version of circulant")


def _check_hash(path: Path, given: Any, computed: str) -> None:
    if given != computed:
        raise Refusal(f"{path}: field 'hash' must be that of the contents ({computed[:12]}…), not {str(given)[:12]!r}; "
                      "the file was changed or damaged: run the step that writes it again")
