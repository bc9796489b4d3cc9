"""From dense to block-circulant: accuracy on digits, phases, determinism, settings."""
import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.blocks.constraint import block_sizes, compress, matrices
from circulant.training.data import Dataset, load_data
from circulant.training.loop.loop import evaluate
from circulant.training.loop.train import Trained, TrainingSettings, train, train_admm, train_direct
from circulant.training.models.models import ModelSettings, build

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


def test_train_admm_is_the_second_half_of_train():
    trained = train(tiny(), SHORT, model=ModelSettings(hidden=16))
    result = train_admm(trained.dense_model(), tiny(), epochs=SHORT.admm_epochs, retrain_epochs=SHORT.retrain_epochs)
    small = result.model
    assert result.history == trained.history[SHORT.dense_epochs:]
    assert result.scores == {name: trained.scores[name] for name in ("projected", "circulant")}
    assert repr(result) == f"<TrainingResult accuracy {result.score:.2%}, block size 8, 5 epochs>"
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
    train_admm(dense_model(), tiny(), epochs=5, retrain_epochs=0, lr=1e-12, rho=1e-6, block_size={"gru": 1},
               on_epoch=lambda phase, epoch, *rest: epochs.append(epoch))
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
    assert len(calls) == 5 * 16, "every batch of both phases must use the loss"
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
        packed = nn.utils.rnn.pack_padded_sequence(x, [8] * x.shape[0], batch_first=True)
        return self.linear(self.gru(packed)[1][-1])


@pytest.mark.parametrize("way", [train_admm, train_direct])
def test_a_forward_method_that_cannot_be_traced_is_refused_before_anything_is_trained(way):
    calls = []
    with pytest.raises(Refusal) as refused:
        way(Packed(), tiny(), on_epoch=lambda *call: calls.append(call))
    assert str(refused.value).startswith(
        "The forward method of Packed must be traceable, as the golden model follows it, but it cannot be traced "
        "beyond `packed = nn.utils.rnn.pack_padded_sequence(x, [8] * x.shape[0], batch_first=True)`, line ")
    assert " of test_train.py (" in str(refused.value)
    assert str(refused.value).endswith("); it must be free of packed sequences, of decisions that depend on data and "
                                       "of initial states")
    assert calls == []
