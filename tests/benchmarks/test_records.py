"""Records of trainings: those of run folders, those that the repository keeps, and which of them still count."""
from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks import records, results
from benchmarks.experiments import Row, rows
from circulant.experiment import load
from circulant.sim import artifact


def row(label: str) -> Row:
    return next(row for row in rows("fsdd-gru") if row.label == label)


def trained(label: str, below, *more: str, seed: int = 0, of: Row | None = None, without: str = "") -> None:
    which = of or row(label)
    _, name, *words = which.arguments(seed, below)
    experiment = load(name, [*(word for before, word in pairwise(words) if before == "--set"), *more])
    folder = which.folder(seed, below)
    folder.mkdir(parents=True)
    tables = experiment.tables(("data", "model", "compression", "training"))
    tables["training"].pop(without, None)
    artifact.write_json(folder / "training.json", "circulant-training", 1, {
        "experiment": tables, "metric": "accuracy",
        "accuracy": {"circulant": 0.98}, "history": [{"loss": 0.5, "matrices": {"gru.weight_ih_l0": {"rho": 1.0}}}]})


def test_a_kept_record_stands_in_for_the_run_folder(tmp_path):
    runs, kept = tmp_path / "runs", tmp_path / "kept"
    trained("k8", runs, seed=2)
    results.keep(runs, ["fsdd-gru"], kept)
    assert [path.relative_to(kept).as_posix() for path in kept.rglob("*.json")] == ["fsdd-gru/k8-s2.json"]
    found = records.record(row("k8"), 2, tmp_path / "another machine", kept)
    assert found["accuracy"] == {"circulant": 0.98}
    assert found["history"] == [{"loss": 0.5}], "the residuals of each matrix would be most of the file"
    assert records.record(row("k8"), 1, runs, kept) is None
    assert found["experiment"]["training"]["dense"] == "runs/results/fsdd-gru/start-s2", "not where it lay here"


def test_a_record_of_other_settings_is_left_out(tmp_path, capsys):
    trained("k8", tmp_path, "training.retrain_epochs=3")
    assert records.record(row("k8"), 0, tmp_path, None) is None
    assert "was trained with other settings than fsdd-gru has for row k8 now; delete it" in capsys.readouterr().err


def test_a_baseline_does_not_depend_on_what_comes_behind_it(tmp_path):
    trained("start", tmp_path, "training.distillation=0.5", "training.hints=0.5", 'model.dense=["last"]')
    assert records.record(row("start"), 0, tmp_path, None) is not None
    trained("k8", tmp_path, "training.distillation=0.5")
    assert records.record(row("k8"), 0, tmp_path, None) is None


def test_the_epochs_of_a_baseline_count_where_it_is_trained(tmp_path):
    trained("k8", tmp_path, "training.dense_epochs=7")
    assert records.record(row("k8"), 0, tmp_path, None) is not None, "its baseline lies in a folder"
    trained("start", tmp_path, "training.dense_epochs=7")
    assert records.record(row("start"), 0, tmp_path, None) is None


def test_a_record_without_a_start_is_of_random_columns(tmp_path):
    blocks = next(row for row in rows("speech-gru") if row.label == "k8")
    trained("k8", tmp_path, of=blocks, without="start")
    assert records.record(blocks, 0, tmp_path, None) is not None, "the experiment starts at random, as all did then"
    other = replace(blocks, sets=(*blocks.sets, "training.start=dense"))
    assert records.record(other, 0, tmp_path, None) is None
    trained("k8", tmp_path, without="start")
    assert records.record(row("k8"), 0, tmp_path, None) is not None, "ADMM has one start"


@pytest.mark.parametrize(("start", "fits"), [("auto", True), ("dense", True), ("projected", False)])
def test_a_record_says_what_direct_training_started_from(tmp_path, start, fits):
    blocks = next(row for row in rows("speech-gru") if row.label == "k8")
    trained("k8", tmp_path, "training.start=dense", of=blocks)
    other = replace(blocks, sets=(*blocks.sets, f"training.start={start}"))
    assert (records.record(other, 0, tmp_path, None) is not None) == fits


@pytest.mark.parametrize(("finished", "expected"), [
    ((), ["start", "dense", "k8", "k16"]), (("start", "k8"), ["start", "dense", "k16"]),
    (("start", "dense", "k8", "k16"), [])])
def test_what_is_kept_is_not_trained_again_but_for_weights_to_start_from(tmp_path, monkeypatch, finished, expected):
    for label in finished:
        trained(label, tmp_path / "gone")
    results.keep(tmp_path / "gone", ["fsdd-gru"], tmp_path / "kept")
    todo = []
    monkeypatch.setattr(results.campaign, "train", lambda jobs, **options: todo.extend(jobs))
    results.train(["fsdd-gru"], [0], tmp_path / "runs", tmp_path / "kept")
    assert [job.row.label for job in todo] == expected
