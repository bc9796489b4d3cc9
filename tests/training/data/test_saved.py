"""The data set that a run folder keeps: every member comes back, and nothing else is taken for one."""
import numpy as np
import pytest

from circulant.sim import artifact
from circulant.sim.refusal import Refusal
from circulant.training.data import Dataset, load_data
from circulant.training.data.saved import FORMAT, VERSION, load_saved, save_data


def ragged():
    x = np.arange(48, dtype=np.float32).reshape(4, 6, 2)
    y, ones = np.array([[1, 2]] * 4), np.full(4, 2)
    return Dataset("ragged", x, y, x[:, :5], y, classes=3, task="ctc", symbols=("-", "a", "b"), frames=2,
                   train_lengths=np.array([6, 5, 4, 3]), test_lengths=np.array([5, 5, 4, 3]),
                   train_target_lengths=ones, test_target_lengths=ones)


@pytest.mark.parametrize("make", [ragged, lambda: load_data("digits", subset=20, test_subset=10)])
def test_written_and_read_again(tmp_path, make):
    data = make()
    save_data(tmp_path / "data.npz", data)
    read = load_saved(tmp_path / "data.npz")
    assert read.digest() == data.digest()
    assert (repr(read), read.frames, read.symbols) == (repr(data), data.frames, data.symbols)


def test_refused(tmp_path):
    with pytest.raises(Refusal, match=r"^data\.name = 'saved' must stand in a run folder that keeps its data"):
        load_data("saved")
    path, x, y = tmp_path / "data.npz", np.ones((2, 3), np.float32), np.zeros(2, np.int64)
    for members, words in (({"name": "n", "task": "other"}, "data.npz: The task of data set 'n' must be one of"),
                           ({"classes": 2}, "data.npz: Dataset must be called as"),
                           ({"name": 3, "classes": "x"}, "data.npz: Dataset must be given a text as name")):
        artifact.write_npz(path, FORMAT, VERSION, {"train_x": x, "train_y": y, "test_x": x, "test_y": y},
                           members=members)
        with pytest.raises(Refusal, match=words):
            load_saved(path)
