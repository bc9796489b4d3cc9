"""What is said of a network before any work starts, and a training that starts from the baseline of another run."""
import json
from types import SimpleNamespace

import numpy as np
import pytest

from circulant.cli import main
from circulant.experiment import load, shipped
from circulant.run import steps
from circulant.run.preparation import inspected
from circulant.run.run_folder import Run
from circulant.sim.refusal import Refusal

SET = ["data.subset=100", "model.hidden=16", "training.dense_epochs=2", "training.admm_epochs=2",
       "training.retrain_epochs=2"]


APART = ["--set", 'compression.block_size={"gru.weight_ih_l0" = 4, "gru.weight_hh_l0" = 8}']
"""A network that can be trained and not exported: the sums over x and h are made in one domain."""


SHAPES = {"digits": (8, 8), "mnist": (1, 28, 28), "cifar10": (3, 32, 32), "fsdd": (80, 32), "speechocean762": (9, 160)}


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([*arguments])
    said = capsys.readouterr()
    return stopped.value.code, said.out, said.err


LARGE = ("speech-gru", "speech-gru-1024", "speech-gru-256", "speech-lstm")
"""Seconds each; speech-lstm-256 has their data and form."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.soak) if name in LARGE else name
                                  for name in shipped()])
def test_every_shipped_network_can_become_hardware(name):
    experiment = load(name)
    shape = (784,) if experiment.data.layout == "flat" else SHAPES[experiment.data.name]
    samples = SimpleNamespace(shape=shape, classes=10, train_x=np.zeros((2, *shape), np.float32))
    inspected(experiment, samples).require_exportable()


@pytest.mark.parametrize("kind", ["crnn", "mlp"])
def test_a_circuit_of_one_size_is_refused_for_sequences_of_several(kind, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    lengths = rng.integers(4, 9, 40)
    np.savez(tmp_path / "mine.npz", x=rng.normal(size=(40, 8, 6)), y=rng.integers(0, 2, 40), lengths=lengths)
    monkeypatch.chdir(tmp_path)
    given = ["--set", "data.name=npz", "--set", "data.path=mine.npz", "--set", f"model.kind={kind}"]
    code, out, err = call(capsys, "run", *given, "--out", "run")
    assert (code, out) == (2, "")
    assert f"Sequences must have one length for model.kind = '{kind}', whose circuit takes samples of one size" in err


def test_inspect_prints_every_part_with_block_size_and_padding(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, "inspect", "--set", "compression.block_size=16")
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert lines["gru"].endswith("converted  N × 8 × 64  k = 16, 50% padding, less with k = 8; k = 16")
    assert "k = 16, 38% padding, less with k = 8" in lines["linear"]
    assert not list(tmp_path.iterdir()), "looking must leave nothing behind"


def test_inspect_as_json_says_what_is_not_exported(capsys):
    code, out, err = call(capsys, "inspect", *APART, "--json")
    report = json.loads(out)
    assert (code, report["ok"], report["exportable"]) == (0, True, False)
    assert {node["name"]: node["status"] for node in report["nodes"]}["gru"] == "captured"
    assert "It can be trained, but not be quantized" in err


def test_a_run_that_would_end_in_a_refusal_never_starts(capsys, tmp_path):
    code, out, err = call(capsys, "run", *APART, "--out", str(tmp_path / "run"))
    assert (code, out) == (2, "")
    assert "exported, but has none for gru (GRU: k = 4; k = 8; its matrices have block sizes 4, 8, but those" in err
    assert not (tmp_path / "run").exists(), "nothing may have been trained"


@pytest.mark.parametrize(("options", "words"), [
    (["--multipliers", "1"], "One array for all layers needs at least 6 multipliers, not 1; "),
    (["--device", "iCE40UP5K"], "A design must fit iCE40UP5K, but it needs 99 of 30 block RAMs (69 too many) and "),
    (["--device", "LFE5U-12F", "--set", "model.hidden=256"],
     "A design must fit LFE5U-12F, but it needs 45 of 32 block RAMs (13 too many) and about 16,700 (± 23%) of 12,000 "
     "look-up tables ("),
    (["--set", "hardware.multipliers=0"], "hardware.multipliers may be 0 (all of the device's) only if board.device ")])
def test_a_run_whose_design_cannot_be_never_starts(capsys, tmp_path, options, words):
    code, out, err = call(capsys, "run", "digits-gru", *options, "--out", str(tmp_path / "run"))
    assert (code, out) == (2, "")
    assert words in err
    assert not (tmp_path / "run").exists(), "nothing may have been trained"


def test_what_is_not_exported_can_be_trained(tmp_path):
    done = steps.train(Run(tmp_path / "run", load("digits-gru", [*SET, APART[1]])))
    assert [matrix["block_size"] for matrix in done["matrices"].values()] == [4, 8, 1]


def test_a_block_larger_than_its_matrix_is_refused_before_any_training(tmp_path):
    experiment = load("digits-gru", ["compression.block_size={linear=64}", "model.hidden=32"])
    with pytest.raises(Refusal, match=r"linear\.weight.*must not exceed both sides"):
        steps.inspect(Run(tmp_path, experiment))


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


def test_dropout_is_no_part_of_a_baseline(base, tmp_path):
    steps.train(run(tmp_path, f"training.dense={base}", "model.dropout=0.3"))
    assert recorded(tmp_path)["accuracy"]["dense"] == recorded(base)["accuracy"]["dense"]


def test_a_dense_run_that_was_trained_further_gives_its_last_weights(base, tmp_path):
    further = ("compression.block_size=1", "training.method=direct", "training.direct_epochs=2")
    steps.train(run(tmp_path / "twin", f"training.dense={base}", *further))
    steps.train(run(tmp_path / "blocks", f"training.dense={tmp_path / 'twin'}", "training.method=direct",
                    "training.direct_epochs=1"))
    twin, blocks = recorded(tmp_path / "twin"), recorded(tmp_path / "blocks")
    assert twin["accuracy"]["circulant"] != twin["accuracy"]["dense"], "its two models must differ"
    assert blocks["accuracy"]["dense"] == twin["accuracy"]["circulant"]


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
