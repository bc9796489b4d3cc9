"""The set of block-circulant matrices, as a parametrization of a weight of an ordinary torch module.

A matrix (m × n) is cut into p × q blocks of size k; ragged edges are padded. A block is given by its first column c:
``C[i, j] = c[(i - j) mod k]`` (CirCNN eq. 2, E-RNN eq. 4). The gates of a recurrent layer are separate matrices,
stacked; so are the positions of a convolution's kernel (CirCNN, section 4).
"""
import math

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from circulant.sim.refusal import Refusal
from circulant.training.blocks.product import diagonals, spread

__all__ = ["BLOCK_SIZES", "BlockCirculant", "illegal", "too_large"]

BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64)


class BlockCirculant(nn.Module):
    """The set of block-circulant matrices (rows, columns), made of ``groups`` stacked ones, each padded on its own.

    `forward` maps first columns (groups, p, q, k) to the dense matrix, and `right_inverse` is the Euclidean projection
    back: the mean over each wrapped diagonal, of those entries that a ragged edge leaves.

    Parameters:
        kernel: extents of a convolution's kernel. The dense tensor is (rows, columns, *kernel) then, rows are output
            and columns input channels, and each position of the kernel is a group, in row-major order.

    Raises:
        Refusal: when the block size is no power of two from 1 to 64, is larger than both sides of a matrix, or the rows
            are no multiple of the groups.
    """

    _counts: Tensor

    spectral = True
    """Whether a product may be of the spectra of first columns alone."""

    def __init__(self, rows: int, columns: int, block_size: int, groups: int = 1, kernel: tuple[int, ...] = ()) -> None:
        super().__init__()
        if rows % groups:
            raise Refusal(f"The rows must be a multiple of the {groups} groups, not {rows}; stack gates of one height")
        if problem := illegal(block_size) or too_large(block_size, rows // groups, columns):
            raise Refusal(problem)
        self.rows, self.columns, self.block_size, self.groups, self.kernel = rows, columns, block_size, groups, kernel
        ones = torch.ones(1, rows // groups, columns, dtype=torch.float64)
        self.register_buffer("_counts", self._diagonals(ones).clamp(min=1).long(), persistent=False)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of the first columns, (groups, p, q, k); with a kernel, groups are its positions."""
        k, stacked = self.block_size, self.groups * math.prod(self.kernel)
        return stacked, -(-self.rows // (self.groups * k)), -(-self.columns // k), k

    @property
    def counts(self) -> Tensor:
        """How many entries of a matrix each first-column entry stands for, (1, p, q, k); 1 where it is all padding."""
        return self._counts

    def settled(self, first: Tensor) -> Tensor:
        """The first columns that count; a smaller set brings them into itself."""
        return first

    def forward(self, first: Tensor) -> Tensor:
        """First columns (groups, p, q, k) to the matrix (rows, columns), or (rows, columns, *kernel)."""
        groups, p, q, k = self.shape
        dense = spread(first.reshape(groups * p, q, k)).view(groups, p * k, q * k)
        dense = dense[:, :self.rows // self.groups, :self.columns]
        if not self.kernel:
            return dense.reshape(self.rows, self.columns)
        return dense.permute(1, 2, 0).reshape(self.rows, self.columns, *self.kernel)

    def right_inverse(self, dense: Tensor) -> Tensor:
        """First columns (groups, p, q, k) of the member of the set that is nearest to what `forward` would return."""
        if self.kernel:
            gates = dense.flatten(2).permute(2, 0, 1)
        else:
            gates = dense.reshape(self.groups, -1, self.columns)
        return (self._diagonals(gates.double()) / self._counts).to(dense.dtype)

    def project(self, dense: Tensor) -> Tensor:
        """The member of the set nearest to a matrix, both (rows, columns) or (rows, columns, *kernel)."""
        return self.forward(self.right_inverse(dense))

    def _diagonals(self, gates: Tensor) -> Tensor:
        """Sums over the wrapped diagonals of the blocks: (groups, m, n) to (groups, p, q, k)."""
        k = self.block_size
        _, p, q, _ = self.shape
        whole = pad(gates, (0, q * k - gates.shape[2], 0, p * k - gates.shape[1]))
        return diagonals(whole.reshape(-1, q * k), len(gates) * p, q, k).view(-1, p, q, k)

    def extra_repr(self) -> str:
        kernel = f", kernel={self.kernel}" if self.kernel else ""
        return f"{self.rows}, {self.columns}, block_size={self.block_size}, groups={self.groups}{kernel}"


def illegal(k: object) -> str | None:
    """Why nothing can have the block size, or None."""
    if isinstance(k, int) and not isinstance(k, bool) and k in BLOCK_SIZES:
        return None
    way = ""
    if isinstance(k, int | float) and not isinstance(k, bool) and k == k:
        lower = max((size for size in BLOCK_SIZES if size <= k), default=BLOCK_SIZES[0])
        upper = min((size for size in BLOCK_SIZES if size >= k), default=BLOCK_SIZES[-1])
        way = f"; choose {lower}" if lower == upper else f"; choose {lower} or {upper}"
    return f"Block size must be a power of two from 1 to {BLOCK_SIZES[-1]}, not {k!r}{way}"


def too_large(k: int, rows: int, columns: int) -> str | None:
    """Why a matrix (rows, columns) cannot have the block size, or None."""
    largest = max(size for size in BLOCK_SIZES if size <= max(rows, columns))
    if k <= largest:
        return None
    return (f"Block size must not exceed both sides of its matrix ({rows} × {columns}), but {k} does; "
            f"choose {largest} or less")
