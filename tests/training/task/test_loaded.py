"""Parts that DataLoaders give: every batch is checked, and what it counts is what the same arrays count."""
import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from circulant.sim.refusal import Refusal
from circulant.training.loop.loop import evaluate, fit
from circulant.training.task.loaded import Loaded, LoadedPart
from circulant.training.task.samples import samples
from circulant.training.task.task import task_of

CPU = torch.device("cpu")
RNG = np.random.default_rng(0)
X, LENGTHS = RNG.normal(size=(12, 5, 3)).astype(np.float32), 2 + np.arange(12) % 4
Y = RNG.normal(size=(12, 5, 2)).astype(np.float32)


def loader(*arrays, batch=4, **more):
    return DataLoader(TensorDataset(*map(torch.from_numpy, arrays)), batch, **more)


class Steps(nn.Module):
    def __init__(self, last=False):
        super().__init__()
        torch.manual_seed(0)
        self.gru, self.linear, self.last = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 2), last

    def forward(self, x):
        steps = self.linear(self.gru(x)[0])
        return steps[:, -1] if self.last else steps


def test_batches_are_cut_after_the_longest_and_weighed_by_their_targets():
    part = LoadedPart(Loaded.of(loader(X, Y, LENGTHS), loader(X, Y, LENGTHS)), "train", CPU)
    first = next(iter(part.portions(32)))
    assert (part.count(32), first.share, first.weight) == (3, 1.0, LENGTHS[:4].sum())
    assert first.batch.x.shape == (4, 5, 3) and first.batch.y.shape == (4, 5, 2)
    short = LoadedPart(Loaded.of(loader(X, Y, np.full(12, 2)), loader(X, Y, LENGTHS)), "train", CPU)
    assert next(iter(short.batches(32))).y.shape == (4, 2, 2)


def test_the_metric_is_that_of_arrays():
    model, arrays = Steps(), samples((X, Y, LENGTHS), (X, Y, LENGTHS))
    for batch in (3, 12):
        assert evaluate(model, loader(X, Y, LENGTHS, batch=batch)) == pytest.approx(evaluate(model, arrays), abs=1e-6)


def test_the_seed_shuffles_a_loader():
    def trained(seed):
        model = Steps()
        torch.manual_seed(torch.seed())  # whatever was drawn before
        history = fit(model, loader(X, Y, LENGTHS, shuffle=True), test=loader(X, Y, LENGTHS), epochs=3, lr=0.01,
                      seed=seed)
        return [each["loss"] for each in history]

    assert trained(3) == trained(3) != trained(4)


def test_samples_are_made_anew_in_each_epoch():
    class Growing(TensorDataset):
        calls = 0

        def __getitem__(self, at):
            Growing.calls += 1
            return super().__getitem__(at)

    data = Growing(torch.from_numpy(X), torch.from_numpy(Y))
    fit(Steps(), DataLoader(data, 4), test=loader(X, Y), epochs=3, lr=0.01)
    assert Growing.calls == 4 + 3 * 12, "a first look, then each epoch"


@pytest.mark.parametrize(("change", "message"), [
    (lambda x, y, n: (x, y * np.nan, n), "^The batch 2 of the training set must have finite targets"),
    (lambda x, y, n: (x * np.inf, y, n), "^The batch 2 of the training set must be finite"),
    (lambda x, y, n: (x, y, n + 9), "^The lengths of the batch 2 of the training set must be from 1 to 5, not from"),
    (lambda x, y, n: (x[..., :2], y, n), r"^The batch 2 of the training set must be like the first, of samples \(5, "),
    (lambda x, y, n: (x, y[:, 0], n), r"^The batch 2 of the training set must be like the first"),
    (lambda x, y, n: (x, y), None)])
def test_every_batch_is_checked(change, message):
    good = tuple(each[:4] for each in (X, Y, LENGTHS))
    with np.errstate(invalid="ignore"):
        batches = DataLoader([tuple(map(torch.from_numpy, each)) for each in (good, change(*good))], batch_size=None)
    part = LoadedPart(Loaded.of(batches, batches), "train", CPU)
    if message is None:
        assert len(list(part.batches(4))) == 2
        return
    with pytest.raises(Refusal, match=message):
        list(part.batches(4))


def test_what_a_loader_cannot_do():
    ragged = Loaded.of(loader(X, Y[:, 0], LENGTHS), loader(X, Y[:, 0], LENGTHS))
    with pytest.raises(Refusal, match=r"^The batch 1 of the training set must hold sequences of one length, as paddi"):
        fit(Steps(last=True), ragged.train, test=ragged.test, epochs=1, lr=0.1)
    with pytest.raises(Refusal, match=r"^A DataLoader must be read by one process, not by 2, which share each batch; "):
        next(LoadedPart(ragged, "train", CPU).portions(4, processes=2))
    classes = loader(X, np.arange(12) % 3)
    with pytest.raises(Refusal, match=r"^Classes must be from 0 to 1, as the model has 2 outputs, not up to 2; give t"):
        fit(Steps(last=True), classes, test=classes, epochs=1, lr=0.1)
    with pytest.raises(Refusal, match=r"^A classification must have outputs \(N, classes\), not \(4, 5, 2\); end the "):
        fit(Steps(), classes, test=classes, epochs=1, lr=0.1)


def test_what_is_known_of_loaders_is_hashed():
    one, same, other = (Loaded.of(loader(X, Y, batch=batch), loader(X, Y)) for batch in (4, 4, 3))
    assert one.digest() == same.digest() != other.digest()
    assert task_of(one).classes == 2 and one.shape == (5, 3)
