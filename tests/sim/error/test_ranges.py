import dataclasses

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.error.ranges import _bits, analyse, worst_cases
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from tests.sim import samples

MODELS = {
    "after": samples.model(9, 14, 5, k=(4, 4, 2)),
    "before": samples.model(9, 14, 5, k=(8, 8, 1), reset="before", returns="sequence"),
    "vectors": samples.model(9, 14, 5, k=(4, 2, 2), sequence=False),
    "lstm": samples.chain(samples.lstm(9, 14), samples.lstm(14, 7, projection=5, peephole=True, name="second")),
    "relu": samples.perceptron(9, 14, 6, 5),
    "both": samples.chain(samples.bidirectional()),
}


@pytest.fixture(params=MODELS)
def case(request):
    model = MODELS[request.param]
    x = samples.data(model)
    return model, quantize(model, x), x


def test_every_tensor_once_and_in_order(case):
    model, network, x = case
    ranges = analyse(network, x, model)
    assert [each.name for each in ranges] == list(network.run(x, trace=True).trace)
    for each in ranges:
        assert sum(each.bits) == each.count > 0
        assert len(each.bits) == each.format.width
        assert each.format.lo * each.format.step <= each.lo <= each.hi <= each.format.hi * each.format.step


def test_nothing_goes_beyond_the_worst_case(case):
    """With data that drives inputs, gates and states to their ends; roundings add their steps."""
    _, network, x = case
    form, rng = network.input_format, np.random.default_rng(0)
    extreme = rng.choice([form.lo * form.step, form.hi * form.step], x.shape)
    for data in (x, extreme):
        for each in analyse(network, data):
            slack = 64 * each.format.step + 0.01 * each.worst
            assert max(-each.lo, each.hi) <= each.worst + slack, each.name


def test_the_worst_case_of_a_product_is_reached():
    """By the signs along the row with the greatest sum of magnitudes."""
    from circulant.sim.passes.bounds import matrix

    network = quantize(MODELS["vectors"], samples.data(MODELS["vectors"]))
    layer = network.layers[0]
    wide = dataclasses.replace(layer.product, product=Format(40, 20), output=Format(40, 20), spectrum=Format(
        30, layer.product.spectrum.frac), bias=0 * layer.product.bias)
    network = Network.chain("wide", 9, False, (dataclasses.replace(layer, product=wide),))
    row = np.abs(matrix(wide)).sum(1).argmax()
    signs = np.where(matrix(wide)[row] < 0, -1, 1)[None, :9]
    worst = worst_cases(network)["first.product.output"]
    peak = network.input_format.hi * network.input_format.step
    (found,) = (each for each in analyse(network, signs * peak) if each.name == "first.product.output")
    padded = np.abs(matrix(wide)[row, 9:]).sum() * peak  # what stands behind the vector is zero
    assert max(-found.lo, found.hi) == pytest.approx(worst - padded, rel=1e-3)


def test_ends_are_counted():
    model = MODELS["after"]
    network = quantize(model, samples.data(model))
    calm = {each.name: each.ends for each in analyse(network, samples.data(model))}
    wild = {each.name: each.ends for each in analyse(network, 100 * samples.data(model))}
    assert calm["gru.gates.output"] == calm["gru.input_product.spectrum"] == 0
    assert wild["gru.input_product.input"] > 0.9 * samples.data(model).size
    assert wild["gru.gates.sums"] == 0


def test_more_bits_make_less_noise():
    model, x = MODELS["lstm"], samples.data(MODELS["lstm"])
    few, many = ({each.name: each.sqnr for each in analyse(quantize(
        model, x, weight_bits=bits, activation_bits=bits, segments=1024), x, model)} for bits in (10, 14))
    for name in ("lstm.gates.output", "lstm.c", "second.y", "second.projection.spectrum", "second.gates.sums"):
        assert few[name] + 12 < many[name] < 90, name


def test_without_a_model_there_is_no_noise(case):
    _, network, x = case
    assert {each.sqnr for each in analyse(network, x)} == {None}


def test_bits():
    assert _bits(np.array([0, -1, 1, -2, 2, 3, -4, -5, 7, -8]), 4) == (2, 2, 3, 3)
    assert _bits(np.array([-2 ** 61, 2 ** 61 - 1]), 62)[61] == 2


def test_as_json():
    model = MODELS["vectors"]
    first = analyse(quantize(model, samples.data(model)), samples.data(model), model)[0]
    assert first.as_json() == {
        "name": "first.product.input", "format": first.format.as_json(), "lo": first.lo, "hi": first.hi,
        "worst": first.worst, "count": 180, "ends": first.ends, "sqnr_db": first.sqnr, "bits": list(first.bits)}
