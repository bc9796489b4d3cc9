import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format, fit
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.passes.products import spectra
from circulant.sim.quantize.quantize import HEADROOM, Peaks, Widths, calibrate, quantize
from circulant.sim.real import float_model
from tests.refused import refused
from tests.sim import samples


def error(model, **widths):
    """The root of the mean squared distance from the model, relative to its greatest output."""
    x = samples.data(model)
    exact = model.run(x)
    return np.sqrt(np.mean((quantize(model, x, **widths).run(x).real - exact) ** 2)) / np.abs(exact).max()


MODELS = {
    "last": samples.model(9, 16, 5, k=(8, 8, 2), scale=0.3),
    "sequence": samples.model(9, 16, 5, k=(16, 16, 1), returns="sequence", scale=0.3),
    "before": samples.model(9, 16, 5, k=(4, 4, 1), reset="before", scale=0.3),
    "vectors": samples.model(9, 16, 5, k=(1, 4, 4), sequence=False, scale=0.3),
    "lstm": samples.chain(samples.lstm(9, 16, k=8, scale=0.3)),
    "peepholes": samples.chain(samples.lstm(9, 16, projection=6, peephole=True, scale=0.3)),
    "both": samples.chain(samples.bidirectional("lstm", 9, 16, scale=0.3, projection=6),
                          samples.bidirectional("gru", 12, 8, scale=0.3, name="second", returns="last")),
}
kinds = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


# Accuracy.

@kinds
def test_more_bits_are_nearer_to_the_model(model):
    errors = [error(model, weight_bits=bits, activation_bits=bits, twiddle_bits=20, segments=1024)
              for bits in (6, 9, 12, 15, 18)]
    for few, more in pairwise(errors):
        assert more < few / 3  # Three bits more: eight times nearer, of which a part is claimed.
    assert errors[-1] < 1e-4


@kinds
@pytest.mark.parametrize(("field", "values", "others"), [
    ("weight_bits", (4, 7, 10, 13), {"activation_bits": 20, "segments": 1024}),
    ("activation_bits", (6, 9, 12, 15), {"weight_bits": 18, "segments": 1024}),
    ("spectrum_bits", (6, 9, 12, 15), {"weight_bits": 18, "segments": 1024, "activation_bits": 20}),
    ("product_bits", (6, 9, 12, 15), {"weight_bits": 18, "segments": 1024, "activation_bits": 20}),
])
def test_each_width_counts(model, field, values, others):
    errors = [error(model, **others, **{field: value}) for value in values]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 10


@kinds
def test_one_calibration_serves_all_widths(model):
    x = samples.data(model)
    peaks = calibrate(model, x)
    for widths in ({}, {"weight_bits": 5, "activation_bits": 9}):
        assert quantize(model, peaks, **widths).hash == quantize(model, x, **widths).hash


def test_twiddle_bits_count():
    errors = [error(MODELS["last"], weight_bits=18, activation_bits=20, segments=1024, twiddle_bits=bits)
              for bits in (4, 8, 12)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 10


def test_segments_count():
    errors = [error(MODELS["last"], weight_bits=18, activation_bits=24, twiddle_bits=20, segments=segments)
              for segments in (4, 16, 64, 256)]
    for few, more in pairwise(errors):
        assert more < few / 8  # A quarter of the length: sixteen times nearer, of which half is claimed.


@pytest.mark.parametrize("method", ["pwl", "lut"])
def test_the_error_of_the_tables_counts(method):
    errors = [error(MODELS["last"], weight_bits=18, activation_bits=24, twiddle_bits=20, activation_error=bound,
                    activation_table=method) for bound in (0.1, 0.01, 0.001, 0.0001)]
    for few, more in pairwise(errors):
        assert more < few / 3  # Ten times nearer, of which a third is claimed.


@kinds
def test_default_widths_keep_the_decision(model):
    x = samples.data(model, count=200, seed=1)
    exact, golden = model.run(x), quantize(model, samples.data(model)).run(x).real
    assert (exact.argmax(-1) == golden.argmax(-1)).mean() > 0.99
    assert np.abs(exact - golden).max() < 0.01 * np.abs(exact).max()


# Formats.

@kinds
def test_widths_are_those_asked_for(model):
    network = quantize(model, samples.data(model), weight_bits=9, activation_bits=13, spectrum_bits=14, product_bits=22,
                       twiddle_bits=11)
    for layer in network.layers:
        for product in getattr(layer, "products", {}).values():
            assert (product.weight.width, product.input.width, product.spectrum.width, product.product.width,
                    product.output.width, product.twiddle_bits) == (9, 13, 14, 22, 13, 11)


def test_widths_that_are_left_out():
    assert (Widths(activation_bits=12).spectrum, Widths(activation_bits=12).product) == (13, 20)
    assert (Widths(spectrum_bits=20).spectrum, Widths(product_bits=30).product) == (20, 30)
    product = quantize(MODELS["last"], samples.data(MODELS["last"])).layers[1].product
    assert (product.weight.width, product.input.width, product.spectrum.width, product.product.width,
            product.output.width, product.twiddle_bits) == (12, 16, 17, 24, 16, 16)


@kinds
def test_nothing_saturates_on_calibration_data(model):
    """Every tensor lies within its format with headroom."""
    x = samples.data(model)
    network, seen = quantize(model, x), {}

    def tap(name, values):
        seen[name] = max(seen.get(name, 0.0), float(np.abs(values).max()))

    model.run(x, tap)
    checked = 0
    for layer in network.layers:
        forms = {f"{role}.{tensor}": getattr(product, tensor)
                 for role, product in getattr(layer, "products", {}).items()
                 for tensor in ("spectrum", "product", "output")}
        if layer.kind == "lstm":
            forms |= {"gates.product": layer.gates.parts[0].product, "gates.output": layer.pre_format,
                      "sigmoid.input": layer.pre_format, "c": layer.cell, "y": layer.output_format}
        if layer.kind == "gru":
            forms |= {f"{joint}.{tensor}": getattr(layer.gates.parts[0], tensor) for joint in ("gates", "candidate")
                      for tensor in ("product", "output")} | {"tanh.input": layer.pre_format}
        for name, form in forms.items():
            if f"{layer.name}.{name}" in seen:
                assert HEADROOM * seen[f"{layer.name}.{name}"] <= (form.hi + 0.5) * form.step
                checked += 1
    assert checked >= 6
    assert np.abs(x).max() <= (network.input_format.hi + 0.5) * network.input_format.step


@kinds
def test_formats_are_no_finer_than_exact_sums(model):
    for layer in quantize(model, samples.data(model), activation_bits=12, spectrum_bits=26, product_bits=32).layers:
        for product in getattr(layer, "products", {}).values():
            assert product.spectrum.frac <= product.input.frac
            assert product.product.frac <= product.spectrum.frac + product.weight.frac


def test_formats_of_a_gru():
    layer = quantize(MODELS["last"], samples.data(MODELS["last"])).layers[0]
    assert layer.output_format == Format(16, 15)
    assert (layer.sigmoid.output, layer.tanh.output) == (Format(16, 15), Format(16, 15))
    assert (layer.sigmoid.method, layer.tanh.method) == ("pwl", "pwl")
    assert max(layer.sigmoid.max_error, layer.tanh.max_error) <= 0.0005 + 2 ** -15


@pytest.mark.parametrize(("scale", "frac"), [(0.3, 15), (3.0, 14)])
def test_the_format_of_an_lstm_reaches_as_far_as_its_projection(scale, frac):
    layer = samples.lstm(projection=3, scale=0.3)
    model = samples.chain(dataclasses.replace(layer, projection=scale / 0.3 * layer.projection))
    x = samples.data(model)
    golden = quantize(model, x).layers[0]
    assert golden.output_format.frac <= frac
    assert (golden.output_format.frac == 15) == (frac == 15)
    assert HEADROOM * np.abs(model.run(x)).max() <= golden.output_format.hi * golden.output_format.step


def test_an_lstm_without_peepholes_and_projection():
    model = MODELS["lstm"]
    layer = quantize(model, samples.data(model)).layers[0]
    assert (layer.peephole, layer.projection, layer.outputs) == (None, None, 16)
    assert (layer.sigmoid.input, layer.tanh.input, layer.tanh_cell.input) == (
        layer.pre_format, layer.pre_format, layer.cell)


def test_peepholes_are_the_rounded_reals():
    model = MODELS["peepholes"]
    layer = quantize(model, samples.data(model), weight_bits=9).layers[0]
    assert layer.peephole_format.width == 9
    np.testing.assert_array_equal(layer.peephole, layer.peephole_format.quantize(model.layers[0].peephole))
    assert np.abs(layer.peephole).max() > 64


def test_both_directions_give_one_format():
    """Where the projection of one goes far beyond 1, that of the other is as coarse."""
    both = samples.bidirectional("lstm", projection=4, scale=0.3)
    far = dataclasses.replace(both.backward, projection=8 * both.backward.projection)
    model = samples.chain(dataclasses.replace(both, backward=far))
    (layer,) = quantize(model, samples.data(model)).stages
    assert layer.forward.output_format == layer.backward.output_format
    assert layer.output_format.frac < 15


def test_integers_are_the_rounded_reals():
    model = MODELS["vectors"]
    for layer, exact in zip(quantize(model, samples.data(model)).layers, model.layers, strict=True):
        product = layer.product
        np.testing.assert_array_equal(product.weights, product.weight.quantize(spectra(exact.weight)))
        np.testing.assert_array_equal(product.bias[:exact.outputs], product.output.quantize(exact.bias))
        assert (product.bias[exact.outputs:] == 0).all()


def test_gates_are_padded_one_by_one():
    model = samples.model(3, 5, 2, k=(4, 4, 1))
    layer, exact = quantize(model, samples.data(model)).layers[0], model.layers[0]
    for product, bias in ((layer.gates.parts[0], (exact.bias_ih + exact.bias_hh)[:2]),
                          (layer.candidate, exact.bias_ih[2:]), (layer.candidate_recurrent, exact.bias_hh[2:])):
        gates = product.bias.reshape(-1, 8)
        np.testing.assert_array_equal(gates[:, :5], product.output.quantize(bias))
        assert (gates[:, 5:] == 0).all()


def test_biases_of_a_joint_product_are_merged():
    model = samples.model(3, 5, 2, k=(4, 4, 1), reset="before")
    layer, exact = quantize(model, samples.data(model)).layers[0], model.layers[0]
    merged = layer.pre_format.quantize(exact.bias_ih + exact.bias_hh)
    np.testing.assert_array_equal(layer.gates.parts[0].bias.reshape(2, 8)[:, :5], merged[:2])
    np.testing.assert_array_equal(layer.candidate.parts[0].bias[:5], merged[2])


@pytest.mark.parametrize(("bits", "lost"), [({}, "spectrum"), ({"weight_bits": 18, "spectrum_bits": 10}, "weight")])
@pytest.mark.parametrize("great", ["weight_ih", "weight_hh"])
def test_exact_sums_of_a_layer_share_their_fraction_bits(bits, lost, great):
    """What one vector's sums have above the other's is taken from the wider one of its factors."""
    model = samples.model(4, 4, 2, k=(4, 4, 1), scale=0.3)
    gru = dataclasses.replace(model.layers[0], **{great: 8 * getattr(model.layers[0], great)})
    layer = quantize(float_model.Model.chain("sample", 4, True, (gru,)), samples.data(model), **bits).layers[0]
    assert len({product.frac for product in layer.products.values()}) == 1
    assert len({product.product for product in layer.products.values()}) == 1
    small = layer.products["recurrent_product" if great == "weight_ih" else "input_product"]
    peaks = {"weight": spectra(gru.weight_hh if great == "weight_ih" else gru.weight_ih)}
    fitted = {"weight": fit(np.abs(peaks["weight"]).max(), small.weight.width)}
    assert (small.weight == fitted["weight"]) == (lost == "spectrum")


def test_refuses_several_block_sizes():
    model = samples.model(k=(4, 2, 1))
    assert refused(quantize, model, samples.data(model)) == (
        "All matrices of recurrent layer 'gru' must have one block size, because their sums are made in the spectral "
        "domain, not 4 (input), 2 (recurrent); compress them with one")
    layer = dataclasses.replace(samples.lstm(projection=4), projection=np.zeros((2, 3, 2)))
    assert "not 4 (input), 4 (recurrent), 2 (projection); " in refused(
        quantize, samples.chain(layer), samples.data(samples.chain(layer)))


def test_a_bias_that_the_sums_cancel_fits_its_format():
    """W x is always near −9 here, so that the outputs near 1 show nothing of a bias of 10."""
    model = float_model.Model.chain("offset", 4, False, (
        FloatLinear("linear", 4, 4, np.full((1, 1, 4), -9 / 4), np.full(4, 10.0)),))
    x = np.random.default_rng(0).uniform(0.9, 1.1, (50, 4))
    network = quantize(model, x)
    product = network.layers[0].product
    assert np.abs(product.output.real(product.bias) - 10).max() <= product.output.step / 2
    assert np.abs(network.run(x).real - model.run(x)).max() < 0.01


def test_a_bias_of_gates_that_the_sums_cancel_fits_its_format():
    gru = samples.model(4, 4, 2, k=(4, 4, 1)).layers[0]
    gru = dataclasses.replace(gru, weight_ih=np.full((3, 1, 1, 4), -9 / 4), bias_ih=np.full((3, 4), 10.0))
    model = float_model.Model.chain("offset", 4, True, (gru,))
    x = np.random.default_rng(0).uniform(0.9, 1.1, (50, 3, 4))
    assert np.abs(quantize(model, x).run(x).real - model.run(x)).max() < 0.01


def test_tensors_that_are_never_exercised():
    """Zero weights, zero biases and zero data keep harmless formats."""
    model = samples.model(scale=0.0)
    network = quantize(model, np.zeros((2, 3, 5)))
    assert (network.run(np.zeros((2, 3, 5))).integers == 0).all()
    assert network.input_format == Format(16, 14)


def test_coarse_arguments_take_fewer_segments():
    """Four bits for pre-activations up to 3 leave one fraction bit, so that tanh's reach has 16 arguments."""
    model = samples.model(scale=0.4)
    layer = quantize(model, samples.data(model), activation_bits=4).layers[0]
    assert layer.pre_format.frac == 1
    assert max(layer.tanh.segments, layer.sigmoid.segments) <= 8


def test_peaks():
    model = MODELS["vectors"]
    x = samples.data(model)
    peaks = Peaks(model, {model.entry.name: x})
    peak = np.abs(model.run(x)).max()
    form = peaks.fit(16, "last.product.output")
    assert form.hi * form.step / 2 < HEADROOM * peak <= form.hi * form.step
    assert peaks.fit(16, "last.product.output", bias=[0.0, -100.0]) == Format(16, 8)
    assert peaks.fit(16, "last.product.output", "first.product.spectrum").frac <= form.frac


# Refusals.

@pytest.mark.parametrize(("name", "lo", "hi"), [
    ("weight_bits", 2, 18), ("activation_bits", 4, 24), ("spectrum_bits", 4, 26), ("product_bits", 4, 32),
    ("twiddle_bits", 4, 20)])
def test_widths_out_of_range(name, lo, hi):
    for value in (lo, hi):
        assert getattr(Widths(**{name: value}), name) == value
    for value in (lo - 1, hi + 1, -1):
        sentence = f"{name} must be from {lo} to {hi}, not {value}; choose a width in that range"
        assert refused(Widths, **{name: value}) == sentence
        assert refused(quantize, MODELS["last"], samples.data(MODELS["last"]), **{name: value}) == sentence


@pytest.mark.parametrize(("options", "sentence"), [
    ({"segments": 2},
     "The segments of an activation must be a number from 3 to 1024, or 0 for as many as its error asks for, not 2; "
     "choose one"),
    ({"segments": 48, "activation_table": "lut"},
     "The segments of an activation must be a power of two from 2 to 1024, or 0 for as many as its error asks for, not "
     "48; choose one"),
    ({"activation_error": 0.5},
     "The error of an activation's table must be from 1e-06 to 0.1, not 0.5; choose another"),
    ({"activation_table": "cordic"}, "The table of an activation must be one of pwl, lut, not 'cordic'; choose one"),
])
@kinds
def test_wrong_tables(model, options, sentence):
    assert refused(quantize, model, samples.data(model), **options) == sentence


def test_zero_is_no_width_where_nothing_can_be_derived():
    assert refused(Widths, weight_bits=0).startswith("weight_bits must be from 2 to 18, not 0; ")
    assert refused(Widths, twiddle_bits=0).startswith("twiddle_bits must be from 4 to 20, not 0; ")


def test_unknown_width():
    with pytest.raises(TypeError, match="weights_bits"):
        quantize(MODELS["last"], samples.data(MODELS["last"]), weights_bits=8)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_calibration_not_finite(value):
    x = samples.data(MODELS["last"])
    x.flat[7] = value
    assert refused(quantize, MODELS["last"], x) == (
        "Calibration data must be finite, but it holds NaN or infinity; clean it first")


@pytest.mark.parametrize(("kind", "shape"), [
    ("last", (0, 7, 9)), ("last", (20, 0, 9)), ("last", (20, 9)), ("last", (20, 7, 8)), ("vectors", (20, 7, 9)),
    ("vectors", (9,)), ("vectors", (0, 9))])
def test_calibration_of_wrong_shape(kind, shape):
    axes = "(N, 9)" if kind == "vectors" else "(N, T, 9)"
    assert refused(quantize, MODELS[kind], np.zeros(shape)) == (
        f"Calibration data must have the shape {axes} and be not empty, not {shape}; rearrange the axes")


def test_arguments_too_coarse_for_the_reach_still_have_their_values():
    """Four bits for pre-activations of hundreds: a table knows three arguments, and is right at each."""
    model = samples.model(scale=30.0)
    layer = quantize(model, samples.data(model), activation_bits=4).layers[0]
    assert layer.sigmoid.input.frac < -3
    assert layer.sigmoid(np.array([-1, 0, 1])).tolist() == [0, 4, 7]
    assert layer.tanh(np.array([-1, 0, 1])).tolist() == [-8, 0, 7]
