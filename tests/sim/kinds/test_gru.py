import dataclasses
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim.arith.circulant import JointProduct
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_pwl
from circulant.sim.kinds.gru import GATES, RESETS
from tests.refused import refused
from tests.sim import samples
from tests.sim.definitions import repeatable, told


def stimuli(layer, count=3, steps=4, seed=0):
    """Sequences of random values, of extreme ones, of deltas, and of nothing."""
    rng, lo, hi = np.random.default_rng(seed), layer.input_format.lo, layer.input_format.hi
    shape = (count, steps, layer.inputs)
    delta = np.zeros((1, *shape[1:]), np.int64)
    delta[0, 0, -1] = hi
    return np.concatenate([rng.integers(lo, hi + 1, shape), rng.choice([lo, hi], shape), delta, 0 * delta])


def plain(layer, x):
    return [told(layer, sequence) for sequence in x.tolist()]


resets = pytest.mark.parametrize("reset", RESETS)


@resets
@pytest.mark.parametrize("returns", ["last", "sequence"])
@pytest.mark.parametrize(("inputs", "hidden", "k"), [
    (1, 1, 1), (3, 2, 1), (5, 6, 4), (4, 8, 4), (9, 5, 8), (3, 20, 16), (20, 3, 16), (5, 3, 2)])
def test_equals_the_plain_layer_bit_for_bit(inputs, hidden, k, returns, reset):
    layer = samples.gru(inputs, hidden, k, returns=returns, reset=reset)
    x = stimuli(layer, 2)
    assert layer(x).tolist() == plain(layer, x)


@repeatable(60)
@given(st.integers(1, 5), st.integers(1, 5), st.sampled_from((1, 2, 4, 8)), st.sampled_from(RESETS), st.integers(4, 18),
       st.integers(0, 12), st.integers(4, 18), st.integers(-1, 2), st.integers(0, 2 ** 32))
def test_any_formats(inputs, hidden, k, reset, pre_width, pre_frac, state_width, whole_bits, seed):
    """A state with room for more than 1, or for less."""
    state = (state_width, state_width - whole_bits)
    layer = samples.gru(inputs, hidden, k, reset=reset, pre=(pre_width, pre_frac), state=state, segments=4,
                        returns="sequence", seed=seed)
    x = stimuli(layer, 2, 3, seed)
    assert layer(x).tolist() == plain(layer, x)


@resets
def test_stimuli_saturate_the_pre_activations(reset):
    layer = samples.gru(reset=reset)
    x = stimuli(layer)[:, 0]
    h = np.random.default_rng(0).integers(-32768, 32768, (len(x), 6))
    for pre in (layer.gates(x, h), layer.candidate(x) if reset == "after" else layer.candidate(x, h)):
        assert {layer.pre_format.lo, layer.pre_format.hi} <= set(pre.reshape(-1).tolist())


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


@resets
def test_starts_from_zero_and_steps(reset):
    layer = samples.gru(returns="sequence", reset=reset)
    x = stimuli(layer, steps=2)
    first = layer.step(x[:, 0], layer.initial(len(x)))
    assert not layer.initial(len(x)).any()
    np.testing.assert_array_equal(layer(x)[:, 0], first)
    np.testing.assert_array_equal(layer(x)[:, 1], layer.step(x[:, 1], first))


@resets
@pytest.mark.parametrize("returns", ["last", "sequence"])
def test_a_sequence_in_pieces_is_the_whole_one(returns, reset):
    layer = samples.gru(returns=returns, reset=reset)
    x = stimuli(layer, steps=5)
    whole, end = layer.run(x)
    np.testing.assert_array_equal(whole, layer(x))
    first, state = layer.run(x[:, :2])
    second, last = layer.run(x[:, 2:], state)
    np.testing.assert_array_equal(last, end)
    np.testing.assert_array_equal(second if returns == "last" else np.concatenate([first, second], axis=1), whole)
    nothing, same = layer.run(x[:, :0], state)
    np.testing.assert_array_equal(same, state)
    assert nothing.shape == ((8, 6) if returns == "last" else (8, 0, 6))


@pytest.mark.parametrize("shape", [(7, 6), (8, 5), (8, 6, 1)])
def test_run_wrong_state(shape):
    layer = samples.gru()
    assert refused(layer.run, stimuli(layer), np.zeros(shape, np.int64)) == (
        f"The state of layer 'gru' must have the shape (8, 6), not {shape}; go on with what run returned")


def test_gates_are_those_of_torch():
    assert GATES == ("r", "z", "n")


@resets
def test_formats_and_products(reset):
    layer = samples.gru(input=(12, 3), pre=(14, 9), state=(13, 12), reset=reset)
    assert (layer.kind, layer.outputs) == ("gru", 6)
    assert (layer.input_format, layer.pre_format, layer.output_format) == (Format(12, 3), Format(14, 9), Format(13, 12))
    x, h = (layer.candidate, layer.candidate_recurrent) if reset == "after" else layer.candidate.parts
    assert layer.products == {"input_product": layer.gates.parts[0], "recurrent_product": layer.gates.parts[1],
                              "candidate_input": x, "candidate_recurrent": h}


# Refusals.

refusal = partial(refused, dataclasses.replace)


@pytest.mark.parametrize("returns", ["all", "", None])
def test_init_wrong_returns(returns):
    assert refusal(samples.gru(), returns=returns) == (
        f"Layer 'gru' must return 'last' or 'sequence', not {returns!r}; choose one")


@pytest.mark.parametrize("reset", ["", None, True])
def test_init_wrong_reset(reset):
    assert refusal(samples.gru(), reset=reset) == (
        f"Layer 'gru' must reset 'after' or 'before' the matrix, not {reset!r}; choose one")


@pytest.mark.parametrize(("made", "change", "needs", "given"), [
    ("after", {"reset": "before"}, "one joint product of x and r * h", "one of x and one of h"),
    ("after", {"candidate_recurrent": None}, "a product of x and one of h", "one of x and none of h"),
    ("before", {"reset": "after"}, "a product of x and one of h", "a joint one and none of h"),
    ("before", {"candidate_recurrent": samples.gru().candidate_recurrent}, "one joint product of x and r * h",
     "a joint one and one of h"),
])
def test_init_candidate_of_the_other_form(made, change, needs, given):
    form = change.get("reset", made)
    assert refusal(samples.gru(reset=made), **change) == (
        f"Layer 'gru' with the reset gate {form} the matrix needs {needs} for its candidate, not {given}; export it "
        "again")


@pytest.mark.parametrize(("made", "role"), [("after", "gates"), ("before", "gates"), ("before", "candidate")])
def test_init_joint_product_of_one_vector(made, role):
    layer = samples.gru(reset=made)
    assert refusal(layer, **{role: JointProduct(getattr(layer, role).parts[:1])}) == (
        f"Layer 'gru': the {role} must be a product of two vectors, not of 1; export it again")


def test_init_several_block_sizes():
    assert refusal(samples.gru(), candidate=samples.gru(k=2).candidate) == (
        "All matrices of recurrent layer 'gru' must have one block size, because their sums are made in the spectral "
        "domain, not 4 (gates), 2 (candidate), 4 (candidate recurrent); compress them with one")


@pytest.mark.parametrize(("made", "change", "role", "rule", "given"), [
    ("after", {"inputs": 9}, "gates", "16 rows and 12 and 8 columns", "16 and 8 and 8"),
    ("before", {"hidden": 9}, "gates", "24 rows and 8 and 12 columns", "16 and 8 and 8"),
    ("after", {"candidate": samples.gru(9).candidate}, "candidate", "8 rows and 8 columns", "8 and 12"),
    ("after", {"candidate_recurrent": samples.gru(hidden=9).candidate_recurrent}, "candidate recurrent",
     "8 rows and 8 columns", "12 and 12"),
    ("before", {"candidate": samples.gru(9, reset="before").candidate}, "candidate", "8 rows and 8 and 8 columns",
     "8 and 12 and 8"),
])
def test_init_wrong_size(made, change, role, rule, given):
    assert refusal(samples.gru(reset=made), **change) == (
        f"Layer 'gru': the matrix of its {role} must have {rule} in blocks of 4, not {given}; export it again")


@pytest.mark.parametrize(("change", "what", "rule", "given"), [
    ({"candidate_recurrent": samples.gru(pre=(9, 11)).candidate_recurrent}, "candidate recurrent's value", (16, 11),
     (9, 11)),
    ({"sigmoid": fit_pwl("sigmoid", Format(16, 10), Format(16, 15), 8)}, "sigmoid's argument", (16, 11), (16, 10)),
    ({"tanh": fit_pwl("tanh", Format(16, 10), Format(16, 15), 8)}, "tanh's argument", (16, 11), (16, 10)),
    ({"sigmoid": fit_pwl("sigmoid", Format(16, 11), Format(16, 14), 8)}, "sigmoid's value", (16, 15), (16, 14)),
    ({"tanh": fit_pwl("tanh", Format(16, 11), Format(17, 15), 8)}, "tanh's value", (16, 15), (17, 15)),
])
def test_init_wrong_format(change, what, rule, given):
    assert refusal(samples.gru(), **change) == (
        f"Layer 'gru': the {what} must have the {Format(*rule)}, not {Format(*given)}; quantize it again")


@pytest.mark.parametrize(("field", "value"), [
    ("spectrum", Format(18, 12)), ("twiddle_bits", 15), ("weight", Format(10, 9)), ("product", Format(26, 15))])
def test_init_a_vector_transformed_in_two_ways(field, value):
    layer = samples.gru()
    for vector, role in (("x", "candidate"), ("h", "candidate_recurrent")):
        other = dataclasses.replace(getattr(layer, role), **{field: value})
        assert refusal(layer, **{role: other}).startswith(
            f"Layer 'gru': all matrices must take {vector} with the formats of vector, spectrum and sums and the "
            "twiddle bits of the first, (Format(")


@resets
@pytest.mark.parametrize(("pre", "state"), [((16, 11), (32, 20)), ((40, 11), (24, 20))])
def test_init_too_wide(pre, state, reset):
    assert refused(samples.gru, pre=pre, state=state, reset=reset) == (
        f"Layer 'gru': the products of a gate must fit into 63 bits, but with the pre-activation {Format(*pre)} and "
        f"the state {Format(*state)} they do not; choose narrower ones")


@resets
def test_the_widest_does_not_wrap(reset):
    layer = samples.gru(2, 3, 1, pre=(30, 26), state=(30, 28), returns="sequence", reset=reset)
    x = stimuli(layer)
    assert layer(x).tolist() == plain(layer, x)
