"""Faults of public code for block-circulant networks: each test fails on code that has one of them."""
import math

import numpy as np
import pytest
import torch
from torch import nn

from circulant import export
from circulant.sim.arith import circulant
from circulant.sim.kinds.lstm import FloatLstm
from circulant.training import Admm, PeepholeLstm, compress, initialise
from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.blocks.product import product


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("k", [2, 8, 16, 64])
def test_a_product_is_neither_conjugated_nor_scaled(k):
    """y = ifft(fft(c) · fft(x)) is the dense C[i, j] = c[(i - j) mod k]: not its transpose, nor a half or an eighth."""
    rng = np.random.default_rng(k)
    c, x = rng.normal(size=k), rng.normal(size=k)
    dense = np.array([[c[(i - j) % k] for j in range(k)] for i in range(k)])
    by_spectra = np.fft.ifft(np.fft.fft(c) * np.fft.fft(x)).real
    np.testing.assert_allclose(by_spectra, dense @ x, atol=1e-12)
    np.testing.assert_allclose(circulant.dense(c[None, None]) @ x, dense @ x, atol=1e-12)
    for path in ("matrix", "spectrum"):
        got = product(torch.from_numpy(x), torch.from_numpy(c)[None, None], k, k, path=path)
        np.testing.assert_allclose(got.numpy(), dense @ x, atol=1e-12, err_msg=path)
    if k > 2:
        assert not np.allclose(dense.T @ x, dense @ x), "the transpose must be another product"


@pytest.mark.parametrize("path", ["matrix", "spectrum"])
def test_gradients_in_double_precision(path):
    first = torch.randn(2, 3, 8, dtype=torch.float64, generator=generator(), requires_grad=True)
    x = torch.randn(4, 23, dtype=torch.float64, generator=generator(1), requires_grad=True)
    bias = torch.randn(15, dtype=torch.float64, generator=generator(2), requires_grad=True)
    assert torch.autograd.gradcheck(lambda *given: product(*given[:2], 15, 23, given[2], path=path), (x, first, bias))


def test_a_projection_is_the_mean_and_not_the_last_entry():
    """`sums[label] = z` in place of `+=` keeps the last entry of each wrapped diagonal, divided by k."""
    w = torch.randn(8, 8, dtype=torch.float64, generator=generator())
    wanted = torch.stack([torch.stack([w[(r + j) % 8, j] for j in range(8)]).mean() for r in range(8)])
    torch.testing.assert_close(BlockCirculant(8, 8, 8).project(w)[:, 0], wanted)


def test_a_gradient_of_first_columns_is_the_sum_over_wrapped_diagonals():
    """The same fault, in the gradient with which the set is trained."""
    layer = compress(nn.Linear(8, 8, bias=False).double(), 8)
    x = torch.randn(5, 8, dtype=torch.float64, generator=generator())
    weight = layer.weight.detach().clone().requires_grad_()
    (x @ weight.T).square().sum().backward()
    layer(x).square().sum().backward()
    wanted = torch.stack([sum(weight.grad[(r + j) % 8, j] for j in range(8)) for r in range(8)])
    torch.testing.assert_close(layer.parametrizations.weight.original.grad.flatten(), wanted)


def test_an_update_of_u_takes_the_new_z():
    layer = nn.Linear(8, 8, bias=False)
    admm = Admm(layer, 8, rho=0.1)
    with torch.no_grad():
        layer.weight.add_(torch.randn(8, 8, generator=generator()))
    old, w = admm.z["weight"].clone(), layer.weight.detach().clone()
    admm.update()
    torch.testing.assert_close(admm.u["weight"], w - admm.z["weight"])
    assert not torch.allclose(admm.u["weight"], w - old)


def test_the_cell_gate_of_an_lstm_is_a_tanh():
    """Published simulators take a sigmoid there, while the training takes a tanh: then the hardware is another net."""
    layer = PeepholeLstm(1, 1, batch_first=True).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.bias_l0[2] = -1.0
    output = float(layer(torch.zeros(1, 1, 1, dtype=torch.float64))[0].detach())
    assert output == pytest.approx(0.5 * math.tanh(0.5 * math.tanh(-1.0))), "a sigmoid would make it positive"
    zero, bias = np.zeros((4, 1, 1, 1)), np.array([[0.0], [0.0], [-1.0], [0.0]])
    golden = FloatLstm("lstm", inputs=1, hidden=1, outputs=1, weight_ih=zero, weight_hh=zero, bias_ih=bias,
                       bias_hh=0 * bias, returns="last")
    assert float(golden(np.zeros((1, 1, 1)))[0, 0]) == pytest.approx(output)


def test_a_deep_stack_of_large_blocks_neither_explodes_nor_vanishes_at_first():
    """Initialisation was "the most critical factor" where training from scratch failed on MNIST."""
    torch.manual_seed(0)
    dense = nn.Sequential(*(nn.Linear(256, 256, bias=False) for _ in range(6)))
    x = torch.randn(512, 256)
    with torch.no_grad():
        ratio = float(initialise(dense, 32)(x).std() / dense(x).std())
        projected = float(compress(dense, 32)(x).std() / dense(x).std())
    assert 0.7 < ratio < 1.4, "six layers must keep the scale that dense ones have"
    assert projected < 1e-3, "a plain projection of random weights must show the fault, or this tests nothing"


class Recurrent(nn.Module):
    """A recurrent layer of torch, of which the last step or every step is returned."""

    def __init__(self, layer, *, last):
        super().__init__()
        self.layer, self.last = layer, last

    def forward(self, x):
        steps, _ = self.layer(x)
        return steps[:, -1] if self.last else steps


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN:UserWarning")
@pytest.mark.parametrize(("layer", "last", "shape"), [
    (lambda: nn.GRU(8, 8, batch_first=True), True, (8,)),
    (lambda: nn.GRU(8, 8, batch_first=True), False, (8, 8)),
    (lambda: nn.LSTM(8, 16, proj_size=4, batch_first=True), True, (4,)),
], ids=["input transposed", "last step instead of all", "projection left out"])
def test_a_conversion_is_of_the_model_that_was_given(layer, last, shape):
    """Each has as many steps as features, so that no shape gives a fault away; hls4ml 1.3.0 has all three, silently."""
    torch.manual_seed(0)
    model, x = Recurrent(layer(), last=last).eval(), torch.randn(6, 8, 8, generator=generator())
    with torch.no_grad():
        wanted, transposed = model(x).numpy(), model(x.transpose(1, 2)).numpy()
    assert wanted.shape[1:] == shape
    outputs = export(model, x).run(x.numpy()).real
    np.testing.assert_allclose(outputs, wanted, atol=0.005)
    assert np.abs(transposed - wanted).max() > 0.05, "a transposed input must show, or this tests nothing"
