import pytest
import torch

from benchmarks.alternatives.structures import Circulant, Dense, LowRank, Monarch, Pruned, Size
from circulant.training.blocks.constraint import compress

HIDDEN, COLUMNS = 16, 24


def made(kind, **options):
    torch.manual_seed(0)
    return kind(HIDDEN, COLUMNS, 0.2, **options)


@pytest.mark.parametrize(("matrix", "size"), [
    (made(Dense), Size(48 * 24 * 12, 48 * 24)), (made(Dense, bits=4), Size(48 * 24 * 4, 48 * 24)),
    (made(LowRank, rank=3), Size(3 * (48 + 24) * 12, 3 * (48 + 24))),
    (made(Pruned, kept=(2, 4), index=2), Size(48 * 12 * 14, 48 * 12)),
    (made(Pruned, kept=0.25, index=4), Size(288 * 16, 288)),
    (made(Monarch, blocks=4, groups=2), Size(3 * (2 * 24 + 16 * 4) * 12, 3 * (2 * 24 + 16 * 4))),
    (made(Circulant, k=8), Size(48 * 24 // 8 * 12, 3 * 2 * 3 * 11)),
    (made(Circulant, k=8, bits=4), Size(48 * 24 // 8 * 4, 3 * 2 * 3 * 11))], ids=str)
def test_size_and_deviation(matrix, size):
    """A matrix begins with the deviation that it is asked for, but for the entries that pruning takes away."""
    assert matrix.size == size
    dense = matrix()
    assert dense.shape == (3 * HIDDEN, COLUMNS)
    if not isinstance(matrix, Pruned):
        assert 0.12 < float(dense.detach().std()) < 0.3
    dense.square().sum().backward()
    assert all(float(parameter.grad.abs().max()) > 0 for parameter in matrix.parameters())


def test_pruning_keeps_the_greatest():
    some = made(Pruned, kept=(1, 4), index=2)().detach()
    assert ((some.reshape(48, -1, 4) != 0).sum(-1) == 1).all()
    loose = made(Pruned, kept=0.25, index=4)
    dense = loose().detach()
    assert (dense != 0).sum() == 288
    assert dense[dense != 0].abs().min() >= loose.weight[dense == 0].abs().max()


def test_few_bits_are_so_many_values():
    assert all(len(row.unique()) <= 16 for row in made(Dense, bits=4)().detach())
    spectra = torch.fft.rfft(compressed_first(made(Circulant, k=8, bits=4)))
    values = torch.view_as_real(spectra).reshape(3 * 2, -1)
    steps = values.abs().amax(1, keepdim=True).div(7).log2().ceil().exp2()
    assert torch.allclose((values / steps).round(), values / steps, atol=1e-3), "each block row is on its own grid"


def compressed_first(matrix):
    """First columns of the matrix that is computed with."""
    return matrix.set.right_inverse(matrix().detach())


def test_a_circulant_matrix_is_that_of_the_product():
    matrix = made(Circulant, k=8)
    linear = torch.nn.Linear(COLUMNS, 3 * HIDDEN, bias=False)
    with torch.no_grad():
        linear.weight.copy_(matrix())
    assert torch.allclose(compress(linear, 8).weight, matrix(), atol=1e-6)


def test_monarch_is_two_block_diagonals_and_a_transposition():
    matrix, gate = made(Monarch, blocks=4, groups=2), 1
    x = torch.randn(COLUMNS)
    through = torch.einsum("bsi,bi->sb", matrix.right[gate], x.reshape(4, 6))
    wanted = torch.einsum("sob,sb->so", matrix.left[gate], through).reshape(-1)
    found = (matrix()[gate * HIDDEN:(gate + 1) * HIDDEN] @ x).reshape(8, 2).T.reshape(-1)
    assert torch.allclose(found, wanted, atol=1e-6)
