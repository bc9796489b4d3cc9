
import numpy as np
import pytest

from circulant.sim.reference import Linear, Model, spectra
from tests.sim import samples
from tests.sim.test_reference import SIZES


def tapped(model, x):
    seen = {}

    def tap(name, values):
        seen.setdefault(name, []).append(values)

    return model.run(x, tap), seen


@pytest.mark.parametrize("reset", ["after", "before"])
def test_tap_names(reset):
    model = samples.model(reset=reset)
    _, seen = tapped(model, samples.data(model))
    parts = ("input_product", "recurrent_product", "candidate_input", "candidate_recurrent")
    sums = ("gates", "candidate") if reset == "before" else ("gates", "candidate_input", "candidate_recurrent")
    assert seen.keys() == {"gru.tanh.input", "gru.r", "gru.z", "gru.n", "gru.h"} | {
        f"gru.{part}.{tensor}" for part in parts for tensor in ("input", "spectrum")} | {
        f"gru.{name}.{tensor}" for name in sums for tensor in ("product", "output")} | {
        f"last.product.{tensor}" for tensor in ("input", "spectrum", "product", "output")}
    assert {len(values) for name, values in seen.items() if name.startswith("gru.")} == {7}


def test_tap_names_of_an_lstm():
    layer = samples.lstm(projection=4, peephole=True)
    _, seen = tapped(samples.chain(layer), samples.data(samples.chain(layer)))
    assert seen.keys() == {f"lstm.{tensor}" for tensor in (
        "sigmoid.input", "i", "f", "g", "o", "c", "m", "y", "gates.product", "gates.output", "input_product.input",
        "input_product.spectrum", "recurrent_product.input", "recurrent_product.spectrum", "projection.input",
        "projection.spectrum", "projection.product", "projection.output")}
    np.testing.assert_array_equal(np.stack(seen["lstm.y"], axis=1), layer(samples.data(samples.chain(layer))))
    np.testing.assert_array_equal(seen["lstm.y"], seen["lstm.projection.output"])


def test_tap_sees_both_directions():
    model = samples.chain(samples.bidirectional())
    y, seen = tapped(model, samples.data(model))
    np.testing.assert_array_equal(np.stack(seen["both.forward.h"], axis=1), y[..., :6])
    np.testing.assert_array_equal(np.stack(seen["both.backward.h"][::-1], axis=1), y[..., 6:])


def test_tap_changes_nothing():
    model = samples.model()
    x = samples.data(model)
    np.testing.assert_array_equal(model.run(x), tapped(model, x)[0])


@pytest.mark.parametrize("k", SIZES)
def test_tap_sees_the_tensors_of_a_product(k):
    rng = np.random.default_rng(k)
    layer = Linear("linear", 2 * k, 3 * k, rng.normal(size=(3, 2, k)), rng.normal(size=3 * k))
    x = rng.normal(size=(4, 2 * k))
    _, seen = tapped(Model("model", 2 * k, False, (layer,)), x)
    spectrum = spectra(x.reshape(4, 2, k))
    np.testing.assert_array_equal(seen["linear.product.input"][0], x)
    np.testing.assert_allclose(seen["linear.product.spectrum"][0], spectrum, rtol=0, atol=1e-13 * k)
    # The spectrum of what the matrix gives, without the bias.
    sums = spectra((layer(x) - layer.bias).reshape(4, 3, k))
    np.testing.assert_allclose(seen["linear.product.product"][0], sums, rtol=0, atol=1e-12 * k)
    np.testing.assert_array_equal(seen["linear.product.output"][0], layer(x))


@pytest.mark.parametrize("reset", ["after", "before"])
def test_tap_sees_the_gates(reset):
    model = samples.model(reset=reset)
    x = samples.data(model, steps=2)
    last, seen = model.layers[0](x), tapped(model, x)[1]
    gates = seen["gru.gates.output"][1]
    np.testing.assert_allclose(seen["gru.r"][1], 1 / (1 + np.exp(-gates[:, 0])), rtol=0, atol=1e-15)
    np.testing.assert_allclose(seen["gru.z"][1], 1 / (1 + np.exp(-gates[:, 1])), rtol=0, atol=1e-15)
    if reset == "after":
        argument = (seen["gru.candidate_input.output"][1]
                    + seen["gru.r"][1] * seen["gru.candidate_recurrent.output"][1])
    else:
        argument = seen["gru.candidate.output"][1]
        np.testing.assert_array_equal(seen["gru.candidate_recurrent.input"][1], seen["gru.r"][1] * seen["gru.h"][0])
    np.testing.assert_allclose(seen["gru.tanh.input"][1], argument, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(seen["gru.n"][1], np.tanh(seen["gru.tanh.input"][1]))
    np.testing.assert_array_equal(seen["gru.h"][1], last)


def test_tap_sees_the_sum_of_a_joint_product():
    """The spectrum of what both matrices give, without the bias."""
    model = samples.model(8, 8, k=(4, 4, 1))
    gru = model.layers[0]
    _, seen = tapped(model, samples.data(model, steps=2))
    rows = seen["gru.gates.output"][1] - (gru.bias_ih + gru.bias_hh)[:2]
    np.testing.assert_allclose(seen["gru.gates.product"][1], spectra(rows.reshape(20, 4, 4)), rtol=0, atol=1e-13)
