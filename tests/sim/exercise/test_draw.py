"""Candidates are of the network's shape and format, and go to its ends."""
import numpy as np
import pytest

from circulant.sim.exercise.draw import KINDS, candidates
from circulant.sim.quantize.quantize import quantize
from tests.sim import samples

SEQUENCES, VECTORS = (quantize(model, samples.data(model))
                      for model in (samples.model(), samples.model(sequence=False)))


@pytest.mark.parametrize(("network", "shape"), [(SEQUENCES, (7, 5)), (VECTORS, (5,))])
def test_candidates_fit_the_network_and_are_seeded(network, shape):
    (found,) = candidates(network, 40, steps=7, seed=1).values()
    assert found.shape == (40, *shape) and found.dtype == np.int64
    assert (found.min(), found.max()) == (network.input_format.lo, network.input_format.hi)
    assert np.array_equal(found, candidates(network, 40, steps=7, seed=1)["input"])
    assert not np.array_equal(found, candidates(network, 40, steps=7, seed=2)["input"])


def test_kinds_are_what_they_are_called():
    form = SEQUENCES.input_format
    found = dict(zip(KINDS, candidates(SEQUENCES, 8, steps=6, seed=0)["input"], strict=True))
    assert set(np.unique(found[1])) == {form.lo, form.hi}
    assert (found[2] == found[2][0]).all(), "one pattern at all steps"
    assert np.count_nonzero(found[3]) == 1, "a single value"
    assert np.abs(found[7]).max() <= 1
