"""From dense to block-circulant: accuracy on digits, phases, determinism, settings."""
import dataclasses
import re

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from circulant.sim.refusal import Refusal
from circulant.training import export, score
from circulant.training.blocks.constraint import block_sizes, compress, matrices
from circulant.training.data import Dataset, load_data
from circulant.training.loop.loop import evaluate
from circulant.training.loop.train import Trained, TrainingSettings, train, train_admm, train_direct
from circulant.training.models.models import ModelSettings, build
from tests.modules import Net

SHORT = TrainingSettings(dense_epochs=2, admm_epochs=3, retrain_epochs=2)


def tiny() -> Dataset:
    """A part of the digits, for tests of form."""
    data = load_data("digits")
    return dataclasses.replace(data, train_x=data.train_x[:128], train_y=data.train_y[:128])


def dense_model(seed: int = 0) -> nn.Module:
    return build(ModelSettings(hidden=16), 8, 10, seed=seed)


@pytest.fixture(scope="module")
def digits() -> Trained:
    """A short training on all digits."""
    return train(load_data("digits"), TrainingSettings(dense_epochs=5, admm_epochs=8, retrain_epochs=5, batch_size=16,
                                                       learning_rate=1.5e-2, retrain_rate=1e-2, rho_growth=2.0))


def test_digits_are_learned(digits):
    assert digits.scores["dense"] >= 0.94
    assert digits.scores["circulant"] >= 0.92
    assert set(digits.block_sizes.values()) == {8}
    assert digits.scores["circulant"] == evaluate(digits.model, load_data("digits"))


def test_admm_approaches_the_set(digits):
    primal = [entry["primal"] for entry in digits.history if entry["phase"] == "admm"]
    assert primal[-1] < primal[0] / 8, f"the residuals must fall, not go {primal}"
    projected = evaluate(compress(digits.dense_model(), 8), load_data("digits"))
    assert digits.scores["projected"] > projected + 0.2, "ADMM must do better than to project the dense weights"


def test_train_admm_leaves_the_model():
    model = dense_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    small = train_admm(model, tiny(), epochs=1, retrain_epochs=1).model
    assert block_sizes(small) == dict.fromkeys(matrices(model), 8)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()), "the model was changed"


def test_what_is_left_out_is_a_recipe():
    short = {"epochs": 1, "retrain_epochs": 1, "progress": False}
    recipe = {"averaging": "ema", "optimizer": "adamw", "weight_decay": 0.2, "label_smoothing": 0.1}
    layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    for model, same in ((dense_model(), {"averaging": "ema", "distillation": 0.5}),
                        (layers, recipe | {"weight_decay": 0.3})):
        left, given = (train_admm(model, tiny(), **short, **each).model.state_dict()
                       for each in ({}, {"block_size": 8, **same}))
        assert all(torch.equal(value, given[name]) for name, value in left.items()), model
    short.pop("retrain_epochs")
    asked = {"optimizer": "sgd"}, {"optimizer": "sgd", "averaging": "ema", "weight_decay": 0.0, "label_smoothing": 0.1}
    plain = {"weight_decay": 0.0}, {**recipe, "optimizer": "adam", "weight_decay": 0.0}
    for more, same in (({}, recipe), asked, plain):
        left, given = (train_direct(dense_model(), tiny(), dense_epochs=0, **short, **each).model.state_dict()
                       for each in (more, same))
        assert all(torch.equal(value, given[name]) for name, value in left.items()), more
    short["retrain_epochs"] = 1
    x, y = torch.randn(32, 8, generator=torch.Generator().manual_seed(0)), torch.arange(32) % 3
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    assert block_sizes(train_admm(model, (x, y), **short).model) == {"0.weight": 8, "2.weight": 1}, \
        "three outputs would be one row of parameters, turned"


def test_train_admm_is_the_second_half_of_train():
    trained = train(tiny(), SHORT, model=ModelSettings(hidden=16))
    result = train_admm(trained.dense_model(), tiny(), epochs=SHORT.admm_epochs, retrain_epochs=SHORT.retrain_epochs,
                        dense_epochs=0, averaging="none")
    small = result.model
    assert result.history == trained.history[SHORT.dense_epochs:]
    assert result.scores == trained.scores
    assert repr(result) == (f"<TrainingResult accuracy {result.score:.2%} (dense {trained.scores['dense']:.2%}), block "
                            "size 8, 5 epochs>")
    for name, value in trained.model.state_dict().items():
        assert torch.equal(small.state_dict()[name], value), f"{name} must not depend on who called"


def test_train_records_every_phase():
    calls = []
    trained = train(tiny(), SHORT, model=ModelSettings(hidden=16), block_size={"gru": 8},
                    progress=lambda *call: calls.append(call[:3]))
    wanted = [("dense", 1, 2), ("dense", 2, 2), ("admm", 1, 3), ("admm", 2, 3), ("admm", 3, 3), ("retrain", 1, 2),
              ("retrain", 2, 2)]
    assert calls == wanted
    assert [(e["phase"], e["epoch"]) for e in trained.history] == [call[:2] for call in wanted]
    for entry in trained.history:
        extra = {"rho", "primal", "dual", "matrices"} if entry["phase"] == "admm" else set()
        assert set(entry) == {"phase", "epoch", "loss", "accuracy"} | extra
        assert all(np.isfinite(v) for v in entry.values() if isinstance(v, float)), entry
    assert trained.block_sizes == {"gru.weight_ih_l0": 8, "gru.weight_hh_l0": 8, "linear.weight": 1}
    assert trained.scores["circulant"] == evaluate(trained.model, tiny()) == trained.history[-1]["accuracy"]
    assert trained.scores["dense"] == evaluate(trained.dense_model(), tiny()) == trained.history[1]["accuracy"]
    assert trained.history[2]["rho"] == SHORT.rho


def test_train_is_deterministic():
    one, same, other = (train(tiny(), dataclasses.replace(SHORT, seed=seed), model=ModelSettings(hidden=16))
                        for seed in (3, 3, 4))
    assert one.history == same.history
    assert one.history != other.history
    for name, value in one.model.state_dict().items():
        assert torch.equal(value, same.model.state_dict()[name]), name


def test_admm_stops_when_it_has_converged():
    epochs = []
    train_admm(dense_model(), tiny(), epochs=5, retrain_epochs=0, dense_epochs=0, lr=1e-8, rho=1e-6,
               block_size={"gru": 1}, on_epoch=lambda phase, epoch, *rest: epochs.append(epoch))
    assert epochs == [1, 2, 3, 4, 5], "nothing is constrained, so nothing converges"
    trained = train(tiny(), dataclasses.replace(SHORT, admm_epochs=50, tolerance=0.9, rho=1.0),
                    model=ModelSettings(hidden=16))
    assert 1 <= sum(entry["phase"] == "admm" for entry in trained.history) < 50


def test_phases_may_be_left_out():
    settings = TrainingSettings(dense_epochs=0, admm_epochs=0, retrain_epochs=0)
    trained = train(tiny(), settings, model=ModelSettings(hidden=16))
    assert trained.history == []
    fresh = dense_model(settings.seed)
    for name, matrix in matrices(trained.model).items():
        wanted = matrix.constraint(8).project(fresh.state_dict()[name])
        assert torch.equal(matrix.weight, wanted), f"{name} must be the projection of the initial weights"


def test_another_loss():
    calls = []

    def noted(outputs, classes):
        calls.append(classes)
        return nn.functional.multi_margin_loss(outputs, classes)

    small = train_admm(dense_model(), tiny(), epochs=2, retrain_epochs=3, batch=8, loss=noted).model
    assert len(calls) == (2 + 2 + 3) * 16, "every batch of all phases must use the loss"
    usual = train_admm(dense_model(), tiny(), epochs=2, retrain_epochs=3, batch=8).model
    assert not torch.equal(small.linear.bias, usual.linear.bias)


def test_wrong_block_sizes_are_refused_before_anything_is_trained():
    calls = []
    with pytest.raises(Refusal, match="power of two"):
        train(tiny(), SHORT, block_size=12, progress=lambda *call: calls.append(call))
    with pytest.raises(Refusal, match="power of two"):
        train_admm(dense_model(), tiny(), block_size=12, on_epoch=lambda *call: calls.append(call))
    assert calls == []


@pytest.mark.parametrize("rho", [{"gruu": 0.01, "linear": 0.1}, {"gru": 0.01}])
def test_a_rho_of_no_matrix_is_refused_before_anything_is_trained(rho):
    calls = []
    words = "rho must be given (for every constrained matrix, but not for|to constrained matrices, not to)"
    with pytest.raises(Refusal, match=words):
        train(tiny(), dataclasses.replace(SHORT, rho=rho), model=ModelSettings(hidden=16),
              progress=lambda *call: calls.append(call))
    with pytest.raises(Refusal, match=words):
        train_admm(dense_model(), tiny(), rho=rho, on_epoch=lambda *call: calls.append(call))
    assert calls == []


class Packed(nn.Module):
    """Packs its sequences, as torch's own tutorials do."""

    def __init__(self):
        super().__init__()
        self.gru, self.linear = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, [8] * (x.shape[0] - 1) + [7], batch_first=True)
        return self.linear(self.gru(packed)[1][-1])


@pytest.mark.parametrize("way", [train_admm, train_direct])
def test_a_forward_method_that_cannot_be_traced_is_refused_before_anything_is_trained(way):
    calls = []
    with pytest.raises(Refusal) as refused:
        way(Packed(), tiny(), on_epoch=lambda *call: calls.append(call))
    assert str(refused.value).startswith(
        "The forward method of Packed must be traceable, as the golden model follows it, but it cannot be traced "
        "beyond `return self.linear(self.gru(packed)[1][-1])`, line ")
    assert " of test_train.py (" in str(refused.value)
    assert str(refused.value).endswith("a packed sequence of different lengths); it must be free of packed sequences "
                                       "of different lengths and of decisions that depend on data")
    assert calls == []


DIABETES = load_diabetes()


def patients() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Ten measurements of each of 442 patients, and how far their diabetes is a year later, in deviations."""
    x, y = DIABETES.data / DIABETES.data.std(0), DIABETES.target
    y = (y - y.mean()) / y.std()
    order = np.random.default_rng(0).permutation(len(x))
    return (x[order[:350]], y[order[:350]]), (x[order[350:]], y[order[350:]])


def perceptron(outputs: int = 1, inputs: int = 10) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))


def test_a_regression_of_real_data_through_to_integers():
    train_part, test_part = patients()
    result = train_direct(perceptron(), train_part, test=test_part, block_size=4, epochs=20, lr=0.01, metric="rmse")
    assert (result.metric, result.task.higher_is_better) == ("rmse", False)
    assert result.score == evaluate(result.model, test_part, task=result.task) < 0.8, "a constant has 1"
    better = train_admm(perceptron(), train_part, test=test_part, block_size=4, epochs=15,
                        retrain_epochs=10, lr=0.005, retrain_lr=0.005, rho=0.05)
    assert better.metric == "r2" and better.score > 0.3
    made = Dataset("patients", *(each.astype(np.float32) for each in (train_part[0], train_part[1][:, None],
                                                                     test_part[0], test_part[1][:, None])),
                   task="regression")
    network = export(better.model, train_part[0])
    assert score(network, network.vectors(made.test_x), made) == pytest.approx(better.score, abs=0.005)


def test_labels():
    x = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    y = np.stack([x[:, 0] > 0, x[:, 1] + x[:, 2] > 0.5, x[:, 3] > 1], 1)
    result = train_direct(perceptron(3, 6), (x, y), block_size=2, epochs=30, lr=0.02)
    assert (result.task.kind, result.metric) == ("multi-label", "f1")
    assert result.score > 0.8


@pytest.mark.parametrize("kind", ["arrays", "loader"])
def test_numbers_at_each_step_of_ragged_sequences(kind):
    rng = np.random.default_rng(0)
    x, lengths = rng.normal(size=(80, 9, 3)).astype(np.float32), rng.integers(3, 10, 80)
    y = np.cumsum(x[..., :1], 1) / 3
    y[np.arange(9) >= lengths[:, None]] = np.nan

    torch.manual_seed(0)
    model = Net(lambda m, x: m.linear(m.gru(x)[0]), gru=nn.GRU(3, 16, batch_first=True), linear=nn.Linear(16, 1))
    data, test = (x, y, lengths), None
    if kind == "loader":
        parts = [TensorDataset(*(torch.from_numpy(each[some]) for each in data)) for some in (
            slice(16, None), slice(16))]
        data, test = (DataLoader(part, 16, shuffle=True) for part in parts)
    result = train_direct(model, data, test=test, block_size=4, epochs=25, lr=0.02, batch=16)
    assert result.task.per_step and result.score > 0.8


def test_the_seed_decides():
    def trained(seed):
        result = train_direct(perceptron(), patients()[0], block_size=4, epochs=3, seed=seed, progress=False)
        return result.history

    assert trained(1) == trained(1)
    assert trained(1) != trained(2)


def test_early_stopping_goes_back_to_the_best_weights():
    train_part, test_part = patients()
    few = tuple(each[:40] for each in train_part)
    result = train_direct(perceptron(), few, test=test_part, block_size=4, epochs=200, lr=0.01, metric="rmse",
                          early_stopping=5, dense_epochs=0)
    scores = [each["rmse"] for each in result.history]
    best = int(np.argmin(scores))
    assert len(scores) == best + 6 < 200
    assert result.score == min(scores) == evaluate(result.model, test_part, task=result.task)
    with pytest.raises(Refusal, match=r"training\.early_stopping must be an integer from 1 to 10000, or 0 for never"):
        train_direct(perceptron(), few, early_stopping=-1)


def test_progress_is_shown_unless_it_is_not_wanted(capsys):
    train_admm(perceptron(), patients()[0], block_size=4, epochs=2, retrain_epochs=1, metric="mae")
    before, first, second, *_ = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"dense baseline: 2 of 2, loss [\d.]+, MAE [\d.]+", before)
    assert re.fullmatch(r"ADMM: 2 of 2, loss [\d.]+, MAE [\d.]+, residual [\d.]+", first)
    assert re.fullmatch(r"retraining: 1 of 1, loss [\d.]+, MAE [\d.]+", second)
    train_admm(perceptron(), patients()[0], block_size=4, epochs=2, retrain_epochs=1, progress=False)
    assert capsys.readouterr() == ("", "")


def test_a_loss_by_its_name_in_the_settings():
    x = np.random.default_rng(0).normal(size=(40, 4, 3)).astype(np.float32)
    data = Dataset("means", x, x.mean((1, 2))[:, None], x, x.mean((1, 2))[:, None], task="regression")
    short = dataclasses.replace(SHORT, admm_epochs=1, retrain_epochs=1)
    one, other = (train(data, dataclasses.replace(short, loss=loss), model=ModelSettings(hidden=8))
                  for loss in ("auto", "l1"))
    assert one.history[0]["loss"] < other.history[0]["loss"], "squares of small numbers are smaller"
    assert repr(one).startswith("<Trained gru on 'means': r2 dense ")
    with pytest.raises(Refusal, match=r"^Targets must be those that the loss 'bce' takes, of a multi-label"):
        train(data, dataclasses.replace(short, loss="bce"))
