"""The score of a network that takes sequences of one length, on sequences of several."""
import numpy as np
import pytest

from circulant.training import SequenceClassifier, score
from circulant.training.data import Dataset
from circulant.training.models import ModelSettings, build

LENGTHS = np.array([3, 5, 3, 4])


def data(task: str) -> Dataset:
    """Sequences whose last valid value is the class; what follows is padding that says another one."""
    x = np.zeros((4, 6, 1), np.float32)
    y = np.array([1, 2, 2, 1])
    for row, length in enumerate(LENGTHS):
        x[row, length - 1:] = y[row]
        x[row, length:] = 0
    more = (None, None)
    if task == "ctc":
        y, more = y[:, None], (np.ones(4, np.int64), np.ones(4, np.int64))
    return Dataset("made", x, y, x, y, 3, task, LENGTHS, LENGTHS, *more)


def last(x: np.ndarray) -> np.ndarray:
    """A network that tells the class by the last value it was given."""
    return np.eye(3)[x[:, -1, 0].astype(int)]


def test_a_last_step_is_never_padding():
    made = data("classification")
    model = SequenceClassifier(1, 4, 3)
    padded = last(made.test_x)
    assert (padded.argmax(-1) == made.test_y).mean() == 0, "padding must mislead for this to test anything"
    assert score(last, model, made, padded) == 1.0


@pytest.mark.parametrize(("bidirectional", "alone"), [(False, 0), (True, 3)])
def test_only_a_layer_that_runs_backward_meets_padding_in_ctc(bidirectional, alone):
    made, lengths = data("ctc"), []

    def each(x: np.ndarray) -> np.ndarray:
        lengths.append(x.shape[1])
        return np.eye(3)[x[..., 0].astype(int)]

    model = build(ModelSettings("labeller", 4, bidirectional=bidirectional), (6, 1), 3)
    assert score(each, model, made, np.eye(3)[made.test_x[..., 0].astype(int)]) == 0.0, "no phone error"
    assert len(lengths) == alone, "padded outputs serve where padding does not reach those that count"
    assert sorted(lengths) == ([3, 4, 5] if alone else [])
