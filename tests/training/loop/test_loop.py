"""The training loop: determinism, metrics, decays, and what stops it."""
import numpy as np
import pytest
import torch
from torch import nn

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.loop import loop
from circulant.training.loop.loop import evaluate, fit
from circulant.training.loop.optimize import DECAYS


def points(seed: int = 0) -> Dataset:
    """Two clouds of points, as vectors without steps."""
    rng = np.random.default_rng(seed)
    y = np.arange(120) % 2
    x = (rng.normal(size=(120, 4)) + 3 * y[:, None]).astype(np.float32)
    return Dataset("points", x[:80], y[:80], x[80:], y[80:], classes=2)


def model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))


def test_fit_learns():
    net = model()
    history = fit(net, points(), epochs=20, lr=0.02, batch=16)
    assert len(history) == 20
    assert history[-1]["loss"] < history[0]["loss"] / 2
    assert history[-1]["accuracy"] >= 0.95
    assert history[-1]["accuracy"] == evaluate(net, points())


def test_the_seed_decides_everything():
    torch.manual_seed(7)
    wanted = torch.rand(3)
    weights = []
    for seed, noise in ((1, 7), (1, 8), (2, 7)):
        net = model()
        torch.manual_seed(noise)
        fit(net, points(), epochs=2, lr=0.01, batch=16, seed=seed)
        weights.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
        if noise == 7:
            assert torch.equal(torch.rand(3), wanted), "the global random state must stay as it was"
    assert torch.equal(weights[0], weights[1]), "the same seed must give the same weights, dropout included"
    assert not torch.equal(weights[0], weights[2])


def test_the_loss_is_the_mean_over_samples():
    net = model()[0:1]
    data = points()
    wanted = nn.functional.cross_entropy(net(torch.from_numpy(data.train_x)), torch.from_numpy(data.train_y)).item()
    history = fit(net, data, epochs=1, lr=1e-12, batch=32)  # the last batch is smaller
    assert history[0]["loss"] == pytest.approx(wanted, rel=1e-5)


def test_the_pull_is_trained_but_not_reported():
    net = model()
    weight = net[0].weight
    start = float(weight.detach().square().sum())
    history = fit(net, points(), epochs=10, lr=0.01, batch=16,
                  add_gradient=lambda: weight.grad.add_(weight.detach(), alpha=20))
    assert float(weight.detach().square().sum()) < start / 4
    assert history[0]["loss"] < 10, "the reported loss must leave the pull out"


def test_on_epoch_extends_the_metrics_and_stops():
    seen = []

    def on_epoch(epoch, metrics):
        metrics["extra"] = epoch
        seen.append(epoch)
        return epoch == 3

    history = fit(model(), points(), epochs=9, lr=0.01, on_epoch=on_epoch)
    assert seen == [1, 2, 3]
    assert [metrics["extra"] for metrics in history] == [1, 2, 3]


@pytest.mark.parametrize("batch", [1, 2])
def test_a_loss_that_is_not_finite_is_refused(batch):
    calls = []

    def loss(outputs, classes):
        calls.append(None)
        return outputs.sum() * (float("nan") if len(calls) == 80 // batch + 2 else 0.0)

    message = (r"^The loss must be finite, but is nan in epoch 2, batch 2, first in the loss itself; "
               r"choose a learning rate below 0\.5, or set clip$")
    with pytest.raises(Refusal, match=message):
        fit(model(), points(), epochs=3, lr=0.5, batch=batch, loss=loss)


def test_decays():
    for name, decay in DECAYS.items():
        assert decay(0.0) == 1.0, name
    assert DECAYS["cosine"](0.5) == pytest.approx(0.5)
    assert DECAYS["cosine"](1.0) == pytest.approx(0.0)
    assert [DECAYS["step"](done) for done in (0.3, 0.4, 0.7)] == pytest.approx([1, 0.1, 0.01])
    assert DECAYS["none"](0.9) == 1.0
    with pytest.raises(Refusal, match=r"^A decay must be one of 'cosine', 'step', 'none', not 'cosin'; did you mean"):
        fit(model(), points(), epochs=1, lr=0.1, decay="cosin")


def test_no_epoch_changes_nothing():
    net = model()
    before = [p.clone() for p in net.parameters()]
    assert fit(net, points(), epochs=0, lr=0.1) == []
    assert all(torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))


def test_evaluate_keeps_the_mode():
    net, data = model(), points()
    for training in (True, False):
        net.train(training)
        assert evaluate(net, data) == evaluate(net, data, batch=7), "dropout must be off, and batches must not matter"
        assert net.training is training


def test_small_models_train_on_one_thread(monkeypatch):
    before, few = torch.get_num_threads(), loop.SMALL

    def threads(small, net=None):
        monkeypatch.setattr(loop, "SMALL", small)
        net, seen = net or model(), set()
        net.register_forward_pre_hook(lambda *_: seen.add(torch.get_num_threads()))
        fit(net, points(), epochs=1, lr=0.1)
        return seen

    images = nn.Sequential(nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 4, 1), nn.Flatten(), nn.Linear(16, 2))
    torch.set_num_threads(2)
    try:
        assert (threads(few), threads(1)) == ({1}, {2})
        assert threads(few, images) == {2}, "convolutions have few parameters and much work"
        assert torch.get_num_threads() == 2, "the number of threads must be put back"
    finally:
        torch.set_num_threads(before)
