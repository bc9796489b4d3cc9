"""Of many candidates those are chosen that reach more."""
import numpy as np
import pytest

from circulant.sim.exercise import exercise
from circulant.sim.exercise.choose import _chosen
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from tests.sim import samples

MODEL = samples.model()
NETWORK = quantize(MODEL, samples.data(MODEL))


def test_the_chosen_reach_what_all_candidates_do_or_nearly():
    made = exercise(NETWORK, 24, steps=6)
    assert made.vectors.inputs.shape == (24, 6, 5) and made.vectors.network == NETWORK.hash
    assert np.array_equal(made.vectors.outputs, NETWORK.run_integers(made.vectors.inputs, made.vectors.lengths))
    assert made.coverage.points == made.reachable.points and made.candidates > 100
    for kind, share in (("segment", 1), ("saturation", 1), ("rounding", 1), ("boundary", 0.5)):
        assert made.coverage.reached[kind] >= share * made.reachable.reached[kind] > 0, kind


def test_few_samples_of_data_reach_less():
    """What the figure is for: the same number of samples as the data have them."""
    from circulant.sim.error.ranges import worst_cases
    from circulant.sim.exercise.points import reached
    x = NETWORK.integers(samples.data(MODEL)[:8])
    of_data = reached(NETWORK, NETWORK.traced(x), worst_cases(NETWORK, x.shape[1]))
    limits = sum(values.any() for (kind, _), values in of_data.items() if kind == "saturation")
    assert limits < exercise(NETWORK, 8).coverage.reached["saturation"]


def test_every_second_sequence_is_cut_and_counts_no_further():
    """A circuit that always has the same step in the same place hides what is wrong with the others."""
    made, again = (exercise(NETWORK, 9, steps=6).vectors for _ in range(2))
    assert (made.lengths[::2] == 6).all() and (made.lengths[1::2] < 6).all() and (made.lengths >= 1).all()
    assert np.array_equal(made.lengths, again.lengths) and np.array_equal(made.outputs, again.outputs)
    one = exercise(NETWORK, 2, steps=6)
    from circulant.sim.exercise.choose import _coverage, _reached
    assert one.coverage == _coverage(_reached(NETWORK, {"input": one.vectors.inputs}, one.vectors.lengths))
    every = _coverage(_reached(NETWORK, {"input": one.vectors.inputs}))
    assert sum(one.coverage.reached.values()) < sum(every.reached.values())


def test_a_quarter_of_the_samples_end_with_zeros():
    """So that a circuit can be given frames that end too early, and golden knows what comes of them."""
    made = exercise(NETWORK, 24, steps=6).vectors
    tails = np.stack([x[length - 1, -2:] for x, length in zip(made.inputs, made.lengths, strict=True)])
    assert not tails[13::2].any() and tails[:13].any(axis=1).mean() > 0.5
    assert np.array_equal(made.outputs, NETWORK.run_integers(made.inputs, made.lengths))


def test_each_next_one_reaches_most_of_what_is_missed():
    points = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]], bool)
    assert _chosen(points, 2).tolist() == [1, 2]
    assert sorted(_chosen(points, 4).tolist()) == [0, 1, 2, 3], "then each point again"


@pytest.mark.parametrize(("count", "steps"), [(0, 5), (3, 0)])
def test_nothing_is_not_drawn(count, steps):
    with pytest.raises(Refusal, match=r"At least one sample of at least one step must be drawn, not \d of \d"):
        exercise(NETWORK, count, steps=steps)
