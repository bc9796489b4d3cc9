"""The product with a block-circulant matrix in two ways, and which of them is the faster one for a shape.

"matrix": the first columns are spread out to the dense matrix, which an ordinary product then reads. "spectrum": both
sides are transformed, k/2 + 1 small products follow, and their sum is transformed back (CirCNN eq. 3; E-RNN section
2). A transform of a block this small is itself fastest as a product with a constant matrix, whose columns are the real
and imaginary parts of the bins.
"""
import math
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

__all__ = ["diagonals", "faster", "product", "spread"]

COSTS = {"spread": 6.5, "dense": 0.039, "small": 0.062, "transform": 0.05, "number": 11.0, "weight": 36.0,
         "start": 190e3}
"""Nanoseconds, forward and backward, on one core of a server, fitted to 75 shapes from 256 × 256 to 1024 × 1024: of an
entry that is spread out and has its gradient summed; of a multiplication in the dense product, in those of the bins and
in the transforms; of a number of the batch and of a weight that moves between the transforms; and of the longer way."""



def product(x: Tensor, first: Tensor, rows: int, columns: int, bias: Tensor | None = None, *,
            path: str = "faster") -> Tensor:
    """x Wᵀ + bias for the block-circulant W (rows × columns).

    Parameters:
        x: (…, columns).
        first: first columns (p, q, k); blocks may reach over the edges of W.
        path: "matrix", "spectrum", or "faster" for the one that `faster` names. They differ by rounding only.

    Returns:
        (…, rows).
    """
    p, q, k = first.shape
    if path == "faster":
        path = faster(x.numel() // max(columns, 1), p, q, k)
    if path == "matrix":
        return linear(x, spread(first)[:rows, :columns], bias)
    with torch.autocast(x.device.type, enabled=False):
        blocks = pad(x, (0, q * k - columns)) if q * k > columns else x
        y = _spectral(blocks.reshape(-1, q, k).to(first.dtype), first)  # (N, p·k)
        y = y[:, :rows].reshape(*x.shape[:-1], rows)
        return y if bias is None else y + bias


def faster(batch: int, p: int, q: int, k: int) -> str:
    """The path that takes less time, forward and backward, for ``batch`` vectors: "matrix" or "spectrum".

    The spectrum saves multiplications by a factor of about k/2, and pays for moving the batch and the weights between
    the transforms.
    """
    if k < 4:
        return "matrix"
    outputs, inputs, weights = p * k, q * k, p * q * k
    numbers = batch * (outputs + inputs)
    matrix = outputs * inputs * (3 * COSTS["dense"] * batch + COSTS["spread"])
    spectrum = (3 * COSTS["small"] * batch * p * q * (2 * k - 2) + 3 * COSTS["transform"] * k * (numbers + weights)
                + COSTS["number"] * numbers + COSTS["weight"] * weights + COSTS["start"])
    return "spectrum" if spectrum < matrix else "matrix"


def spread(first: Tensor) -> Tensor:
    """First columns (p, q, k) to the whole blocks of the matrix, (p·k, q·k)."""
    dense: Tensor = _Spread.apply(first)
    return dense


def diagonals(matrix: Tensor, p: int, q: int, k: int) -> Tensor:
    """Sums over the wrapped diagonals of the blocks of a matrix (p·k, q·k), as (p, q, k); the adjoint of `spread`."""
    rows, twice = matrix.reshape(p, k, q, k), matrix.new_zeros(p, q, 2 * k)
    for i in range(k):
        twice[..., k - 1 - i:2 * k - 1 - i] += rows[:, i]
    return (twice[..., :k] + twice[..., k:]).flip(-1)


class _Spread(torch.autograd.Function):
    """Row i of a block is a window of the reversed first column written twice, so spreading is one copy for each row;
    the gradient is the sum over the wrapped diagonals, by the same windows."""

    @staticmethod
    def forward(ctx: Any, first: Tensor) -> Tensor:
        p, q, k = ctx.shape = first.shape
        twice = torch.cat((first, first), -1).flip(-1)  # C[i, j] = twice[k - 1 - i + j]
        dense = first.new_empty(p, k, q, k)
        for i in range(k):
            dense[:, i] = twice[..., k - 1 - i:2 * k - 1 - i]
        return dense.view(p * k, q * k)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return diagonals(gradient, *ctx.shape)


class _Transforms(NamedTuple):
    """Transforms of a block of k numbers as matrices.

    The real bins 0 and k/2 are one product each, and a complex bin is one of the real matrices
    ((re, im), (-im, re)).

    Members:
        real, inverse_real: to the two real bins (k, 2), and their part of the inverse (2, k).
        data, weight, inverse: to re and im of the k/2 - 1 complex bins (k, k - 2), to the four entries of their
            matrices (k, 2k - 4), and back from re and im (k - 2, k).
    """

    real: Tensor
    data: Tensor
    weight: Tensor
    inverse_real: Tensor
    inverse: Tensor


@lru_cache(maxsize=64)
def _transforms(k: int, dtype: torch.dtype, device: torch.device) -> _Transforms:
    time, half = torch.arange(k, dtype=torch.float64), k // 2
    angle = 2 * math.pi / k * torch.outer(time, torch.arange(1, half, dtype=torch.float64))
    re, im = angle.cos(), -angle.sin()
    real = torch.stack((torch.ones(k, dtype=torch.float64), 1 - 2 * (time % 2)), 1)
    data = torch.stack((re, im), -1).reshape(k, -1)
    weight = torch.stack((re, im, -im, re), -1).reshape(k, -1)
    return _Transforms(*(part.contiguous().to(device, dtype)
                         for part in (real, data, weight, real.T / k, 2 * data.T / k)))


def _spectral(blocks: Tensor, first: Tensor) -> Tensor:
    """Blocks (N, q, k) times the transpose of the matrix of first columns (p, q, k), as (N, p·k)."""
    (p, q, k), n, bins = first.shape, len(blocks), first.shape[-1] // 2 - 1
    to = _transforms(k, first.dtype, first.device)
    x, w = blocks.reshape(n * q, k), first.reshape(p * q, k)
    real = torch.bmm((x @ to.real).view(n, q, 2).permute(2, 0, 1), (w @ to.real).view(p, q, 2).permute(2, 1, 0))
    left = (x @ to.data).view(n, q, bins, 2).permute(2, 0, 1, 3).reshape(bins, n, 2 * q)
    right = (w @ to.weight).view(p, q, bins, 2, 2).permute(2, 1, 3, 0, 4).reshape(bins, 2 * q, 2 * p)
    pairs = torch.bmm(left, right).view(bins, n, p, 2).permute(1, 2, 0, 3).reshape(n * p, 2 * bins)
    y = torch.addmm(real.permute(1, 2, 0).reshape(n * p, 2) @ to.inverse_real, pairs, to.inverse)
    return y.view(n, p * k)
