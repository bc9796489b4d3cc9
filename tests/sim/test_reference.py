import dataclasses
import math

import numpy as np
import pytest

from circulant.sim.reference import Bidirectional, Linear, Lstm, Model, spectra
from tests.sim import samples
from tests.sim.definitions import block_circulant, circulant, dft

SIZES = (1, 2, 4, 8, 16, 32, 64)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch gives the other opinion on what a GRU is")


def whole(weight, rows, columns):
    """The dense matrices (3, rows, columns), or (rows, columns), of first columns."""
    if weight.ndim == 4:
        return np.stack([whole(gate, rows, columns) for gate in weight])
    return block_circulant(weight)[:rows, :columns]


def tensors(layer, suffix=""):
    """The parameters of the torch module that computes the same."""
    if isinstance(layer, Linear):
        return {"weight": whole(layer.weight, layer.outputs, layer.inputs), "bias": layer.bias}
    if isinstance(layer, Bidirectional):
        return tensors(layer.forward) | tensors(layer.backward, "_reverse")
    projection = getattr(layer, "projection", None)
    found = {"weight_ih_l0": whole(layer.weight_ih, layer.hidden, layer.inputs),
             "weight_hh_l0": whole(layer.weight_hh, layer.hidden, layer.outputs),
             "bias_ih_l0": layer.bias_ih, "bias_hh_l0": layer.bias_hh}
    if projection is not None:
        found["weight_hr_l0"] = whole(projection, layer.outputs, layer.hidden)
    return {name + suffix: value for name, value in found.items()}


def in_torch(torch, layer):
    """The torch module that computes the same, in double precision."""
    if isinstance(layer, Linear):
        module = torch.nn.Linear(layer.inputs, layer.outputs)
    else:
        one = layer.forward if isinstance(layer, Bidirectional) else layer
        options = {"batch_first": True, "bidirectional": isinstance(layer, Bidirectional)}
        if isinstance(one, Lstm):
            proj_size = one.outputs if one.projection is not None else 0
            module = torch.nn.LSTM(layer.inputs, one.hidden, proj_size=proj_size, **options)
        else:
            module = torch.nn.GRU(layer.inputs, one.hidden, **options)
    module.double().load_state_dict({
        name: torch.from_numpy(value.reshape(getattr(module, name).shape).copy())
        for name, value in tensors(layer).items()})
    return module


def by_torch(torch, model, x):
    values = torch.from_numpy(x)
    with torch.no_grad():
        for layer in model.layers:
            values = in_torch(torch, layer)(values)
            if not isinstance(layer, Linear):
                every, final = values
                h_n = final[0] if isinstance(final, tuple) else final
                values = torch.cat(list(h_n), dim=-1) if layer.returns == "last" else every
    return values.numpy()


@pytest.mark.parametrize("returns", ["last", "sequence"])
@pytest.mark.parametrize(("inputs", "hidden", "outputs", "k"), [
    (1, 1, 1, (1, 1, 1)), (5, 6, 3, (1, 1, 1)), (5, 6, 3, (4, 2, 8)), (8, 16, 4, (8, 16, 4)), (3, 5, 7, (2, 64, 32))])
def test_model_of_sequences_equals_torch(torch, inputs, hidden, outputs, k, returns):
    model = samples.model(inputs, hidden, outputs, k=k, returns=returns)
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, model, x), rtol=0, atol=1e-13)


@pytest.mark.parametrize(("inputs", "hidden", "outputs", "k"), [
    (1, 1, 1, (1, 1, 1)), (5, 6, 3, (1, 4, 2)), (8, 16, 4, (8, 16, 4)), (3, 5, 7, (2, 64, 32))])
def test_model_of_vectors_equals_torch(torch, inputs, hidden, outputs, k):
    model = samples.model(inputs, hidden, outputs, k=k, sequence=False)
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, model, x), rtol=0, atol=1e-13)


def test_stacked_gru_layers_equal_torch(torch):
    first = samples.model(5, 6, 3, returns="sequence").layers[0]
    second = dataclasses.replace(samples.model(6, 4, 3, seed=1).layers[0], name="second")
    model = Model("stack", 5, True, (first, second))
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, model, x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("returns", ["last", "sequence"])
@pytest.mark.parametrize(("inputs", "hidden", "projection", "k"), [
    (1, 1, 0, 1), (5, 6, 0, 4), (5, 6, 4, 2), (8, 16, 5, 8), (3, 5, 2, 16)])
def test_lstm_equals_torch(torch, inputs, hidden, projection, k, returns):
    model = samples.chain(samples.lstm(inputs, hidden, k=k, projection=projection, returns=returns))
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, model, x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("returns", ["last", "sequence"])
@pytest.mark.parametrize(("kind", "options"), [("gru", {}), ("lstm", {}), ("lstm", {"projection": 4})])
def test_both_directions_equal_torch(torch, kind, options, returns):
    model = samples.chain(samples.bidirectional(kind, returns=returns, **options))
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, model, x), rtol=0, atol=1e-13)


def test_a_chain_of_all_kinds_equals_torch(torch):
    both = samples.bidirectional("lstm", 5, 6)
    model = samples.chain(both, samples.lstm(12, 7, projection=3, name="second"),
                          samples.bidirectional("gru", 3, 4, name="third", returns="last"))
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, model, x), rtol=0, atol=1e-13)


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
    layer = Linear("linear", 2 * k, k, rng.normal(size=(1, 2, k)), rng.normal(size=k))
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
