"""Files from before a network was a graph: what they say is read into the graph that was meant."""
import numpy as np
import pytest

from circulant.sim import artifact
from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Format
from circulant.sim.golden import version4
from circulant.sim.golden.network import Network
from circulant.sim.golden.network_file import KIND, VERSION, arrays_of
from circulant.sim.kinds.linear import Linear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window
from tests.random_networks import Random
from tests.sim import samples


def both_ways():
    model = samples.chain(samples.bidirectional("lstm", 5, 6), samples.bidirectional("gru", 12, 4, name="last",
                                                                                     returns="last"))
    return quantize(model, samples.data(model))


def sums():
    r = Random(4)
    inner = float_model.Residual("inner", 6, None, (r.linear("b", 6, 6, 1),), shortcut=())
    outer = float_model.Residual("outer", 6, None, (r.linear("a", 6, 6, 2), inner), (r.linear("aside", 6, 6, 1),),
                                 relu=True)
    return r.network([r.linear("first", 5, 6, 2), outer, r.linear("out", 6, 3, 1)], 5)


def images():
    r = Random(5)
    body = (r.conv("conv", 4, 4, 2, grid=(4, 3), window=Window((3, 3), (1, 1), (1, 1)), relu=True),)
    return r.network([float_model.Residual("sum", 4, (4, 3), body, (), relu=True)], 4, shape=(4, 4, 3))


def write(network, folder):
    """The files that the release before wrote; returns the hash."""
    arrays = arrays_of(network)
    artifact.write_npz(folder / "weights.npz", "circulant-weights", version4.VERSION, arrays)
    return artifact.write_json(folder / "network.json", KIND, version4.VERSION,
                               version4.body(network, artifact.digest_arrays(arrays)))


@pytest.mark.parametrize("make", [both_ways, sums, images])
def test_a_file_of_version_4_is_read_into_the_graph_and_keeps_its_hash(make, tmp_path):
    network = make()
    sha = write(network, tmp_path)
    read = Network.load(tmp_path)
    assert read.hash == sha != network.hash
    assert read.body == network.body
    read.save(tmp_path / "new")
    again = Network.load(tmp_path / "new")
    assert (again.hash, artifact.read_json(tmp_path / "new" / "network.json", KIND, VERSION)["hash"]) == (
        network.hash, network.hash)


def test_the_hash_of_version_4_is_that_of_the_release():
    form = Format(8, 4)
    product = Product(np.arange(-4, 4).reshape(1, 2, 4), bias=np.arange(4), weight=form, input=form,
                      spectrum=Format(10, 4), product=Format(16, 8), output=form, twiddle_bits=16)
    network = Network.chain("pinned", 7, False, (Linear("linear", 7, 3, product),))
    body = version4.body(network, artifact.digest_arrays(arrays_of(network)))
    assert artifact.digest(body) == "90f21f73235f5d60374f7ad7d86d568b1ec857d7991b31a626b8a1ca0fc722ea"


@pytest.mark.parametrize(("change", "words"), [
    (lambda body: body["layers"][1]["body"][0]["product"].update(block_size=4),
     "field 'layers[1].body[0].product.block_size' must be 2, as the other fields and the weights have it, not 4"),
    (lambda body: body["layers"][1].update(inputs=9), "field 'layers[1].inputs' must be 6, as the other fields"),
    (lambda body: body["layers"][1].update(kind="sum"), "field 'layers[1].kind' must be 'activation', 'argmax', "),
    (lambda body: body.update(sources=[]), "field 'sources' must not be there")])
def test_nonsense_under_a_right_hash_is_refused(change, words, tmp_path):
    write(sums(), tmp_path)
    body = artifact.read_json(tmp_path / "network.json", KIND, version4.VERSION)
    del body["hash"]
    change(body)
    artifact.write_json(tmp_path / "network.json", KIND, version4.VERSION, body)
    with pytest.raises(Refusal) as caught:
        Network.load(tmp_path)
    assert words in str(caught.value) and "\n" not in str(caught.value)
