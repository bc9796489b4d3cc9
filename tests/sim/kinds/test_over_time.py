import math
from fractions import Fraction

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.kinds.over_time import STEPS, FloatOverTime, OverTime
from circulant.sim.refusal import Refusal
from tests.random_networks import Random

GIVEN = Format(8, 4)
X = np.random.default_rng(0).integers(GIVEN.lo, GIVEN.hi + 1, (5, 7, 3))


def over_time(mode, made=GIVEN):
    return OverTime("pool", 3, mode, input_format=GIVEN, output_format=made)


def mean(values, made):
    """The definition in fractions: half-up, then saturated."""
    exact = Fraction(sum(values), len(values)) * Fraction(2) ** (made.frac - GIVEN.frac)
    return min(max(math.floor(exact + Fraction(1, 2)), made.lo), made.hi)


@pytest.mark.parametrize("steps", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("made", [GIVEN, Format(12, 9), Format(5, 2), Format(6, 4), Format(3, -3)], ids=str)
def test_a_mean_is_divided_exactly(made, steps):
    x = X[:, :steps]
    wanted = [[mean(values, made) for values in sequence.T.tolist()] for sequence in x]
    assert over_time("mean", made)(x).tolist() == wanted


def test_a_maximum_is_that_of_all_steps():
    assert np.array_equal(over_time("max")(X), X.max(1))


def test_the_last_step_is_kept():
    assert np.array_equal(over_time("last")(X), X[:, -1])


@pytest.mark.parametrize("mode", ["max", "mean", "last"])
def test_sequences_of_different_lengths_are_those_by_themselves(mode):
    layer, lengths = over_time(mode), np.array([7, 5, 5, 2, 1])
    alone = [layer(x[None, :steps])[0] for x, steps in zip(X, lengths, strict=True)]
    assert np.array_equal(layer(X, None, lengths), alone)


@pytest.mark.parametrize("mode", ["max", "mean", "last"])
def test_a_sequence_goes_on_piece_by_piece(mode):
    layer = over_time(mode)
    _, state = layer.run(X[:, :2], layer.initial(5))
    _, state = layer.run(X[:, 2:3], state)
    y, (_, steps) = layer.run(X[:, 3:], state)
    assert np.array_equal(y, layer(X))
    assert steps.tolist() == [[7]] * 5
    with pytest.raises(Refusal, match=r"^The state of layer 'pool' must have the shape \(4, 3\), not \(5, 3\)"):
        layer.run(X[:4], state and layer.initial(5))


def test_a_mean_counts_its_first_steps_only():
    layer = over_time("mean")
    x = np.full((1, STEPS + 3, 3), 16)
    x[:, STEPS:] = -128
    assert layer(x).tolist() == [[16] * 3]
    _, state = layer.run(x[:, :STEPS - 1], layer.initial(1))
    assert layer.run(x[:, STEPS - 1:], state)[0].tolist() == [[16] * 3]
    assert over_time("max")(-x).max() == 128, "a maximum is that of all steps"


@pytest.mark.parametrize(("mode", "made", "message"), [
    ("sum", GIVEN, r"^Layer 'pool' must take the 'max', the 'mean' or the 'last' of the steps, not 'sum'; choose one$"),
    ("max", Format(8, 5), r"^Layer 'pool': what is no mean must keep the .*, not give .*; quantize it again$"),
    ("mean", Format(8, 50), r"^Layer 'pool': the mean of values in the .* cannot be made in the "),
    ("mean", Format(8, -4), r"^Layer 'pool': the mean of values in the .*; choose binary points nearer")])
def test_refusals(mode, made, message):
    with pytest.raises(Refusal, match=message):
        over_time(mode, made)


@pytest.mark.parametrize("mode", ["max", "mean", "last"])
def test_its_files_hold_it(mode, tmp_path):
    r = Random(3)
    network = r.network([r.gru("gru", 4, 6, 2, "sequence"), FloatOverTime("pool", 6, mode),
                         r.linear("out", 6, 3, 2)], 4, sequence=True)
    network.save(tmp_path)
    again, x = Network.load(tmp_path), r.inputs(network)
    assert (again.hash, again.layers[1].mode, again.per_step) == (network.hash, mode, False)
    assert np.array_equal(again.run_integers(x), network.run_integers(x))
    assert np.array_equal(network.resume(x[:, 4:], network.resume(x[:, :4], network.initial(3))[1])[0],
                          network.run_integers(x))
