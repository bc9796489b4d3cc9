from dataclasses import replace

import numpy as np
import pytest

from circulant.sim.quantize.quantize import quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.quantize.structure import check_structure
from circulant.sim.refusal import Refusal
from tests.sim import samples
from tests.sim.quantize import test_quantize

MODELS = {name: model for name, model in test_quantize.MODELS.items() if name != "sequence"}
kinds = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def scaled(layer, factor):
    """The layer with all its numbers multiplied."""
    return replace(layer, **{name: value * factor for name, value in vars(layer).items()
                             if isinstance(value, np.ndarray)})


def other(model, factor):
    return replace(model.mapped(lambda layer: scaled(layer, factor)), name="other")


@kinds
def test_a_network_is_like_itself(model):
    network = quantize(model, samples.data(model))
    assert quantize_like(model, network).hash == network.hash


@kinds
def test_it_has_a_binary_point_for_each_row_where_the_other_has(model):
    network = quantize(model, samples.data(model), weight_bits=5, weight_scale="row")
    assert quantize_like(model, network).hash == network.hash
    smaller = quantize_like(other(model, 0.5), network)
    check_structure(network, smaller)


def test_a_design_without_row_shifts_takes_no_network_with_them():
    model = MODELS["both"]
    plain, rows = (quantize(model, samples.data(model), weight_bits=5, weight_scale=scale)
                   for scale in ("matrix", "row"))
    with pytest.raises(Refusal, match=r"^Layer 'both\.forward' of network 'chain' must have input_product\.row_shifts "
                                      r"\[\] as the design has, not \[0, "):
        check_structure(plain, rows)


@pytest.mark.parametrize("names", [("exact", "mitchell"), ("mitchell", "exact"), ("truncated:3", "truncated:4")])
def test_a_design_takes_no_network_of_another_multiplier(names):
    model = MODELS["both"]
    mine, its = (quantize(model, samples.data(model), multiplier=each) for each in names)
    with pytest.raises(Refusal, match=r"^Layer 'both\.forward' of network 'chain' must have input_product\.multiplier "
                                      "{} as the design has, not {}; ".format(*names)):
        check_structure(mine, its)


@kinds
def test_another_network_gets_the_structure_and_stays_near_its_own_mathematics(model):
    network, smaller = quantize(model, samples.data(model)), other(model, 0.7)
    made, x = quantize_like(smaller, network), samples.data(model)
    check_structure(network, made)
    assert made.hash != network.hash
    exact = smaller.run(x)
    assert np.abs(made.run(x).real - exact).max() < 0.01 * np.abs(exact).max()


@kinds
def test_numbers_that_do_not_fit_are_refused(model):
    with pytest.raises(Refusal, match=r"^The [a-z ]+ of layer '[a-z.]+' must fit the .* of the other network, but they "
                                      r"reach [\d.]+; quantize first the network that has the greater ones$"):
        quantize_like(other(model, 40.0), quantize(model, samples.data(model)))


@pytest.mark.parametrize(("given", "rule"), [
    (samples.model(9, 16, 5, k=(8, 8, 2), reset="before", scale=0.1), r"Layer 'gru' .* must have "),
    (samples.model(9, 16, 5, k=(8, 8, 2), returns="sequence", scale=0.1), "must have returns last"),
    (samples.model(9, 16, 5, k=(4, 4, 2), scale=0.1), "must have input_product.block_size 8 as the design has, not 4"),
    (samples.model(9, 15, 5, k=(8, 8, 2), scale=0.1), "must have hidden 16 as the design has, not 15"),
    (samples.chain(samples.lstm(9, 16)), r"must have the layers of 'sample', \['gru', 'linear'\], not \['lstm'\]"),
])
def test_another_structure_is_refused(given, rule):
    model = MODELS["last"]
    with pytest.raises(Refusal, match=rule):
        quantize_like(given, quantize(model, samples.data(model)))
