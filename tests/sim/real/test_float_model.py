"""Models in float64 against torch, and what they refuse."""
import dataclasses

import numpy as np
import pytest

from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.real.float_model import Bidirectional, Model
from circulant.sim.shape.flows import check_data
from circulant.sim.shape.window import Flow
from tests.refused import refused
from tests.sim import samples
from tests.sim.definitions import whole


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch gives the other opinion on what a GRU is")


def tensors(layer, suffix=""):
    """The parameters of the torch module that computes the same."""
    if isinstance(layer, FloatLinear):
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
    if isinstance(layer, FloatLinear):
        module = torch.nn.Linear(layer.inputs, layer.outputs)
    else:
        one = layer.forward if isinstance(layer, Bidirectional) else layer
        options = {"batch_first": True, "bidirectional": isinstance(layer, Bidirectional)}
        if isinstance(one, FloatLstm):
            proj_size = one.outputs if one.projection is not None else 0
            module = torch.nn.LSTM(layer.inputs, one.hidden, proj_size=proj_size, **options)
        else:
            module = torch.nn.GRU(layer.inputs, one.hidden, **options)
    module.double().load_state_dict({
        name: torch.from_numpy(value.reshape(getattr(module, name).shape).copy())
        for name, value in tensors(layer).items()})
    return module


def by_torch(torch, layers, x):
    values = torch.from_numpy(x)
    with torch.no_grad():
        for layer in layers:
            values = in_torch(torch, layer)(values)
            if not isinstance(layer, FloatLinear):
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
    np.testing.assert_allclose(model.run(x), by_torch(torch, model.layers, x), rtol=0, atol=1e-13)


@pytest.mark.parametrize(("inputs", "hidden", "outputs", "k"), [
    (1, 1, 1, (1, 1, 1)), (5, 6, 3, (1, 4, 2)), (8, 16, 4, (8, 16, 4)), (3, 5, 7, (2, 64, 32))])
def test_model_of_vectors_equals_torch(torch, inputs, hidden, outputs, k):
    model = samples.model(inputs, hidden, outputs, k=k, sequence=False)
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, model.layers, x), rtol=0, atol=1e-13)


def test_stacked_gru_layers_equal_torch(torch):
    first = samples.model(5, 6, 3, returns="sequence").layers[0]
    second = dataclasses.replace(samples.model(6, 4, 3, seed=1).layers[0], name="second")
    model = Model.chain("stack", 5, True, (first, second))
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, model.layers, x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("returns", ["last", "sequence"])
@pytest.mark.parametrize(("inputs", "hidden", "projection", "k"), [
    (1, 1, 0, 1), (5, 6, 0, 4), (5, 6, 4, 2), (8, 16, 5, 8), (3, 5, 2, 16)])
def test_lstm_equals_torch(torch, inputs, hidden, projection, k, returns):
    model = samples.chain(samples.lstm(inputs, hidden, k=k, projection=projection, returns=returns))
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, model.layers, x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("returns", ["last", "sequence"])
@pytest.mark.parametrize(("kind", "options"), [("gru", {}), ("lstm", {}), ("lstm", {"projection": 4})])
def test_both_directions_equal_torch(torch, kind, options, returns):
    both = samples.bidirectional(kind, returns=returns, **options)
    model = samples.chain(both)
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, [both], x), rtol=0, atol=1e-13)


def test_a_chain_of_all_kinds_equals_torch(torch):
    layers = [samples.bidirectional("lstm", 5, 6), samples.lstm(12, 7, projection=3, name="second"),
              samples.bidirectional("gru", 3, 4, name="third", returns="last")]
    model = samples.chain(*layers)
    x = samples.data(model)
    np.testing.assert_allclose(model.run(x), by_torch(torch, layers, x), rtol=0, atol=1e-13)


def test_model_without_layers():
    assert refused(Model.chain, "empty", 5, True, ()) == (
        "Network 'empty' must have at least one layer, not none; add a GRU or a Linear")


def test_model_wrong_inputs():
    model = samples.model()
    assert refused(Model.chain, "sample", 4, True, model.layers) == (
        "Layer 'gru' must take the 4 values that come before it, not 5; give it that size")
    assert refused(samples.rebuilt, model, model.layers[0], samples.model(hidden=7).layers[1]) == (
        "Layer 'last' must take the 6 values that come before it, not 7; give it that size")


def test_model_same_names():
    """Their weights would overwrite each other in the file."""
    first, last = samples.model().layers
    assert refused(Model.chain, "twins", 5, True, (first, dataclasses.replace(last, name="gru"))) == (
        "The layers of network 'twins' must have different names, but two are called 'gru'; rename one")


@pytest.mark.parametrize("name", ["", "a-b", "a b", 'a"b', "../x", "größe", "x" * 101, "a\n"])
def test_model_wrong_names_of_layers(name):
    first, last = samples.model().layers
    assert refused(Model.chain, "net", 5, True, (first, dataclasses.replace(last, name=name))) == (
        "The name of a layer must be at most 100 letters, digits and '_', not "
        f"{name[:40]!r}{'…' * (len(name) > 40)} in network 'net'; rename it")


def test_model_a_name_that_is_too_long():
    assert refused(dataclasses.replace, samples.model(), name="x" * 101) == (
        f"The name of a network must be a text of at most 100 characters, not {'x' * 20!r}… of 101; shorten it")


def test_model_gru_without_a_sequence():
    first = samples.model(5, 6).layers[0]
    second = dataclasses.replace(samples.model(6, 6).layers[0], name="second")
    for name, sequence, layers in (("second", True, (first, second)), ("gru", False, (first,))):
        assert refused(Model.chain, "stack", 5, sequence, layers) == (
            f"Layer {name!r} needs a sequence, but what comes before gives one vector; let the layer before return the "
            "whole sequence")
    Model.chain("stack", 5, True, (dataclasses.replace(first, returns="sequence"), second))


@pytest.mark.parametrize(("sequence", "shape"), [
    (True, (2, 5)), (True, (2, 3, 4)), (True, (0, 3, 5)), (True, (2, 0, 5)), (True, (2, 3, 5, 1)), (True, ()),
    (False, (5,)), (False, (2, 3, 5)), (False, (2, 6)), (False, (0, 5))])
def test_data_of_wrong_shape(sequence, shape):
    axes = "(N, T, 5)" if sequence else "(N, 5)"
    assert refused(check_data, "Data", np.zeros(shape), Flow(5, sequence=sequence)) == (
        f"Data must have the shape {axes} and be not empty, not {shape}; rearrange the axes")
    assert refused(samples.model(sequence=sequence).run, np.zeros(shape)) == (
        f"Inputs of network 'sample' must have the shape {axes} and be not empty, not {shape}; rearrange the axes")


def test_samples_of_several_axes_are_vectors_of_all_their_values():
    model = samples.perceptron(24, 6, 3, shape=(2, 3, 4))
    images = np.random.default_rng(0).uniform(-1, 1, (5, 2, 3, 4))
    assert np.array_equal(model.run(images), model.run(images.reshape(5, 24)))
    assert refused(model.run, images[:, :1]) == (
        "Inputs of network 'perceptron' must have the shape (N, 24) or (N, 2, 3, 4) and be not empty, not "
        "(5, 1, 3, 4); rearrange the axes")


@pytest.mark.parametrize(("sequence", "shape"), [(True, (6,)), (False, (2, 3)), (False, (1, 2, 3))])
def test_model_wrong_shape(sequence, shape):
    layers = samples.model(5, 6, sequence=sequence).layers
    assert refused(Model.chain, "stack", 5, sequence, layers=layers, shape=shape) == (
        f"The shape of a sample of network 'stack' must be that of its 5 inputs, not {shape}; leave it out for "
        "sequences")


def test_data_of_any_numbers():
    assert check_data("Data", [[1, 2], [3, 4]], Flow(2)).dtype == np.float64
