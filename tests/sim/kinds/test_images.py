"""Networks over images: the reference equals torch's functions, and the golden model is close to it."""
import json

import numpy as np
import pytest
import torch
from torch.nn import functional

from circulant.sim.arith.circulant import dense
from circulant.sim.error.ranges import analyse
from circulant.sim.golden.network import Network
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window

RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(-1, 1, (12, 3, 8, 7))


def conv(name, inputs, outputs, grid, k, window, relu=True):
    shape = (window.positions, -(-outputs // k), -(-inputs // k), k)
    return FloatConv(name, inputs=inputs, outputs=outputs, grid=grid, window=window,
                     weight=RNG.normal(0, 0.3, shape), bias=RNG.normal(0, 0.3, outputs), relu=relu)


def linear(name, inputs, outputs, k):
    return FloatLinear(name, inputs, outputs, RNG.normal(0, 0.3, (-(-outputs // k), -(-inputs // k), k)),
                       RNG.normal(0, 0.3, outputs))


SAME, HALF = Window((3, 3), padding=(1, 1)), Window((2, 2), (2, 2))


def small(order="channels"):
    """A residual network with everything that there is: 8 x 7 images of 3 channels."""
    body = (conv("a", 6, 8, grid=(8, 7), k=4, window=Window((3, 3), (2, 2), (1, 1))),
            conv("b", 8, outputs=8, grid=(4, 4), k=8, window=SAME, relu=False),
            FloatScale("norm", 8, RNG.uniform(0.5, 1.5, 8), RNG.normal(0, 0.2, 8)))
    shortcut = (conv("c", 6, outputs=8, grid=(8, 7), k=2, window=Window((1, 1), (2, 2)), relu=False),)
    return float_model.Model.chain("small", 3, False, (
        conv("first", 3, 6, grid=(8, 7), k=1, window=SAME),
        float_model.Residual("sum", 6, grid=(8, 7), body=body, shortcut=shortcut, relu=True),
        FloatPool("pool", 8, (4, 4), HALF, "max"),
        FloatPool("mean", 8, (2, 2), Window((2, 1)), "average"),
        FloatFlatten("flatten", 8, (1, 2), order), linear("out", 16, 5, 4)), (3, 8, 7))


def matrix(layer):
    """The weight (outputs, inputs, height, width) of a convolution in torch."""
    full = np.stack([dense(position)[:layer.outputs, :layer.inputs] for position in layer.weight], axis=-1)
    return torch.from_numpy(full.reshape(layer.outputs, layer.inputs, *layer.window.kernel))


def by_torch(layer, x):
    if layer.kind == "conv":
        y = functional.conv2d(x, matrix(layer), torch.from_numpy(layer.bias), layer.window.stride, layer.window.padding)
        return functional.relu(y) if layer.relu else y
    if layer.kind == "scale":
        return x * torch.from_numpy(layer.scale)[:, None, None] + torch.from_numpy(layer.shift)[:, None, None]
    if layer.kind == "pool":
        pool = functional.max_pool2d if layer.mode == "max" else functional.avg_pool2d
        return pool(x, layer.window.kernel, layer.window.stride, layer.window.padding)
    if layer.kind == "flatten":
        return x.flatten(1) if layer.order == "channels" else x.movedim(1, -1).flatten(1)
    if layer.kind == "linear":
        weight = dense(layer.weight)[:layer.outputs, :layer.inputs]
        return functional.linear(x, torch.from_numpy(weight), torch.from_numpy(layer.bias))
    return functional.relu(sum(x))


@pytest.mark.parametrize("order", ["pixels", "channels"])
def test_the_reference_equals_torch(order):
    model, x = small(order), torch.from_numpy(IMAGES)

    def step(layer, given):
        return by_torch(layer, given if layer.kind == "add" else given[0])

    found = model.walk({model.entry.name: x}, step)
    np.testing.assert_allclose(model.run(IMAGES), found["out"].numpy(), rtol=0, atol=1e-12)


def test_golden_is_close_and_survives_a_file(tmp_path):
    model = small()
    network = quantize(model, IMAGES, weight_bits=18, activation_bits=18)
    exact = model.run(IMAGES)
    assert np.abs(network.run(IMAGES).real - exact).max() < 1e-3 * np.abs(exact).max()
    network.save(tmp_path)
    loaded = Network.load(tmp_path)
    assert loaded.hash == network.hash and loaded.shape == (3, 8, 7)
    vectors = loaded.vectors(IMAGES)
    assert vectors.inputs.shape == (12, 56, 3) and vectors.outputs.shape == (12, 5)
    assert np.array_equal(vectors.outputs, network.run(IMAGES).integers)
    assert np.array_equal(vectors.outputs, network.run_integers(vectors.inputs))
    document = json.loads((tmp_path / "network.json").read_text())
    assert [(node["kind"], node["sources"]) for node in document["nodes"]][-5:] == [
        ("add", ["norm", "c"]), ("pool", ["sum"]), ("pool", ["pool"]), ("flatten", ["mean"]), ("linear", ["flatten"])]


def test_every_tensor_is_seen_and_bounded():
    model = small()
    network = quantize(model, IMAGES, weight_bits=14)
    ranges = {each.name: each for each in analyse(network, IMAGES, model)}
    assert {"first.product.spectrum", "a.product.sums", "norm.y", "sum.y", "pool.y", "mean.y", "out.product.output"
            } <= set(ranges)
    for name, each in ranges.items():
        if name not in ("first.product.output", "a.product.output"):  # A ReLU takes what saturates there.
            assert each.sqnr is not None and each.sqnr > 40, name
        assert max(-each.lo, each.hi) <= 1.01 * each.worst + each.format.step, name


@pytest.mark.parametrize(("shape", "message"), [
    ((12, 3, 8, 8), r"Inputs of network 'small' must have the shape \(N, 3, 8, 7\) and be not empty, not"),
    ((0, 3, 8, 7), r"Inputs of network 'small' must have the shape \(N, 3, 8, 7\) and be not empty, not")])
def test_data_of_wrong_shape(shape, message):
    with pytest.raises(Refusal, match=f"^{message}"):
        small().run(np.zeros(shape))


def test_layers_that_do_not_fit():
    model = small()
    with pytest.raises(Refusal, match=r"^Layer 'pool' must take the images of 8 x 7 with 8 channels that come before"):
        float_model.Model.chain("bad", 3, False, (conv("first", 3, 8, grid=(8, 7), k=1, window=SAME), model.layers[-4]),
                          (3, 8, 7))
    with pytest.raises(Refusal, match=r"^Layer 'out' must take vectors, not the images of 8 x 7 with 16 channels"):
        float_model.Model.chain("bad", 3, False, (
            conv("first", 3, 16, grid=(8, 7), k=1, window=SAME), model.layers[-1]), (3, 8, 7))
    with pytest.raises(Refusal, match=r"^Layer 'sum': both branches must give the same, not images of 8 x 7 with 4"):
        float_model.Model.chain("bad", 3, False, (
            float_model.Residual("sum", 3, (8, 7), (conv("a", 3, 4, grid=(8, 7), k=1, window=SAME),), ()),), (3, 8, 7))
    with pytest.raises(Refusal, match=r"^The layers of network 'bad' must have different names, but two are called"):
        float_model.Model.chain("bad", 3, False, (float_model.Residual(
            "sum", 3, (8, 7), (conv("a", 3, 3, grid=(8, 7), k=1, window=SAME),),
            (conv("a", 3, 3, grid=(8, 7), k=1, window=SAME),)),), (3, 8, 7))
