
import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from tests.refused import refused
from tests.sim import samples

MODELS = {
    "last": samples.model(),
    "sequence": samples.model(returns="sequence"),
    "vectors": samples.model(sequence=False),
    "blocks": samples.model(9, 16, 5, k=(8, 8, 4)),
    "before": samples.model(9, 16, 5, k=(4, 4, 2), reset="before"),
    "lstm": samples.chain(samples.lstm(), samples.lstm(6, 5, projection=3, peephole=True, name="second")),
    "both": samples.chain(samples.bidirectional(), samples.bidirectional("lstm", 12, 4, name="second", projection=3,
                                                                         peephole=True, returns="last")),
}
NETWORKS = {name: quantize(model, samples.data(model)) for name, model in MODELS.items()}


@pytest.fixture(params=NETWORKS)
def network(request):
    return NETWORKS[request.param]


@pytest.fixture
def folder(tmp_path):
    NETWORKS["last"].save(tmp_path)
    return tmp_path


# Running.

@pytest.mark.parametrize(("name", "outputs", "per_step", "shape"), [
    ("last", 3, False, (20, 3)), ("sequence", 3, True, (20, 7, 3)), ("vectors", 3, False, (20, 3)),
    ("blocks", 5, False, (20, 5)), ("before", 5, False, (20, 5)), ("lstm", 3, True, (20, 7, 3)),
    ("both", 6, False, (20, 6))])
def test_sizes(name, outputs, per_step, shape):
    network = NETWORKS[name]
    result = network.run(samples.data(MODELS[name]))
    assert (network.end.size, network.per_step) == (outputs, per_step)
    assert result.integers.shape == result.real.shape == shape
    assert (result.integers.dtype, result.real.dtype) == (np.int64, np.float64)


def test_outputs_of_a_gru():
    layer = samples.gru(returns="sequence")
    network = Network.chain("gru", 5, True, (layer,))
    assert (network.end.size, network.per_step, network.output_format) == (6, True, layer.output_format)


def test_run_is_its_layers(network):
    x = samples.data(network)
    integers = network.input_format.quantize(x)
    def step(layer, given):
        return layer(given if layer.kind == "concat" else given[0])

    expected = network.walk({"input": integers}, step)[network.exit]
    result = network.run(x)
    np.testing.assert_array_equal(result.integers, expected)
    np.testing.assert_array_equal(network.run_integers(integers), expected)
    np.testing.assert_array_equal(result.real, network.output_format.real(expected))


def test_large_batches_are_cut(network, monkeypatch):
    x = network.input_format.quantize(samples.data(network))
    whole = network.run_integers(x)
    monkeypatch.setattr("circulant.sim.golden.network.BATCH", 7)
    np.testing.assert_array_equal(network.run_integers(x), whole)
    assert network.run_integers(x[:0]).shape == (0, *whole.shape[1:])


def test_formats(network):
    assert network.input_format == network.layers[0].input_format
    assert network.output_format == network.layers[-1].output_format


def test_vectors(network):
    x = samples.data(network)
    vectors = network.vectors(x)
    np.testing.assert_array_equal(vectors.inputs, network.input_format.quantize(x))
    np.testing.assert_array_equal(vectors.outputs, network.run(x).integers)
    assert (vectors.network, len(vectors)) == (network.hash, 20)


def test_inputs_saturate(network):
    x = samples.data(network)
    np.testing.assert_array_equal(network.run(1e9 * np.sign(x)).integers, network.run(1e12 * np.sign(x)).integers)


# State.

@pytest.mark.parametrize("name", ["last", "sequence", "before", "lstm"])
def test_pieces_of_sequences_give_what_whole_ones_give(name):
    network = NETWORKS[name]
    x = network.input_format.quantize(samples.data(network))
    whole, end = network.resume(x, network.initial(len(x)))
    np.testing.assert_array_equal(whole, network.run_integers(x))
    states, pieces = network.initial(len(x)), []
    for piece in (x[:, :1], x[:, 1:4], x[:, 4:]):
        y, states = network.resume(piece, states)
        pieces.append(y)
    np.testing.assert_array_equal(np.concatenate(pieces, axis=1) if network.per_step else pieces[-1], whole)
    assert [state is None for state in states] == [layer.kind == "linear" for layer in network.layers]
    for one, other in zip(states, end, strict=True):
        np.testing.assert_equal(one, other)


def test_state_of_other_sequences():
    network = NETWORKS["last"]
    x = network.input_format.quantize(samples.data(network))
    assert refused(network.resume, x, network.initial(3)) == (
        "The state of layer 'gru' must have the shape (20, 6), not (3, 6); go on with what run returned")


def test_pieces_of_what_goes_both_ways():
    network = NETWORKS["both"]
    x = network.input_format.quantize(samples.data(network))
    assert refused(network.resume, x, network.initial(len(x))) == (
        "A sequence can be continued piece by piece if all layers run forward, but layer 'both' is bidirectional; "
        "run whole sequences")


# Refusals.

def test_init_wrong_format():
    layers = samples.gru(), samples.linear(6, 3, 2, input=(16, 3), spectrum=(17, 2))
    assert refused(Network.chain, "net", 5, True, layers) == (
        f"Layer 'linear' must take the {Format(16, 15)} of layer 'gru', not {Format(16, 3)}; quantize the network "
        "again")


def test_init_wrong_chain():
    """As for the model in float64."""
    layer = samples.gru()
    assert refused(Network.chain, "net", 5, True, ()) == (
        "Network 'net' must have at least one layer, not none; add a GRU or a Linear")
    assert refused(Network.chain, "net", 4, True, (layer,)) == (
        "Layer 'gru' must take the 4 values that come before it, not 5; give it that size")
    assert refused(Network.chain, "net", 5, False, (layer,)).startswith("Layer 'gru' needs a sequence, ")
    assert refused(Network.chain, "net", 5, True, (layer, samples.linear(6, 3, 2, name="gru"))).startswith(
        "The layers of network 'net' must have different names, but two are called 'gru'; ")


@pytest.mark.parametrize(("name", "shape"), [
    ("last", (2, 5)), ("last", (2, 3, 4)), ("last", (0, 3, 5)), ("last", (2, 0, 5)), ("vectors", (5,)),
    ("vectors", (2, 3, 5)), ("vectors", (2, 6))])
def test_run_wrong_shape(name, shape):
    axes = "(N, 5)" if name == "vectors" else "(N, T, 5)"
    for method in (NETWORKS[name].run, NETWORKS[name].vectors):
        assert refused(method, np.zeros(shape)) == (
            f"Inputs of network 'sample' must have the shape {axes} and be not empty, not {shape}; rearrange the axes")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_run_not_finite(network, value):
    x = samples.data(network)
    x.flat[-1] = value
    for method in (network.run, network.vectors):
        assert refused(method, x) == (
            "Only finite values can be quantized, but the tensor holds NaN or infinity; find out where it comes from")
