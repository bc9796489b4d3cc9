"""What may be given in place of a data set of ours: the same is read, and what does not fit is refused."""
import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from torch.utils.data import Dataset as TorchDataset

from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset
from circulant.training.task.loaded import Loaded
from circulant.training.task.samples import samples

RNG = np.random.default_rng(0)
X, STEPS = RNG.normal(size=(20, 6)), RNG.normal(size=(20, 5, 6)).astype(np.float32)
CLASSES, LENGTHS = np.arange(20) % 3, 2 + np.arange(20) % 4


class Samples(TorchDataset):
    """Single samples, made when they are asked for."""

    def __len__(self):
        return 20

    def __getitem__(self, at):
        return torch.from_numpy(X[at]), int(CLASSES[at])


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(torch.zeros(6), 1)] * 4)


def test_arrays_become_a_data_set():
    made = samples((X, CLASSES), (X[:4], CLASSES[:4]))
    assert isinstance(made, Dataset)
    assert (made.task, made.classes, len(made.train_x), len(made.test_x)) == ("classification", 3, 20, 4)
    assert np.array_equal(made.train_x, X.astype(np.float32)) and made.train_x.dtype == np.float32
    assert samples(made) is made


def test_a_fifth_is_the_test_part_which_the_seed_chooses():
    one, same, other = (samples((X, CLASSES), seed=seed) for seed in (0, 0, 1))
    assert (len(one.train_x), len(one.test_x)) == (16, 4)
    assert one.digest() == same.digest() != other.digest()
    together = np.concatenate([one.train_x, one.test_x])[:, 0]
    assert sorted(together) == sorted(X.astype(np.float32)[:, 0]), "none is lost, none twice"


@pytest.mark.parametrize(("x", "y", "loss", "task", "outputs", "per_step"), [
    (X, X[:, 0], None, "regression", 1, False), (X, X[:, :2], None, "regression", 2, False),
    (STEPS, STEPS[..., :2], "huber", "regression", 2, True), (X, CLASSES, "mse", "regression", 1, False),
    (STEPS, np.tile(np.arange(5), (20, 1)), None, "classification", 5, True), (X, X > 0, None, "multi-label", 6, False),
    (X, (X > 0).astype(float), nn.BCEWithLogitsLoss(), "multi-label", 6, False),
    (STEPS, STEPS > 0, None, "multi-label", 6, True)])
def test_targets_tell_the_task(x, y, loss, task, outputs, per_step):
    for given in ((x, y), tuple(map(torch.from_numpy, (x, y))), TensorDataset(*map(torch.from_numpy, (x, y)))):
        made = samples(given, loss=loss)
        assert isinstance(made, Dataset), "arrays stay in memory"
        assert (made.task, made.classes, made.per_step) == (task, outputs, per_step)
    loader = DataLoader(TensorDataset(*map(torch.from_numpy, (x, y))), 4)
    made = samples(loader, loader, loss=loss)
    assert (made.task, made.classes, made.per_step) == (task, 0 if task == "classification" else outputs, per_step)


def test_lengths_come_along():
    made = samples((STEPS, CLASSES, LENGTHS))
    assert sorted(np.concatenate([made.train_lengths, made.test_lengths])) == sorted(LENGTHS)


def test_what_torch_gives_is_read_batch_by_batch():
    made = samples(Samples(), batch=8)
    assert isinstance(made, Loaded)
    assert (made.task, made.shape, made.per_step) == ("classification", (6,), False)
    seen = np.concatenate([x.numpy() for loader in (made.train, made.test) for x, _ in loader])
    assert sorted(seen[:, 0]) == sorted(X[:, 0])
    assert [len(x) for x, _ in made.train] == [8, 8]


LOADER = DataLoader(Samples(), 4)
NAN = np.where(np.arange(20) == 3, np.nan, X[:, 0])


@pytest.mark.parametrize(("data", "more", "message"), [
    ((X, CLASSES, LENGTHS, LENGTHS), {}, r"^The training set must be \(x, y\) or \(x, y, lengths\), not 4 arrays; g"),
    ((X, CLASSES[:3]), {}, r"^The training set must have as many targets as samples, not arrays of shape \(20, 6\), "),
    ((X[:0], CLASSES[:0]), {}, "^The training set must have samples, but is empty; give some$"),
    ((X, CLASSES), {"test": (X[:0], CLASSES[:0])}, "^The test set must have samples, but is empty; give some$"),
    ((X[:1], CLASSES[:1]), {}, "^Samples must be at least two to be divided into a training and a test set, not 1; g"),
    (([[1.0], [1.0, 2.0]], CLASSES[:2]), {}, "^The training set must be arrays of one shape for all samples, but seq"),
    ((np.full((20, 6), "a"), CLASSES), {}, "^The samples of the training set must be numbers, not <U1; convert them$"),
    ((STEPS, CLASSES, LENGTHS.astype(float)), {}, "^The lengths of the training set must be integers, not float64; c"),
    ((STEPS, CLASSES, LENGTHS + 1), {}, r"^The lengths of the t.* set of data set 'arrays' must be from 1 to 5, not "),
    ((STEPS, CLASSES, LENGTHS - 2), {}, "^The lengths of the t.* set of data set 'arrays' must be from 1 to 5, not f"),
    ((X, NAN), {}, "^The t.* set of data set 'arrays' must have finite targets, but some are NaN or infinite; leave "),
    ((X, X[:, 0]), {"loss": "cross_entropy"}, r"^Targets of a classification must be integers from 0 of shape \(N,\),"),
    ((X, CLASSES), {"loss": "bce"}, "^The training set of data set 'arrays' must have shapes"),
    ((X, X), {"loss": "bce"}, r"^Targets of a multi-label must be 0 or 1 of shape .*, but some are others; convert th"),
    ((X, np.tile(CLASSES, (4, 1)).T), {}, r"^Targets must be classes \(integers .*, not int64 of shape \(16, 4\); con"),
    (samples((X, CLASSES)), {"test": (X, CLASSES)}, "^A Dataset must hold its test set itself, but test is given bes"),
    (LOADER, {}, "^A DataLoader must come with a test set, as its samples cannot be divided, but test is not given; "),
    (LOADER, {"test": samples((X, CLASSES))}, r"^The test set must be arrays, or a Dataset or DataLoader of torch, n"),
    (Stream(), {}, "^A Stream must come with a test set"),
    (DataLoader(TensorDataset(torch.zeros(0, 2), torch.zeros(0)), 4), {"test": LOADER}, "^The training set must have"),
    (DataLoader(TensorDataset(torch.zeros(4, 2)), 4), {"test": LOADER},
     r"^Batches of the training set must be tensors \(x, y\) or \(x, y, lengths\), not 1 values \(Tensor\); give a D"),
    (DataLoader([{"x": torch.zeros(2)}] * 4, 4), {"test": LOADER}, "^Batches of the training set .*, not dict; give"),
    (DataLoader([torch.zeros(2)] * 4, 4), {"test": LOADER}, "^Batches of the training set .*, not Tensor; give"),
])
def test_what_does_not_fit_is_refused(data, more, message):
    with pytest.raises(Refusal, match=message):
        samples(data, **more)
