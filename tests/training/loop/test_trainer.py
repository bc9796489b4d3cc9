"""A training that is stopped and goes on equals one that was never stopped, bit for bit; what it says when it ends."""
import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import decompress, inherit, initialise
from circulant.training.data import Dataset, load_data
from circulant.training.loop.loop import evaluate
from circulant.training.loop.train import Trained, train, train_admm, train_direct
from circulant.training.models.models import ModelSettings, SequenceClassifier, build
from circulant.training.settings.training import TrainingSettings

SHORT = TrainingSettings(dense_epochs=2, admm_epochs=3, retrain_epochs=2, direct_epochs=3, rho_growth=2.0)
LEARNT = dataclasses.replace(SHORT, dense_epochs=30)


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
    ({"optimizer": "muon", "weight_decay": 0.1}, 7),
    ({"optimizer": "sgd", "clip": 0.5, "rho_schedule": "balance", "admm_interval": 2, "warmup_epochs": 1}, 7),
    ({"precision": "bfloat16", "optimizer": "adamw", "weight_decay": 0.1, "label_smoothing": 0.1, "decay": "step"}, 7),
])
def test_resumed_at_any_epoch_is_bit_identical(tmp_path, change, epochs):
    settings = dataclasses.replace(SHORT, **change)
    options = {"model": ModelSettings(kind="reset_gru", hidden=16)} if "hints" in change else {}
    whole = run(tmp_path / "whole.pt", settings, **options)
    assert len(whole.history) == epochs
    for stop in range(1, epochs + 1):
        path = tmp_path / f"{stop}.pt"
        with pytest.raises(Stop):
            run(path, settings, stop=stop, **options)
        torch.manual_seed(stop)  # Nothing may depend on the random state of the process.
        assert_same(run(path, settings, resume=True, **options), whole)


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


def test_resumed_twice(tmp_path):
    path = tmp_path / "training.pt"
    for stop, resume in ((3, False), (2, True)):
        with pytest.raises(Stop):
            run(path, stop=stop, resume=resume)
    assert_same(run(path, resume=True), run(None))


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


def test_direct_training_learns():
    data = load_data("digits")
    torch.manual_seed(0)
    model = SequenceClassifier(8, 32, 10)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    accuracies = []
    small = train_direct(model, data, epochs=8, batch=16,
                         on_epoch=lambda phase, epoch, epochs, metrics: accuracies.append(metrics["accuracy"])).model
    assert accuracies[-1] >= 0.9, f"first columns must learn from the start, not {accuracies}"
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert small.gru.parametrizations.weight_hh_l0.original.shape == (3, 4, 4, 8)


def test_direct_training_starts_from_the_dense_baseline_where_there_is_one():
    direct = dataclasses.replace(SHORT, method="direct", direct_epochs=1, learning_rate=1e-8)
    for start, block_size in (("auto", 8), ("dense", {"gru": 8})):
        trained = run(None, dataclasses.replace(direct, start=start), dense=run(None).dense, block_size=block_size)
        wanted = inherit(trained.dense_model(), block_size).state_dict()
        for name, value in trained.model.state_dict().items():
            torch.testing.assert_close(value, wanted[name], msg=f"{start}: {name} must be that of the dense model")
    fresh = run(None, dataclasses.replace(direct, start="projected"), dense=run(None).dense)
    wanted = initialise(build(ModelSettings(hidden=16), (8, 8), 10, seed=0), 8).state_dict()
    for name, value in fresh.model.state_dict().items():
        torch.testing.assert_close(value, wanted[name], msg=f"{name} must be random")


STAGED = dataclasses.replace(SHORT, method="direct", start="dense", stages=3, direct_epochs=4, learning_rate=1e-8)


def test_block_sizes_double_from_stage_to_stage():
    """Each stage begins with what the one before gave, at a rate that changes nothing."""
    trained = run(None, STAGED, block_size={"gru": 4, "linear": 2})
    assert [(each["phase"], each["epoch"]) for each in trained.history] == [
        ("dense", 1), ("dense", 2), ("direct", 1), ("direct", 1), ("direct", 1), ("direct", 2)]
    assert trained.block_sizes == {"gru.weight_ih_l0": 4, "gru.weight_hh_l0": 4, "linear.weight": 2}
    wanted = inherit(inherit(trained.dense_model(), {"gru": 2}), {"gru": 2, "linear": 1})
    wanted = inherit(decompress(wanted), {"gru": 4, "linear": 2}).state_dict()
    for name, value in trained.model.state_dict().items():
        torch.testing.assert_close(value, wanted[name], msg=f"{name} must be that of the stage before")
    once = inherit(trained.dense_model(), {"gru": 4, "linear": 2}).state_dict()
    first = "gru.parametrizations.weight_hh_l0.original"
    assert not torch.allclose(once[first], wanted[first]), "each stage brings the norm back"


@pytest.mark.parametrize("stop", [3, 4, 5])
def test_stages_are_resumed(tmp_path, stop):
    path, settings = tmp_path / "training.pt", dataclasses.replace(STAGED, learning_rate=0.01, distillation=0.5)
    with pytest.raises(Stop):
        run(path, settings, stop=stop)
    assert_same(run(path, settings, resume=True), run(None, settings))


@pytest.mark.parametrize(("change", "said"), [
    ({"start": "projected"}, r"^training\.stages must be 1 where direct training starts from initial weights, not 3; "),
    ({"direct_epochs": 2}, r"training\.stages must not exceed the 2 direct_epochs, which they share, not 3")])
def test_stages_that_cannot_be_are_refused(change, said):
    with pytest.raises(Refusal, match=said):
        run(None, dataclasses.replace(STAGED, **change))


def test_a_start_from_the_dense_baseline_needs_one():
    settings = dataclasses.replace(SHORT, method="direct", start="dense", dense_epochs=0)
    with pytest.raises(Refusal, match=r"^training\.start = 'dense' must have a dense baseline, but there is none "
                                      r"before phase 'direct'; choose 'projected', or train one$"):
        run(None, settings)


def test_direct_training_of_a_trained_model_of_ones_own():
    data = tiny()
    model, same = run(None, LEARNT).dense_model(), {"epochs": 1, "lr": 1e-8, "dense_epochs": 0}
    taught = train_direct(model, data, start="dense", distillation=0.5, **same).model
    wanted, found = inherit(model, 8).state_dict(), taught.state_dict()
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, msg=f"{name} must be that of the model")
    result = train_direct(model, data, **same)
    assert result.notes[0].startswith("Direct training begins with the projection of the model's weights, rescaled")
    assert not train_direct(model, data, block_size=1, **same).notes, "blocks of one are the weights themselves"
    other = result.model.state_dict()
    assert (other["gru.bias_ih_l0"] - found["gru.bias_ih_l0"]).abs().max() < 1e-6, "biases are the model's own anyway"
    first = "gru.parametrizations.weight_hh_l0.original"
    assert not torch.allclose(other[first], found[first]), "without a word its weights are projected and rescaled"


@pytest.mark.parametrize("asked", [{"start": "dense"}, {"distillation": 0.5}])
def test_a_model_that_was_never_trained_teaches_nothing(asked):
    (name, value), = asked.items()
    with pytest.raises(Refusal, match=rf"^{name} = {value!r} must have a model that is trained, but the one given has "
                                      r"accuracy [\d.]+% where guessing has [\d.]+%; train it first, or give "
                                      r"dense_epochs$"):
        train_direct(SequenceClassifier(8, 16, 10), tiny(), epochs=1, dense_epochs=0, **asked)
    train_direct(SequenceClassifier(8, 16, 10), tiny(), epochs=1, **asked)


@pytest.mark.parametrize(("was", "now", "message"), [
    ("dense", "projected", r"training\.start = 'dense', not 'projected'"),
    ("projected", "auto", r"training\.start = 'projected', not 'dense'"), ("dense", "auto", None)])
def test_a_checkpoint_says_from_what_direct_training_started(tmp_path, was, now, message):
    path, settings = tmp_path / "training.pt", dataclasses.replace(SHORT, method="direct")
    with pytest.raises(Stop):
        run(path, dataclasses.replace(settings, start=was), stop=3)
    other = dataclasses.replace(settings, start=now)
    if message is None:
        assert_same(run(path, other, resume=True), run(None, other))
    else:
        with pytest.raises(Refusal, match=message):
            run(path, other, resume=True)


def test_a_rule_for_rates_changes_the_phases_inside_the_set_alone():
    one, other = (run(None, dataclasses.replace(SHORT, rate_scaling=rule)) for rule in ("none", "block"))
    assert one.history[:5] == other.history[:5], "dense matrices have the rate itself"
    assert one.history[5] != other.history[5], "first columns have a greater one"


def test_the_start_of_direct_training_is_nothing_to_admm(tmp_path):
    with pytest.raises(Stop):
        run(tmp_path / "training.pt", stop=3)
    assert_same(run(tmp_path / "training.pt", dataclasses.replace(SHORT, start="projected"), resume=True), run(None))


def test_direct_training_needs_no_dense_one():
    settings = dataclasses.replace(SHORT, method="direct", dense_epochs=0, start="projected")
    alone, beside = run(None, settings), run(None, dataclasses.replace(settings, dense_epochs=2))
    assert [entry["phase"] for entry in alone.history] == ["direct"] * 3
    assert [entry["phase"] for entry in beside.history] == ["dense"] * 2 + ["direct"] * 3
    assert alone.history == beside.history[2:], "the dense model is a baseline and nothing else"
    assert set(beside.scores) == {"dense", "circulant"}


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
