"""The block-circulant constraint on whole models: into the set, out of it, and what to start with inside it."""
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from circulant.sim.public import public
from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.blocks.clone import clone, settle
from circulant.training.blocks.matrices import (
    Matrix,
    Storage,
    assign,
    block_sizes,
    constraint_of,
    matrices,
    resolve,
    storage,
)

__all__ = ["BlockCirculant", "Matrix", "Storage", "assign", "block_sizes", "compress", "constraint_of", "decompress",
           "inherit", "initialise", "matrices", "resolve", "storage"]


@public
def compress(model: nn.Module, block_size: int | Mapping[str, int]) -> nn.Module:
    """A deep copy whose weight matrices are the nearest block-circulant ones, parametrized by their first columns.

    Parameters:
        block_size: one for all matrices of Linear, Conv1d, Conv2d, GRU, LSTM and our own cells, or by module or
            parameter name: ``{"gru": 8, "gru.weight_hh_l0": 16}`` (the longer name wins). Matrices that are not named
            stay as they are; size 1 is a dense matrix.

    The state dict holds first columns (groups, p, q, k), under ``gru.parametrizations.weight_hh_l0.original``; a
    convolution's groups are the positions of its kernel. torch computes with dense matrices made of them, by the same
    kernels as without the constraint; ``torch.nn.utils.parametrize.cached()`` makes them once for a step of training.
    A Linear on a CPU transforms instead, where that takes less time (see `training.blocks.product`).

    Raises:
        Refusal: all problems at once: a size that is no power of two from 1 to 64, or is larger than both sides of
            its matrix; an unknown name; a weight that is shared or already carries another parametrization.
    """
    sizes = resolve(model, block_size)
    model = clone(model)
    found = matrices(model)
    for name, k in sizes.items():
        module, tensor = found[name].module, found[name].tensor
        if constraint_of(found[name]):
            parametrize.remove_parametrizations(module, tensor)
        if k > 1:
            parametrize.register_parametrization(module, tensor, found[name].constraint(k))
            settle(module)
    return model


@public
def decompress(model: nn.Module) -> nn.Module:
    """A deep copy that computes the same with ordinary dense weights."""
    return compress(model, {name: 1 for name, matrix in matrices(model).items() if constraint_of(matrix)})


@public
@torch.no_grad()
def initialise(model: nn.Module, block_size: int | Mapping[str, int]) -> nn.Module:
    """A compressed copy of an untrained model, ready to train first columns directly (CirCNN).

    Every entry of a first column appears exactly once in each row of its block, so a row still sums as many products
    as that of the dense matrix, and its output has the dense layer's variance when the first columns have the variance
    σ² of the dense entries. `compress` gives the mean of c of these, of variance σ²/c; here it is multiplied by √c,
    with c = k for whole blocks and less at ragged edges. So the scale of any initialiser is kept, and the seed that
    made the dense weights makes these. Matrices with orthonormal rows or columns, as a recurrent layer's states need
    them, are replaced by members of the set that have them, too.

    Parameters:
        model: straight from its constructor or from torch.nn.init, its entries independent and of zero mean.
        block_size: as for `compress`.

    Raises:
        Refusal: as `compress`.
    """
    dense = {name: matrix for name, matrix in matrices(model).items() if constraint_of(matrix) is None}
    model = compress(model, block_size)
    for name, matrix in matrices(model).items():
        constraint = constraint_of(matrix)
        if constraint is not None and name in dense:
            first = matrix.first
            if _is_orthonormal(dense[name]) and not (matrix.rows % constraint.block_size
                                                     or matrix.columns % constraint.block_size):
                first.copy_(_polar(first))
            else:
                first.mul_(constraint.counts.sqrt())
    return model


@torch.no_grad()
def inherit(model: nn.Module, block_size: int | Mapping[str, int]) -> nn.Module:
    """A compressed copy of a trained model, ready to train first columns that begin as its projections.

    A projection keeps the mean of each block. The differences from it shrink: the mean over a wrapped diagonal leaves
    about 1/√c of c entries that do not agree, so a bare projection is about √k too small for the layers around it. Here
    the differences grow until each of the stacked matrices (gates, positions of a kernel) has its former Frobenius
    norm, and the means stay: inputs behind a ReLU are positive, and would add up means that grew, too. A matrix of the
    set stays as it is, and so does everything that is not compressed.

    Parameters:
        model: trained.
        block_size: as for `compress`.

    Raises:
        Refusal: as `compress`.
    """
    energies = {name: _energy(matrix.constraint(1), matrix.weight) for name, matrix in matrices(model).items()
                if constraint_of(matrix) is None}
    model = compress(model, block_size)
    for name, matrix in matrices(model).items():
        constraint = constraint_of(matrix)
        if constraint is not None and name in energies:
            first, real = matrix.first.double(), constraint.right_inverse(torch.ones_like(matrix.weight)).double()
            counts = constraint.counts * real                                   # 0 where all is padding
            mean = real * (counts * first).sum(3, keepdim=True) / counts.sum(3, keepdim=True)
            kept, rest = (_sum(counts * part.square()) for part in (mean, first - mean))
            scale = torch.where(rest > 0, (energies[name] - kept).clamp(min=0) / rest, 1).sqrt()
            matrix.first.copy_((mean + (first - mean) * scale).to(matrix.first.dtype))
    return model


def _energy(constraint: BlockCirculant, weight: Tensor) -> Tensor:
    """Sum of the squares of each of the stacked matrices of a weight in the set, (groups, 1, 1, 1)."""
    return _sum(constraint.counts * constraint.right_inverse(weight).double().square())


def _sum(entries: Tensor) -> Tensor:
    """Sum over the entries of each of the stacked matrices, (groups, 1, 1, 1)."""
    return entries.sum((1, 2, 3), keepdim=True)


def _is_orthonormal(matrix: Matrix) -> bool:
    """Whether each of the stacked matrices has orthonormal rows, or columns where there are fewer of these."""
    if matrix.kernel:
        return False
    stacked = matrix.weight.detach().double().reshape(matrix.groups, matrix.rows, matrix.columns)
    wide = stacked if matrix.rows <= matrix.columns else stacked.mT
    return torch.allclose(wide @ wide.mT, torch.eye(wide.shape[1]).to(wide), atol=1e-4)


def _polar(first: Tensor) -> Tensor:
    """First columns (groups, p, q, k) of the nearest matrices with orthonormal rows or columns.

    In the Fourier basis a block-circulant matrix is one block (p, q) at each frequency, its spectra, and the singular
    values of these blocks are those of the whole.
    """
    u, _, v = torch.linalg.svd(torch.fft.fft(first.double()).permute(0, 3, 1, 2), full_matrices=False)
    return torch.fft.ifft((u @ v).permute(0, 2, 3, 1)).real.to(first.dtype)
