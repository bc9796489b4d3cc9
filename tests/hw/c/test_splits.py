"""The C of networks against the golden model on whole test splits of real data.

The weights are random and the formats are those of the data: what is compared are integers, whatever they mean.
"""
from itertools import pairwise

import numpy as np
import pytest

from circulant.hw.c import Emulator, generate_c
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.training.data import load_data
from tests.data import real
from tests.sim import samples

RNG_SEED = 7


def recurrent(kind, inputs, hidden, classes):
    if kind == "lstm":
        first = samples.lstm(inputs, hidden, k=8, scale=0.2, peephole=True, projection=hidden // 2, returns="last")
    else:
        first = samples.model(inputs, hidden, k=(8, 8, 1), scale=0.2, reset=kind).layers[0]
    weight = np.random.default_rng(RNG_SEED).normal(0, 0.3, (-(-classes // 2), -(-first.outputs // 2), 2))
    last = FloatLinear("last", first.outputs, classes, weight, np.zeros(classes))
    return float_model.Model.chain("reader", inputs, True, (first, last))


def perceptron(inputs, hidden, classes):
    rng, sizes = np.random.default_rng(RNG_SEED), (inputs, hidden, hidden, classes)
    layers = [FloatLinear(f"fc{n}", before, after, rng.normal(0, (2 * 8 / before) ** 0.5, (
        -(-after // 8), -(-before // 8), 8)) / 8 ** 0.5, rng.normal(0, 0.1, after), relu=n < 3)
        for n, (before, after) in enumerate(pairwise(sizes), 1)]
    return float_model.Model.chain("perceptron", inputs, False, tuple(layers))


def compare(model, calibration, x):
    """Every integer of every output; outputs that differ from sample to sample, so that something was compared."""
    network = quantize(model, calibration)
    golden = network.run(x).integers
    emulated = Emulator(network).run(x).integers
    assert len(golden) == len(x)
    assert np.array_equal(emulated, golden), f"{(emulated != golden).sum()} of {golden.size} integers differ"
    assert len(np.unique(golden, axis=0)) > len(x) / 2
    return network


@pytest.mark.parametrize("kind", ["after", "before", "lstm"])
def test_digits(kind):
    data = load_data("digits")
    compare(recurrent(kind, 8, 32, 10), data.train_x[:200], data.test_x)


@real("fsdd")
@pytest.mark.parametrize("kind", ["after", "lstm"])
def test_fsdd(kind):
    """Spoken digits, with as many steps as the longest one has."""
    data = load_data("fsdd")
    compare(recurrent(kind, data.test_x.shape[-1], 32, 10), data.train_x[:60], data.test_x)


@real("mnist")
def test_mnist():
    """10,000 images through a perceptron of nothing but Linear layers, ReLUs between them."""
    data = load_data("mnist", layout="flat", subset=500)
    compare(perceptron(784, 64, 10), data.train_x, data.test_x.reshape(len(data.test_x), -1))


def test_a_perceptron_on_32_bit_arm(tmp_path, make):
    """What a microcontroller runs: images of digits through Linear layers, plain C for one lane."""
    data = load_data("digits")
    x = data.test_x.reshape(len(data.test_x), -1)
    network = quantize(perceptron(64, 32, 10), data.train_x.reshape(len(data.train_x), -1))
    folder = generate_c(network, network.vectors(x)).write(tmp_path / "c")
    status, out = make(folder, "arm", needs=("make", "arm-linux-gnueabihf-gcc", "qemu-arm"))
    assert (status, "PASS: 8 of 8 vectors equal the golden model" in out) == (0, True), out
