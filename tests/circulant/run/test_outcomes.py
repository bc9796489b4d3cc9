from types import SimpleNamespace

import numpy as np
import pytest

from circulant.run.outcomes import CLASSES, PAIRS, outcome
from circulant.sim.arith.fixed import Format
from circulant.sim.vectors import Vectors

FORM = Format(8, 4)


def vectors(outputs):
    outputs = np.asarray(outputs, np.int64)
    return Vectors(np.zeros((len(outputs), 3), np.int64), outputs, "0" * 64)


def data(task, y, classes=3, **more):
    return SimpleNamespace(task=task, test_y=np.asarray(y), classes=classes, symbols=(), test_lengths=None, **more)


def test_a_confusion_matrix_has_targets_as_rows():
    found = outcome(vectors([[9, 1, 1], [1, 9, 1], [1, 9, 1], [1, 1, 9]]), data("classification", [0, 0, 1, 2]), FORM)
    assert found == {"names": ["0", "1", "2"], "confusion": [[1, 1, 0], [0, 1, 0], [0, 0, 1]]}


def test_classes_have_their_names():
    named = data("classification", [0, 1], classes=2)
    named.symbols = ("no", "yes")
    assert outcome(vectors([[1, 0], [0, 1]]), named, FORM) == {"names": ["no", "yes"], "confusion": [[1, 0], [0, 1]]}


def test_outputs_beyond_the_classes_are_left_out():
    found = outcome(vectors([[1, 0, 9], [1, 0, 0]]), data("classification", [0, 0], classes=2), FORM)
    assert found["confusion"] == [[1, 0], [0, 0]]


def test_padded_steps_are_left_out():
    stepped = data("classification", [[0, 1, 0], [1, 1, 1]], classes=2, per_step=True)
    stepped.test_lengths = np.array([2, 1])
    found = outcome(vectors(np.eye(2, dtype=int)[[[0, 0, 0], [1, 0, 0]]]), stepped, FORM)
    assert found["confusion"] == [[1, 0], [1, 1]]


def test_numbers_stand_beside_their_targets_in_the_outputs_own_unit():
    found = outcome(vectors([[16], [-8], [32]]), data("regression", [[1.0], [0.0], [1.0]], classes=1), FORM)
    assert found["target"] == [1.0, 0.0, 1.0] and found["output"] == [1.0, -0.5, 2.0]
    assert found["rmse"] == pytest.approx(np.sqrt(1.25 / 3)) and found["worst"] == 1.0


def test_a_record_stays_small_but_its_error_is_of_all_samples():
    outputs = np.zeros((2 * PAIRS + 1, 1), int)
    outputs[-1] = 16
    found = outcome(vectors(outputs), data("regression", np.zeros((len(outputs), 1)), classes=1), FORM)
    assert len(found["target"]) == len(found["output"]) == PAIRS
    assert found["worst"] == 1.0 and max(found["output"]) == 0.0


@pytest.mark.parametrize(("task", "classes"), [("ctc", 3), ("classification", CLASSES + 1), ("multi-label", 3)])
def test_other_tasks_have_none(task, classes):
    assert outcome(vectors([[1, 0, 0]]), data(task, [[0]], classes=classes), FORM) == {}
