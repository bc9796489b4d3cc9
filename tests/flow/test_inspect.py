"""What would become of a network is said before any work starts, and refused there."""
import json

import numpy as np
import pytest

from circulant import steps
from circulant.cli import main
from circulant.experiment import load
from circulant.records import Run
from circulant.sim.refusal import Refusal


@pytest.fixture
def images(tmp_path, monkeypatch):
    """An .npz of a few images, whose networks can be trained and not exported."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("images.npz", x=rng.normal(size=(40, 1, 12, 12)), y=np.arange(40) % 4)
    return ["--set", "data.name=npz", "--set", "data.path=images.npz", "--set", "model.kind=lenet5",
            "--set", "compression.block_size={fc1=16}"]


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([*arguments])
    said = capsys.readouterr()
    return stopped.value.code, said.out, said.err


def test_inspect_prints_every_part_with_block_size_and_padding(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, "inspect", "--set", "compression.block_size=16")
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert lines["gru"].endswith("converted  N × 8 × 64  k = 16, 50% padding and k = 16")
    assert "k = 16, 38% padding" in lines["linear"]
    assert not list(tmp_path.iterdir()), "looking must leave nothing behind"


def test_inspect_as_json_says_what_is_not_exported(capsys, images):
    code, out, err = call(capsys, "inspect", *images, "--json")
    report = json.loads(out)
    assert (code, report["ok"], report["exportable"]) == (0, True, False)
    assert {node["name"]: node["status"] for node in report["nodes"]}["conv1"] == "captured"
    assert "It can be trained, but not be quantized" in err


def test_a_run_that_would_end_in_a_refusal_never_starts(capsys, images, tmp_path):
    code, out, err = call(capsys, "run", *images, "--out", "run")
    assert (code, out) == (2, "")
    assert "The golden model must have a layer for everything that is exported, but has none for conv1 (Conv2d)" in err
    assert not (tmp_path / "run").exists(), "nothing may have been trained"


def test_what_is_not_exported_can_be_trained(images, tmp_path):
    epochs = ["training.dense_epochs=1", "training.admm_epochs=1", "training.retrain_epochs=1"]
    done = steps.train(Run(tmp_path / "run", load("digits-gru", [*images[1::2], *epochs])))
    assert done["matrices"]["fc1.weight"]["block_size"] == 16


def test_a_block_larger_than_its_matrix_is_refused_before_any_training(tmp_path):
    experiment = load("digits-gru", ["compression.block_size={linear=64}", "model.hidden=32"])
    with pytest.raises(Refusal, match=r"linear\.weight.*must not exceed both sides"):
        steps.inspect(Run(tmp_path, experiment))
