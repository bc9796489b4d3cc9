"""Slow arrays are made once, and again when the entry is damaged."""
import os

import numpy as np
import pytest

from circulant.training.data import cache
from circulant.training.data.cache import cached


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("CIRCULANT_CACHE", str(tmp_path))
    return tmp_path / "data"


@pytest.fixture
def make():
    def counting():
        counting.calls += 1
        return {"a": np.arange(5), "b": np.ones((2, 3), np.float32)}

    counting.calls = 0
    return counting


def test_made_once(store, make):
    for _ in range(3):
        found = cached("x", {"source": "1", "bands": 4}, make)
        assert found["a"].tolist() == [0, 1, 2, 3, 4]
        assert found["b"].dtype == np.float32
    assert make.calls == 1
    assert len(list(store.iterdir())) == 1, "no temporary file stays"


def test_every_part_of_the_key_counts(store, make):
    for kind, parts in (("x", {"s": "1"}), ("x", {"s": "2"}), ("x", {"s": 1}), ("x", {"t": "1"}), ("y", {"s": "1"})):
        cached(kind, parts, make)
    assert make.calls == 5


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: b"", lambda data: b"x" * len(data),
                                    lambda data: data[:-400] + bytes(1) * 8 + data[-392:]])
def test_a_damaged_entry_is_made_anew(store, make, damage):
    cached("x", {}, make)
    entry = next(store.iterdir())
    entry.write_bytes(damage(entry.read_bytes()))
    assert cached("x", {}, make)["a"].tolist() == [0, 1, 2, 3, 4]
    assert make.calls == 2
    cached("x", {}, make)
    assert make.calls == 2


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_file_is_made_anew(store, make, kind):
    cached("x", {}, make)
    entry = next(store.iterdir())
    entry.unlink()
    {"folder": entry.mkdir, "pipe": lambda: os.mkfifo(entry), "device": lambda: entry.symlink_to("/dev/zero")}[kind]()
    for _ in range(2):
        assert cached("x", {}, make)["a"].tolist() == [0, 1, 2, 3, 4]
    assert make.calls == 2


def test_a_killed_write_leaves_nothing_behind(store):
    def killed():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached("x", {}, killed)
    assert list(store.iterdir()) == []


def test_what_was_not_used_for_long_is_removed(store, make, monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 2)
    store.mkdir()
    for age, name in enumerate(("new.npz", "old.npz", "older.npz"), start=1):
        (store / name).touch()
        os.utime(store / name, (10_000 - age, 10_000 - age))
    (store / ".x.npz.left").touch()
    os.utime(store / ".x.npz.left", (0, 0))
    cached("x", {}, make)
    assert {path.name for path in store.iterdir()} >= {"new.npz"}
    assert len(list(store.iterdir())) == 2
