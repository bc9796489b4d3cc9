"""Dense twins of block-circulant matrices: what the mixture is, how it fades, and that nothing of it stays."""
import pytest
import torch
from torch import nn

from circulant.training.blocks.clone import clone
from circulant.training.blocks.constraint import block_sizes, inherit
from circulant.training.blocks.guided import Guides


@pytest.fixture
def pair():
    torch.manual_seed(0)
    dense = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 8))
    return dense, inherit(dense, {"0": 8})


def test_the_mixture_begins_as_the_dense_matrix_and_ends_as_the_block_circulant_one(pair):
    dense, small = pair
    alone = small[0].weight.detach().clone()
    guides = Guides(small, dense, 4)
    seen = []
    for share in (1.0, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5, 0.0, 0.0):
        assert guides.share == pytest.approx(share)
        seen.append(small[0].weight.detach())
        assert torch.allclose(seen[-1], share * dense[0].weight + (1 - share) * alone, atol=1e-6)
        guides.step()
    assert not torch.allclose(seen[0], seen[-1], atol=1e-3)


def test_in_evaluation_the_structure_stands_alone(pair, monkeypatch):
    monkeypatch.setattr("circulant.training.blocks.fast_forward.faster", lambda *shape: "spectrum")
    dense, small = pair
    x = torch.randn(5, 16)
    alone = small.eval()(x)
    Guides(small, dense, 4)
    assert torch.allclose(small.eval()(x), alone, atol=1e-6)
    assert not torch.allclose(small.train()(x), alone, atol=1e-3), "the faster product must not leave the twin out"


def test_both_learn_and_the_twin_is_thrown_away(pair):
    dense, small = pair
    names, before = list(small.state_dict()), clone(small).state_dict()
    guides = Guides(small, dense, 4)
    guides.go_on(2)
    small(torch.randn(5, 16)).sum().backward()
    twins = [parameter for name, parameter in small.named_parameters() if name.endswith("twin")]
    assert len(twins) == 1 and twins[0].grad.abs().sum() > 0
    assert small[0].parametrizations.weight.original.grad.abs().sum() > 0
    assert block_sizes(small) == {"0.weight": 8, "2.weight": 1}
    guides.remove()
    assert list(small.state_dict()) == names
    assert all(torch.equal(value, before[name]) for name, value in small.state_dict().items())
