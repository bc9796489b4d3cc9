"""A Linear under the constraint computes what its dense matrix computes, by whichever way is the faster one."""
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from circulant.training.blocks import fast_forward
from circulant.training.blocks.clone import clone
from circulant.training.blocks.constraint import compress, decompress


@pytest.fixture
def ways(monkeypatch):
    """The paths that were chosen, by shape."""
    seen = []

    def noted(*shape):
        seen.append(fast_of(*shape))
        return seen[-1]

    fast_of = fast_forward.faster
    monkeypatch.setattr(fast_forward, "faster", noted)
    return seen


def layer(inputs: int = 1024, outputs: int = 1024, k: int = 16, bias: bool = True) -> nn.Linear:
    torch.manual_seed(0)
    return compress(nn.Linear(inputs, outputs, bias=bias), k)


@pytest.mark.parametrize(("shape", "outputs", "k", "way"), [
    ((64, 1024), 1024, 16, "spectrum"), ((4, 16, 1020), 1000, 16, "spectrum"), ((2, 64), 64, 8, "matrix")])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_dense_layer(ways, shape, outputs, k, way, bias):
    small = layer(shape[-1], outputs, k, bias)
    dense = decompress(small)
    x = torch.randn(shape)
    got, wanted = small(x), dense(x)
    assert ways == [way]
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    got.square().sum().backward()
    wanted.square().sum().backward()
    first = small.parametrizations.weight.original.grad
    sums = small.parametrizations.weight[0].right_inverse(dense.weight.grad) * small.parametrizations.weight[0].counts
    torch.testing.assert_close(first, sums.to(first), atol=1e-3, rtol=1e-4)


def test_copies_have_it_and_others_do_not(ways):
    x = torch.randn(64, 1024)
    other = nn.Linear(1024, 1024)
    copy = clone(layer())
    copy(x)
    other(x)
    parametrize.remove_parametrizations(copy, "weight")
    copy(x)
    assert ways == ["spectrum"]
    assert type(copy) is nn.Linear and "forward" in vars(nn.Linear)


def test_another_parametrization_beside_it_is_obeyed(ways):
    class Half(nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight / 2

    small, x = layer(bias=False), torch.randn(64, 1024)
    wanted = small(x) / 2
    parametrize.register_parametrization(small, "weight", Half())
    torch.testing.assert_close(small(x), wanted, atol=1e-5, rtol=1e-5)
    assert ways == ["spectrum"], "only the first call may take the short way"


def test_sixteen_bits_stay_a_matrix_product(ways):
    with torch.autocast("cpu", torch.bfloat16):
        assert layer()(torch.randn(64, 1024)).dtype == torch.bfloat16
    assert ways == []
