"""A training that starts from the dense baseline of another run."""
import json

import pytest

from circulant import steps
from circulant.experiment import load
from circulant.records import Run
from circulant.sim.refusal import Refusal

SET = ["data.subset=100", "model.hidden=16", "training.dense_epochs=2", "training.admm_epochs=2",
       "training.retrain_epochs=2"]


def run(folder, *sets):
    return Run(folder, load("digits-gru", [*SET, *sets]))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "run"
    steps.train(run(folder))
    return folder


def recorded(folder):
    return json.loads((folder / "training.json").read_text())


def test_it_ends_as_if_it_had_trained_the_baseline_itself(base, tmp_path):
    steps.train(run(tmp_path, f"training.dense={base}"))
    one, other = recorded(base), recorded(tmp_path)
    assert [entry["phase"] for entry in other["history"]] == ["admm"] * 2 + ["retrain"] * 2
    assert other["history"] == one["history"][2:]
    assert other["accuracy"] == one["accuracy"]


def test_the_dense_twin_is_not_constrained(base, tmp_path):
    steps.train(run(tmp_path, f"training.dense={base}", "compression.block_size=1"))
    twin = recorded(tmp_path)
    assert {entry["primal"] for entry in twin["history"] if entry["phase"] == "admm"} == {0.0}
    assert len(twin["history"]) == 4, "it must have the epochs of those that it is compared with"
    assert {matrix["block_size"] for matrix in twin["matrices"].values()} == {1}


def test_looking_less_often_at_the_test_part_changes_nothing_else(base, tmp_path):
    steps.train(run(tmp_path, f"training.dense={base}", "training.evaluate_epochs=10"))
    often, seldom = recorded(base), recorded(tmp_path)
    assert ["accuracy" in entry for entry in seldom["history"]] == [False, True] * 2
    assert [entry["loss"] for entry in seldom["history"]] == [entry["loss"] for entry in often["history"][2:]]
    assert seldom["accuracy"] == often["accuracy"]


@pytest.mark.parametrize(("change", "words"), [
    ("model.hidden=8", r"has model\.hidden = 16, not 8; choose another folder, or train one"),
    ("data.subset=90", r"has data\.subset = 100, not 90"),
])
def test_a_baseline_of_another_network_is_refused(base, tmp_path, change, words):
    with pytest.raises(Refusal, match=words):
        steps.train(run(tmp_path, f"training.dense={base}", change))


def test_a_baseline_that_is_missing_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refusal, match="no run folder"):
        steps.train(run(tmp_path, f"training.dense={tmp_path / 'empty'}"))
