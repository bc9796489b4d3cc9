"""The two ways of the block-circulant product against the definition, their gradients, and the choice between them."""
import pytest
import torch

from circulant.training.blocks.product import faster, product, spread


def definition(first: torch.Tensor) -> torch.Tensor:
    """C[i, j] = c[(i - j) mod k], entry by entry."""
    p, q, k = first.shape
    dense = torch.empty(p * k, q * k, dtype=first.dtype)
    for i in range(p * k):
        for j in range(q * k):
            dense[i, j] = first[i // k, j // k, (i - j) % k]
    return dense


def firsts(p: int, q: int, k: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(p, q, k, dtype=torch.float64, generator=torch.Generator().manual_seed(seed), requires_grad=True)


@pytest.mark.parametrize("k", [1, 2, 4, 8, 16, 32, 64])
def test_spread_is_the_definition(k):
    first = firsts(2, 3, k)
    assert torch.equal(spread(first), definition(first.detach())), "spreading only copies, so nothing may be rounded"


@pytest.mark.parametrize("k", [1, 4, 16])
def test_gradients_of_spread_are_sums_over_wrapped_diagonals(k):
    assert torch.autograd.gradcheck(spread, (firsts(2, 2, k),))


@pytest.mark.parametrize("k", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("ragged", [0, 1])
def test_the_paths_agree(k, ragged):
    rows, columns = 2 * k - ragged, 3 * k - ragged
    x = torch.randn(5, 4, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    bias = torch.randn(rows, dtype=torch.float64, generator=torch.Generator().manual_seed(2), requires_grad=True)
    first = firsts(2, 3, k)
    wanted = x @ definition(first.detach())[:rows, :columns].T + bias
    pull = torch.randn(wanted.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    gradients = []
    for path in ("matrix", "spectrum"):
        got = product(x, first, rows, columns, bias, path=path)
        torch.testing.assert_close(got, wanted, msg=lambda text, path=path: f"{path}: {text}")
        gradients.append(torch.autograd.grad(got, (x, first, bias), pull))
    for name, one, other in zip(("x", "first", "bias"), *gradients, strict=True):
        torch.testing.assert_close(one, other, msg=lambda text, name=name: f"gradient of {name}: {text}")


def test_reduced_precision_keeps_the_transforms_exact():
    x, first = torch.randn(3, 32, generator=torch.Generator().manual_seed(0)), firsts(2, 2, 16).detach().float()
    wanted = product(x, first, 32, 32, path="spectrum")
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(product(x, first, 32, 32, path="spectrum"), wanted)


@pytest.mark.parametrize(("batch", "side", "k", "wanted"), [
    (64, 1024, 16, "spectrum"), (64, 1024, 32, "spectrum"), (1024, 1024, 8, "spectrum"),
    (64, 1024, 2, "matrix"), (64, 1024, 1, "matrix"), (64, 256, 4, "matrix"), (1, 64, 8, "matrix"),
])
def test_the_faster_path(batch, side, k, wanted):
    assert faster(batch, side // k, side // k, k) == wanted


def test_the_faster_path_is_the_default():
    x, first = torch.randn(64, 1024), torch.randn(64, 64, 16)
    assert torch.equal(product(x, first, 1024, 1024), product(x, first, 1024, 1024, path="spectrum"))
