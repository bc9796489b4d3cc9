"""The score of golden outputs: of the samples and lengths that the vectors have, and of no others."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors
from circulant.training import score
from circulant.training.data import Dataset
from circulant.training.scoring import BATCH, judge
from circulant.training.task.task import task_of

LENGTHS = np.array([3, 5, 3, 4])


def data(task: str = "classification") -> Dataset:
    """Sequences of which only the last valid value is the class."""
    x = np.zeros((4, 6, 1), np.float32)
    y = np.array([1, 2, 2, 1])
    for row, length in enumerate(LENGTHS):
        x[row, length - 1] = y[row]
    symbols = None
    if task == "ctc":
        y, symbols = y[:, None], np.ones(4, np.int64)
    return Dataset("made", train_x=x, train_y=y, test_x=x, test_y=y, classes=3, task=task, train_lengths=LENGTHS,
                   test_lengths=LENGTHS, train_target_lengths=symbols, test_target_lengths=symbols)


class Teller:
    """A network of this output format; a step of 0.5 makes the integers below other numbers."""

    name, hash, output_format = "teller", "abc", Format(8, 1)


def vectors(made: Dataset, lengths: np.ndarray | None = LENGTHS) -> Vectors:
    """The outputs of a network that tells the last value, or that of each step."""
    x = made.test_x[..., 0].astype(int)
    steps = np.full(4, 6) if lengths is None else lengths
    values = x if made.task == "ctc" else x[np.arange(4), steps - 1]
    return Vectors(made.test_x.astype(np.int64), np.eye(3, dtype=np.int64)[values], "abc", lengths)


@pytest.mark.parametrize(("task", "best"), [("classification", 1.0), ("ctc", 0.0)])
def test_vectors_at_true_lengths_are_scored(task: str, best: float) -> None:
    made = data(task)
    assert score(Teller(), vectors(made), made) == best


@pytest.mark.parametrize("lengths", [None, LENGTHS + 1])
def test_vectors_of_other_lengths_are_not(lengths: np.ndarray | None) -> None:
    made = data()
    steps = 24 if lengths is None else 19
    with pytest.raises(Refusal, match="^Vectors must be of the 4 samples of the test set of data set 'made', with "
                                      rf"its lengths \(15 steps\), to be scored, not of 4 with {steps} steps; "):
        score(Teller(), vectors(made, lengths), made)


def test_vectors_of_some_samples_are_not() -> None:
    made = data()
    with pytest.raises(Refusal, match="not of 2 with 8 steps"):
        score(Teller(), vectors(made).first(2), made)


def test_without_lengths_all_steps_count() -> None:
    made = replace(data(), train_lengths=None, test_lengths=None)
    assert score(Teller(), vectors(made, None), made) == 0.0, "the last step is 0"
    assert score(Teller(), vectors(made, np.full(4, 6)), made) == 0.0
    with pytest.raises(Refusal, match="with its lengths"):
        score(Teller(), vectors(made), made)


def test_numbers_are_scored_as_such() -> None:
    x = np.zeros((4, 2), np.float32)
    y = np.array([[0.5], [1.0], [1.5], [2.5]], np.float32)
    made = Dataset("numbers", x, y, x, y, task="regression")
    found = Vectors(x.astype(np.int64), np.array([[1], [2], [3], [4]]), "abc")
    assert score(Teller(), found, made) == pytest.approx(1 - 0.25 / np.square(y - y.mean()).sum())
    whole = np.array([0, 1, 1, 3])
    for given, error in (((x, y[:, 0]), 0.125), ((x, whole), 0.5)):
        assert score(Teller(), found, given, task=task_of(made, metric="mae")) == error, "the task says what y is"


def test_vectors_of_another_network_are_not() -> None:
    made = data()
    with pytest.raises(Refusal, match=r"^Vectors must be of network 'teller' \(abc\) to be scored, not of xyz; make "):
        score(Teller(), replace(vectors(made), network="xyz"), made)


def test_judged_sequences_are_batched_by_length() -> None:
    rng = np.random.default_rng(0)
    count = BATCH + 40
    lengths = rng.integers(2, 9, count)
    x, y = rng.normal(size=(count, 9, 2)).astype(np.float32), rng.integers(0, 3, count)
    made = Dataset("made", train_x=x, train_y=y, test_x=x, test_y=y, classes=3, task="classification",
                   train_lengths=lengths, test_lengths=lengths)
    judged = judge(task_of(made), made, "test")
    assert [len(each) for each in judged.inputs] == [BATCH, 40]
    known = [each for each in judged.lengths if each is not None]
    assert (np.concatenate(known) == np.sort(lengths)).all()
    assert [each.shape[1] for each in judged.inputs] == [each.max() for each in known]
    assert judged.valid == [None, None], "a class has no steps"
    whole = judge(task_of(made), replace(made, train_lengths=None, test_lengths=None), "test")
    assert (len(whole.inputs), whole.lengths) == (1, [None])
