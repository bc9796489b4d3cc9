"""LayerNorm and RMSNorm: near torch's within the derived bound, over small and large vectors, and what is refused."""
import dataclasses

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.error.error_bound import error_bound
from circulant.sim.kinds.norm import FloatNorm, Norm
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from tests.random_networks import Random

LAYER = Norm("norm", inputs=3, mode="layer", gain=np.array([100, -128, 7]), shift=np.array([-20, 15, 0]), epsilon=4,
             factor=Format(8, 6), normal=Format(10, 7), input_format=Format(10, 6), output_format=Format(9, 4))


@pytest.mark.parametrize("mode", ["layer", "rms"])
def test_equals_torch(mode):
    torch = pytest.importorskip("torch", reason="torch says what the layers are")
    rng = np.random.default_rng(0)
    x, gain, shift = rng.normal(1, 2, (4, 5, 7)), rng.normal(0, 1, 7), rng.normal(0, 1, 7)
    functional = torch.nn.functional
    given, g, b = map(torch.from_numpy, (x, gain, shift))
    due = functional.layer_norm(given, (7,), g, b, 0.01) if mode == "layer" else functional.rms_norm(
        given, (7,), g, 0.01) + b
    assert np.allclose(FloatNorm("norm", 7, mode, gain, shift, epsilon=0.01)(x), due.numpy(), atol=1e-12)


@pytest.mark.parametrize("mode", ["layer", "rms"])
@pytest.mark.parametrize(("inputs", "bits"), [(2, 12), (6, 16), (64, 16), (256, 10)])
def test_is_within_a_bound_that_is_not_loose(inputs, bits, mode):
    r = Random(inputs)
    model = Model.chain("norms", 6, False, (r.linear("first", 6, inputs, 2), r.norm("norm", inputs, mode)))
    x = r.normal(30, 6, scale=1)
    network = quantize(model, x, activation_bits=bits)
    error, bound = np.abs(network.run(x).real - model.run(x)), error_bound(network, model, x)
    assert (error <= bound).all()
    # Two values without their mean have one sign each: near the sign's change nothing is known.
    assert inputs == 2 or ((error / bound).max() > 0.1 and np.median(bound) < 500 * 2.0 ** -bits)


def test_vectors_of_zeros_and_of_one_value():
    x = np.array([[0, 0, 0], [511, 511, 511], [-512, 511, -512]])
    assert LAYER(x)[:2].tolist() == [[-20, 15, 0]] * 2
    exact = FloatNorm("norm", 3, "layer", LAYER.gain / 64, LAYER.shift / 16,
                      epsilon=4 / 9 / 4096)(x / 64)
    assert np.abs(LAYER(x)[2] / 16 - exact[2]).max() < 0.1


def test_refusals():
    with pytest.raises(Refusal, match=r"^Layer 'norm': the gain must be 3 integers of 8 bits, not \(3,\) from 0 to 1"):
        dataclasses.replace(LAYER, gain=np.array([0, 1, 128]))
    with pytest.raises(Refusal, match=r"^Layer 'norm' must be a 'layer' or an 'rms' normalisation, not 'batch'; ch"):
        dataclasses.replace(LAYER, mode="batch")
    for fields in ({"normal": Format(20, 17)}, {"input_format": Format(30, 6)}, {"factor": Format(58, 6)}):
        with pytest.raises(Refusal, match=r"^Layer 'norm': its sums must fit into 60 bits, but for 3 values in the"):
            dataclasses.replace(LAYER, **fields)
    with pytest.raises(Refusal, match=r"^Layer 'norm': epsilon must not be negative, not -1; give 1e-5"):
        FloatNorm("norm", 1, "rms", np.ones(1), np.ones(1), epsilon=-1)
