"""Muon: its steps of block-circulant matrices are those of the dense matrices, and what is no matrix is AdamW's."""
import copy

import pytest
import torch
from torch import Tensor, nn

from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.blocks.constraint import compress, matrices
from circulant.training.loop.muon import Muon, orthonormal
from circulant.training.models.cells import ResetBeforeGru


def spread(first: Tensor) -> Tensor:
    """First columns (groups, p, q, k) to dense matrices (groups, p·k, q·k)."""
    groups, p, q, k = first.shape
    return BlockCirculant(groups * p * k, q * k, k, groups)(first).view(groups, p * k, q * k)


def iterated(dense: Tensor) -> Tensor:
    """Newton and Schulz's iteration as Jordan gives it, of one dense matrix, in double precision."""
    x = dense.double() / dense.double().norm()
    if transposed := x.shape[0] > x.shape[1]:
        x = x.mT
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x - 4.7750 * square @ x + 2.0315 * square @ square @ x
    return x.mT if transposed else x


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def between(layer: nn.Module, block_size: int) -> tuple[nn.Sequential, nn.Parameter]:
    """A model with the layer inside, and the parameter of its matrix."""
    model = compress(nn.Sequential(nn.Linear(2, 2), layer, nn.Linear(2, 2)), {"1": block_size})
    matrix = matrices(model)["1.weight"]
    return model, matrix.first if block_size > 1 else matrix.weight


@pytest.mark.parametrize("shape", [(1, 4, 4, 8), (1, 2, 5, 16), (1, 6, 3, 4), (1, 4, 1, 2), (1, 12, 16, 1)])
def test_a_circulant_matrix_is_turned_as_the_dense_one(shape):
    first = noise(*shape, seed=1)
    dense = spread(first)[0]
    turned = spread(orthonormal(first))[0].double()
    torch.testing.assert_close(turned, iterated(dense), atol=1e-5, rtol=0)
    lengths = torch.linalg.svdvals(turned)
    assert lengths.min() > 0.67, "all directions must have about one length"
    assert lengths.max() < 1.21


def test_gates_are_turned_each_on_its_own():
    gates = noise(3, 2, 2, 8, seed=2)
    together = orthonormal(gates * torch.tensor([1e-3, 1.0, 1e3]).view(3, 1, 1, 1))
    for gate, turned in zip(gates, together, strict=True):
        torch.testing.assert_close(turned, orthonormal(gate[None])[0], atol=1e-4, rtol=0)


@pytest.mark.parametrize("k", [1, 8])
def test_what_is_too_small_for_a_direction_moves_little(k):
    for exponent in range(8, 40):
        turned = orthonormal(noise(2, 3, 3, k) * 10.0**-exponent)
        assert torch.isfinite(turned).all(), f"entries of 1e-{exponent}"
    assert turned.abs().max() < 1e-25
    assert torch.equal(orthonormal(torch.zeros(2, 3, 3, k)), torch.zeros(2, 3, 3, k))


def test_a_frequency_without_gradient_stays():
    first = noise(1, 2, 4, 16, seed=3)
    first -= first.mean(-1, keepdim=True)  # In float32, so that noise of rounding is left at frequency 0.
    spectra = torch.fft.rfft(orthonormal(first)).abs()
    assert spectra[..., 0].max() < 1e-3
    assert spectra[..., 1:].amax((0, 1, 2)).min() > 0.1


@pytest.mark.parametrize(("layer", "block_size", "rows"), [
    (nn.Linear(16, 24), 8, 24), (nn.Linear(20, 24), 1, 24), (nn.Conv2d(16, 24, 3), 8, 24), (nn.Conv2d(8, 6, 3), 1, 6),
    (nn.Conv1d(8, 16, 5), 4, 16)])
def test_steps_follow_the_momentum_of_the_dense_matrix(layer, block_size, rows):
    """A convolution is one matrix, with the positions of its kernel side by side."""
    model, parameter = between(layer, block_size)
    matrix = matrices(model)["1.weight"]
    wanted = matrix.weight.detach().double()
    momentum = torch.zeros_like(wanted)
    chosen = Muon(model, 0.02, 0.1)
    for seed in range(3):
        parameter.grad = noise(*parameter.shape, seed=seed) * 10.0**seed
        with torch.no_grad():  # Entry by entry the gradient of a first column, whose scale does not matter.
            gradient = parameter.grad if block_size == 1 else matrix.module.parametrizations.weight[0](parameter.grad)
        chosen.step()
        momentum = 0.95 * momentum + 0.05 * gradient
        direction = iterated((0.05 * gradient + 0.95 * momentum).flatten(1)).view(wanted.shape)
        size = 0.2 * max(rows, wanted[0].numel()) ** 0.5
        wanted = wanted * (1 - 0.02 * 0.1) - 0.02 * size * direction
        torch.testing.assert_close(matrix.weight.detach().double(), wanted, atol=1e-5, rtol=0)


def test_a_dense_matrix_moves_as_in_torch():
    model, ours = between(nn.Linear(12, 20), 1)
    nn.init.zeros_(ours)
    theirs = nn.Parameter(torch.zeros(20, 12))
    optimizers = (Muon(model, 0.02, 0.1),
                  torch.optim.Muon([theirs], 0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"))
    for seed in range(4):
        for weight, chosen in zip((ours, theirs), optimizers, strict=True):
            weight.grad = noise(20, 12, seed=seed)
            chosen.step()
    scale = float(theirs.detach().abs().max())
    torch.testing.assert_close(ours.detach(), theirs.detach(), atol=0.03 * scale, rtol=0)  # torch's is in bfloat16.


@pytest.mark.parametrize("block_size", [1, 4])
def test_each_gate_of_a_recurrent_layer_takes_a_whole_step(block_size):
    class Labeller(nn.Module):
        def __init__(self):
            super().__init__()
            self.front, self.gru, self.linear = nn.Linear(5, 8), ResetBeforeGru(8, 16), nn.Linear(16, 3)

    model = compress(Labeller(), {"gru": block_size})
    before = {name: matrix.weight.detach().clone() for name, matrix in matrices(model).items()}
    for name, parameter in model.named_parameters():
        parameter.grad = noise(*parameter.shape, seed=len(name))
        if "weight" in name and "gru" in name:
            gates = parameter.grad.view(3, -1)
            gates *= torch.tensor([1e-3, 1.0, 1e3])[:, None]
    Muon(model, 0.01).step()
    for name, matrix in matrices(model).items():
        moved = matrix.weight.detach() - before[name]
        if "gru" not in name:
            assert moved.abs().max() == pytest.approx(0.01, rel=1e-3), f"{name}: Adam's first step is its rate"
            continue
        for gate in moved.view(3, 16, -1):
            lengths = torch.linalg.svdvals(gate) / (0.01 * 0.2 * 16**0.5)
            assert lengths.min() > 0.3, name
            assert lengths.max() < 1.22, name


def test_dense_ends_are_adams_and_circulant_ones_are_not():
    def moved(block_size):
        model = compress(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), block_size)
        for parameter in model.parameters():
            parameter.grad = noise(*parameter.shape)
        before = [layer.weight.detach().clone() for layer in model]
        Muon(model, 0.01).step()
        return [(layer.weight.detach() - old).abs() for layer, old in zip(model, before, strict=True)]

    for change in moved(1):
        torch.testing.assert_close(change, torch.full((8, 8), 0.01), rtol=1e-3, atol=0)
    for change in moved(4):
        assert change.min() < 0.008, "Adam's first step has one size for all entries"
        assert change.square().mean().sqrt() == pytest.approx(0.2 * 0.01, rel=0.2)


def test_what_is_no_matrix_is_adamws():
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


def test_padding_stays_as_it_is():
    model, first = between(nn.Linear(20, 20), 16)
    stands = matrices(model)["1.weight"].constraint(16).right_inverse(torch.ones(20, 20)) > 0
    assert not stands.all()
    before = first.detach().clone()
    chosen = Muon(model, 0.01)
    for seed in range(5):
        first.grad = noise(*first.shape, seed=seed) * stands
        chosen.step()
    moved = first.detach() != before
    assert torch.equal(moved, stands), "an entry that stands for none of the matrix must not enter the spectra"


def test_a_copy_goes_on_as_the_optimizer_does():
    model, first = between(nn.Linear(20, 20), 16)
    chosen = Muon(model, 0.01)
    first.grad = noise(*first.shape)
    chosen.step()
    twin_model, twin = copy.deepcopy((model, chosen))
    loaded = Muon(third_model := copy.deepcopy(model), 0.5)
    loaded.load_state_dict(copy.deepcopy(chosen.state_dict()))
    for each, optimizer in ((model, chosen), (twin_model, twin), (third_model, loaded)):
        matrices(each)["1.weight"].first.grad = noise(*first.shape, seed=1)
        optimizer.step()
    for other in (twin_model, third_model):
        assert torch.equal(matrices(other)["1.weight"].first, first)


def test_a_closure_gives_the_loss():
    model, _ = between(nn.Linear(2, 2), 1)

    def loss():
        model.zero_grad()
        value = model(torch.ones(1, 2)).square().sum()
        value.backward()
        return value

    chosen = Muon(model, 0.01)
    assert chosen.step(loss) > chosen.step(loss) > 0
