import numpy as np
import pytest

from circulant.faults.sampling import mean, sample_size, share
from tests.refused import refused


@pytest.mark.parametrize(("population", "margin", "confidence", "size"), [
    (10 ** 9, 0.05, 0.95, 385), (10 ** 12, 0.01, 0.99, 16588), (10_000, 0.05, 0.95, 370), (10, 0.05, 0.95, 10),
    (1, 0.05, 0.95, 1)])
def test_the_size_of_a_sample_is_that_of_the_textbook(population, margin, confidence, size):
    assert sample_size(population, margin, confidence) == size


def test_the_interval_of_a_share_holds_it_as_often_as_it_says():
    rng, held = np.random.default_rng(0), 0
    for _ in range(2000):
        low, high = share(int(rng.binomial(100, 0.1)), 100, 0.9)
        held += low <= 0.1 <= high
    assert 0.85 < held / 2000 < 0.94
    assert share(0, 50, 0.95)[0] == 0 and 0.05 < share(0, 50, 0.95)[1] < 0.1, "none of 50 is not never"


def test_the_interval_of_a_mean_holds_it_as_often_as_it_says():
    rng, held = np.random.default_rng(1), 0
    for _ in range(300):
        low, high = mean(rng.exponential(size=60).tolist(), 0.9)
        held += low <= 1 <= high
    assert 0.8 < held / 300 < 0.95
    assert mean([3.0, 3.0], 0.95) == (3, 3)


def test_what_is_no_margin_or_confidence_is_refused():
    assert refused(sample_size, 10, 0.0, 0.95) == (
        "A margin of error must be a number between 0 and 1, not 0.0; 0.05 is five points")
    assert refused(sample_size, 10, 0.1, 95) == (
        "A confidence must be a number between 0 and 1, not 95; 0.95 is usual")
