"""Sequences of different lengths: side by side they are what each is alone, in every layer and every observer."""
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from circulant.sim.error.error_bound import error_bound
from circulant.sim.error.ranges import analyse
from circulant.sim.golden import network as networks
from circulant.sim.golden.network import Network
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import calibrate, quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.sequences import Ended, backward, check_lengths, counts, descending, flat, padded_again
from tests.sim import samples


def labels(recurrent, outputs=3):
    rng = np.random.default_rng(3)
    head = FloatLinear("head", recurrent.outputs, outputs,
                       rng.normal(0, 0.6, (1, -(-recurrent.outputs // 4), 4)),
                       rng.normal(0, 0.6, outputs))
    return float_model.Model.chain("labels", recurrent.inputs, True, (recurrent, head))


MODELS = {
    "gru last": samples.model(),
    "gru every step": samples.model(returns="sequence", reset="before"),
    "lstm": samples.chain(samples.lstm(projection=4, peephole=True)),
    "lstm last": samples.chain(samples.lstm(returns="last")),
    "both ways": labels(samples.bidirectional("gru")),
    "both ways last": labels(samples.bidirectional("lstm", returns="last")),
    "two of both": samples.chain(samples.bidirectional("gru", name="one"),
                                 samples.bidirectional("lstm", 12, 4, name="two")),
}


def ragged(model, count=9, steps=7, seed=0):
    """Sequences between whose ends and T stands what nobody may see."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, steps + 1, count)
    x = rng.uniform(-1, 1, (count, steps, model.flow.size))
    x[np.arange(steps) >= lengths[:, None]] = 40.0
    return x, lengths


def alone(run, x, lengths, like):
    """What ``run`` gives for each sequence by itself, with zeros behind it."""
    wanted = np.zeros_like(like)
    for n, length in enumerate(lengths):
        found = run(x[n:n + 1, :length])[0]
        wanted[n, slice(length) if found.ndim == 2 else slice(None)] = found
    return wanted


@cache
def golden(name):
    return quantize(MODELS[name], samples.data(MODELS[name]), weight_bits=8, activation_bits=10)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(MODELS)), st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(0, 2),
       st.integers(1, 12))
def test_sequences_side_by_side_are_what_each_is_alone(name, lengths, more, batch):
    model, network, lengths = MODELS[name], golden(name), np.array(lengths)
    x = ragged(model, len(lengths), lengths.max() + more)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "BATCH", batch)
        found = network.run(x, lengths=lengths)
    assert (found.integers == alone(lambda one: network.run(one).integers, x, lengths, found.integers)).all()
    assert (found.real == network.output_format.real(found.integers)).all()
    assert (network.run(x, lengths=lengths, trace=True).integers == found.integers).all()
    exact = model.run(x, lengths=lengths)
    np.testing.assert_allclose(exact, alone(model.run, x, lengths, exact), atol=1e-12)


def test_full_lengths_are_none():
    model = MODELS["two of both"]
    network, x = quantize(model, samples.data(model)), samples.data(model, seed=1)
    assert (network.run(x, lengths=[7] * 20).integers == network.run(x).integers).all()


@pytest.mark.parametrize("name", MODELS)
def test_calibration_sees_no_padding(name):
    model = MODELS[name]
    x, lengths = ragged(model, count=300)
    peaks, other = calibrate(model, x, lengths), x.copy()
    other[np.arange(7) >= lengths[:, None]] = -1e4
    assert max(peaks.inputs.values()) <= 1
    assert calibrate(model, other, lengths)._peaks == peaks._peaks
    whole = {}
    for n, length in enumerate(lengths[:8]):
        for tensor, peak in calibrate(model, x[n:n + 1, :length])._peaks.items():
            whole[tensor] = max(whole.get(tensor, 0.0), peak)
    few = calibrate(model, x[:8], lengths[:8])
    assert few._peaks == pytest.approx(whole)
    assert quantize(model, few).ragged
    assert quantize(model, x, lengths=lengths).hash == quantize(model, other, lengths=lengths).hash


@pytest.mark.parametrize("name", MODELS)
def test_ranges_are_those_of_the_steps_that_there_are(name):
    model = MODELS[name]
    network, (x, lengths) = quantize(model, samples.data(model)), ragged(model)
    found = {each.name: each for each in analyse(network, x, model, lengths=lengths)}
    each = [analyse(network, x[n:n + 1, :length]) for n, length in enumerate(lengths)]
    for several in zip(*each, strict=True):
        joined = found[several[0].name]
        assert joined.count == sum(one.count for one in several), joined.name
        assert (joined.lo, joined.hi) == (min(one.lo for one in several), max(one.hi for one in several))
        assert joined.sqnr is None or joined.sqnr > 20, f"{joined.name} is compared with other steps of the model"
    assert any(one.sqnr is not None for one in found.values())


@pytest.mark.parametrize("name", ["gru last", "two of both"])
def test_the_bound_of_the_error_is_that_of_each_sequence(name):
    model, (x, lengths) = MODELS[name], ragged(MODELS[name])
    network = quantize(model, x, lengths=lengths)
    bound = error_bound(network, model, x, lengths=lengths)
    plain = replace(network, ragged=False)
    np.testing.assert_allclose(bound, alone(lambda one: error_bound(plain, model, one), x, lengths, bound), rtol=1e-9)
    error = np.abs(network.run(x, lengths=lengths).real - model.run(x, lengths=lengths))
    assert (error <= bound).all()
    assert error.any()


def test_a_ragged_network_asks_for_lengths(tmp_path):
    model = MODELS["gru last"]
    x, lengths = ragged(model)
    network = quantize(model, x, lengths=lengths)
    rule = (r"^Inputs of network 'sample' must come with lengths \(N,\), the steps of each sequence, because it was "
            r"made of sequences of different lengths, but \(9, 7, 5\) came without; give lengths, such as "
            r"lengths=data\.test_lengths$")
    network.save(tmp_path)
    others = [network, Network.load(tmp_path), quantize_like(model, network)]
    for each in others:
        for use in (each.run, each.vectors):
            with pytest.raises(Refusal, match=rule):
                use(x)
        with pytest.raises(Refusal, match=rule):
            each.run_integers(each.integers(x))
    assert {each.hash for each in others} == {network.hash}
    assert network.with_argmax().ragged
    plain = quantize(model, x)
    plain.save(tmp_path / "plain")
    assert not Network.load(tmp_path / "plain").ragged
    assert '"ragged"' not in (tmp_path / "plain" / "network.json").read_text(), "its hash stays what it was"


@pytest.mark.parametrize(("lengths", "rule"), [
    ([3, 2], r"must have integer lengths of the shape \(3,\), one for each sequence, not int64 of \(2,\)"),
    ([3.0, 2.0, 1.0], r"must have integer lengths of the shape \(3,\), one for each sequence, not float64 of \(3,\)"),
    ([3, 0, 1], r"must have lengths from 1 to their 7 steps, not from 0 to 3"),
    ([3, 8, 1], r"must have lengths from 1 to their 7 steps, not from 1 to 8"),
])
def test_wrong_lengths_are_refused(lengths, rule):
    model = MODELS["gru last"]
    network, x = quantize(model, samples.data(model)), samples.data(model, count=3)
    for use in (network.run, network.vectors, model.run, lambda x, lengths: calibrate(model, x, lengths)):
        with pytest.raises(Refusal, match=rule):
            use(x, lengths=lengths)


def test_what_is_no_sequence_has_no_lengths():
    model = samples.perceptron(5, 8, 3)
    network, x = quantize(model, samples.data(model)), samples.data(model, count=3)
    for use in (network.run, network.vectors):
        with pytest.raises(Refusal, match="must be sequences to have lengths, but it takes samples of one size; "):
            use(x, lengths=[1, 1, 1])
    with pytest.raises(Refusal, match=r"must be sequences \(N, T, size\) to have lengths, but have the shape \(3, 5\)"):
        check_lengths("Vectors", [1, 1, 1], x.shape)


def test_parts():
    lengths = np.array([2, 5, 1, 5])
    order = descending(lengths)
    assert order.tolist() == [1, 3, 0, 2]
    assert counts(lengths[order], 4, 6) == [4, 3, 2, 2, 2, 0]
    assert counts(None, 4, 3) == [4, 4, 4]
    x = np.arange(4 * 5).reshape(4, 5, 1)[order]
    assert flat(x, lengths[order])[:, 0].tolist() == [5, 15, 0, 10, 6, 16, 1, 7, 17, 8, 18, 9, 19]
    again = padded_again(flat(x, lengths[order]), lengths[order], 5)
    assert again[..., 0].tolist() == [[5, 6, 7, 8, 9], [15, 16, 17, 18, 19], [0, 1, 0, 0, 0], [10, 0, 0, 0, 0]]
    assert backward(again, lengths[order])[:, :, 0].tolist() == [
        [9, 8, 7, 6, 5], [19, 18, 17, 16, 15], [1, 0, 0, 0, 0], [10, 0, 0, 0, 0]]
    ended = Ended(-1)
    state = (np.arange(8).reshape(2, 4),)
    assert ended.cut(state, 4) is state
    rest = ended.cut(ended.cut(state, 3), 1)
    assert ended.whole((rest[0] + 10,))[0].tolist() == [[10, 1, 2, 3], [14, 5, 6, 7]]
