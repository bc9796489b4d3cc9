import dataclasses
import math

import numpy as np
import pytest

from circulant.sim.reference import Linear, Model, check_data
from circulant.sim.refusal import Refusal
from circulant.sim.window import Flow
from tests.sim import samples


def refusal(make, *arguments, **fields):
    with pytest.raises(Refusal) as caught:
        make(*arguments, **fields)
    return str(caught.value)


@pytest.mark.parametrize(("field", "shape", "rule"), [
    ("weight", (1, 1, 4), "(2, 2, 4)"), ("weight", (2, 2, 1, 4), "(2, 2, 4)"), ("weight", (2, 2, 2), "(4, 3, 2)"),
    ("bias", (8,), "(7,)"), ("bias", (1, 7), "(7,)"),
])
def test_linear_wrong_shape(field, shape, rule):
    good = {"weight": np.zeros((2, 2, 4)), "bias": np.zeros(7)}
    assert refusal(Linear, "head", 5, 7, **good | {field: np.zeros(shape)}) == (
        f"Layer 'head': {field} must have the shape {rule}, not {shape}; export it again")


@pytest.mark.parametrize(("field", "shape", "rule"), [
    ("weight_ih", (3, 2, 1, 4), "(3, 2, 2, 4)"), ("weight_ih", (2, 2, 4), "(3, 2, 2, 4)"),
    ("weight_hh", (3, 2, 3, 2), "(3, 3, 3, 2)"), ("bias_ih", (18,), "(3, 6)"), ("bias_hh", (3, 8), "(3, 6)"),
])
def test_gru_wrong_shape(field, shape, rule):
    layer = samples.model().layers[0]
    assert refusal(dataclasses.replace, layer, **{field: np.zeros(shape)}) == (
        f"Layer 'gru': {field} must have the shape {rule}, not {shape}; export it again")


@pytest.mark.parametrize("field", ["weight_ih", "weight_hh"])
def test_gru_wrong_block_size(field):
    layer = samples.model().layers[0]
    assert refusal(dataclasses.replace, layer, **{field: np.zeros((3, 2, 2, 3))}).startswith(
        "Block size must be a power of two from 1 to 64, not 3; ")


def test_linear_wrong_block_size():
    assert refusal(Linear, "head", 12, 12, np.zeros((1, 1, 12)), np.zeros(12)).startswith(
        "Block size must be a power of two from 1 to 64, not 12; ")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("index", "field"), [
    (0, "weight_ih"), (0, "weight_hh"), (0, "bias_ih"), (0, "bias_hh"), (1, "weight"), (1, "bias")])
def test_weights_not_finite(index, field, value):
    layer = samples.model().layers[index]
    tensor = getattr(layer, field).copy()
    tensor.flat[-1] = value
    assert refusal(dataclasses.replace, layer, **{field: tensor}) == (
        f"Layer {layer.name!r}: {field} must be finite, but it holds NaN or infinity; train again with a lower "
        "learning rate")


@pytest.mark.parametrize("returns", ["all", "", None])
def test_gru_wrong_returns(returns):
    assert refusal(samples.model, returns=returns) == (
        f"Layer 'gru' must return 'last' or 'sequence', not {returns!r}; choose one")


@pytest.mark.parametrize(("field", "shape", "rule"), [
    ("weight_ih", (3, 2, 2, 4), "(4, 2, 2, 4)"), ("weight_hh", (4, 2, 2, 4), "(4, 2, 1, 4)"),
    ("projection", (2, 2, 4), "(1, 2, 4)"), ("peephole", (2, 6), "(3, 6)"), ("bias_ih", (24,), "(4, 6)"),
    ("bias_hh", (4, 8), "(4, 6)")])
def test_lstm_wrong_shape(field, shape, rule):
    layer = samples.lstm(projection=4, peephole=True)
    assert refusal(dataclasses.replace, layer, **{field: np.zeros(shape)}) == (
        f"Layer 'lstm': {field} must have the shape {rule}, not {shape}; export it again")


def test_lstm_outputs_without_a_projection():
    assert refusal(dataclasses.replace, samples.lstm(projection=4), projection=None) == (
        "Layer 'lstm' without a projection must give its 6 hidden units, not 4; export it again")


def test_directions_that_are_no_pair():
    both = samples.bidirectional()
    assert refusal(dataclasses.replace, both, backward=both.forward) == (
        "The backward layer of 'both' must be called 'both.backward', not 'both.forward'; rename it")
    for other in (dataclasses.replace(both.backward, returns="last"), samples.bidirectional(inputs=4).backward,
                  samples.bidirectional("lstm").backward):
        assert refusal(dataclasses.replace, both, backward=other).startswith(
            "Both directions of layer 'both' must have the kind, inputs and what is returned of the first, ('gru', 5, "
            "'sequence'), not (")


@pytest.mark.parametrize("reset", ["", None])
def test_gru_wrong_reset(reset):
    assert refusal(samples.model, reset=reset) == (
        f"Layer 'gru' must reset 'after' or 'before' the matrix, not {reset!r}; choose one")


def test_model_without_layers():
    assert refusal(Model, "empty", 5, True, ()) == (
        "Network 'empty' must have at least one layer, not none; add a GRU or a Linear")


def test_model_wrong_inputs():
    model = samples.model()
    assert refusal(dataclasses.replace, model, inputs=4) == (
        "Layer 'gru' must take the 4 values that come before it, not 5; give it that size")
    assert refusal(dataclasses.replace, model, layers=(model.layers[0], samples.model(hidden=7).layers[1])) == (
        "Layer 'last' must take the 6 values that come before it, not 7; give it that size")


def test_model_same_names():
    """Their weights would overwrite each other in the file."""
    first, last = samples.model().layers
    assert refusal(Model, "twins", 5, True, (first, dataclasses.replace(last, name="gru"))) == (
        "The layers of network 'twins' must have different names, but two are called 'gru'; rename one")


def test_model_gru_without_a_sequence():
    first = samples.model(5, 6).layers[0]
    second = dataclasses.replace(samples.model(6, 6).layers[0], name="second")
    for name, sequence, layers in (("second", True, (first, second)), ("gru", False, (first,))):
        assert refusal(Model, "stack", 5, sequence, layers) == (
            f"Layer {name!r} needs a sequence, but what comes before gives one vector; let the layer before return the "
            "whole sequence")
    Model("stack", 5, True, (dataclasses.replace(first, returns="sequence"), second))


@pytest.mark.parametrize(("sequence", "shape"), [
    (True, (2, 5)), (True, (2, 3, 4)), (True, (0, 3, 5)), (True, (2, 0, 5)), (True, (2, 3, 5, 1)), (True, ()),
    (False, (5,)), (False, (2, 3, 5)), (False, (2, 6)), (False, (0, 5))])
def test_data_of_wrong_shape(sequence, shape):
    axes = "(N, T, 5)" if sequence else "(N, 5)"
    assert refusal(check_data, "Data", np.zeros(shape), Flow(5, sequence=sequence)) == (
        f"Data must have the shape {axes} and be not empty, not {shape}; rearrange the axes")
    assert refusal(samples.model(sequence=sequence).run, np.zeros(shape)) == (
        f"Inputs of network 'sample' must have the shape {axes} and be not empty, not {shape}; rearrange the axes")


def test_samples_of_several_axes_are_vectors_of_all_their_values():
    model = samples.perceptron(24, 6, 3, shape=(2, 3, 4))
    images = np.random.default_rng(0).uniform(-1, 1, (5, 2, 3, 4))
    assert np.array_equal(model.run(images), model.run(images.reshape(5, 24)))
    assert refusal(model.run, images[:, :1]) == (
        "Inputs of network 'perceptron' must have the shape (N, 24) or (N, 2, 3, 4) and be not empty, not "
        "(5, 1, 3, 4); rearrange the axes")


def test_a_relu_leaves_nothing_below_zero():
    seen = {}
    y = samples.perceptron(9, 14, 5).run(np.ones((2, 9)), lambda name, values: seen.update({name: values}))
    assert (seen["fc1.product.output"] < 0).any() and (y < 0).any()
    assert np.array_equal(seen["fc1.y"], np.maximum(seen["fc1.product.output"], 0))


@pytest.mark.parametrize(("sequence", "shape"), [(True, (5,)), (False, (2, 3)), (False, (1, 2, 3))])
def test_model_wrong_shape(sequence, shape):
    layers = samples.model(5, 6, sequence=sequence).layers
    assert refusal(Model, "stack", 5, sequence, layers, shape) == (
        f"The shape of a sample of network 'stack' must be that of its 5 inputs, not {shape}; leave it out for "
        "sequences")


def test_data_of_any_numbers():
    assert check_data("Data", [[1, 2], [3, 4]], Flow(2)).dtype == np.float64
