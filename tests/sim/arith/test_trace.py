import numpy as np
import pytest

from circulant.sim.arith import batch_layout
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.trace import Recorder
from circulant.sim.quantize.quantize import quantize
from tests.sim import samples

MODELS = {
    "after": samples.model(9, 14, 5, k=(4, 4, 2), scale=0.4),
    "before": samples.model(9, 14, 5, k=(8, 8, 1), reset="before", returns="sequence", scale=0.4),
    "vectors": samples.model(9, 14, 5, k=(4, 2, 2), sequence=False, scale=0.4),
    "lstm": samples.chain(samples.lstm(9, 14, scale=0.3), samples.lstm(
        14, 7, projection=5, peephole=True, name="second", scale=0.3, returns="last")),
    "both": samples.chain(samples.bidirectional(scale=0.4)),
}


@pytest.fixture(params=MODELS)
def traced(request):
    """A model, its network, data, the golden trace, and what the taps of the model see, steps behind the batch."""
    model = MODELS[request.param]
    x, seen = samples.data(model, count=6, steps=4), {}
    network = quantize(model, x, weight_bits=18, activation_bits=20, segments=1024)
    model.run(x, lambda name, values: seen.setdefault(name, []).append(values))
    joined = {name: values[0] if name.endswith(("product.input", "product.spectrum", "product.product",
                                                "product.output")) and len(values) == 1
              else np.stack(values, axis=1) for name, values in seen.items()}
    return network, x, network.run(x, trace=True), joined


def test_tracing_changes_nothing(traced):
    network, x, result, _ = traced
    np.testing.assert_array_equal(result.integers, network.run_integers(network.input_format.quantize(x)))
    assert network.run(x).trace == {}


def test_names_and_shapes_are_those_of_the_taps(traced):
    _, _, result, seen = traced
    extra = {name for name in result.trace if name.endswith(".sums")}
    # A candidate takes the spectra of x that the gates take.
    shared = {name for name in seen if ".candidate_input." in name and name.endswith((".input", ".spectrum"))}
    beside = {"both.y"}  # Values side by side are those of the layers, unless they are rounded.
    assert result.trace.keys() - extra == seen.keys() - shared - beside
    for name in result.trace.keys() - extra:
        assert result.trace[name].integers.shape == seen[name].shape, name


def test_every_tensor_is_near_the_mathematics_and_within_its_format(traced):
    _, _, result, seen = traced
    for name, tensor in result.trace.items():
        values, form = tensor.integers, tensor.format
        assert values.dtype == np.int64
        assert form.lo <= values.min() <= values.max() <= form.hi
        exact = seen[name.removesuffix(".sums") + ".product" if name.endswith(".sums") else name]
        np.testing.assert_allclose(form.real(values), exact, rtol=0, atol=2e-3 * max(1.0, np.abs(exact).max()),
                                   err_msg=name)


def test_the_last_tensor_is_the_output(traced):
    network, _, result, _ = traced
    layer, name = network.layers[-1], {"linear": "product.output", "gru": "h", "lstm": "y"}
    if layer.kind in name:
        last = result.trace[f"{layer.name}.{name[layer.kind]}"].integers
        cut = last[:, -1] if getattr(layer, "returns", "sequence") == "last" else last
        np.testing.assert_array_equal(cut, result.integers)


def test_sums_are_rounded_to_products():
    network = quantize(MODELS["after"], samples.data(MODELS["after"]))
    trace, part = network.run(samples.data(MODELS["after"]), trace=True).trace, network.layers[0].gates.parts[0]
    sums, product = trace["gru.gates.sums"], trace["gru.gates.product"]
    assert sums.format.frac == part.frac
    assert product.format == part.product
    np.testing.assert_array_equal(part.rounded(sums.integers), product.integers)


def test_recorder():
    record, form = Recorder(), Format(8, 0)
    x = np.arange(24).reshape(3, 2, 4)  # N, T, n
    spread = batch_layout.spread(x, 4, 2)
    for t in range(2):
        record.vector("steps", spread[:, :, t], 3, form)
        record.vector("gates", spread[:, :, t], 2, form, gates=2)
        record.spectral("spectra", spread[:, :, t], form)
    record.vector("whole", spread, 4, form, step=False)
    tensors = {name: tensor.integers for name, tensor in record.tensors.items()}
    assert list(tensors) == ["steps", "gates", "spectra", "whole"]
    np.testing.assert_array_equal(tensors["steps"], x[..., :3])
    np.testing.assert_array_equal(tensors["gates"], x.reshape(3, 2, 2, 2))
    np.testing.assert_array_equal(tensors["spectra"], x.reshape(3, 2, 2, 2))
    np.testing.assert_array_equal(tensors["whole"], x)
