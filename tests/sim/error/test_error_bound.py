import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_digits

from circulant.sim.error.error_bound import error_bound
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.over_time import FloatOverTime
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from tests.sim import samples

LAYERS = {
    "vectors": samples.model(sequence=False),
    "gru": samples.model(scale=0.3),
    "gru that resets before": samples.model(reset="before", returns="sequence", scale=0.3),
    "lstm": samples.chain(samples.lstm(scale=0.3)),
    "peepholes and projection": samples.chain(samples.lstm(peephole=True, projection=3, scale=0.3)),
    "both ways": samples.chain(samples.bidirectional(scale=0.3)),
    "lstm both ways": samples.chain(samples.bidirectional("lstm", scale=0.3)),
    "two layers": samples.chain(samples.lstm(scale=0.3), samples.lstm(6, 5, scale=0.3, name="second", returns="last")),
}


def relu(model):
    first, last = model.layers
    return float_model.Model.chain("perceptron", model.flow.size, False, (dataclasses.replace(first, relu=True), last))


LAYERS["plain"] = samples.chain(samples.rnn(scale=0.3))
LAYERS["linear state"] = samples.chain(samples.rnn(nonlinearity="identity", scale=0.2))
LAYERS |= {f"{mode} over time": samples.chain(samples.lstm(scale=0.3), FloatOverTime("pool", 6, mode))
           for mode in ("max", "mean")}
LAYERS["a ReLU"] = relu(LAYERS["vectors"])


def compare(model, x, **widths):
    network = quantize(model, x, **widths)
    bound, error = error_bound(network, model, x), np.abs(network.run(x).real - model.run(x))
    assert bound.shape == error.shape
    assert (error <= bound).all(), f"{(error > bound).sum()} of {error.size} outputs are further off than the bound"
    return bound, error


@pytest.mark.parametrize("steps", [1, 30])
@pytest.mark.parametrize("name", LAYERS)
def test_holds_and_is_not_loose(name, steps):
    """Its worst outputs err by a seventh of it and more, and thirty steps make it hardly looser than one."""
    model = LAYERS[name]
    bound, error = compare(model, samples.data(model, count=10, steps=steps))
    assert (error / bound).max() > 0.14
    assert bound.max() < 0.01


@pytest.mark.parametrize("widths", [
    {"weight_bits": 6}, {"activation_bits": 12}, {"activation_table": "lut", "activation_error": 0.004},
    {"activation_error": 0.02}, {"twiddle_bits": 6}, {"product_bits": 14}, {"spectrum_bits": 12}], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_holds_in_all_formats(name, widths):
    model = LAYERS[name]
    bound, _ = compare(model, samples.data(model, count=5, steps=4), **widths)
    assert bound.max() < 0.4


@pytest.mark.parametrize("seed", range(9))
def test_holds_for_random_networks(seed):
    rng = np.random.default_rng(seed)
    inputs, hidden, k = (int(rng.integers(1, 9)), int(rng.integers(1, 20)), int(2 ** rng.integers(0, 5)))
    scale = 1.2 / np.sqrt(hidden + inputs)
    first = [samples.model(inputs, hidden, k=(k, k, 1), reset="after", scale=scale, seed=seed).layers[0],
             samples.model(inputs, hidden, k=(k, k, 1), reset="before", scale=scale, seed=seed).layers[0],
             samples.lstm(inputs, hidden, k=k, peephole=bool(seed % 2), scale=scale, seed=seed)][seed % 3]
    model = samples.chain(dataclasses.replace(first, returns="sequence"))
    compare(model, samples.data(model, count=8, steps=6, seed=seed))


def rows_of_many_scales(layer, seed):
    """The layer with block rows that differ by up to 2⁷, so that each gate has shifts of its own."""
    def scaled(weight):
        rows = np.arange(weight[..., 0, 0].size).reshape(*weight.shape[:-2], 1, 1)
        return weight * 2.0 ** -(3 * (rows + seed) % 8)

    return dataclasses.replace(layer, **{name: scaled(value) for name, value in vars(layer).items() if name in (
        "weight", "weight_ih", "weight_hh", "projection") and value is not None})


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [*(name for name, model in LAYERS.items() if model.sequence), "vectors", "a ReLU"])
def test_holds_for_a_scale_of_each_row(name, seed):
    model, widths = LAYERS[name], {"weight_bits": 6, "weight_scale": "row"}
    model = model.mapped(lambda layer: rows_of_many_scales(layer, seed))
    x = samples.data(model, count=8, steps=6, seed=seed)
    first = quantize(model, x, **widths).layers[0]
    assert any(len(set(product.row_shifts)) > 1 for product in first.products.values())
    bound, _ = compare(model, x, **widths)
    assert bound.max() < 0.4


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_holds_for_images_of_digits(kind):
    """Rows of handwritten digits through 32 hidden units in the default formats: the bound stays below a twentieth of
    the outputs."""
    rows = load_digits().images[:60] / 16
    first = samples.lstm(8, 32, scale=0.15, k=8, returns="last") if kind == "lstm" else (
        samples.model(8, 32, k=(8, 8, 1), scale=0.15).layers[0])
    last = FloatLinear("last", 32, 10, np.random.default_rng(0).normal(0, 0.3, (5, 16, 2)), np.zeros(10))
    model = float_model.Model.chain("digits", 8, True, (first, last))
    bound, error = compare(model, rows)
    assert bound.max() < np.abs(model.run(rows)).max() / 20
    assert (error / bound).max() > 0.05


def test_weights_that_are_off_are_seen():
    """What is known of the weights is no bound but a sum: it moves with them, in their direction."""
    model = LAYERS["gru"]
    x = samples.data(model)
    network = quantize(model, x)
    other = samples.rebuilt(model, model.layers[0], dataclasses.replace(
        model.layers[1], bias=model.layers[1].bias, weight=model.layers[1].weight + 0.01))
    bound, error = error_bound(network, other, x), np.abs(network.run(x).real - other.run(x))
    assert (error <= bound).all()
    assert bound.max() > error_bound(network, model, x).max()


def test_what_saturates_is_refused():
    model = LAYERS["vectors"]
    x = samples.data(model)
    with pytest.raises(Refusal, match=r"^The bound of golden's error holds where nothing saturates, but first\.product"
                                      r"\.\w+ reaches the end of its format Format\(width=\d+, frac=\d+\); calibrate "
                                      r"with these inputs, or choose wider formats$"):
        error_bound(quantize(model, 0.1 * x), model, 0.1 * x + (np.arange(len(x)) == 3)[:, None])


def test_another_model_is_refused():
    model, x = LAYERS["gru"], samples.data(LAYERS["gru"])
    with pytest.raises(Refusal, match=r"^The model must be what network 'sample' was quantized from, with its layers "
                                      r"\['gru', 'last'\], not \['first', 'last'\]; give that one$"):
        error_bound(quantize(model, x), LAYERS["vectors"], x)


@pytest.mark.parametrize("steps", [1, 30])
def test_holds_for_rectified_states(steps):
    """Where a unit is silent, neither golden nor the bound is off."""
    model = samples.chain(samples.rnn(nonlinearity="relu", scale=0.3))
    bound, error = compare(model, samples.data(model, count=10, steps=steps))
    assert ((bound == 0) <= (error == 0)).all()
    assert (error[bound > 0] / bound[bound > 0]).max() > 0.14
    assert bound.max() < 0.02


def test_a_choice_at_the_end_is_refused():
    model, x = LAYERS["vectors"], samples.data(LAYERS["vectors"])
    with pytest.raises(Refusal, match=r"^The bound must be of numbers, but network 'sample' ends with a choice of the "
                                      r"largest; give the network without it$"):
        error_bound(quantize(model, x).with_argmax(), model, x)
