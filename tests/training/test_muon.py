"""Muon: its steps of block-circulant matrices are those of the dense matrices, and what is no matrix is Adam's."""
import pytest
import torch
from torch import nn

from circulant.training.blocks import BlockCirculant
from circulant.training.cells import ResetBeforeGru
from circulant.training.constraint import compress, matrices
from circulant.training.muon import Muon, orthonormal


def spread(first: torch.Tensor) -> torch.Tensor:
    """First columns (1, p, q, k) to the dense matrix."""
    _, p, q, k = first.shape
    return BlockCirculant(p * k, q * k, k)(first)


def polar(dense: torch.Tensor) -> torch.Tensor:
    u, _, v = torch.linalg.svd(dense.double(), full_matrices=False)
    return u @ v


@pytest.mark.parametrize("shape", [(1, 4, 4, 8), (1, 2, 5, 16), (1, 6, 3, 4), (1, 12, 16, 1)])
def test_the_circulant_step_is_the_polar_factor_of_the_dense_matrix(shape):
    first = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    turned, wanted = spread(orthonormal(first)).double(), polar(spread(first))
    assert torch.linalg.svdvals(turned).sub(1).abs().max() < 0.35, "all directions must have about one length"
    # Of one and the same singular vectors: what takes the one back to the other is symmetric.
    wide = turned.shape[0] <= turned.shape[1]
    back = turned @ wanted.mT if wide else turned.mT @ wanted
    torch.testing.assert_close(back, back.mT, atol=2e-3, rtol=0)
    assert torch.linalg.eigvalsh(back).min() > 0.6


def test_gates_are_turned_each_on_its_own():
    gates = torch.randn(3, 2, 2, 8, generator=torch.Generator().manual_seed(2))
    together = orthonormal(gates * torch.tensor([1e-3, 1.0, 1e3]).view(3, 1, 1, 1))
    for gate, turned in zip(gates, together, strict=True):
        torch.testing.assert_close(turned, orthonormal(gate[None])[0], atol=1e-4, rtol=0)


def test_a_gradient_of_nothing_moves_nothing():
    assert torch.equal(orthonormal(torch.zeros(2, 3, 3, 4)), torch.zeros(2, 3, 3, 4))


@pytest.mark.parametrize(("layer", "sizes", "shape"), [
    (nn.Conv2d(16, 24, 3), {"1": 8}, (24, 9 * 16)), (nn.Conv2d(16, 24, 3), {"1": 1}, (24, 9 * 16)),
    (nn.Linear(20, 24), {"1": 4}, (24, 20)), (nn.Linear(20, 24), {"1": 1}, (24, 20))])
def test_a_step_has_the_size_of_one_of_adam(layer, sizes, shape):
    model = compress(nn.Sequential(nn.Linear(2, 2), layer, nn.Linear(2, 2)), sizes)
    matrix = matrices(model)["1.weight"]
    before = matrix.weight.detach().clone()
    parameter = matrix.first if sizes["1"] > 1 else matrix.weight
    parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3))
    Muon(model, 0.01).step()
    moved = (matrix.weight.detach() - before).flatten(1)
    assert moved.shape == shape
    lengths = torch.linalg.svdvals(moved) / (0.01 * 0.2 * max(shape) ** 0.5)
    assert lengths.min() > 0.6, "a convolution is one matrix, with all positions of its kernel side by side"
    assert lengths.max() < 1.3


def test_what_is_no_inner_matrix_is_adams():
    def trained(make):
        torch.manual_seed(4)
        model = compress(nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), {"1": 4})
        model[1].bias.requires_grad_(False)
        chosen = make(model)
        for _ in range(3):
            chosen.zero_grad()
            model(torch.ones(4, 6) + torch.arange(4)[:, None]).square().sum().backward()
            matrices(model)["1.weight"].first.grad = None  # Only the rest moves.
            chosen.step()
        return model.state_dict()

    ours = trained(lambda model: Muon(model, 0.01, 0.1))
    adams = trained(lambda model: torch.optim.AdamW(model.parameters(), 0.01, weight_decay=0.1))
    for name, value in adams.items():
        torch.testing.assert_close(ours[name], value, msg=f"{name} must be as AdamW leaves it")


def test_recurrent_layers_between_dense_ends():
    class Labeller(nn.Module):
        def __init__(self):
            super().__init__()
            self.front, self.gru, self.linear = nn.Linear(5, 8), ResetBeforeGru(8, 16), nn.Linear(16, 3)

    model = Labeller()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    Muon(model, 0.01).step()
    moved = {name: (value - before[name]).abs().max().item() for name, value in model.state_dict().items()}
    # A gradient of rank one: one direction of length 1, spread over all entries, in each of the three gates.
    for name, extent in (("gru.weight_ih_l0", (16, 8)), ("gru.weight_hh_l0", (16, 16))):
        wanted = 0.01 * 0.2 * max(extent) ** 0.5 / (extent[0] * extent[1]) ** 0.5
        assert moved[name] == pytest.approx(wanted, rel=0.35), name
    for name in ("front.weight", "linear.weight", "gru.bias_l0"):
        assert moved[name] == pytest.approx(0.01, rel=1e-3), f"{name}: Adam's first step is its rate"


def test_weight_decay_is_apart_from_the_gradient():
    model = compress(nn.Sequential(nn.Linear(2, 2), nn.Linear(8, 8), nn.Linear(2, 2)), {"1": 4})
    first = matrices(model)["1.weight"].first
    before = first.detach().clone()
    first.grad = torch.zeros_like(first)
    Muon(model, 0.1, 0.5).step()
    torch.testing.assert_close(first.detach(), before * (1 - 0.1 * 0.5))
