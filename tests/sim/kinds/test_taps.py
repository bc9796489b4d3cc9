"""Taps and a linear layer behind them are torch's causal convolution, also in pieces and of several lengths."""
import numpy as np
import pytest

from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.taps import FloatTaps
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from tests.random_networks import Random


def test_equals_a_convolution_behind_left_padding():
    torch = pytest.importorskip("torch", reason="torch says what a convolution is")
    rng = np.random.default_rng(0)
    x, weight, bias = rng.normal(0, 1, (3, 9, 5)), rng.normal(0, 1, (4, 5, 3)), rng.normal(0, 1, 4)
    padded = torch.nn.functional.pad(torch.from_numpy(x).transpose(1, 2), (4, 0))
    due = torch.nn.functional.conv1d(padded, torch.from_numpy(weight), torch.from_numpy(bias), dilation=2)
    conv = FloatLinear("conv", 15, 4, weight.transpose(0, 2, 1).reshape(4, 15, 1), bias)
    model = Model.chain("conv", 5, True, (FloatTaps("taps", 5, 3, 2, 5), conv))
    assert np.allclose(model.run(x), due.numpy().transpose(0, 2, 1), atol=1e-12)


def network(r):
    return r.network([r.taps("taps", 5, 3, 2, 4), r.linear("conv", 24, 6, 4, relu=True), r.taps("more", 6, 2, 1, 2)], 5,
                     sequence=True)


def test_pieces_give_what_the_whole_gives():
    r = Random(1)
    made = network(r)
    x = r.inputs(made, steps=11)
    states, found = made.initial(len(x)), []
    for start, end in ((0, 1), (1, 3), (3, 10), (10, 11)):
        y, states = made.resume(x[:, start:end], states)
        found.append(y)
    assert np.array_equal(np.concatenate(found, axis=1), made.run_integers(x))
    with pytest.raises(Refusal, match=r"^The state of layer 'taps' must have the shape \(3, 4, 5\), not \(3, 5\)"):
        made.layers[0].run(x, states[0][:, 0])


def test_a_sequence_gives_what_it_gives_alone():
    r = Random(2)
    made = network(r)
    x, lengths = r.inputs(made, steps=8, samples=4), np.array([3, 8, 1, 5])
    found = made.run_integers(x, lengths)
    for n, steps in enumerate(lengths):
        assert np.array_equal(found[n, :steps], made.run_integers(x[n:n + 1, :steps])[0])
        assert not found[n, steps:].any()


@pytest.mark.parametrize(("fields", "text"), [
    ((5, 1, 1, 8), r"^Layer 'taps' must have two taps or more, and reach back from 1 to 65536 steps, not 1 with a"),
    ((5, 3, 40000, 8), r"^Layer 'taps' must have two taps or more, and reach back from 1 to 65536 steps, not 3 with a"),
    ((5, 2, 1, 7), r"^Layer 'taps': a tap of 5 values must be filled up to whole blocks of a power of two, not to 7"),
    ((5, 2, 1, 4), r"^Layer 'taps': a tap of 5 values must be filled up")])
def test_refusals(fields, text):
    with pytest.raises(Refusal, match=text):
        FloatTaps("taps", *fields)


def test_a_single_vector_is_refused():
    with pytest.raises(Refusal, match=r"^Layer 'taps' needs a sequence, but what comes before gives one vector; let"):
        Model.chain("one", 5, False, (FloatTaps("taps", 5, 2, 1, 5),))


def test_quantizes_to_the_format_that_comes():
    r = Random(3)
    model = Model.chain("taps", 5, True, (r.taps("taps", 5, 2),))
    made = quantize(model, r.normal(4, 6, 5))
    assert made.output_format == made.input_format
