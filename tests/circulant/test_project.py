"""A new experiment runs as it is: trained, picked widths, Verilog that is compared, and none of its code afterwards."""
import json
import shutil

import pytest

from circulant.project import TASKS, create
from circulant.sim.refusal import Refusal
from tests.processes import call

SHORT = [word for value in ("training.dense_epochs=1", "training.admm_epochs=1", "training.retrain_epochs=1",
                            "simulation.samples=3", "simulation.drawn=2", "data.subset=150", "data.test_subset=40",
                            "model.arguments.hidden=8", "quantization.budget=30", "quantization.samples=50")
         for word in ("--set", value)]


@pytest.mark.parametrize("name", ["9lives", "a b", ".hidden"])
def test_a_name_that_is_none(tmp_path, name):
    with pytest.raises(Refusal, match=r"^The name of an experiment must begin with a letter, followed by "):
        create(tmp_path / name)


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kept.txt").touch()
    with pytest.raises(Refusal, match=r"mine must be a new folder, but something with this name exists; choose"):
        create(tmp_path / "mine")


@pytest.mark.parametrize("task", [*TASKS])
def test_each_task_has_files_whose_network_becomes_hardware(tmp_path, monkeypatch, capsys, task):
    monkeypatch.chdir(tmp_path)
    assert call("new", "mine", "--task", task) == 0
    assert call("inspect", "mine", "--json") == 0
    assert json.loads(capsys.readouterr().out.partition("run mine\n")[2])["exportable"]
    assert call("data", "mine/mine.toml") == 0
    assert ("steps each" in capsys.readouterr().out) == (task == "lengths")


def test_it_runs_as_it_is_and_later_steps_run_none_of_its_code(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call("new", "mine") == 0
    assert capsys.readouterr().out.endswith("mine/data.py\nNext: circulant run mine\n")
    for file in ("net.py", "data.py"):  # Each leaves a trace when it is run.
        path = tmp_path / "mine" / file
        path.write_text(f"{path.read_text()}\nopen({str(tmp_path / file)!r}, 'w').close()\n")
    assert call("run", "mine", *SHORT) == 0
    report = json.loads((tmp_path / "runs/mine/report.json").read_text())
    assert report["verification"]["mismatches"] == 0
    assert json.loads((tmp_path / "runs/mine/quantization.json").read_text())["picking"]["search"] == "greedy"

    received = shutil.copytree(tmp_path / "runs/mine", tmp_path / "received")
    shutil.rmtree(tmp_path / "mine")
    for file in ("net.py", "data.py"):
        (tmp_path / file).unlink()
    assert call("quantize", received, "--set", "quantization.budget=0") == 0
    assert call("generate", received, "--multipliers", 20) == 0
    assert call("generate", received, "--target", "c") == 0
    capsys.readouterr()
    assert call("quantize", received, "--set", "quantization.finetune_epochs=1") == 2
    assert ("quantization.finetune_epochs must be 0 for model.kind = 'python', as this step does not run the code that "
            "makes the network; give it to `circulant run`") in capsys.readouterr().err
    (received / "source/model/net.py").write_text("changed = True\n")
    assert call("quantize", received) == 2
    assert "model.path must name the very file with which `circulant train` made" in capsys.readouterr().err
    assert not (tmp_path / "net.py").exists() and not (tmp_path / "data.py").exists()
