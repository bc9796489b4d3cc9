"""The layers in float64: their equations, what a tap sees of them, what they refuse."""
import dataclasses
import math

import numpy as np
import pytest

from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.passes.products import spectra
from circulant.sim.real.float_model import Model
from tests.refused import refused
from tests.sim import samples
from tests.sim.definitions import circulant, dft, whole

SIZES = (1, 2, 4, 8, 16, 32, 64)


@pytest.mark.parametrize("projection", [0, 4])
def test_lstm_with_peepholes_by_its_equations(projection):
    """Sak et al. 2014: i and f see c of the step before, o that of this step."""
    layer = samples.lstm(projection=projection, peephole=True)
    x = samples.data(samples.chain(layer), count=1)
    w, u = whole(layer.weight_ih, 6, 5), whole(layer.weight_hh, 6, layer.outputs)
    b, p = layer.bias_ih + layer.bias_hh, layer.peephole
    y, c, outputs = np.zeros(layer.outputs), np.zeros(6), []

    def logistic(a):
        return 1 / (1 + np.exp(-a))

    for step in x[0]:
        i, f, g, o = (w[gate] @ step + u[gate] @ y + b[gate] for gate in range(4))
        c = logistic(f + p[1] * c) * c + logistic(i + p[0] * c) * np.tanh(g)
        y = m = logistic(o + p[2] * c) * np.tanh(c)
        if projection:
            y = whole(layer.projection, projection, 6) @ m
        outputs.append(y)
    np.testing.assert_allclose(layer(x)[0], outputs, rtol=0, atol=1e-14)


def test_gru_by_its_equations():
    """Unit by unit in plain Python, without torch."""
    layer = samples.model().layers[0]
    x = samples.data(samples.model(), count=1)[0].tolist()
    weight_ih, weight_hh = whole(layer.weight_ih, 6, 5).tolist(), whole(layer.weight_hh, 6, 6).tolist()
    h = [0.0] * 6
    for step in x:
        a = [[sum(w * v for w, v in zip(row, step, strict=True)) + b for row, b in zip(rows, bias, strict=True)]
             for rows, bias in zip(weight_ih, layer.bias_ih.tolist(), strict=True)]
        u = [[sum(w * v for w, v in zip(row, h, strict=True)) + b for row, b in zip(rows, bias, strict=True)]
             for rows, bias in zip(weight_hh, layer.bias_hh.tolist(), strict=True)]
        r = [1 / (1 + math.exp(-p - q)) for p, q in zip(a[0], u[0], strict=True)]
        z = [1 / (1 + math.exp(-p - q)) for p, q in zip(a[1], u[1], strict=True)]
        n = [math.tanh(p + g * q) for p, g, q in zip(a[2], r, u[2], strict=True)]
        h = [(1 - gate) * new + gate * old for gate, new, old in zip(z, n, h, strict=True)]
    np.testing.assert_allclose(layer(np.array([x]))[0], h, rtol=0, atol=1e-14)


@pytest.mark.parametrize("k", SIZES)
def test_linear_by_the_definition(k):
    rng = np.random.default_rng(k)
    layer = FloatLinear("linear", 2 * k, k, rng.normal(size=(1, 2, k)), rng.normal(size=k))
    x = np.concatenate([np.eye(2 * k), rng.normal(size=(3, 2 * k))])
    matrix = np.hstack([circulant(c) for c in layer.weight[0]])
    np.testing.assert_allclose(layer(x), [matrix @ row + layer.bias for row in x], rtol=0, atol=1e-13)


@pytest.mark.parametrize("k", SIZES)
def test_spectra(k):
    x = np.random.default_rng(k).normal(size=(2, 3, k))
    y, packed = dft(x), spectra(x)
    assert packed.shape == x.shape
    np.testing.assert_allclose(packed[..., 0], y[..., 0].real, rtol=0, atol=1e-13 * k)
    if k > 1:
        np.testing.assert_allclose(packed[..., 1], y[..., k // 2].real, rtol=0, atol=1e-13 * k)
        np.testing.assert_allclose(packed[..., 2::2] + 1j * packed[..., 3::2], y[..., 1:k // 2], rtol=0, atol=1e-13 * k)


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
    layer = FloatLinear("linear", 2 * k, 3 * k, rng.normal(size=(3, 2, k)), rng.normal(size=3 * k))
    x = rng.normal(size=(4, 2 * k))
    _, seen = tapped(Model.chain("model", 2 * k, False, (layer,)), x)
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


def test_gru_with_the_reset_gate_before_the_matrix_by_its_equations():
    layer = samples.model(reset="before", returns="sequence").layers[0]
    x = samples.data(samples.model(), count=1)
    w, u = whole(layer.weight_ih, 6, 5), whole(layer.weight_hh, 6, 6)
    b, h, states = layer.bias_ih + layer.bias_hh, np.zeros(6), []
    for step in x[0]:
        r, z = (1 / (1 + np.exp(-(w[gate] @ step + u[gate] @ h + b[gate]))) for gate in range(2))
        h = (1 - z) * np.tanh(w[2] @ step + u[2] @ (r * h) + b[2]) + z * h
        states.append(h)
    np.testing.assert_allclose(layer(x)[0], states, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("field", "shape", "rule"), [
    ("weight", (1, 1, 4), "(2, 2, 4)"), ("weight", (2, 2, 1, 4), "(2, 2, 4)"), ("weight", (2, 2, 2), "(4, 3, 2)"),
    ("bias", (8,), "(7,)"), ("bias", (1, 7), "(7,)"),
])
def test_linear_wrong_shape(field, shape, rule):
    good = {"weight": np.zeros((2, 2, 4)), "bias": np.zeros(7)}
    assert refused(FloatLinear, "head", 5, 7, **good | {field: np.zeros(shape)}) == (
        f"Layer 'head': {field} must have the shape {rule}, not {shape}; export it again")


@pytest.mark.parametrize(("field", "shape", "rule"), [
    ("weight_ih", (3, 2, 1, 4), "(3, 2, 2, 4)"), ("weight_ih", (2, 2, 4), "(3, 2, 2, 4)"),
    ("weight_hh", (3, 2, 3, 2), "(3, 3, 3, 2)"), ("bias_ih", (18,), "(3, 6)"), ("bias_hh", (3, 8), "(3, 6)"),
])
def test_gru_wrong_shape(field, shape, rule):
    layer = samples.model().layers[0]
    assert refused(dataclasses.replace, layer, **{field: np.zeros(shape)}) == (
        f"Layer 'gru': {field} must have the shape {rule}, not {shape}; export it again")


@pytest.mark.parametrize("field", ["weight_ih", "weight_hh"])
def test_gru_wrong_block_size(field):
    layer = samples.model().layers[0]
    assert refused(dataclasses.replace, layer, **{field: np.zeros((3, 2, 2, 3))}).startswith(
        "Block size must be a power of two from 1 to 64, not 3; ")


def test_linear_wrong_block_size():
    assert refused(FloatLinear, "head", 12, 12, weight=np.zeros((1, 1, 12)), bias=np.zeros(12)).startswith(
        "Block size must be a power of two from 1 to 64, not 12; ")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("index", "field"), [
    (0, "weight_ih"), (0, "weight_hh"), (0, "bias_ih"), (0, "bias_hh"), (1, "weight"), (1, "bias")])
def test_weights_not_finite(index, field, value):
    layer = samples.model().layers[index]
    tensor = getattr(layer, field).copy()
    tensor.flat[-1] = value
    assert refused(dataclasses.replace, layer, **{field: tensor}) == (
        f"Layer {layer.name!r}: {field} must be finite, but it holds NaN or infinity; train again with a lower "
        "learning rate")


@pytest.mark.parametrize("returns", ["all", "", None])
def test_gru_wrong_returns(returns):
    assert refused(samples.model, returns=returns) == (
        f"Layer 'gru' must return 'last' or 'sequence', not {returns!r}; choose one")


@pytest.mark.parametrize(("field", "shape", "rule"), [
    ("weight_ih", (3, 2, 2, 4), "(4, 2, 2, 4)"), ("weight_hh", (4, 2, 2, 4), "(4, 2, 1, 4)"),
    ("projection", (2, 2, 4), "(1, 2, 4)"), ("peephole", (2, 6), "(3, 6)"), ("bias_ih", (24,), "(4, 6)"),
    ("bias_hh", (4, 8), "(4, 6)")])
def test_lstm_wrong_shape(field, shape, rule):
    layer = samples.lstm(projection=4, peephole=True)
    assert refused(dataclasses.replace, layer, **{field: np.zeros(shape)}) == (
        f"Layer 'lstm': {field} must have the shape {rule}, not {shape}; export it again")


def test_lstm_outputs_without_a_projection():
    assert refused(dataclasses.replace, samples.lstm(projection=4), projection=None) == (
        "Layer 'lstm' without a projection must give its 6 hidden units, not 4; export it again")


def test_directions_that_are_no_pair():
    both = samples.bidirectional()
    assert refused(dataclasses.replace, both, backward=both.forward) == (
        "The backward layer of 'both' must be called 'both.backward', not 'both.forward'; rename it")
    for other in (dataclasses.replace(both.backward, returns="last"), samples.bidirectional(inputs=4).backward,
                  samples.bidirectional("lstm").backward):
        assert refused(dataclasses.replace, both, backward=other).startswith(
            "Both directions of layer 'both' must have the kind, inputs and what is returned of the first, ('gru', 5, "
            "'sequence'), not (")


@pytest.mark.parametrize("reset", ["", None])
def test_gru_wrong_reset(reset):
    assert refused(samples.model, reset=reset) == (
        f"Layer 'gru' must reset 'after' or 'before' the matrix, not {reset!r}; choose one")


def test_a_relu_leaves_nothing_below_zero():
    seen = {}
    y = samples.perceptron(9, 14, 5).run(np.ones((2, 9)), lambda name, values: seen.update({name: values}))
    assert (seen["fc1.product.output"] < 0).any() and (y < 0).any()
    assert np.array_equal(seen["fc1.y"], np.maximum(seen["fc1.product.output"], 0))
