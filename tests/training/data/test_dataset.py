"""The contract of a data set: every contradiction is refused."""
import dataclasses

import numpy as np
import pytest

from circulant.sim.refusal import Refusal
from circulant.training.data.dataset import Dataset


def classification(**changes):
    rng = np.random.default_rng(0)
    return dataclasses.replace(Dataset(
        "few", rng.normal(size=(6, 4, 3)).astype(np.float32), np.array([0, 1, 2, 0, 1, 2]),
        rng.normal(size=(3, 4, 3)).astype(np.float32), np.array([2, 1, 0]), classes=3), **changes)


def ctc(**changes):
    """Two training sequences "1 1 2" and "3", and a test sequence "2"."""
    return dataclasses.replace(Dataset(
        "few", np.zeros((2, 5, 3), np.float32), np.array([[1, 1, 2], [3, 0, 0]]), np.zeros((1, 4, 3), np.float32),
        np.array([[2, 0]]), classes=4, task="ctc", train_lengths=np.array([5, 1]), test_lengths=np.array([4]),
        train_target_lengths=np.array([3, 1]), test_target_lengths=np.array([1]), symbols=("<blank>", "a", "b", "c")),
        **changes)


def test_sizes():
    assert (classification().inputs, classification().shape) == (3, (4, 3))
    vectors = classification(train_x=np.zeros((6, 5), np.float32), test_x=np.zeros((3, 5), np.float32))
    assert (vectors.inputs, vectors.shape) == (5, (5,))
    images = classification(train_x=np.zeros((6, 2, 8, 9), np.float32), test_x=np.zeros((3, 2, 8, 9), np.float32))
    assert (images.inputs, images.shape) == (2, (2, 8, 9))


def test_the_parts_of_a_set_with_lengths_may_be_of_different_lengths():
    assert ctc().train_x.shape[1] != ctc().test_x.shape[1]


def test_the_digest_is_of_everything_that_is_learned_from():
    digests = {data.digest() for data in (
        ctc(), ctc(train_lengths=np.array([5, 2])), ctc(symbols=("<blank>", "a", "b", "d")), classification(),
        classification(classes=4), classification(train_y=np.array([0, 1, 2, 0, 1, 1])))}
    assert len(digests) == 6
    assert ctc().digest() == ctc(name="other").digest()


ZEROS = np.zeros((2, 3, 4), np.float32)


def test_many_classes_need_many_targets():
    with pytest.raises(Refusal, match=r"^Data set 'few' must have at most 10,000 classes for the 6 targets of its t"):
        classification(classes=10_001)
    assert classification(classes=10_000).classes == 10_000
    many = np.zeros((1_001, 4, 3), np.float32)
    assert classification(classes=10_010, train_x=many, train_y=np.arange(1_001)).classes == 10_010
    with pytest.raises(Refusal, match=r"^Data set 'few' must have at most 10,010 classes for the 1,001 targets of its"):
        classification(classes=10_011, train_x=many, train_y=np.arange(1_001))


@pytest.mark.parametrize(("change", "message"), [
    ({"train_x": np.zeros((6, 4, 3))}, r"^The training set of data set 'few' must be float32 with int64 targets for "
                                       r"the task 'classification', not float64 with int64; convert them, or "),
    ({"test_x": ZEROS}, r"^The test set .* must have shapes \(N, steps, features\), \(N, features\) or \(N, channels, "
                        r"height, width\) and \(N,\) or \(N, steps\), none of them 0, not \(2, 3, 4\) and \(3,\); "),
    ({"test_x": ZEROS[:0], "test_y": np.zeros(0, np.int64)}, r"test set .* must have shapes"),
    ({"test_x": np.zeros((3, 0, 3), np.float32)}, r"none of them 0, not \(3, 0, 3\)"),
    ({"classes": 2}, r"^The training set .* must have classes from 0 to 1, not from 0 to 2; renumber them$"),
    ({"test_y": np.array([0, -1, 1])}, r"^The test set .* must have classes from 0 to 2, not from -1 to 1"),
    ({"test_x": np.zeros((3, 4, 4), np.float32)}, r"^The two parts of data set 'few' must have samples of one shape, "
                                                  r"not \(4, 3\) and \(4, 4\); cut them to one length, or give both "
                                                  r"lengths$"),
    ({"test_x": np.full((3, 4, 3), np.nan, np.float32)}, r"^The test set of data set 'few' must be finite, but"),
    ({"train_lengths": np.full(6, 4)}, r"^The two parts .* must have samples of one shape"),
    ({"train_lengths": np.full(6, 5)}, r"^The lengths of the training set of data set 'few' must be from 1 to 4, not "
                                       "from 5 to 5; leave empty sequences out, and pad to the longest$"),
    ({"test_lengths": np.array([1, 0, 2])}, r"^The lengths of the test set .* not from 0 to 2"),
    ({"test_lengths": np.array([1, 2])}, r"must be int64 of shape \(3,\), not int64 of \(2,\); convert them$"),
    ({"test_lengths": np.ones(3)}, r"must be int64 of shape \(3,\), not float64 of \(3,\)"),
    ({"train_x": np.zeros((6, 3), np.float32), "train_lengths": np.ones(6, np.int64)},
     r"^The training set .* must be sequences to have lengths, but has shape \(6, 3\); leave them out$"),
    ({"task": "regresion"}, r"^The task of data set 'few' must be one of 'classification', 'ctc', 'regression', "
                            r"'multi-label', not 'regresion'"),
    ({"task": "regression"}, r"^The training set .* must be float32 with float32 targets for the task 'regression', "
                               r"not float32 with int64; convert them, or give the task"),
    ({"train_y": np.zeros((6, 5), np.int64)}, r"^The training set .* must have a target at each of the steps of its "
                                              r"sequences \(N, steps, features\), not targets \(6, 5\) for \(6, 4"),
    ({"train_target_lengths": np.ones(6, np.int64)}, r"^The training set .* must have target lengths for 'ctc' and for "
                                                     "nothing else, but the task is 'classification'"),
    ({"symbols": ("a", "b")}, r"^Data set 'few' must have a symbol for each of its 3 classes, not 2 symbols"),
])
def test_contradictions_are_refused(change, message):
    with pytest.raises(Refusal, match=message):
        classification(**change)


@pytest.mark.parametrize(("change", "message"), [
    ({"train_y": np.array([1, 2])}, r"^The training set .* must have shapes \(N, steps, features\) and \(N, symbols\)"),
    ({"train_target_lengths": None}, r"must have target lengths for 'ctc' and for nothing else, but the task is 'ctc'"),
    ({"train_target_lengths": np.array([3, 0])}, r"^The target lengths of the training set .* must be from 1 to 3, n"),
    ({"train_target_lengths": np.array([2, 1])}, r"^The training set .* must have symbols from 1 to 3 and, beyond the "
                                                 r"target lengths, 0, not from 1 to 3, with 1 beyond; renumber them"),
    ({"train_y": np.array([[1, 0, 2], [3, 0, 0]])}, r"from 0 to 3, with 0 beyond; renumber them \(0 is the blank\)$"),
    ({"train_y": np.array([[1, 4, 2], [3, 0, 0]])}, r"must have symbols from 1 to 3 .*, not from 1 to 4"),
    ({"train_lengths": np.array([3, 1])}, r"^The training set .* must have a step for each symbol and one between "
                                          r"equal ones, but sequence 0 has 3 steps and needs 4 \(1 such sequences\); "),
])
def test_contradictions_of_symbols_are_refused(change, message):
    assert ctc().task == "ctc"
    with pytest.raises(Refusal, match=message):
        ctc(**change)


def test_as_many_steps_as_an_alignment_needs_are_enough():
    assert ctc(train_lengths=np.array([4, 1])).train_lengths.tolist() == [4, 1]
