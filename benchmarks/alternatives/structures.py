"""Structures of a layer's matrix: each gives a dense matrix, and says what it stores and multiplies.

A matrix is that of some gates stacked, (gates · hidden, columns): three of a GRU, one of other layers. Masks are chosen
anew at each step from latent dense weights, and the gradient passes them (Zhou et al. 2021, N:M sparsity from scratch);
so is the rounding of few bits.
"""
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from circulant.sim.arith.circulant import multiplications
from circulant.training.blocks.blocks import BlockCirculant

__all__ = ["BITS", "Circulant", "Dense", "LowRank", "Monarch", "Pruned", "Size", "Structure"]

BITS = 12
"""Bits of a weight that is trained in floating point, as in the shipped experiments."""


class Size(NamedTuple):
    """Bits of the weights with their indices, and multiplications of a product."""

    bits: int
    multiplications: int

    def __add__(self, other: object) -> "Size":
        assert isinstance(other, Size)
        return Size(self.bits + other.bits, self.multiplications + other.multiplications)


class Structure(nn.Module, ABC):
    """A matrix (gates · hidden, columns), which `forward` gives; its entries begin with the deviation ``scale``."""

    def __init__(self, hidden: int, columns: int, scale: float, gates: int = 3) -> None:
        super().__init__()
        self.hidden, self.columns, self.scale, self.gates = hidden, columns, scale, gates

    @property
    @abstractmethod
    def size(self) -> Size:
        """Its cost."""

    def normal(self, *shape: int, scale: float = 1.0) -> nn.Parameter:
        """Random numbers of that deviation."""
        return nn.Parameter(torch.randn(*shape) * scale)


def rounded(weight: Tensor, bits: int, rows: int, step: Callable[[Tensor], Tensor] = lambda step: step) -> Tensor:
    """Weights of so many bits, with a step for each of ``rows``; the gradient ignores the rounding."""
    if not bits:
        return weight
    most = 2 ** (bits - 1) - 1
    flat = weight.detach().reshape(rows, -1)
    unit = step(flat.abs().amax(1, keepdim=True).clamp(min=1e-8) / most)
    integers = (flat / unit).round().clamp(-most - 1, most)
    return weight + ((integers * unit).reshape(weight.shape) - weight).detach()


class Dense(Structure):
    """Every entry a weight, of 12 bits or fewer with a scale for each row."""

    def __init__(self, hidden: int, columns: int, scale: float, gates: int = 3, *, bits: int = 0) -> None:
        super().__init__(hidden, columns, scale, gates)
        self.bits = bits
        self.weight = self.normal(gates * hidden, columns, scale=scale)

    def forward(self) -> Tensor:
        return rounded(self.weight, self.bits, len(self.weight))

    @property
    def size(self) -> Size:
        return Size(self.weight.numel() * (self.bits or BITS), self.weight.numel())


class LowRank(Structure):
    """A product of two matrices of a rank."""

    def __init__(self, hidden: int, columns: int, scale: float, gates: int = 3, *, rank: int) -> None:
        super().__init__(hidden, columns, scale, gates)
        each = (scale / rank ** 0.5) ** 0.5
        self.left = self.normal(gates * hidden, rank, scale=each)
        self.right = self.normal(rank, columns, scale=each)

    def forward(self) -> Tensor:
        return self.left @ self.right

    @property
    def size(self) -> Size:
        weights = self.left.numel() + self.right.numel()
        return Size(weights * BITS, weights)


class Pruned(Structure):
    """The greatest entries: n of each m in a row, or a share of the whole matrix.

    Parameters:
        index: bits that say where a kept weight is.
    """

    def __init__(self, hidden: int, columns: int, scale: float, gates: int = 3, *,
                 kept: tuple[int, int] | float, index: int) -> None:
        super().__init__(hidden, columns, scale, gates)
        self.kept, self.index = kept, index
        self.weight = self.normal(gates * hidden, columns, scale=scale)

    @property
    def count(self) -> int:
        """Weights that are kept."""
        if isinstance(self.kept, tuple):
            return self.weight.numel() * self.kept[0] // self.kept[1]
        return round(self.kept * self.weight.numel())

    def forward(self) -> Tensor:
        magnitude = self.weight.detach().abs()
        if isinstance(self.kept, tuple):
            n, m = self.kept
            groups = magnitude.reshape(len(magnitude), -1, m)
            mask = (groups >= groups.topk(n, -1).values[..., -1:]).reshape(magnitude.shape)
        else:
            mask = magnitude >= magnitude.reshape(-1).topk(self.count).values[-1]
        return self.weight + (self.weight * mask - self.weight).detach()

    @property
    def size(self) -> Size:
        return Size(self.count * (BITS + self.index), self.count)


class Monarch(Structure):
    """For each gate two block-diagonal matrices with a transposition between them (Dao et al. 2022).

    Parameters:
        blocks, groups: of columns and of rows; a group of rows sees a block of columns through one vector.
    """

    def __init__(self, hidden: int, columns: int, scale: float, gates: int = 3, *, blocks: int,
                 groups: int) -> None:
        super().__init__(hidden, columns, scale, gates)
        self.right = self.normal(gates, blocks, groups, columns // blocks, scale=scale ** 0.5)
        self.left = self.normal(gates, groups, hidden // groups, blocks, scale=scale ** 0.5)

    def forward(self) -> Tensor:
        whole = torch.einsum("gsob,gbsi->gosbi", self.left, self.right)  # Row (o, s), column (b, i).
        return whole.reshape(self.gates * self.hidden, self.columns)

    @property
    def size(self) -> Size:
        weights = self.left.numel() + self.right.numel()
        return Size(weights * BITS, weights)


class Circulant(Structure):
    """Blocks of k by their first columns; spectra of few bits have a power of two for each block row."""

    def __init__(self, hidden: int, columns: int, scale: float, gates: int = 3, *, k: int, bits: int = 0) -> None:
        super().__init__(hidden, columns, scale, gates)
        self.set, self.bits = BlockCirculant(gates * hidden, columns, k, gates), bits
        self.first = self.normal(*self.set.shape, scale=scale)

    def forward(self) -> Tensor:
        first, k = self.first, self.set.block_size
        if self.bits:
            spectra = torch.view_as_real(torch.fft.rfft(first))
            near = rounded(spectra, self.bits, spectra.shape[0] * spectra.shape[1],
                           lambda step: step.log2().ceil().exp2())
            first = torch.fft.irfft(torch.view_as_complex(near.contiguous()), n=k)
        return self.set(first)

    @property
    def size(self) -> Size:
        k = self.set.block_size
        return Size(self.first.numel() * (self.bits or BITS), self.first.numel() // k * multiplications(k))
