"""The ways to damage a file: it is cut, flipped, replaced by a pipe or a device, or changed inside with its hash made
right again, so that what lies behind the hash is reached.
"""
import contextlib
import copy
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from circulant.run.run_folder import STEPS
from circulant.sim import artifact

__all__ = ["crafted", "damage", "recast"]

RECORDS = tuple(step.record for step in STEPS.values())

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 63, 65, 1 << 24, 1 << 31, -1 << 31, 1 << 62, -1 << 63, 10 ** 30, 0.5, -0.0,
    1e300, "", "x", "gru", "conv", "../x", "a\nb\u0000", "\ud800", "ä" * 5000, [], [[]], [0], [1, 1], {},
    {"width": 0, "frac": 0})
"""Values that take the place of a field."""

TOKENS = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 4300, "-" + "1" * 50_000, "[" * 100_000 + "]" * 100_000,
          '{"a":' * 5000 + "1" + "}" * 5000, "0x10", "nul", '"\\ud800"', "[1,]")
"""And what of its text."""


def damage(path: Path, rng: np.random.Generator) -> str:
    """Damage a file in one of the ways of its kind; what was done to it.

    Those that its kind alone has are drawn four times as often as the others.
    """
    ways = [*ANY, *WAYS.get(path.suffix, ())]
    weights = [1.0] * len(ANY) + [4.0] * (len(ways) - len(ANY))
    way = ways[int(rng.choice(len(ways), p=np.array(weights) / sum(weights)))]
    what = way(path, rng)
    return f"{way.__name__.strip('_').replace('_', ' ')}{f' {what}' if what else ''}"


# Any file.

def _cut(path: Path, rng: np.random.Generator) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:int(rng.integers(len(data)))])


def _emptied(path: Path, rng: np.random.Generator) -> None:
    path.write_bytes(b"")


def _flipped(path: Path, rng: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    for place in rng.integers(0, len(data), int(rng.integers(1, 5))):
        data[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(bytes(data))


def _noise(path: Path, rng: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    start = int(rng.integers(len(data)))
    data[start:start + 40] = rng.bytes(40)
    path.write_bytes(bytes(data))


def _missing(path: Path, rng: np.random.Generator) -> None:
    path.unlink()


def _pipe(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    os.mkfifo(path)


def _device(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _folder(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _sparse(path: Path, rng: np.random.Generator) -> None:
    """A terabyte, none of it on the disk."""
    os.truncate(path, 1 << 40)


# JSON.

def _nodes(value: Any, trail: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if trail:
        yield trail
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _nodes(inner, (*trail, key))


def _drawn(body: Any, rng: np.random.Generator) -> tuple[tuple[Any, ...], Any]:
    """A drawn value of a document: the keys on the way to it, and what holds it."""
    trails = list(_nodes(body))
    trail = trails[int(rng.integers(len(trails)))]
    parent = body
    for key in trail[:-1]:
        parent = parent[key]
    return trail, parent


def _changed(body: Any, rng: np.random.Generator, times: int) -> str:
    """Change values of a document in place: another value, one less, or one more."""
    said = []
    for _ in range(times):
        trail, parent = _drawn(body, rng)
        value = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
        way = int(rng.integers(8))
        if way == 0:
            del parent[trail[-1]]
        elif way == 1 and isinstance(parent, dict):
            parent["more"] = value
        elif way == 2 and isinstance(parent[trail[-1]], int):
            parent[trail[-1]] += int(rng.integers(-2, 3))
        else:
            parent[trail[-1]] = value
        said.append(".".join(map(str, trail)))
    return ", ".join(said)


def crafted(path: Path, rng: np.random.Generator) -> str:
    """Values that are others, under a hash that is right; so are those of the records behind it."""
    document = json.loads(path.read_text())
    body = _body(document)
    said = _changed(body, rng, int(rng.integers(1, 3)))
    after = artifact.write_json(path, document["format"], document["version"], body)
    for name in RECORDS[RECORDS.index(path.name) + 1:] if path.name in RECORDS else ():
        record = json.loads(path.with_name(name).read_text())
        after = artifact.write_json(path.with_name(name), record["format"], record["version"],
                                    _body(record) | {"after": after})
    return said


def _body(document: dict[str, Any]) -> dict[str, Any]:
    """The part of a file that its hash is of."""
    return {key: value for key, value in document.items() if key not in ("format", "version", "hash")}


def _retold(path: Path, rng: np.random.Generator) -> str:
    """A token that no writer writes."""
    document = json.loads(path.read_text())
    trail, parent = _drawn(document, rng)
    parent[trail[-1]] = "@token@"
    token = TOKENS[int(rng.integers(len(TOKENS)))]
    path.write_text(json.dumps(document).replace('"@token@"', token))
    return f"{'.'.join(map(str, trail))} {token[:20]}"


# Archives.

def _declared(path: Path, rng: np.random.Generator) -> str:
    """A header of an array that says something else."""
    headers = ("{'descr': '<i8', 'fortran_order': False, 'shape': (9000000000000,), }",
               "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
               "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }",
               "{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (3,), }", "(" * 9000, "{}",
               "{'descr': '<U999999', 'fortran_order': False, 'shape': (10, 10), }",
               "{'descr': '<i8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }")
    header = headers[int(rng.integers(len(headers)))].encode("latin1")

    def changed(data: bytes) -> bytes:
        size = int.from_bytes(data[8:10], "little")
        return data[:8] + len(header).to_bytes(2, "little") + header + data[10 + size:]

    _rezipped(path, rng, changed)
    return header[:30].decode()


def _inflating(path: Path, rng: np.random.Generator) -> None:
    """An array of zeros that is much larger than the file."""
    _rezipped(path, rng, lambda data: data + bytes(1 << 26))


def _rezipped(path: Path, rng: np.random.Generator, change: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = str(rng.choice(sorted(members)))
    members[name] = change(members[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in members.items():
            archive.writestr(each, data)


def recast(path: Path, rng: np.random.Generator) -> str:
    """Arrays that are others, under hashes that are right."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays.pop("header").tobytes())
    name = str(rng.choice(sorted(arrays)))
    array, way = arrays[name], int(rng.integers(10))
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays["more"] = array
    else:
        arrays[name] = [array.astype(float), array.astype(complex), array.astype(str), array[:0], array[..., None],
                        array.reshape(-1), np.full_like(array, -1 << 63), array.astype(np.int8)][way - 2]
    artifact.write_npz(path, header["format"], header["version"], arrays, **header["meta"])
    if path.name == "weights.npz":
        network = json.loads((path.parent / "network.json").read_text())
        artifact.write_json(path.parent / "network.json", network["format"], network["version"],
                            _body(network) | {"weights": artifact.digest_arrays(arrays)})
    return f"{name} {way}"


# Experiments, and what torch writes.

def _misspelt(path: Path, rng: np.random.Generator) -> str:
    lines = path.read_text().splitlines()
    at = int(rng.choice([n for n, line in enumerate(lines) if "=" in line]))
    word = lines[at].partition("=")[0]
    value = (*TOKENS, "nan", "inf", '"x"', "-1", "true", "{}", "[[1]]", "1979-05-27")[int(rng.integers(20))]
    lines[at] = f"{word}= {value}"
    path.write_text("\n".join(lines))
    return lines[at][:60]


def _remade(path: Path, rng: np.random.Generator) -> str:
    """Values that are others, under a hash that is right."""
    import torch

    from circulant.training import store

    document = torch.load(path, weights_only=True)
    if path.name != "model.pt":
        about = json.loads(document["about"])
        said = _changed(about, rng, 1)
        torch.save(document | {"about": json.dumps(about)}, path)
        return said
    if rng.integers(2):
        said = _changed(document["meta"], rng, 1)
    else:
        part = document[str(rng.choice(["dense", "circulant"]))]
        said = str(rng.choice(sorted(part)))
        part[said] = [part[said][:0], part[said].double(), torch.zeros(1).expand(1 << 40), torch.full_like(
            part[said], torch.nan), None, part[said].to(torch.bfloat16)][int(rng.integers(6))]
    with contextlib.suppress(Exception):
        document["hash"] = store._digest(document["meta"], {name: document[name] for name in ("dense", "circulant")})
    torch.save(document, path)
    return said


ANY = (_cut, _emptied, _flipped, _noise, _missing, _pipe, _device, _folder, _loop, _sparse)
WAYS: dict[str, tuple[Callable[[Path, np.random.Generator], str | None], ...]] = {
    ".json": (crafted, crafted, _retold), ".npz": (_declared, _inflating, recast), ".toml": (_misspelt,),
    ".pt": (_remade,)}
