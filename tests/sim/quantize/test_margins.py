import numpy as np
import pytest

from circulant.sim.quantize.margins import UNSEEN, added, lost, taken, taken_labels


def test_the_nearest_class_counts():
    """The margin over the second class goes from 2 to 1.5, that over the third from 4 to 1."""
    assert taken([[5.0, 3.0, 1.0]], [[5.0, 3.5, 4.0]]) == pytest.approx([0.75])


def test_wider_margins_take_nothing():
    assert taken([[5.0, 3.0], [1.0, 2.0]], [[6.0, 3.0], [1.0, 2.0]]).tolist() == [0, 0]


def test_what_is_decided_otherwise_is_taken_whole():
    assert taken([[5.0, 3.0], [2.0, 2.0]], [[0.0, 3.0], [1.0, 2.0]]).tolist() == [1, 1], "with or without a margin"


def test_a_common_shift_is_nothing():
    exact = np.random.default_rng(0).normal(size=(4, 6, 5))
    assert taken(exact, exact + 3.0) == pytest.approx(np.zeros((4, 6)), abs=1e-9)


def test_one_output_decides_nothing():
    assert taken([[1.0], [2.0]], [[2.0], [0.0]]).tolist() == [0, 0]


def test_points():
    assert lost([0.0, 0.04]) == pytest.approx(2 * UNSEEN)


def test_noise_takes_its_part():
    """Uniform parts of a margin are taken over as often as the noise has parts of it."""
    rng = np.random.default_rng(1)
    exact = np.stack([np.full(200_000, 2.0), np.zeros(200_000)], -1)
    noise = rng.uniform(-0.2, 0.2, len(exact))
    part = taken(exact, exact + noise[:, None] * [0, 1]).mean()
    unseen = rng.uniform(0, 2, len(exact))
    assert part == pytest.approx(float(np.mean(unseen < noise)), rel=0.03)


def test_labels_are_decided_by_their_distance_from_0():
    exact, found = np.array([[2.0, -1.0, 0.5]]), np.array([[1.0, -2.0, -0.1]])
    assert taken_labels(exact, found).tolist() == [[0.5, 0.0, 1.0]]


def test_noise_takes_its_part_of_the_variance_from_r2():
    rng = np.random.default_rng(0)
    exact = rng.normal([0, 100], [1, 3], (200000, 2))
    found = exact + rng.normal(0, 0.1, exact.shape)
    assert added(exact, found) == pytest.approx(100 * 2 * 0.01 / (1 + 9), rel=0.02)
    targets = exact + rng.normal(0, 0.5, exact.shape)
    spread = np.square(targets - targets.mean(0)).sum()
    r2 = [1 - np.square(targets - each).sum() / spread for each in (exact, found)]
    assert 100 * (r2[0] - r2[1]) == pytest.approx(added(exact, found), rel=0.1), "as independent noise does"
