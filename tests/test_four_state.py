"""Whole networks as Verilog in a simulator that knows X, where nothing has a value before its reset: every output word
equals golden."""
import sys

import numpy as np
import pytest

from circulant.hw import generate
from circulant.sim.cosim import icarus
from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.flatten import FloatFlatten
from circulant.sim.kinds.gru import FloatGru
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.lstm import FloatLstm
from circulant.sim.kinds.pool import FloatPool
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.real.float_model import Model
from circulant.sim.shape.window import Window
from tests.hw import golden

pytestmark = pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")

BITS = {"activation_bits": 10, "weight_bits": 4, "weight_scale": "row"}
RNG = np.random.default_rng(21)


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "RNG", np.random.default_rng(21))


def matrix(rows, columns, k, *first):
    spread = 1 / np.sqrt(columns * max(1, np.prod(first[1:])))
    return RNG.normal(0, spread, (*first, -(-rows // k), -(-columns // k), k))


def linear(name, inputs, outputs, k):
    return FloatLinear(name, inputs, outputs, matrix(outputs, inputs, k), RNG.normal(0, 0.5, outputs))


def gru(name, inputs, hidden, k, returns, reset="after"):
    bias_ih, bias_hh = RNG.normal(0, 0.5, (2, 3, hidden))
    return FloatGru(name, inputs=inputs, hidden=hidden, weight_ih=matrix(hidden, inputs, k, 3),
                            weight_hh=matrix(hidden, hidden, k, 3), bias_ih=bias_ih, bias_hh=bias_hh, returns=returns,
                            reset=reset)


def lstm(name, inputs, hidden, projection, k):
    bias_ih, bias_hh = RNG.normal(0, 0.5, (2, 4, hidden))
    return FloatLstm(name, inputs=inputs, hidden=hidden, outputs=projection,
                             weight_ih=matrix(hidden, inputs, k, 4), weight_hh=matrix(hidden, projection, k, 4),
                             bias_ih=bias_ih, bias_hh=bias_hh, projection=matrix(projection, hidden, k),
                             peephole=RNG.normal(0, 0.5, (3, hidden)), returns="last")


def conv(name, inputs, outputs, size, k, window):
    return FloatConv(name, inputs=inputs, outputs=outputs, grid=(size, size), window=window,
                     weight=matrix(outputs, inputs, k, window.positions),
                     bias=RNG.normal(0, 0.3, outputs), relu=True)


def lenet():
    """The kinds, kernels and block sizes of LeNet-5, over images of 12 × 12."""
    window, half = Window((5, 5), padding=(2, 2)), Window((2, 2), (2, 2))
    return (conv("conv1", 1, 4, size=12, k=1, window=window), FloatPool("pool1", 4, (12, 12), half, "max"),
            conv("conv2", 4, 6, size=6, k=2, window=Window((5, 5))), FloatPool("pool2", 6, (2, 2), half, "max"),
            FloatFlatten("flatten", 6, (1, 1), "channels"), linear("fc1", 6, 20, 8), linear("fc2", 20, 12, 16),
            linear("fc3", 12, 10, 1))


CASES = {  # Layers, shape of a sample, options of `generate`.
    "the GRU of digits-gru": (lambda: (gru("gru", 8, 64, 8, "last"), linear("out", 64, 10, 8)), (3, 8),
                              {"multipliers": 64}),
    "an LSTM with projection and peepholes": (lambda: (lstm("lstm", 5, 12, 7, 4), linear("out", 7, 5, 2)), (5, 5),
                                              {"multipliers": 40}),
    "interleaved streams": (lambda: (gru("gru", 4, 6, 2, "sequence"),), (3, 4), {"multipliers": 20, "streams": 2}),
    "both directions": (lambda: (float_model.Bidirectional("pair", *(gru(f"pair.{way}", 4, 6, 2, "sequence") for way in
                                                                     ("forward", "backward"))),
                                                                      linear("out", 12, 3, 2)),
                        (4, 4), {"multipliers": 40, "max_steps": 6}),
    "rows of the input alone, which end where the state begins": (
        lambda: (gru("gru", 3, 4, 1, "sequence", reset="before"),), (3, 3), {"multipliers": 40}),
    "columns of the array that no vector fills": (lambda: (linear("out", 30, 6, 1),), (30,), {"multipliers": 8}),
    "columns of the array that no pixel fills": (
        lambda: (conv("conv", 5, 1, size=3, k=1, window=Window((2, 2), padding=(1, 1))),
                 FloatFlatten("flatten", 1, (4, 4), "pixels")), (5, 3, 3), {"multipliers": 8}),
    "LeNet-5, smaller": (lenet, (1, 12, 12), {"multipliers": 40}),
}


def drawn(name):
    """The network of a case, two samples, and its options."""
    layers, shape, options = CASES[name]
    images = len(shape) == 3
    x = RNG.uniform(-1, 1, (2, *shape))
    made = Model.chain("drawn", shape[0] if images else shape[-1], len(shape) == 2, layers(),
                       *([shape] if images else []))
    return quantize(made, x, **BITS), x, options


@pytest.mark.parametrize("name", CASES)
def test_a_network_equals_golden_from_an_unknown_start(name, tmp_path):
    network, x, options = drawn(name)
    design = generate(network, **options, objective="throughput")
    found = icarus.run(design.write(tmp_path / "design"), network.vectors(x), seed=1)
    assert (found.mismatches, found.first) == (0, None)
    assert found.words >= (2 + 2 + 2) * network.end.size


GATED = [("the GRU of digits-gru", {"levels": 6}), *(
    pytest.param(name, {}, marks=pytest.mark.soak)
    for name in ("an LSTM with projection and peepholes", "LeNet-5, smaller")), *(
    pytest.param("the GRU of digits-gru", {"levels": levels, "dsp_packing": "27x18"}, marks=pytest.mark.soak)
    for levels in (4, 6))]
"""Networks whose clocks stop: with and without registers in front of products; lines and pools of images."""


@pytest.mark.parametrize(("name", "more"), GATED)
def test_a_network_whose_clocks_stop_equals_golden_from_an_unknown_start(name, more, tmp_path):
    network, x, options = drawn(name)
    design = generate(network, **options, **more, clock_gating=True, objective="throughput")
    assert design.manifest["clock_gating"] is True
    plain = generate(network, **options, **more, objective="throughput").manifest
    assert [layer["cycles"] for layer in design.manifest["layers"]] == [layer["cycles"] for layer in plain["layers"]]
    assert "clock_gating" not in plain
    found = icarus.run(design.write(tmp_path / "design"), network.vectors(x), seed=1)
    assert (found.mismatches, found.first) == (0, None)


def test_a_reloadable_network_equals_golden_from_an_unknown_start(tmp_path):
    network = golden.network(2, 4, 3, outputs=2, **BITS)
    design = generate(network, multipliers=20, reloadable=True, objective="throughput")
    found = icarus.run(design.write(tmp_path / "design"), network.vectors(RNG.normal(0, 1, (3, 4, 3))))
    assert (found.mismatches, found.first) == (0, None)
