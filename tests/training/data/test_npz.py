"""A user's own file: what it may hold, and that everything wrong with it is said."""
import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data import load_data
from circulant.training.data.npz import KEYS


def sequences(**changes):
    rng = np.random.default_rng(0)
    given = {"train_x": rng.normal(size=(12, 7, 3)), "train_y": np.arange(12) % 4, "test_x": rng.normal(size=(4, 7, 3)),
             "test_y": np.arange(4), "train_lengths": np.full(12, 5), "test_lengths": np.arange(4) + 1}
    return {key: value for key, value in (given | changes).items() if value is not None}


def whole(count=20, **changes):
    given = {"x": np.arange(count * 6).reshape(count, 3, 2), "y": np.arange(count) % 2}
    return {key: value for key, value in (given | changes).items() if value is not None}


@pytest.fixture
def load(tmp_path):
    def write(given, **options):
        np.savez(tmp_path / "mine.npz", **given)
        return load_data("npz", path=str(tmp_path / "mine.npz"), **options)

    return write


def test_sequences(load):
    given = sequences()
    data = load(given)
    assert (data.name, data.task, data.classes, data.symbols) == ("mine", "classification", 4, ())
    assert np.array_equal(data.train_x, given["train_x"].astype(np.float32))
    assert data.test_lengths.tolist() == [1, 2, 3, 4]


def test_images_of_bytes_and_names(load):
    given = sequences(train_x=np.zeros((12, 3, 8, 8), np.uint8), test_x=np.zeros((4, 3, 8, 8), np.uint8),
                      train_lengths=None, test_lengths=None, symbols=np.array(["a", "b", "c", "d", "e"]))
    data = load(given)
    assert (data.shape, data.inputs, data.classes) == ((3, 8, 8), 3, 5)
    assert data.symbols == ("a", "b", "c", "d", "e")
    assert data.train_x.dtype == np.float32


def test_phones(load):
    given = sequences(train_y=np.tile([1, 2, 0], (12, 1)), test_y=np.tile([3, 0], (4, 1)), classes=np.array(5),
                      train_target_lengths=np.full(12, 2), test_target_lengths=np.ones(4, int))
    data = load(given)
    assert (data.task, data.classes) == ("ctc", 5)
    assert data.train_target_lengths.tolist() == [2] * 12


def test_numbers_labels_and_classes_at_each_step(load):
    count, steps = 20, 3
    for y, task, outputs, per_step in (
            (np.linspace(0, 1, count), "regression", 1, False), (np.ones((count, 4)), "regression", 4, False),
            (np.ones((count, steps, 2)), "regression", 2, True), (np.arange(count * 3).reshape(count, 3) % 5,
                                                                  "classification", 5, True),
            (np.eye(5, dtype=bool)[np.arange(count) % 5], "multi-label", 5, False),
            (np.eye(5, dtype=int)[np.arange(count) % 5], "multi-label", 5, False)):
        data = load(whole(y=y))
        assert (data.task, data.classes, data.per_step) == (task, outputs, per_step)
        assert data.train_y.dtype == (np.float32 if task == "regression" else np.int64)
        assert data.train_y.ndim >= 2
    assert load(whole(y=np.arange(count), task=np.array("regression"))).train_y.shape == (16, 1)


def test_the_seed_splits_what_is_whole(load):
    one, same, other = (load(whole(), seed=seed) for seed in (0, 0, 1))
    assert one.digest() == same.digest() != other.digest()
    assert (len(one.train_x), len(one.test_x)) == (16, 4)
    assert np.bincount(one.test_y).tolist() == [2, 2]
    together = np.sort(np.concatenate([one.train_x, one.test_x])[:, 0, 0])
    assert together.tolist() == (np.arange(20) * 6).tolist(), "none is lost, none twice"


def test_the_file_may_mark_its_test_part(load):
    data = load(whole(is_test=np.arange(20) > 16, lengths=np.full(20, 2)))
    assert data.test_x[:, 0, 0].tolist() == [102, 108, 114]
    assert data.test_lengths.tolist() == [2, 2, 2]


def test_subsets(load):
    data = load(sequences(), subset=8, test_subset=2)
    assert np.bincount(data.train_y).tolist() == [2, 2, 2, 2]
    assert len(data.test_lengths) == 2


def test_held_out_samples(load):
    whole, cut = load(sequences()), load(sequences(), held_out=4)
    assert len(cut.train_x) == len(whole.train_x) - 4
    assert np.bincount(cut.test_y).tolist() == [1, 1, 1, 1]
    for field in ("x", "y", "lengths"):
        both = np.concatenate([getattr(cut, f"train_{field}"), getattr(cut, f"test_{field}")])
        train = getattr(whole, f"train_{field}")
        assert sorted(map(str, both.tolist())) == sorted(map(str, train.tolist())), "the test set is not among them"


RAGGED = np.array([np.zeros((2, 3)), np.zeros((4, 3))], dtype=object)


@pytest.mark.parametrize(("given", "message"), [
    ({"test_x": None}, r"mine.npz must hold the keys train_x, train_y, test_x, test_y, but lacks test_x; it has train"),
    ({"test_z": np.zeros(2)}, r"a key must be one of train_x, .*, not test_z; did you mean 'test_y'\?$"),
    ({"x": np.zeros(2)}, r"must hold a data set that is split or one that is not, but has train_x.* beside x; leave o"),
    ({"train_x": RAGGED}, r"'train_x' must be an array of numbers, but holds Python objects, as ragged lists do; pad it"
                          ", and give the lengths as another array$"),
    ({"train_lengths": np.r_[0, np.full(11, 5)]}, r"^The lengths of the training set of data set 'mine' must be from "
                                                  r"1 to 7, not from 0 to 5; leave empty sequences out"),
    ({"test_y": np.arange(4) + 1}, r"^The test set of data set 'mine' must have classes from 0 to 3, not from 1 to 4"),
    ({"train_x": np.full((12, 7, 3), np.inf)}, r"^The training set of data set 'mine' must be finite"),
    ({"train_x": np.full((12, 7, 3), 1e300)}, r"^The training set of data set 'mine' must be finite"),
    ({"train_x": np.zeros((12, 7, 3), complex)}, r"'train_x' must be numbers, not complex128; convert it$"),
    ({"train_x": np.full((12, 7, 3), "a")}, r"'train_x' must be numbers, not <U1; convert it$"),
    ({"train_y": np.zeros(12)}, r"must have targets of one kind, but train_y \(float64\) is that of a regression and "
                                r"test_y \(int64\) that of a classification; convert one, or name the task$"),
    ({"train_y": np.full(12, "a")}, r"Targets must be classes .*, not <U1 of shape \(12,\); convert them"),
    ({"task": np.array("regresion")}, r"'task' must be one of 'classification', .*, not 'regresion'; leave it out"),
    ({"task": np.array("multi-label")}, r"The training set of data set 'mine' must have shapes .* \(N, labels\)"),
    ({"train_y": np.zeros(11, int)}, r"must have arrays with the same number of samples, not train_x of 12, train_y of"
                                     r" 11, train_lengths of 12; cut them to one length$"),
    ({"train_y": np.array(3)}, r"train_y of none"),
    ({"train_x": np.zeros((12, 7))}, r"must be sequences to have lengths, but has shape \(12, 7\)"),
    ({"train_y": np.r_[np.arange(11), 10**9]}, r"^Data set 'mine' must have at most 10,000 classes for the 12 targets "
     r"of its training set, not 1,000,000,001; number them from 0 without gaps$"),
    ({"classes": np.array(10**9)}, r"^Data set 'mine' must have at most 10,000 classes for the 12 targets of its trai"),
    ({"classes": np.array(1)}, r"'classes' must be one integer of at least 2, not 1; count the blank too$"),
    ({"classes": np.array([3, 4])}, r"'classes' must be one integer of at least 2, not \[3, 4\]"),
    ({"symbols": np.array([1, 2])}, r"'symbols' must be a list of strings, not int64 of shape \(2,\)"),
    ({"symbols": np.array(["a", "b"])}, r"must have classes from 0 to 1, not from 0 to 3"),
    ({"train_target_lengths": np.ones(12, int)}, r"must have shapes \(N, steps, features\) and \(N, symbols\)"),
])
def test_what_is_wrong(load, given, message):
    with pytest.raises(Refusal, match=message):
        load(sequences(**given))


@pytest.mark.parametrize(("given", "message"), [
    ({"y": None}, r"must hold the keys x, y, but lacks y; it has x$"),
    ({"is_test": np.zeros(20, bool)}, r"'is_test' must be true for some samples and false for others, not bool with 0 o"
                                      "f 20 true; mark the test set$"),
    ({"is_test": np.ones(20, int)}, r"'is_test' must be true for some .*, not int64 with 20 of 20"),
    ({"is_test": np.ones(3, bool)}, r"must have arrays with the same number of samples, not x of 20, y of 20, is_tes"),
])
def test_what_is_wrong_with_a_whole(load, given, message):
    with pytest.raises(Refusal, match=message):
        load(whole(**given))


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "mine.npz").write_text("no archive")
    with pytest.raises(Refusal, match=r"mine.npz must be an .npz archive, but cannot be read as one"):
        load_data("npz", path=str(tmp_path / "mine.npz"))
    with pytest.raises(Refusal, match=r"^The data set 'npz' must be told its file, but data.path is empty; set it$"):
        load_data("npz")


def test_the_keys_are_documented():
    from pathlib import Path

    text = (Path(__file__).parents[3] / "docs" / "data.md").read_text("utf-8")
    assert all(f"`{key}`" in text for key in KEYS)
