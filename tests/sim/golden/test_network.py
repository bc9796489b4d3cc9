import dataclasses
import json
import os
import re
import shutil

import numpy as np
import pytest

from circulant.sim import artifact
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.linear import Linear
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from circulant.sim.vectors import Vectors
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


def refusal(make, *arguments, **fields):
    with pytest.raises(Refusal) as caught:
        make(*arguments, **fields)
    return str(caught.value)


# Running.

@pytest.mark.parametrize(("name", "outputs", "per_step", "shape"), [
    ("last", 3, False, (20, 3)), ("sequence", 3, True, (20, 7, 3)), ("vectors", 3, False, (20, 3)),
    ("blocks", 5, False, (20, 5)), ("before", 5, False, (20, 5)), ("lstm", 3, True, (20, 7, 3)),
    ("both", 6, False, (20, 6))])
def test_sizes(name, outputs, per_step, shape):
    network = NETWORKS[name]
    result = network.run(samples.data(MODELS[name]))
    assert (network.outputs, network.per_step) == (outputs, per_step)
    assert result.integers.shape == result.real.shape == shape
    assert (result.integers.dtype, result.real.dtype) == (np.int64, np.float64)


def test_outputs_of_a_gru():
    layer = samples.gru(returns="sequence")
    network = Network("gru", 5, True, (layer,))
    assert (network.outputs, network.per_step, network.output_format) == (6, True, layer.output_format)


def test_run_is_its_layers(network):
    x = samples.data(network)
    integers = network.input_format.quantize(x)
    expected = network.layers[1](network.layers[0](integers))
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
    assert refusal(network.resume, x, network.initial(3)) == (
        "The state of layer 'gru' must have the shape (20, 6), not (3, 6); go on with what run returned")


def test_pieces_of_what_goes_both_ways():
    network = NETWORKS["both"]
    x = network.input_format.quantize(samples.data(network))
    assert refusal(network.resume, x, network.initial(len(x))) == (
        "A sequence can be continued piece by piece if all layers run forward, but layer 'both' is bidirectional; "
        "run whole sequences")


# Files.

def test_save_and_load(network, tmp_path):
    network.save(tmp_path / "new")
    assert sorted(os.listdir(tmp_path / "new")) == ["network.json", "weights.npz"]
    read = Network.load(tmp_path / "new")
    x = samples.data(network)
    np.testing.assert_array_equal(read.run(x).integers, network.run(x).integers)
    assert read.hash == network.hash == json.loads((tmp_path / "new" / "network.json").read_text())["hash"]
    assert read._body == network._body
    for name, array in network._arrays.items():
        np.testing.assert_array_equal(read._arrays[name], array)
        assert read._arrays[name].dtype == np.int64


def test_saving_twice_gives_the_same_files(folder, tmp_path):
    Network.load(folder).save(tmp_path / "again")
    for name in ("network.json", "weights.npz"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_vectors_belong_to_a_loaded_network(folder):
    network = Network.load(folder)
    network.vectors(samples.data(network)).save(folder / "vectors.npz")
    vectors = Vectors.load(folder / "vectors.npz")
    assert vectors.network == NETWORKS["last"].hash
    np.testing.assert_array_equal(network.run_integers(vectors.inputs), vectors.outputs)


def test_a_perceptron_over_images(tmp_path):
    model = samples.perceptron(24, 12, 6, 3, shape=(2, 3, 4))
    images = np.random.default_rng(0).uniform(-1, 1, (20, 2, 3, 4))
    network = quantize(model, images, weight_bits=16)
    network.save(tmp_path)
    loaded = Network.load(tmp_path)
    assert (loaded.shape, [layer.relu for layer in loaded.layers]) == ((2, 3, 4), [True, True, False])
    got, flat = loaded.run(images), network.run(images.reshape(20, 24))
    assert np.array_equal(got.integers, flat.integers)
    assert np.abs(got.real - model.run(images)).max() < 0.01
    assert loaded.vectors(images).inputs.shape == (20, 24)


def test_network_json_says_every_format(folder):
    document = json.loads((folder / "network.json").read_text())
    assert document["format"] == "circulant-network"
    assert document["version"] == 4
    gru, last = document["layers"]
    assert (gru["kind"], gru["hidden"], gru["returns"], gru["reset"]) == ("gru", 6, "last", "after")
    assert (last["kind"], last["outputs"]) == ("linear", 3)
    for product, k in (*((gru[role], 4) for role in (
            "input_product", "recurrent_product", "candidate_input", "candidate_recurrent")), (last["product"], 1)):
        assert product["block_size"] == k
        assert product["twiddle_bits"] == 16
        for tensor in ("weight", "input", "spectrum", "product", "output"):
            assert product[tensor].keys() == {"width", "frac"}


def test_hash_changes_with_any_bit_of_any_integer():
    network = NETWORKS["last"]
    hashes, count = {network.hash}, 1
    for array in network._arrays.values():
        for place in range(array.size):
            for bit in (0, 5):
                array.flat[place] ^= 1 << bit
                hashes.add(dataclasses.replace(network).hash)
                array.flat[place] ^= 1 << bit
                count += 1
    assert len(hashes) == count > 300
    assert dataclasses.replace(network).hash == network.hash


def test_hash_changes_with_every_field():
    network = NETWORKS["last"]
    gru, last = network.layers

    def with_layers(*layers):
        return dataclasses.replace(network, layers=layers)

    def with_product(**fields):
        return with_layers(gru, dataclasses.replace(last, product=dataclasses.replace(last.product, **fields)))

    other = [
        network, dataclasses.replace(network, name="other"),
        with_layers(gru, dataclasses.replace(last, name="other")),
        with_layers(dataclasses.replace(gru, name="other"), last),
        with_layers(dataclasses.replace(gru, returns="sequence"), last),
        with_layers(dataclasses.replace(gru, reset="before", candidate_recurrent=None, candidate=JointProduct((
            gru.candidate, dataclasses.replace(gru.candidate_recurrent, bias=0 * gru.candidate.bias)))), last),
        with_product(twiddle_bits=15),
        *(with_product(**{tensor: dataclasses.replace(getattr(last.product, tensor), frac=5)})
          for tensor in ("weight", "spectrum", "product", "output")),
        *(with_product(**{tensor: dataclasses.replace(getattr(last.product, tensor), width=30)})
          for tensor in ("weight", "spectrum", "product", "output")),
        with_layers(dataclasses.replace(gru, tanh=dataclasses.replace(gru.tanh, slope_format=Format(20, 16))), last),
        with_layers(dataclasses.replace(gru, tanh=dataclasses.replace(gru.tanh, base_format=Format(20, 18))), last),
        with_layers(dataclasses.replace(gru, tanh=dataclasses.replace(
            gru.tanh, start=gru.tanh.start + (gru.tanh.start > 0))), last),
        with_layers(dataclasses.replace(gru, tanh=dataclasses.replace(gru.tanh, function="sigmoid")), last),
    ]
    assert len({each.hash for each in other}) == len(other)


def test_hash_is_the_same_on_every_machine():
    """Files of one machine are read on another: what the hash is made of is part of their format, with its version."""
    form = Format(8, 4)
    product = Product(np.arange(-4, 4).reshape(1, 2, 4), bias=np.arange(4), weight=form, input=form,
                      spectrum=Format(10, 4), product=Format(16, 8), output=form, twiddle_bits=16)
    assert Network("pinned", 7, False, (Linear("linear", 7, 3, product),)).hash == (
        "90f21f73235f5d60374f7ad7d86d568b1ec857d7991b31a626b8a1ca0fc722ea")


# Refusals.

def test_init_wrong_format():
    layers = samples.gru(), samples.linear(6, 3, 2, input=(16, 3), spectrum=(17, 2))
    assert refusal(Network, "net", 5, True, layers) == (
        f"Layer 'linear' must take the {Format(16, 15)} of layer 'gru', not {Format(16, 3)}; quantize the network "
        "again")


def test_init_wrong_chain():
    """As for the model in float64."""
    layer = samples.gru()
    assert refusal(Network, "net", 5, True, ()) == (
        "Network 'net' must have at least one layer, not none; add a GRU or a Linear")
    assert refusal(Network, "net", 4, True, (layer,)) == (
        "Layer 'gru' must take the 4 values that come before it, not 5; give it that size")
    assert refusal(Network, "net", 5, False, (layer,)).startswith("Layer 'gru' needs a sequence, ")
    assert refusal(Network, "net", 5, True, (layer, samples.linear(6, 3, 2, name="gru"))).startswith(
        "The layers of network 'net' must have different names, but two are called 'gru'; ")


@pytest.mark.parametrize(("name", "shape"), [
    ("last", (2, 5)), ("last", (2, 3, 4)), ("last", (0, 3, 5)), ("last", (2, 0, 5)), ("vectors", (5,)),
    ("vectors", (2, 3, 5)), ("vectors", (2, 6))])
def test_run_wrong_shape(name, shape):
    axes = "(N, 5)" if name == "vectors" else "(N, T, 5)"
    for method in (NETWORKS[name].run, NETWORKS[name].vectors):
        assert refusal(method, np.zeros(shape)) == (
            f"Inputs of network 'sample' must have the shape {axes} and be not empty, not {shape}; rearrange the axes")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_run_not_finite(network, value):
    x = samples.data(network)
    x.flat[-1] = value
    for method in (network.run, network.vectors):
        assert refusal(method, x) == (
            "Only finite values can be quantized, but the tensor holds NaN or infinity; find out where it comes from")


@pytest.mark.parametrize("name", ["network.json", "weights.npz"])
def test_load_missing(folder, name):
    (folder / name).unlink()
    assert refusal(Network.load, folder) == (
        f"{folder / name} must exist, but it is missing; run the step that writes it first")


def test_load_missing_folder(tmp_path):
    assert refusal(Network.load, str(tmp_path / "nowhere")) == (
        f"{tmp_path / 'nowhere' / 'network.json'} must exist, but it is missing; run the step that writes it first")


def rewrite(folder, **fields):
    path = folder / "network.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return path


def test_load_wrong_format(folder):
    path = rewrite(folder, format="circulant-design")
    assert refusal(Network.load, folder) == (
        f"{path}: field 'format' must be 'circulant-network', not 'circulant-design'; give the right file")


def test_load_wrong_version(folder):
    path = rewrite(folder, version=1)
    assert refusal(Network.load, folder) == (
        f"{path}: field 'version' must be 4, not 1; write the file again with this version of circulant")


@pytest.mark.parametrize("fields", [{"name": "other"}, {"hash": "0" * 64}, {"layers": []}, {"extra": 1}])
def test_load_wrong_hash(folder, fields):
    path = rewrite(folder, **fields)
    assert re.match(rf"^{re.escape(str(path))}: field 'hash' must be that of the contents \([0-9a-f]{{12}}…\), not "
                    r"'[0-9a-f]{12}'; the file was changed or damaged: run the step that writes it again$",
                    refusal(Network.load, folder))


@pytest.mark.parametrize(("change", "words"), [
    (lambda body: body.update(inputs=-1), "field 'inputs' must be an integer from 1 to 16777216, not -1"),
    (lambda body: body.update(inputs=5.0), "field 'inputs' must be an integer from 1 to 16777216, not 5.0"),
    (lambda body: body.update(sequence=1), "field 'sequence' must be true or false, not 1"),
    (lambda body: body.update(shape=[1] * 4), "field 'shape' must be a list, not [1, 1, 1, 1]"),
    (lambda body: body.update(layers={}), "field 'layers' must be a list of at least 1 elements, not {}"),
    (lambda body: body.update(more=1), "field 'more' must not be there"),
    (lambda body: body.pop("name"), "field 'name' must be there, but it is missing"),
    (lambda body: body["layers"][0].pop("sigmoid"), "field 'layers[0].sigmoid' must be there, but it is missing"),
    (lambda body: body["layers"][0]["tanh"].update(reach=5000), "field 'layers[0].tanh.reach' must be an integer from"),
    (lambda body: body["layers"][1]["product"].update(block_size=3),
     "field 'layers[1].product.block_size' must be 1, as the other fields and the weights have it, not 3"),
    (lambda body: body["layers"][1]["product"]["weight"].update(width=63),
     "field 'layers[1].product.weight.width' must be an integer from 1 to 62, not 63"),
    (lambda body: body["layers"][1]["product"]["weight"].update(frac=10 ** 9),
     "field 'layers[1].product.weight.frac' must be an integer from -1000 to 1000, not 1000000000"),
    (lambda body: body["layers"][1]["product"]["weight"].update(width=2), ": The weights must lie in the 2-bit format"),
    (lambda body: body["layers"][1].update(name="other"), ": The array 'other.product.weights' must be 64-bit integers "
     "with 3 axes, not missing; quantize again"),
    (lambda body: body["layers"][1].update(outputs=9), ": Layer 'last': the matrix for 6 inputs and 9 outputs must be"),
])
def test_load_nonsense_under_a_right_hash(folder, change, words):
    path = folder / "network.json"
    body = artifact.read_json(path, "circulant-network", Network.VERSION)
    del body["hash"]
    change(body)
    artifact.write_json(path, "circulant-network", Network.VERSION, body)
    assert (said := refusal(Network.load, folder)).startswith(f"{path}: ")
    assert words in said and "\n" not in said


@pytest.mark.parametrize("change", [
    lambda array: array.astype(float), lambda array: array.astype(np.int32), lambda array: array[None],
    lambda array: array[:0], lambda array: array.astype(str)], ids=["float", "narrow", "axes", "empty", "text"])
def test_load_weights_of_another_type_or_shape(folder, change):
    arrays, _ = artifact.read_npz(folder / "weights.npz", "circulant-weights", Network.VERSION)
    arrays["gru.input_product.weights"] = change(arrays["gru.input_product.weights"])
    artifact.write_npz(folder / "weights.npz", "circulant-weights", Network.VERSION, arrays)
    body = artifact.read_json(folder / "network.json", "circulant-network", Network.VERSION)
    del body["hash"]
    artifact.write_json(folder / "network.json", "circulant-network", Network.VERSION,
                        body | {"weights": artifact.digest_arrays(arrays)})
    assert "The array 'gru.input_product.weights' must be 64-bit integers with 3 axes, not " in refusal(
        Network.load, folder)


def test_load_wrong_kind_of_layer(folder):
    body = artifact.read_json(folder / "network.json", "circulant-network", Network.VERSION)
    del body["hash"]
    body["layers"][0]["kind"] = "attention"
    artifact.write_json(folder / "network.json", "circulant-network", Network.VERSION, body)
    assert refusal(Network.load, folder) == (
        f"{folder / 'network.json'}: field 'layers[0].kind' must be 'linear', 'gru', 'lstm', 'rnn', 'bidirectional', "
        "'conv', 'pool', 'flatten', 'scale', 'activation', 'residual', 'over_time' or 'argmax', not 'attention'; "
        "the file was changed or damaged: run the step that writes it again")


def test_load_wrong_weights(folder, tmp_path):
    path = folder / "weights.npz"
    NETWORKS["vectors"].save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "weights.npz", path)
    assert refusal(Network.load, folder) == (
        f"{path} must be the weights of network.json beside it, but it is another network's; quantize again")


def test_load_wrong_weights_file(folder):
    path = folder / "weights.npz"
    artifact.write_npz(path, "circulant-vectors", 1, {})
    assert refusal(Network.load, folder) == (
        f"{path}: field 'format' must be 'circulant-weights', not 'circulant-vectors'; give the right file")
    artifact.write_npz(path, "circulant-weights", 1, {})
    assert refusal(Network.load, folder) == (
        f"{path}: field 'version' must be 4, not 1; write the file again with this version of circulant")
    path.write_bytes(path.read_bytes()[:100])
    assert re.match(rf"^{re.escape(str(path))} must be a circulant-weights archive, but it is not \(.+\); write it "
                    "again$", refusal(Network.load, folder))


@pytest.mark.parametrize("written", [0, 1])
def test_killed_writer(folder, monkeypatch, written):
    """Before the first file the old network stands, between the two files neither does, and it is said."""
    old, new = NETWORKS["last"], quantize(samples.model(seed=1), samples.data(samples.model()))
    replace, calls = os.replace, []

    def killed(source, target):
        calls.append(target)
        if len(calls) > written:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        new.save(folder)
    assert sorted(os.listdir(folder)) == ["network.json", "weights.npz"]
    if written:
        assert refusal(Network.load, folder) == (
            f"{folder / 'weights.npz'} must be the weights of network.json beside it, but it is another network's; "
            "quantize again")
    else:
        assert Network.load(folder).hash == old.hash
