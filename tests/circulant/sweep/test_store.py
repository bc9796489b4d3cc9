import json
import os

import pytest

from circulant.experiment import load
from circulant.sim import artifact
from circulant.sweep import store


def tables(*overrides):
    return load("digits-gru", overrides).tables(("data", "model", "compression", "training"))


def test_what_a_training_depends_on():
    same = store.training_folder(tables(), "data")
    assert same.is_dir()
    assert store.training_folder(tables("training.checkpoint_epochs=7", "training.tensorboard=true"), "data") == same
    others = {store.training_folder(tables(change), "data") for change in (
        "training.seed=1", "compression.block_size=4", "model.hidden=8", "data.subset=9")}
    assert len(others | {same, store.training_folder(tables(), "other data")}) == 6


@pytest.mark.parametrize("version", ["circulant", "torch"])
def test_a_training_depends_on_the_versions(monkeypatch, version):
    before = store.training_folder(tables(), "data")
    if version == "torch":
        monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9")
    else:
        monkeypatch.setattr(store, "__version__", "9.9")
    assert store.training_folder(tables(), "data") != before


def test_what_a_point_depends_on(monkeypatch):
    given = {"quantization": {"weight_bits": 8}, "hardware": {"multipliers": 3}}
    keys = {store.point_key("model", given, "plan"), store.point_key("other", given, "plan"),
            store.point_key("model", given, "verilog"),
            store.point_key("model", given | {"hardware": {"multipliers": 4}}, "plan")}
    assert store.point_key("model", given, "plan") in keys
    monkeypatch.setattr(store, "sources", lambda: "changed")
    assert len({*keys, store.point_key("model", given, "plan")}) == 5


def test_figures_are_kept():
    assert store.figures("key") is None
    store.keep("key", {"quantized": 0.5})
    assert store.figures("key") == {"quantized": 0.5}


def test_damaged_figures_are_as_none(tmp_path):
    store.keep("key", {"quantized": 0.5})
    path = next((tmp_path / "cache" / "points").iterdir())
    path.write_text(json.dumps(json.loads(path.read_text()) | {"figures": {"quantized": 0.9}}))
    assert store.figures("key") is None
    path.write_text("{")
    assert store.figures("key") is None
    artifact.write_json(path, store.KIND, store.VERSION, {})
    assert store.figures("key") is None


def test_exchanged_figures_are_as_none(tmp_path):
    for key, score in (("one", 0.5), ("two", 0.9)):
        store.keep(key, {"quantized": score})
    one, two = (tmp_path / "cache" / "points" / f"{key}.json" for key in ("one", "two"))
    text = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(text)
    assert (store.figures("one"), store.figures("two")) == (None, None)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_replaced(tmp_path, make):
    store.keep("key", {"quantized": 0.5})
    path = next((tmp_path / "cache" / "points").iterdir())
    path.unlink()
    make(path)
    assert store.figures("key") is None
    store.keep("key", {"quantized": 0.5})
    assert store.figures("key") == {"quantized": 0.5}


def test_a_training_whose_folder_is_a_file_is_made_anew():
    folder = store.training_folder(tables(), "data")
    folder.rmdir()
    folder.touch()
    assert store.training_folder(tables(), "data").is_dir()
