"""A training that Ctrl-C ended goes on by one command, and ends as if nothing had happened."""
import dataclasses
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from circulant import training
from circulant.arguments import find
from circulant.run import steps
from circulant.run.run_folder import CHECKPOINT
from circulant.training.models.vision import cnn
from tests.processes import call

SET = [word for key, value in (("training.dense_epochs", 2), ("training.admm_epochs", 400),
                               ("training.tolerance", 1e-9), ("training.retrain_epochs", 1), ("model.hidden", 16),
                               ("data.subset", 100))
       for word in ("--set", f"{key}={value}")]
SHORT = [*SET, "--set", "training.admm_epochs=3"]


def trained(folder):
    record = json.loads((folder / "training.json").read_text())
    return record["history"], record["accuracy"], record["experiment"]


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A folder with a finished training, above which another one, of three epochs of ADMM, was interrupted."""
    monkeypatch.chdir(tmp_path)
    assert call("train", *SHORT, "--set", "training.admm_epochs=0", "--out", "run") == 0
    done = steps.PHASES["admm"]

    def interrupt(self, task, at, *rest):
        if (task, at) == (done, 2):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("circulant.progress.Bars.__call__", interrupt)
        assert call("train", *SHORT, "--out", "run") == 130
    return tmp_path / "run"


def test_the_process_is_interrupted(tmp_path):
    process = subprocess.Popen([sys.executable, "-m", "circulant", "train", *SET, "--out", "run"], cwd=tmp_path,
                               stderr=subprocess.PIPE, text=True)
    kept = tmp_path / "run" / CHECKPOINT / "training.pt"
    give_up = time.monotonic() + 200
    while not kept.exists() and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert said.strip().splitlines()[-1] == ("Interrupted; run/checkpoint keeps the training up to its last checkpoint:"
                                             " go on with `circulant train --out run --resume`")
    assert kept.exists()
    assert not (tmp_path / "run" / "model.pt").exists()


def test_what_was_finished_stays_usable(stopped):
    assert find("quantize", "run", None, ()).experiment.training.admm_epochs == 0
    assert find("train", "run", None, (), resume=True).experiment.training.admm_epochs == 3


@pytest.mark.parametrize("way", [["train", "run", "--resume"], ["train", "--out", "run", "--resume"]])
def test_going_on_is_as_if_nothing_had_happened(stopped, way):
    assert call(*way) == 0
    assert not (stopped / CHECKPOINT).exists(), "a finished training needs no checkpoint"
    assert call("train", *SHORT, "--out", "whole") == 0
    assert trained(stopped) == trained(stopped.parent / "whole")


def test_the_record_counts_the_time_before_the_interruption(tmp_path, monkeypatch):
    train = training.train
    monkeypatch.setattr(training, "train", lambda *given, **options: dataclasses.replace(train(*given, **options),
                                                                                         earlier=(5000.0, 3000.0)))
    monkeypatch.chdir(tmp_path)
    assert call("train", *SHORT, "--out", "run") == 0
    record = json.loads((tmp_path / "run" / "training.json").read_text())
    assert 5000 < record["seconds"] < 6000
    assert 3000 < record["processor_seconds"] < 4000


def test_run_goes_on_unasked(stopped, monkeypatch):
    for step in ("run.steps.quantize", "run.steps.generate", "run.steps.simulate", "report.report.write"):
        monkeypatch.setattr(f"circulant.{step}", lambda run, show, *more,
                            **options: {"verification": {"mismatches": 0}})
    monkeypatch.setattr("circulant.commands._show", lambda run, figures, *more: None)
    seen = []
    monkeypatch.setattr("circulant.progress.Bars.__call__", lambda self, *report: seen.append(report[:2]))
    assert call("run", *SHORT, "--out", "run") == 0
    assert next(report for report in seen if report[0] in steps.PHASES.values()) == (steps.PHASES["admm"], 3)


def test_other_settings_are_refused_in_one_line(stopped, capsys):
    capsys.readouterr()
    before = (stopped / CHECKPOINT / "training.pt").read_bytes()
    assert call("train", "run", "--resume", "--set", "training.seed=5") == 2
    assert "made with training.seed = 0, not 5" in (said := capsys.readouterr().err)
    assert said.count("\n") == 1
    assert (stopped / CHECKPOINT / "training.pt").read_bytes() == before


def test_nothing_to_go_on_from(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call("train", "--resume") == 2
    assert "training.pt must exist to go on from it, but it is missing; train again" in capsys.readouterr().err


def test_each_position_of_a_kernel_is_a_matrix_of_the_record():
    model = cnn((3, 8, 8), 10, width=8)
    found = steps.blocks(model)
    assert found["conv2.weight"] == {"groups": 9, "rows": 16, "columns": 8, "block_size": 1}
    weights = {name: matrix["groups"] * matrix["rows"] * matrix["columns"] for name, matrix in found.items()}
    assert weights == {name: weight.numel() for name, weight in model.named_parameters() if name in found}


@pytest.mark.parametrize(("targets", "metric"), [("numbers", "r2"), ("labels", "f1")])
def test_numbers_and_labels_of_a_file(tmp_path, monkeypatch, capsys, targets, metric):
    """A user's own file goes through training, picked widths and fine-tuning, and is scored by its own metric."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5, 3))
    y = {"numbers": x.mean((1, 2)), "labels": x.mean(1) > 0}[targets]
    np.savez("mine.npz", x=x, y=y)
    keys = {"data.name": "npz", "data.path": "mine.npz", "model.hidden": 8, "training.dense_epochs": 3,
            "training.admm_epochs": 2, "training.retrain_epochs": 2, "quantization.budget": 2.0,
            "quantization.pick": '["weight_bits"]', "quantization.finetune_epochs": 1}
    options = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    assert call("train", *options, "--out", "run") == 0
    assert "The training ends at chance, " in capsys.readouterr().err, "two epochs are not enough"
    assert call("quantize", "run") == 0
    quantized = json.loads((tmp_path / "run" / "quantization.json").read_text())
    dense = json.loads((tmp_path / "run" / "training.json").read_text())[metric]["dense"]
    assert quantized["metric"] == metric and quantized["picking"]["lost"] <= 2.0
    assert quantized[metric]["quantized"] == pytest.approx(dense, abs=0.5)
    found = quantized[metric]["quantized"]
    text = f"R² {found:.4g}" if metric == "r2" else f"F1 {found:.2%}"
    assert f"{text} quantized" in capsys.readouterr().out


def test_a_clock_that_the_device_has_no_time_for_is_refused_before_the_training(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    device = ["--set", "board.device=XCKU060", "--set", "hardware.clock_mhz=300"]
    assert call("run", *SHORT, *device, "--out", "run") == 2
    assert "on XCKU060 at most 277 MHz, not 300; lower it" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
