"""What is said of a training that ended: of what was guessed, of each task, and of a projection from far away."""
import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from circulant.training.blocks.constraint import compress
from circulant.training.data import Dataset
from circulant.training.loop.notes import chance, guess, notes, tied
from circulant.training.loop.train import train_admm
from circulant.training.task.samples import samples
from circulant.training.task.task import task_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 4)).astype(np.float32)
CLASSES = np.repeat([0, 1, 2], [60, 30, 10])
SEQUENCES = Dataset("symbols", X.reshape(20, 5, 4), train_y=np.ones((20, 2), np.int64), test_x=X.reshape(20, 5, 4),
                    test_y=np.ones((20, 2), np.int64), classes=3, task="ctc", train_target_lengths=np.full(20, 2),
                    test_target_lengths=np.full(20, 2))


def of(y, **options):
    data = samples((X, y), (X, y))
    return data, task_of(data, **options)


@pytest.mark.parametrize(("y", "options", "wanted"), [
    (CLASSES, {}, 0.6), (X[:, :2], {}, 0.0), (X[:, :1], {"metric": "rmse"}, float(X[:, 0].std())),
    (np.stack([CLASSES > 0, CLASSES > 1], 1), {}, 2 * 50 / (200 + 50)),
    (CLASSES, {"loss": lambda outputs, targets: outputs.sum(), "metric": lambda outputs, targets: 1.0,
               "higher_is_better": True}, None)])
def test_one_output_for_all_samples(y, options, wanted):
    assert guess(*of(y, **options)) == (None if wanted is None else pytest.approx(wanted, abs=1e-5))


def test_no_symbol_at_all_misses_each():
    assert guess(SEQUENCES, task_of(SEQUENCES)) == 1.0


def test_classes_of_steps_and_of_a_loader():
    y = np.repeat([[0, 0, 1, 2]], 25, 0)
    data = samples((X.reshape(25, 4, 4), y, np.full(25, 3)), (X.reshape(25, 4, 4), y, np.full(25, 3)))
    assert guess(data, task_of(data)) == pytest.approx(2 / 3), "what is behind the end of a sequence does not count"
    loader = DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(CLASSES)), 16)
    loaded = samples(loader, loader)
    assert guess(loaded, task_of(loaded)) == 0.6


def test_an_accuracy_must_be_better_than_guessing_by_two_standard_errors():
    data, task = of(CLASSES)
    assert chance(0.69, data, task) == "accuracy 69.00% where guessing has 60.00%"
    assert chance(0.70, data, task) == ""
    data, task = of(X[:, :1])
    assert chance(-0.1, data, task) == "R² -0.1 where guessing has 0" and chance(0.1, data, task) == ""
    data, task = of(X[:, :1], metric="rmse")
    assert chance(2.0, data, task).startswith("RMSE 2 where guessing has") and chance(0.5, data, task) == ""


def test_a_residual_and_a_guess_are_said():
    history = [{"phase": "admm", "primal": 0.5}, {"phase": "admm", "primal": 0.27}, {"phase": "retrain"}]
    assert notes(history, "", 8) == ["ADMM ends with a residual of 0.27, above 0.2: the projection changes the weights "
                                     "by that part. Give it more than 8 epochs, or a greater rho_max"]
    assert notes([{"phase": "admm", "primal": 0.19}], "", 8) == notes([], "", 8) == []
    assert notes([], "accuracy 1% where guessing has 2%", 8) == [
        "The training ends at chance, accuracy 1% where guessing has 2%: take a lower learning rate, or warmup_epochs, "
        "or more epochs"]
    assert notes([], "so", 8, search=30)[0].endswith("search longer, --set training.search_epochs=60")


def test_they_are_logged_also_without_progress(caplog):
    data = replace(samples((X, CLASSES), (X, CLASSES)))
    with caplog.at_level(logging.WARNING, "circulant"):
        result = train_admm(nn.Linear(4, 3), data, block_size=2, epochs=1, retrain_epochs=0, lr=1e-8, progress=False)
    assert len(result.notes) == 2 and list(result.notes) == [each.message for each in caplog.records]


def test_rows_that_a_block_ties_are_named_where_the_score_is_behind():
    model, (_, task) = compress(nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 3)), 8), of(CLASSES)
    behind = {"dense": 0.9, "circulant": 0.8}
    assert tied(model, behind, task) == [
        "The accuracy is behind that of the dense model, and 1.weight has 3 rows in blocks of 8: such rows are the "
        "same numbers, turned. Leave it dense by a table of block sizes, or by model.dense in an experiment"]
    errors = of(X[:, :3], metric="rmse")[1]
    assert tied(model, behind, errors) == [] and tied(model, {"dense": 0.8, "circulant": 0.9}, errors)
    assert tied(model, {"dense": 0.9, "circulant": 0.895}, task) == tied(model, {"circulant": 0.1}, task) == []
    assert tied(compress(model, {"1": 1}), behind, task) == [], "a dense one is not tied"
