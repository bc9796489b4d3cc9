import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim.activation import fit_pwl
from circulant.sim.fixed import Format
from circulant.sim.gru import GATES
from circulant.sim.refusal import Refusal
from tests.sim import definitions, samples
from tests.sim.definitions import repeatable


def stimuli(layer, count=3, steps=4, seed=0):
    """Sequences of random values, of extreme ones, of deltas, and of nothing."""
    rng, lo, hi = np.random.default_rng(seed), layer.input_format.lo, layer.input_format.hi
    shape = (count, steps, layer.inputs)
    delta = np.zeros((1, *shape[1:]), np.int64)
    delta[0, 0, -1] = hi
    return np.concatenate([rng.integers(lo, hi + 1, shape), rng.choice([lo, hi], shape), delta, 0 * delta])


def plain(layer, x):
    states = [definitions.gru(layer, sequence) for sequence in x.tolist()]
    return states if layer.returns == "sequence" else [steps[-1] for steps in states]


@pytest.mark.parametrize("returns", ["last", "sequence"])
@pytest.mark.parametrize(("inputs", "hidden", "k_ih", "k_hh"), [
    (1, 1, 1, 1), (3, 2, 1, 1), (5, 6, 4, 2), (4, 8, 4, 8), (9, 5, 8, 4), (3, 20, 1, 16), (20, 3, 16, 1)])
def test_equals_the_plain_layer_bit_for_bit(inputs, hidden, k_ih, k_hh, returns):
    layer = samples.gru(inputs, hidden, k_ih, k_hh, returns=returns)
    x = stimuli(layer, 2)
    assert layer(x).tolist() == plain(layer, x)


@repeatable(40)
@given(st.integers(1, 5), st.integers(1, 5), st.sampled_from((1, 2, 4)), st.sampled_from((1, 2, 4)), st.integers(4, 18),
       st.integers(0, 12), st.integers(4, 18), st.integers(-1, 2), st.integers(0, 2 ** 32))
def test_any_formats(inputs, hidden, k_ih, k_hh, pre_width, pre_frac, state_width, whole_bits, seed):
    """A state with room for more than 1, or for less."""
    state = (state_width, state_width - whole_bits)
    layer = samples.gru(inputs, hidden, k_ih, k_hh, pre=(pre_width, pre_frac), state=state, segments=4,
                        returns="sequence", seed=seed)
    x = stimuli(layer, 2, 3, seed)
    assert layer(x).tolist() == plain(layer, x)


def test_stimuli_saturate_the_pre_activations():
    layer = samples.gru()
    driven = layer.input_product(stimuli(layer))
    assert {layer.pre_format.lo, layer.pre_format.hi} <= set(driven.reshape(-1).tolist())


def test_returns():
    last, sequence = samples.gru(), samples.gru(returns="sequence")
    x = stimuli(last)
    assert (last(x).shape, sequence(x).shape) == ((8, 6), (8, 4, 6))
    np.testing.assert_array_equal(sequence(x)[:, -1], last(x))
    np.testing.assert_array_equal(sequence(x[:, :2])[:, -1], last(x[:, :2]))
    assert last(x).dtype == sequence(x).dtype == np.int64


def test_sequences_are_independent():
    layer = samples.gru(returns="sequence")
    x = stimuli(layer)
    np.testing.assert_array_equal(layer(x), np.concatenate([layer(one[None]) for one in x]))


def test_starts_from_zero_and_steps():
    layer = samples.gru(returns="sequence")
    x = stimuli(layer, steps=2)
    driven = layer.input_product(x).reshape(len(x), 2, 3, -1)[..., :6]
    first = layer.step(driven[:, 0], np.zeros((len(x), 6), np.int64))
    np.testing.assert_array_equal(layer(x)[:, 0], first)
    np.testing.assert_array_equal(layer(x)[:, 1], layer.step(driven[:, 1], first))


def test_gates_are_those_of_torch():
    assert GATES == ("r", "z", "n")


def test_formats_and_products():
    layer = samples.gru(input=(12, 3), pre=(14, 9), state=(13, 12))
    assert layer.kind == "gru"
    assert (layer.input_format, layer.pre_format, layer.output_format) == (Format(12, 3), Format(14, 9), Format(13, 12))
    assert layer.products == {"input_product": layer.input_product, "recurrent_product": layer.recurrent_product}


@pytest.mark.parametrize("returns", ["all", "", None])
def test_init_wrong_returns(returns):
    with pytest.raises(Refusal) as refusal:
        samples.gru(returns=returns)
    assert str(refusal.value) == f"Layer 'gru' must return 'last' or 'sequence', not {returns!r}; choose one"


@pytest.mark.parametrize(("change", "role", "rule", "given"), [
    ({"inputs": 9}, "input", "24x12 in blocks of 4", "24x8"),
    ({"hidden": 10}, "input", "36x8 in blocks of 4", "24x8"),
    ({"hidden": 7}, "recurrent", "24x8 in blocks of 2", "18x6"),
])
def test_init_wrong_size(change, role, rule, given):
    layer = samples.gru()
    with pytest.raises(Refusal) as refusal:
        dataclasses.replace(layer, **change)
    assert str(refusal.value) == (
        f"Layer 'gru': the {role} matrix for {change.get('inputs', 5)} inputs and {change.get('hidden', 6)} hidden "
        f"units must be {rule}, not {given}; export it again")


@pytest.mark.parametrize(("change", "what", "rule", "given"), [
    ({"recurrent_product": samples.gru(pre=(9, 11)).recurrent_product}, "recurrent pre-activation", (16, 11), (9, 11)),
    ({"sigmoid": fit_pwl("sigmoid", Format(16, 10), Format(16, 15), 8)}, "sigmoid's argument", (16, 11), (16, 10)),
    ({"tanh": fit_pwl("tanh", Format(16, 10), Format(16, 15), 8)}, "tanh's argument", (16, 11), (16, 10)),
    ({"sigmoid": fit_pwl("sigmoid", Format(16, 11), Format(16, 14), 8)}, "sigmoid's value", (16, 15), (16, 14)),
    ({"tanh": fit_pwl("tanh", Format(16, 11), Format(17, 15), 8)}, "tanh's value", (16, 15), (17, 15)),
])
def test_init_wrong_format(change, what, rule, given):
    with pytest.raises(Refusal) as refusal:
        dataclasses.replace(samples.gru(), **change)
    assert str(refusal.value) == (
        f"Layer 'gru': the {what} must have the {Format(*rule)}, not {Format(*given)}; quantize it again")


@pytest.mark.parametrize(("pre", "state"), [((16, 11), (32, 20)), ((40, 11), (24, 20))])
def test_init_too_wide(pre, state):
    with pytest.raises(Refusal) as refusal:
        samples.gru(pre=pre, state=state)
    assert str(refusal.value) == (
        f"Layer 'gru': the products of a gate must fit into 63 bits, but with the pre-activation {Format(*pre)} and "
        f"the state {Format(*state)} they do not; choose narrower ones")


def test_the_widest_does_not_wrap():
    layer = samples.gru(2, 3, 1, 1, pre=(30, 26), state=(30, 28), returns="sequence")
    x = stimuli(layer)
    assert layer(x).tolist() == plain(layer, x)
