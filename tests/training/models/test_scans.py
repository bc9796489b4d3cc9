"""Scans against their equations, step by step; what of them is captured, trained on the grid, and exact as Verilog."""
import numpy as np
import pytest
import torch
from torch import nn

import circulant
from circulant.sim.cosim import icarus
from circulant.sim.refusal import Refusal
from circulant.training.capture import capture
from circulant.training.models import scans
from circulant.training.models.cells import StateSpace
from circulant.training.models.scans import Blend, ComplexRecurrence, DiagonalRecurrence, MinGru, MinLstm, scan
from tests.modules import Net


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 13])
def test_a_scan_is_its_recurrence_and_so_is_its_gradient(steps):
    kept, x = torch.tanh(draw(3, steps, 4)).requires_grad_(), draw(3, steps, 4, seed=1).requires_grad_()
    h, states = torch.zeros(3, 4, dtype=torch.float64), []
    for t in range(steps):
        h = kept[:, t] * h + x[:, t]
        states.append(h)
    torch.testing.assert_close(scan(kept, x), torch.stack(states, 1))
    assert torch.autograd.gradcheck(scan, (kept, x))


@pytest.mark.parametrize("steps", [1, 2, 7, 16])
def test_pairs_of_steps_as_a_gpu_joins_them_give_what_a_cpu_gives_step_by_step(steps):
    kept, x = torch.tanh(draw(3, steps, 4)), draw(3, steps, 4, seed=1)
    torch.testing.assert_close(scans._pairs(kept, x), scans._steps(kept, x))


def test_one_factor_for_all_steps_gathers_the_gradient_of_each():
    factors = draw(4).sigmoid().requires_grad_()
    assert torch.autograd.gradcheck(lambda a: scan(a, draw(2, 5, 4)), factors)


def test_a_complex_recurrence_is_its_equation_and_so_is_its_gradient():
    model, x = ComplexRecurrence(6).double(), draw(2, 5, 6).requires_grad_()
    factor, gain, h = torch.polar(model.factors, model.theta), torch.exp(model.gamma_log), torch.zeros(2, 3)
    for t, y in enumerate(model(x).unbind(1)):
        h = factor * h + gain * torch.complex(x[:, t, ::2], x[:, t, 1::2])
        torch.testing.assert_close(y, torch.view_as_real(h).flatten(1), msg=str(t))
    assert torch.autograd.gradcheck(lambda *of: model(of[0]), (x, *model.parameters()))
    with pytest.raises(Refusal, match=r"^A ComplexRecurrence must have an even size, real and imaginary parts, not 5"):
        ComplexRecurrence(5)


def test_long_sequences_lose_no_digits():
    kept, x = torch.full((1, 4096, 1), 0.999), torch.ones(1, 4096, 1)
    torch.testing.assert_close(scan(kept, x).double(), scan(kept.double(), x.double()), rtol=1e-5, atol=0)


def test_min_gru_is_its_equations():
    model, x, h = MinGru(3, 4).double(), draw(2, 6, 3), torch.zeros(2, 4, dtype=torch.float64)
    for t, states in enumerate(model(x).unbind(1)):
        z, n = model.linear(x[:, t]).chunk(2, -1)
        h = (1 - torch.sigmoid(z)) * h + torch.sigmoid(z) * n
        torch.testing.assert_close(states, h, msg=str(t))


def test_min_lstm_is_its_equations():
    model, x, h = MinLstm(3, 4).double(), draw(2, 6, 3), torch.zeros(2, 4, dtype=torch.float64)
    for t, states in enumerate(model(x).unbind(1)):
        p, q, n = model.linear(x[:, t]).chunk(3, -1)
        f, i = torch.sigmoid(-p), torch.sigmoid(-q)
        h = f / (f + i) * h + i / (f + i) * n
        torch.testing.assert_close(states, h, msg=str(t))


def test_a_state_space_is_its_equations():
    model, x, h = StateSpace(3, 4, 2).double(), draw(2, 6, 3), torch.zeros(2, 4, dtype=torch.float64)
    a, b, (d, c) = model.state.weight_hh_l0, model.state.weight_ih_l0, model.output.weight.split([3, 4], 1)
    torch.testing.assert_close(a @ a.T, 0.95 ** 2 * torch.eye(4, dtype=torch.float64), atol=1e-6, rtol=0)
    for t, y in enumerate(model(x).unbind(1)):
        h = h @ a.T + x[:, t] @ b.T
        torch.testing.assert_close(y, h @ c.T + x[:, t] @ d.T + model.output.bias, msg=str(t))


def test_factors_begin_within_their_ring_and_states_with_the_variance_of_the_input():
    torch.manual_seed(0)
    model = DiagonalRecurrence(4000, least=0.3, most=0.9)
    a = model.factors.detach()
    assert a.min() >= 0.3 and a.max() <= 0.9 and abs(float((a * a).mean()) - (0.3 ** 2 + 0.9 ** 2) / 2) < 0.02
    with torch.no_grad():
        states = model(draw(1, 300, 4000).float())
    assert abs(float(states[:, 100:].var()) - 1) < 0.05
    with pytest.raises(Refusal, match=r"^The factors of a DiagonalRecurrence must lie between least and most, both"):
        DiagonalRecurrence(4, least=0.9, most=0.3)


CELLS = {"gru": (lambda: MinGru(4, 8), ["linear", "slice", "activation", "slice", "blend", "linear"]),
         "lstm": (lambda: MinLstm(4, 8), ["linear", "slice", "activation", "slice", "activation", "difference",
                                          "activation", "slice", "blend", "linear"]),
         "space": (lambda: StateSpace(4, 8, 8), ["rnn", "concat", "linear", "linear"]),
         "complex": (lambda: nn.Sequential(nn.Linear(4, 8), ComplexRecurrence(8)), ["linear", "spiral", "linear"]),
         "diagonal": (lambda: nn.Sequential(nn.Linear(4, 8), DiagonalRecurrence(8)), ["linear", "decay", "linear"])}


def model_of(cell, k):
    torch.manual_seed(0)
    net = Net(lambda m, x: m.out(m.cell(x)), cell=CELLS[cell][0](), out=nn.Linear(8, 4))
    return circulant.compress(net, {"cell": k, "out": k}).eval()


@pytest.mark.skipif(not icarus.available(), reason="needs Icarus Verilog: apt-get install iverilog")
@pytest.mark.parametrize("cell", CELLS)
def test_a_scan_is_exact_from_torch_to_verilog(cell, tmp_path):
    model, x = model_of(cell, 4), draw(6, 9, 4).numpy()
    network = circulant.export(model, x, name="net")
    kinds = [layer.kind for layer in network.layers]
    assert [kind for kind in kinds if kind != "scale"] == CELLS[cell][1]
    longer = draw(3, 14, 4, seed=1)
    assert np.abs(network.run(longer.numpy()).real - model.double()(longer).detach().numpy()).max() < 0.01
    circulant.generate(network, multipliers=24).write(tmp_path)
    found = icarus.run(tmp_path, network.vectors(longer.numpy()))
    assert found.mismatches == 0 and found.words >= longer.numel()


@pytest.mark.parametrize(("steps", "modules", "text"), [
    (lambda m, x: m.scan(x, x[:, :1]), {"scan": Blend()}, "it must take two sequences of one shape"),
    (lambda m, x: m.scan(x, 1.0), {"scan": Blend()}, "it must take two sequences that depend on the input"),
    (lambda m, x: m.scan(x[:, 0]), {"scan": DiagonalRecurrence(3)}, "it must take (N, T, size), not 2 axes")])
def test_refusals(steps, modules, text):
    graph, report = capture(Net(steps, **modules).eval(), torch.randn(4, 7, 3))
    assert graph is None and text in str(report).replace("\n", " ")
