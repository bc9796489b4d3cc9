import json

import pytest

from benchmarks import quantization
from circulant.experiment import parse
from circulant.run import steps
from circulant.run.run_folder import Run, recorded
from circulant.sim.refusal import Refusal

TINY = {"data": {"subset": 80, "test_subset": 40}, "model": {"hidden": 8},
        "training": {"dense_epochs": 4, "admm_epochs": 2, "retrain_epochs": 2}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    steps.train(Run(folder / "tiny", parse(TINY, "tiny")))
    return folder


def test_figures_of_a_run_folder(runs):
    found = quantization.measure(["tiny"], runs=runs, budget=2.0, tuned=(4,), samples=40)
    one = found["networks"]["tiny"]
    assert {"accuracy_float", "accuracy_uniform12", "accuracy_picked", "weight_bits_uniform12",
            "weight_bits_picked"} <= set(one)
    assert 0 < one["weight_bits_picked"] < one["weight_bits_uniform12"] == 12 * 64, "eight blocks of 8"
    trained = recorded(Run(runs / "tiny", parse(TINY, "tiny")), "train")
    assert one["accuracy_float"] == trained["accuracy"]["circulant"], "that of the training"
    assert set(one["tuned"]["4"]) == {"rounded", "finetuned", "joint"}
    assert (found["pick_on"], one["pick_by"]) == ("train", "margins"), "as the experiment says"
    assert "tiny: bits of the weights, uniform and picked" in found["table"]
    json.dumps(found)


def test_a_network_that_is_nowhere(tmp_path):
    with pytest.raises(Refusal, match=r"^An experiment must be a shipped one"):
        quantization.measure(["digits-grue"], runs=tmp_path)
