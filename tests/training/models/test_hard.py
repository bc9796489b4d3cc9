"""Recurrent layers with hard gates or a ReLU, from torch to golden integers, C and the bound of their error."""
import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from circulant.hw.c import Emulator
from circulant.sim.error.error_bound import error_bound
from circulant.sim.quantize.quantize import quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.refusal import Refusal
from circulant.training import PeepholeLstm, ResetBeforeGru, compress, export
from circulant.training.conversion import reference
from tests.sim.samples import rebuilt


class Reader(nn.Module):
    def __init__(self, cell, **options):
        super().__init__()
        self.cell = cell(5, 8, batch_first=True, **{"hard": True, **options})
        self.linear = nn.Linear(8 * (1 + options.get("bidirectional", False)), 3)

    def forward(self, x):
        return self.linear(self.cell(x)[0])


CELLS = {"gru": (ResetBeforeGru, {}), "lstm": (PeepholeLstm, {}),
         "both ways": (ResetBeforeGru, {"bidirectional": True}),
         "relu": (ResetBeforeGru, {"hard": False, "nonlinearity": "relu"}),
         "hard relu": (ResetBeforeGru, {"nonlinearity": "relu"}),
         "identity": (ResetBeforeGru, {"hard": False, "nonlinearity": "identity"})}
FUNCTIONS = {"relu": ("sigmoid", "relu"), "hard relu": ("hard_sigmoid", "relu"), "identity": ("sigmoid", "identity")}


def made(name, seed=0):
    torch.manual_seed(seed)
    cell, options = CELLS[name]
    model = compress(Reader(cell, **options), 4)
    with torch.no_grad():
        for parameter in model.cell.parameters():
            parameter.mul_(1.5 if options.get("nonlinearity") != "relu" else 1.2)
    return model


X = np.random.default_rng(0).uniform(-1, 1, (30, 6, 5))


@pytest.mark.parametrize("name", CELLS)
def test_from_torch_to_c(name):
    model = made(name)
    network, exact = export(model, X), reference(model, X)
    with torch.no_grad():
        np.testing.assert_allclose(exact.run(X), model.double()(torch.from_numpy(X)).numpy(), atol=1e-6)
    golden = network.run(X)
    if name != "both ways":
        assert np.array_equal(Emulator(network).run(X).integers, golden.integers)
    error, bound = np.abs(golden.real - exact.run(X)), error_bound(network, exact, X)
    assert (error <= bound).all()
    assert bound.max() < 0.1


@pytest.mark.parametrize("name", CELLS)
def test_the_network_says_it_and_is_read_again(name, tmp_path):
    network = export(made(name), X)
    network.save(tmp_path)
    again = type(network).load(tmp_path)
    assert again.hash == network.hash
    layer = again.layers[0]
    assert (layer.sigmoid.function, layer.tanh.function) == FUNCTIONS.get(name, ("hard_sigmoid", "hard_tanh"))


def test_gates_are_those_of_torch():
    """One step of the LSTM from a state, written out."""
    cell = PeepholeLstm(3, 4, hard=True)
    x, y, c = torch.randn(1, 2, 3), torch.randn(1, 2, 4), torch.randn(1, 2, 4)
    out, _ = cell(x, (y, c))
    i, f, g, o = (x[0] @ cell.weight_ih_l0.T + cell.bias_l0 + y[0] @ cell.weight_hh_l0.T).chunk(4, -1)
    squash, bend = nn.Hardsigmoid(), nn.Hardtanh()
    new = squash(f + cell.peephole_l0[1] * c[0]) * c[0] + squash(i + cell.peephole_l0[0] * c[0]) * bend(g)
    torch.testing.assert_close(out[0], squash(o + cell.peephole_l0[2] * new) * bend(new))


def test_a_soft_network_has_no_place_in_a_hard_one():
    hard = reference(made("gru"), X)
    soft = rebuilt(hard, dataclasses.replace(hard.layers[0], hard=False), hard.layers[1])
    with pytest.raises(Refusal, match=r"^Layer 'cell' must have the activations hard_sigmoid and hard_tanh of the "
                                      r"other network, not sigmoid and tanh; quantize it with formats of its own$"):
        quantize_like(soft, quantize(hard, X))


@pytest.mark.parametrize("hard", [False, True])
def test_a_rectified_candidate(hard):
    """One step from a state, written out; its derivative against differences."""
    cell = ResetBeforeGru(3, 4, hard=hard, nonlinearity="relu").double()
    x, h = torch.randn(1, 2, 3).double(), torch.randn(1, 2, 4).double()
    squash = nn.Hardsigmoid() if hard else torch.sigmoid
    driven, (of_r, of_z, of_n) = x[0] @ cell.weight_ih_l0.T + cell.bias_l0, cell.weight_hh_l0.chunk(3)
    r, z = squash(driven[:, :4] + h[0] @ of_r.T), squash(driven[:, 4:8] + h[0] @ of_z.T)
    n = torch.relu(driven[:, 8:] + (r * h[0]) @ of_n.T)
    torch.testing.assert_close(cell(x, h)[0][0], n + z * (h[0] - n))
    assert "nonlinearity=relu" in str(cell)
    with pytest.raises(Refusal, match=r"^Layer 'ResetBeforeGru' must have 'tanh', 'relu' or 'identity' as its "):
        ResetBeforeGru(3, 4, nonlinearity="gelu")


def test_a_rectified_state_goes_as_far_as_the_data_show():
    network = export(made("relu"), 3 * X)
    layer = network.layers[0]
    assert layer.output_format.real(layer.output_format.hi) > 1.5
    assert layer.sigmoid.output == layer.tanh.output == layer.output_format
    assert (layer(network.integers(3 * X)) > layer.output_format.quantize(1.0)).any()
