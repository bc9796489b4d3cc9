import dataclasses
import json
import os
import re

import numpy as np
import pytest

from circulant.sim import artifact
from circulant.sim.arith.circulant import JointProduct, Product
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.golden.network_file import KIND, VERSION, arrays_of
from circulant.sim.kinds.linear import Linear
from circulant.sim.kinds.registry import KINDS
from circulant.sim.quantize.quantize import quantize
from circulant.sim.vectors import Vectors
from tests.refused import refused
from tests.sim import samples
from tests.sim.golden.test_network import NETWORKS
from tests.sim.samples import rebuilt


@pytest.fixture
def folder(tmp_path):
    NETWORKS["last"].save(tmp_path)
    return tmp_path


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_save_and_load(network, tmp_path):
    network.save(tmp_path / "new")
    assert sorted(os.listdir(tmp_path / "new")) == ["network.json", "weights.npz"]
    read = Network.load(tmp_path / "new")
    x = samples.data(network)
    np.testing.assert_array_equal(read.run(x).integers, network.run(x).integers)
    assert read.hash == network.hash == json.loads((tmp_path / "new" / "network.json").read_text())["hash"]
    assert read.body == network.body
    for name, array in arrays_of(network).items():
        np.testing.assert_array_equal(arrays_of(read)[name], array)
        assert arrays_of(read)[name].dtype == np.int64


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
    assert document["version"] == 5
    gru, last = document["nodes"]
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
    for array in arrays_of(network).values():
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
        return rebuilt(network, *layers)

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
    assert Network.chain("pinned", 7, False, (Linear("linear", 7, 3, product),)).hash == (
        "b5bdca600649079775e20d363d00d2152be5fba578b0f53e6c91a11bd981bbc9")


# Refusals.

@pytest.mark.parametrize("name", ["network.json", "weights.npz"])
def test_load_missing(folder, name):
    (folder / name).unlink()
    assert refused(Network.load, folder) == (
        f"{folder / name} must exist, but it is missing; run the step that writes it first")


def test_load_missing_folder(tmp_path):
    assert refused(Network.load, str(tmp_path / "nowhere")) == (
        f"{tmp_path / 'nowhere' / 'network.json'} must exist, but it is missing; run the step that writes it first")


def rewrite(folder, **fields):
    path = folder / "network.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return path


def test_load_wrong_format(folder):
    path = rewrite(folder, format="circulant-design")
    assert refused(Network.load, folder) == (
        f"{path}: field 'format' must be 'circulant-network', not 'circulant-design'; give the right file")


def test_load_wrong_version(folder):
    path = rewrite(folder, version=1)
    assert refused(Network.load, folder) == (
        f"{path}: field 'version' must be 5, not 1; write the file again with this version of circulant")


@pytest.mark.parametrize("fields", [{"name": "other"}, {"hash": "0" * 64}, {"nodes": []}, {"extra": 1}])
def test_load_wrong_hash(folder, fields):
    path = rewrite(folder, **fields)
    assert re.match(rf"^{re.escape(str(path))}: field 'hash' must be that of the contents \([0-9a-f]{{12}}…\), not "
                    r"'[0-9a-f]{12}'; the file was changed or damaged: run the step that writes it again$",
                    refused(Network.load, folder))


@pytest.mark.parametrize(("change", "words"), [
    (lambda body: body["inputs"][0].update(size=-1), "'inputs[0].size' must be an integer from 1 to 16777216, not -1"),
    (lambda body: body["inputs"][0].update(size=5.0), "'inputs[0].size' must be an integer from 1 to 16777216, not 5"),
    (lambda body: body["inputs"][0].update(sequence=1), "field 'inputs[0].sequence' must be true or false, not 1"),
    (lambda body: body["inputs"][0].update(shape=[1] * 4), "field 'inputs[0].shape' must be a list, not [1, 1, 1, 1]"),
    (lambda body: body.update(nodes={}), "field 'nodes' must be a list of at least 1 elements, not {}"),
    (lambda body: body.update(outputs=["gru"]), ": Each input and layer of network 'sample' must be taken by a layer "
     "or be an output, but nothing takes 'last'; leave it out"),
    (lambda body: body["nodes"][1].update(sources=["later"]), ": Layer 'last' must take inputs and layers that come "
     "before it, not 'later'; there are gru, input"),
    (lambda body: body["nodes"][1].update(sources=["gru", "gru"]), ": Layer 'last' must take one source, not 2"),
    (lambda body: body.update(more=1), "field 'more' must not be there"),
    (lambda body: body.pop("name"), "field 'name' must be there, but it is missing"),
    (lambda body: body["nodes"][0].pop("sigmoid"), "field 'nodes[0].sigmoid' must be there, but it is missing"),
    (lambda body: body["nodes"][0]["tanh"].update(reach=5000), "field 'nodes[0].tanh.reach' must be an integer from"),
    (lambda body: body["nodes"][1]["product"].update(block_size=3),
     "field 'nodes[1].product.block_size' must be 1, as the other fields and the weights have it, not 3"),
    (lambda body: body["nodes"][1]["product"]["weight"].update(width=63),
     "field 'nodes[1].product.weight.width' must be an integer from 1 to 62, not 63"),
    (lambda body: body["nodes"][1]["product"]["weight"].update(frac=10 ** 9),
     "field 'nodes[1].product.weight.frac' must be an integer from -1000 to 1000, not 1000000000"),
    (lambda body: body["nodes"][1]["product"]["weight"].update(width=2), ": The weights must lie in the 2-bit format"),
    (lambda body: body["nodes"][1].update(name="other"), ": The array 'other.product.weights' must be 64-bit integers "
     "with 3 axes, not missing; quantize again"),
    (lambda body: body["nodes"][1].update(outputs=9), ": Layer 'last': the matrix for 6 inputs and 9 outputs must be"),
])
def test_load_nonsense_under_a_right_hash(folder, change, words):
    path = folder / "network.json"
    body = artifact.read_json(path, KIND, VERSION)
    del body["hash"]
    change(body)
    artifact.write_json(path, KIND, VERSION, body)
    assert (said := refused(Network.load, folder)).startswith(f"{path}: ")
    assert words in said and "\n" not in said


@pytest.mark.parametrize("change", [
    lambda array: array.astype(float), lambda array: array.astype(np.int32), lambda array: array[None],
    lambda array: array[:0], lambda array: array.astype(str)], ids=["float", "narrow", "axes", "empty", "text"])
def test_load_weights_of_another_type_or_shape(folder, change):
    arrays, _ = artifact.read_npz(folder / "weights.npz", "circulant-weights", VERSION)
    arrays["gru.input_product.weights"] = change(arrays["gru.input_product.weights"])
    artifact.write_npz(folder / "weights.npz", "circulant-weights", VERSION, arrays)
    body = artifact.read_json(folder / "network.json", KIND, VERSION)
    del body["hash"]
    artifact.write_json(folder / "network.json", KIND, VERSION,
                        body | {"weights": artifact.digest_arrays(arrays)})
    assert "The array 'gru.input_product.weights' must be 64-bit integers with 3 axes, not " in refused(
        Network.load, folder)


def test_load_wrong_kind_of_layer(folder):
    body = artifact.read_json(folder / "network.json", KIND, VERSION)
    del body["hash"]
    body["nodes"][0]["kind"] = "attention"
    artifact.write_json(folder / "network.json", KIND, VERSION, body)
    *first, last = map(repr, sorted(KINDS))
    assert refused(Network.load, folder) == (
        f"{folder / 'network.json'}: field 'nodes[0].kind' must be {', '.join(first)} or {last}, not 'attention'; the "
        "file was changed or damaged: run the step that writes it again")
