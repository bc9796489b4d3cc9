"""Training inside the set of block-circulant matrices: what it begins with, and its stages."""
import dataclasses

import pytest
import torch

from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import decompress, inherit, initialise
from circulant.training.data import load_data
from circulant.training.loop.train import train_direct
from circulant.training.models.models import ModelSettings, SequenceClassifier, build
from tests.training.loop.test_trainer import SHORT, Stop, assert_same, run, tiny

LEARNT = dataclasses.replace(SHORT, dense_epochs=30)


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


def test_direct_training_needs_no_dense_one():
    settings = dataclasses.replace(SHORT, method="direct", dense_epochs=0, start="projected")
    alone, beside = run(None, settings), run(None, dataclasses.replace(settings, dense_epochs=2))
    assert [entry["phase"] for entry in alone.history] == ["direct"] * 3
    assert [entry["phase"] for entry in beside.history] == ["dense"] * 2 + ["direct"] * 3
    assert alone.history == beside.history[2:], "the dense model is a baseline and nothing else"
    assert set(beside.scores) == {"dense", "circulant"}
