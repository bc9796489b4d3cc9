import json

import pytest

from circulant.records import Run
from tests.flow.conftest import contents, make_quantized, make_trained

# Files that a step starts from.

@pytest.mark.parametrize(("step", "missing", "first"), [
    ("quantize", "model.pt", "train"), ("generate", "weights.npz", "quantize"), ("simulate", "vectors.npz", "quantize"),
    ("simulate", "hardware/manifest.json", "generate"), ("report", "verification.json", "simulate")])
def test_a_missing_file_names_the_command_to_run(call, finished, step, missing, first):
    finished.path(missing).unlink()
    before = contents(finished.folder)
    code, out, err = call(step, finished.folder)
    assert (code, out) == (2, "")
    assert err == f"{finished.path(missing)} is missing; run `circulant {first} {finished.folder}` first\n"
    assert contents(finished.folder) == before


@pytest.mark.parametrize(("step", "name", "change", "words"), [
    ("generate", "network.json", {"version": 99}, "field 'version' must be 4, not 99"),
    ("generate", "network.json", {"format": "other"}, "field 'format' must be 'circulant-network', not 'other'"),
    ("generate", "network.json", {"inputs": 5}, "field 'hash' must be that of the contents"),
    ("simulate", "hardware/manifest.json", {"multipliers": 1}, "field 'hash' must be that of the contents"),
    ("report", "verification.json", {"version": 2}, "field 'version' must be 1, not 2")])
def test_a_damaged_file(call, finished, step, name, change, words):
    path = finished.path(name)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    before = contents(finished.folder)
    code, _, err = call(step, finished.folder)
    assert code == 2
    assert f"{path}: {words}" in err
    assert contents(finished.folder) == before


def test_damaged_vectors(call, finished):
    finished.path("vectors.npz").write_bytes(finished.path("vectors.npz").read_bytes()[:-40])
    code, _, err = call("simulate", finished.folder)
    assert code == 2
    assert "vectors.npz must be a circulant-vectors archive, but it is not" in err


def test_a_model_of_another_training(call, finished):
    finished.path("model.pt").write_bytes(b"other")
    code, _, err = call("quantize", finished.folder)
    assert code == 2
    assert "model.pt must be the file of training.json beside it" in err


def test_vectors_of_another_network(call, finished, tmp_path):
    other = Run(tmp_path / "other", finished.experiment)
    make_trained(other)
    make_quantized(other, seed=2)
    finished.path("vectors.npz").write_bytes(other.path("vectors.npz").read_bytes())
    code, _, err = call("simulate", finished.folder)
    assert code == 2
    assert "vectors.npz must be of the network beside it, but it is another's" in err


def test_a_network_of_another_run(call, finished, tmp_path):
    other = Run(tmp_path / "other", finished.experiment)
    make_trained(other)
    make_quantized(other, seed=2)
    for name in ("network.json", "weights.npz"):
        finished.path(name).write_bytes(other.path(name).read_bytes())
    code, _, err = call("generate", finished.folder)
    assert code == 2
    assert "network.json must be the network of quantization.json beside it" in err


@pytest.mark.parametrize(("step", "change", "first"), [
    ("quantize", "model.hidden=16", "train"), ("generate", "quantization.weight_bits=9", "quantize"),
    ("simulate", "hardware.multipliers=9", "generate"), ("report", "data.seed=1", "train")])
def test_a_step_may_not_change_what_earlier_steps_obeyed(call, finished, step, change, first):
    before = contents(finished.folder)
    code, _, err = call(step, finished.folder, "--set", change)
    key = change.partition("=")[0]
    assert code == 2
    assert err.startswith(f"{key} must stay ")
    assert f"run `circulant {first} {finished.folder} --set {change}` first" in err
    assert contents(finished.folder) == before
