"""Data sets: their shapes, seeded splits, and refusals."""
import dataclasses

import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data import DATASETS, load_data


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_keeps_its_contract(name):
    data = load_data(name)
    assert data.name == name
    for x, y in ((data.train_x, data.train_y), (data.test_x, data.test_y)):
        assert x.dtype == np.float32
        assert y.dtype == np.int64
        assert len(x) == len(y)
        assert set(y) == set(range(data.classes)), "every class must be in both parts"
    assert data.inputs == data.train_x.shape[-1]


def test_digits():
    from sklearn.datasets import load_digits

    data = load_data("digits")
    assert data.train_x.shape == (1437, 8, 8)
    assert data.test_x.shape == (360, 8, 8)
    counts = np.bincount(data.test_y)
    assert counts.min() >= 34, f"the split must be stratified, not {counts}"
    images = load_digits().images
    together = np.concatenate([data.train_x, data.test_x]) * 16
    assert sorted(map(bytes, together)) == sorted(map(bytes, images.astype(np.float32))), "no image lost, none twice"
    assert data.train_x.min() == 0
    assert data.train_x.max() == 1


def test_the_seed_chooses_the_split():
    one, same, other = (load_data("digits", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.test_x, same.test_x)
    assert not np.array_equal(one.test_x, other.test_x)


def test_unknown_name():
    with pytest.raises(Refusal, match=r"^A data set must be one of 'digits', not 'digit'; did you mean 'digits'\?$"):
        load_data("digit")


@pytest.mark.parametrize(("change", "message"), [
    ({"train_x": np.zeros((2, 3, 4))}, r"^The train part of data set 'digits' must be float32"),
    ({"test_x": np.zeros((2, 3, 4), np.float32)}, r"^The test part .* must have shapes"),
    ({"test_x": np.zeros((0, 8, 8), np.float32), "test_y": np.zeros(0, np.int64)}, r"test part .* must have shapes"),
    ({"classes": 9}, r"^The train part .* must have classes from 0 to 8, not from 0 to 9"),
    ({"test_x": np.zeros((1, 8, 9), np.float32), "test_y": np.zeros(1, np.int64)}, r"^The two parts of data set"),
    ({"test_x": np.full((360, 8, 8), np.nan, np.float32)}, r"^The test part of data set 'digits' must be finite"),
])
def test_contradictions_are_refused(change, message):
    with pytest.raises(Refusal, match=message):
        dataclasses.replace(load_data("digits"), **change)
