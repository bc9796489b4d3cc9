"""A training that is stopped and goes on equals one that was never stopped, bit for bit; what it says when it ends."""
import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset, load_data
from circulant.training.loop.loop import evaluate
from circulant.training.loop.train import Trained, train, train_admm
from circulant.training.models.models import ModelSettings, SequenceClassifier
from circulant.training.settings.training import TrainingSettings

SHORT = TrainingSettings(dense_epochs=2, admm_epochs=3, retrain_epochs=2, direct_epochs=3, rho_growth=2.0)


class Stop(Exception):
    """Stands for whatever ends a process."""


def tiny() -> Dataset:
    data = load_data("digits")
    return dataclasses.replace(data, train_x=data.train_x[:96], train_y=data.train_y[:96], test_x=data.test_x[:64],
                               test_y=data.test_y[:64])


def run(path, settings=SHORT, stop=None, resume=False, **options) -> Trained:
    """A training, which ends after ``stop`` epochs in all where that is given."""
    epochs = []

    def progress(*call):
        epochs.append(call[:2])
        if len(epochs) == stop:
            raise Stop

    options = {"model": ModelSettings(hidden=16), **options}
    return train(tiny(), settings, progress=progress, checkpoint=path, resume=resume, **options)


def assert_same(one: Trained, other: Trained) -> None:
    assert one.history == other.history
    assert one.scores == other.scores
    for part in ("dense", "circulant"):
        a, b = ((t.dense if part == "dense" else t.model.state_dict()) for t in (one, other))
        assert set(a) == set(b)
        for name in a:
            assert torch.equal(a[name], b[name]), f"{part}: {name} must not depend on the interruption"


def test_early_stopping_is_resumed(tmp_path):
    settings = dataclasses.replace(SHORT, dense_epochs=9, admm_epochs=1, retrain_epochs=1, early_stopping=1,
                                   learning_rate=0.5)
    whole = run(tmp_path / "whole.pt", settings)
    dense = [each["accuracy"] for each in whole.history if each["phase"] == "dense"]
    assert dense[-1] <= max(dense[:-1]) == whole.scores["dense"] and len(dense) < 9, "it ends, and goes back"
    for stop in (1, len(dense), len(dense) + 1):
        path = tmp_path / f"{stop}.pt"
        with pytest.raises(Stop):
            run(path, settings, stop=stop)
        assert_same(run(path, settings, resume=True), whole)


@pytest.mark.parametrize(("change", "epochs"), [
    ({}, 7),
    ({"method": "direct", "distillation": 0.5, "rate_scaling": "block"}, 5),
    ({"method": "direct", "start": "projected", "distillation": 0.5}, 5),
    ({"distillation": 1.0}, 7),
    ({"method": "direct", "distillation": 0.5, "hints": 0.5}, 5),
    ({"method": "direct", "start": "dense", "stages": 3, "direct_epochs": 4, "distillation": 0.5}, 6),
    ({"optimizer": "muon", "weight_decay": 0.1}, 7),
    ({"optimizer": "sgd", "clip": 0.5, "rho_schedule": "balance", "admm_interval": 2, "warmup_epochs": 1}, 7),
    ({"precision": "bfloat16", "optimizer": "adamw", "weight_decay": 0.1, "label_smoothing": 0.1, "decay": "step"}, 7),
])
def test_resumed_at_any_epoch_is_bit_identical(tmp_path, change, epochs):
    settings = dataclasses.replace(SHORT, **change)
    options = {"model": ModelSettings(kind="reset_gru", hidden=16)} if "hints" in change else {}
    whole = run(tmp_path / "whole.pt", settings, **options)
    assert len(whole.history) == epochs
    for n in range(epochs):
        with pytest.raises(Stop):
            run(tmp_path / "stopped.pt", settings, stop=1, resume=n > 0, **options)
        torch.manual_seed(n)  # Nothing may depend on the random state of the process.
    assert_same(run(tmp_path / "stopped.pt", settings, resume=True, **options), whole)


def test_the_time_of_all_sittings_counts_and_that_between_them_does_not(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now, process_time=lambda: clock.now / 2)
    monkeypatch.setattr("circulant.training.loop.trainer.time", clock)

    def sitting(epochs, **options):
        """An epoch takes 10 s, and the last one is lost."""
        called = []

        def progress(*call):
            called.append(call)
            clock.now += 10
            if len(called) == epochs:
                raise Stop

        return train(tiny(), SHORT, progress=progress, checkpoint=tmp_path / "kept.pt", **options)

    with pytest.raises(Stop):
        sitting(3)
    clock.now = 1000.0
    with pytest.raises(Stop):
        sitting(2, resume=True)
    clock.now = 5000.0
    assert sitting(None, resume=True).earlier == (30.0, 15.0)
    assert sitting(None).earlier == (0.0, 0.0)


def test_a_distillation_learns_the_outputs_of_the_dense_baseline():
    data, settings = tiny(), dataclasses.replace(SHORT, method="direct", direct_epochs=10)
    x = torch.from_numpy(data.train_x)

    def distance(weight):
        trained = run(None, dataclasses.replace(settings, distillation=weight))
        with torch.no_grad():
            wanted, outputs = trained.dense_model().eval()(x), trained.model.eval()(x)
        return (wanted - outputs - (wanted - outputs).mean(1, keepdim=True)).square().mean().item()

    assert distance(1.0) < 0.5 * distance(0.0)


def test_a_distillation_must_have_a_dense_baseline():
    for method, phase in (("direct", "direct"), ("admm", "retrain")):
        with pytest.raises(Refusal, match=f"there is none before phase '{phase}', not 0.5; choose 0, or train one"):
            run(None, dataclasses.replace(SHORT, method=method, dense_epochs=0, distillation=0.5))


def test_a_dense_model_that_was_not_trained_has_no_score():
    direct = dataclasses.replace(SHORT, method="direct", direct_epochs=1, dense_epochs=0)
    assert list(run(None, direct).scores) == ["circulant"]
    assert list(run(None, direct, dense=run(None).dense).scores) == ["dense", "circulant"], "a given one has"


def test_dropout_goes_on_with_its_random_numbers(tmp_path):
    def model() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10))

    def stop(phase, epoch, *rest):
        if (phase, epoch) == ("admm", 2):
            raise Stop

    def train_it(**options):
        return train_admm(model(), tiny(), epochs=3, retrain_epochs=1, **options).model.state_dict()

    whole = train_it()
    with pytest.raises(Stop):
        train_it(checkpoint=tmp_path / "training.pt", on_epoch=stop)
    resumed = train_it(checkpoint=tmp_path / "training.pt", resume=True)
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)


def test_converged_admm_is_not_trained_on(tmp_path):
    settings = dataclasses.replace(SHORT, admm_epochs=50, tolerance=0.9, rho=1.0)
    whole = run(None, settings)
    ended = next(i for i, entry in enumerate(whole.history) if entry["phase"] == "retrain")
    with pytest.raises(Stop):
        run(tmp_path / "training.pt", settings, stop=ended)
    assert_same(run(tmp_path / "training.pt", settings, resume=True), whole)


def test_checkpoints_may_be_rarer(tmp_path):
    settings = dataclasses.replace(SHORT, checkpoint_epochs=2)
    with pytest.raises(Stop):
        run(tmp_path / "training.pt", settings, stop=5)
    calls = []
    resumed = train(tiny(), settings, model=ModelSettings(hidden=16), checkpoint=tmp_path / "training.pt", resume=True,
                    progress=lambda *call: calls.append(call[:2]))
    assert calls[0] == ("retrain", 1), "the end of a phase is always kept"
    assert_same(resumed, run(None))


def test_none_resumes_what_is_of_this_training(tmp_path):
    path = tmp_path / "training.pt"
    with pytest.raises(Stop):
        run(path, stop=3)
    calls = []
    train(tiny(), SHORT, model=ModelSettings(hidden=16), checkpoint=path, resume=None,
          progress=lambda *call: calls.append(call[:2]))
    assert calls[0] == ("admm", 2)
    other = run(path, dataclasses.replace(SHORT, seed=1), resume=None)
    assert len(other.history) == 7, "a checkpoint of another training must be passed over"


@pytest.mark.parametrize(("options", "message"), [
    ({"settings": dataclasses.replace(SHORT, seed=1)}, r"training\.seed = 0, not 1"),
    ({"settings": dataclasses.replace(SHORT, method="direct")}, r"phases = \['dense', 'admm', 'retrain'\], not \["),
    ({"model": ModelSettings(hidden=24)}, r"model\.hidden = 16, not 24"),
    ({"block_size": 4}, r"block_size\.gru\.weight_ih_l0 = 8, not 4"),
])
def test_a_checkpoint_of_another_training_is_refused(tmp_path, options, message):
    path = tmp_path / "training.pt"
    with pytest.raises(Stop):
        run(path, stop=1)
    before = path.read_bytes()
    with pytest.raises(Refusal, match=message) as refusal:
        run(path, resume=True, **options)
    assert "\n" not in str(refusal.value)
    assert path.read_bytes() == before


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    path = tmp_path / "training.pt"
    train_admm(SequenceClassifier(8, 16, 10), tiny(), epochs=1, retrain_epochs=0, checkpoint=path)
    with pytest.raises(Refusal, match="initial weights"):
        train_admm(SequenceClassifier(8, 16, 10), tiny(), epochs=1, retrain_epochs=0, checkpoint=path, resume=True)


def test_a_resumed_training_needs_a_checkpoint():
    with pytest.raises(Refusal, match="must have a checkpoint to go on from, but none is named"):
        train(tiny(), SHORT, resume=True)


def test_a_loss_that_stops_being_finite_keeps_the_last_good_epoch(tmp_path):
    path, calls = tmp_path / "training.pt", []

    def loss(outputs, classes):
        calls.append(None)
        return nn.functional.cross_entropy(outputs, classes) * (float("nan") if len(calls) == 8 else 1.0)

    with pytest.raises(Refusal, match=r"in epoch 3, batch 2, .*; the last good epoch, 2 of phase 'admm', is kept in"):
        train_admm(SequenceClassifier(8, 16, 10), tiny(), epochs=5, dense_epochs=0, loss=loss, checkpoint=path)
    assert torch.load(path, weights_only=True)["format"] == "circulant-checkpoint"


def test_a_rule_for_rates_changes_the_phases_inside_the_set_alone():
    one, other = (run(None, dataclasses.replace(SHORT, rate_scaling=rule)) for rule in ("none", "block"))
    assert one.history[:5] == other.history[:5], "dense matrices have the rate itself"
    assert one.history[5] != other.history[5], "first columns have a greater one"


def test_the_start_of_direct_training_is_nothing_to_admm(tmp_path):
    with pytest.raises(Stop):
        run(tmp_path / "training.pt", stop=3)
    assert_same(run(tmp_path / "training.pt", dataclasses.replace(SHORT, start="projected"), resume=True), run(None))


def test_residuals_of_every_matrix_are_kept():
    trained = run(None)
    for entry in (entry for entry in trained.history if entry["phase"] == "admm"):
        assert set(entry["matrices"]) == set(trained.block_sizes)
        for part, worst in (("primal", entry["primal"]), ("dual", entry["dual"])):
            assert max(matrix[part] for matrix in entry["matrices"].values()) == worst
    rhos = [entry["matrices"]["gru.weight_hh_l0"]["rho"] for entry in trained.history if entry["phase"] == "admm"]
    assert rhos == pytest.approx([0.01, 0.02, 0.04])


def test_z_and_u_may_be_updated_less_often():
    trained = run(None, dataclasses.replace(SHORT, admm_interval=2))
    updated = ["primal" in entry for entry in trained.history if entry["phase"] == "admm"]
    assert updated == [False, True, False]
    assert np.isfinite([entry["loss"] for entry in trained.history]).all()


@pytest.mark.parametrize(("k", "changes", "looks"), [
    (1, {"admm_epochs": 0, "retrain_epochs": 0}, 2),  # Each epoch of the baseline is measured; nothing changes after.
    (4, {"admm_epochs": 0, "retrain_epochs": 0}, 3),  # The projection is another model.
    (4, {}, 2 + 3 + 1 + 2),
    (4, {"evaluate_epochs": 2}, 1 + 2 + 1 + 1)])
def test_the_same_weights_are_measured_once(tmp_path, monkeypatch, k, changes, looks):
    seen = []

    def counted(*given, **named):
        seen.append(1)
        return evaluate(*given, **named)

    monkeypatch.setattr("circulant.training.loop.trainer.evaluate", counted)
    monkeypatch.setattr("circulant.training.loop.loop.evaluate", counted)
    done = run(tmp_path / "t.pt", dataclasses.replace(SHORT, **changes), block_size=k)
    assert len(seen) == looks
    assert done.scores["circulant"] == evaluate(done.model, tiny())
    assert done.scores["dense"] == evaluate(done.dense_model(), tiny())
