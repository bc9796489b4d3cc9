"""Self-guided training: block-circulant matrices that begin as dense ones, which fade."""
import math
from typing import Any

import torch
from torch import Tensor, nn

from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.blocks.matrices import constraint_of, matrices

__all__ = ["Guides"]


class _Guided(BlockCirculant):
    """A set whose members have a dense twin beside them in training: a · W_dense + (1 - a) · W_circulant."""

    spectral = False

    def __init__(self, constraint: BlockCirculant, dense: Tensor) -> None:
        super().__init__(constraint.rows, constraint.columns, constraint.block_size, constraint.groups,
                         constraint.kernel)
        self.to(dense.device)
        self.twin, self.share = nn.Parameter(dense.detach().clone()), 1.0

    def forward(self, first: Tensor) -> Tensor:
        member = super().forward(first)
        return self.share * self.twin + (1 - self.share) * member if self.training else member


class Guides:
    """The dense twins of a model's block-circulant matrices, for a part of a training.

    Wei, Moalla, Pascanu and Gulcehre 2024, "Building on Efficient Foundations" (arXiv 2406.16450, section 3.2): a
    matrix of a structure learns badly while its entries are far from useful ones; a dense twin carries the first steps,
    and its share a falls from 1 to 0 along a half cosine. In evaluation the structure stands alone.

    Parameters:
        model: compressed; the twins are parameters of it until `remove`.
        dense: the model with the weights that they begin with.
        batches: over which the share falls.

    Members:
        done: batches so far.
    """

    def __init__(self, model: nn.Module, dense: nn.Module, batches: int) -> None:
        theirs = matrices(dense)
        self._batches, self.done = max(1, batches), 0
        self._chains: list[tuple[Any, BlockCirculant]] = []
        for name, matrix in matrices(model).items():
            constraint, chains = constraint_of(matrix), getattr(matrix.module, "parametrizations", {})
            if constraint is not None:
                chains[matrix.tensor][0] = _Guided(constraint, theirs[name].weight)
                self._chains.append((chains[matrix.tensor], constraint))

    @property
    def share(self) -> float:
        """The share a of the twins in the next batch."""
        return 0.5 * (1 + math.cos(math.pi * min(1.0, self.done / self._batches)))

    def step(self) -> None:
        """A batch is done."""
        self.go_on(self.done + 1)

    def go_on(self, done: int) -> None:
        """So many batches are done."""
        self.done = done
        for chain, _ in self._chains:
            chain[0].share = self.share

    @torch.no_grad()
    def remove(self) -> None:
        """Throw the twins away."""
        for chain, constraint in self._chains:
            chain[0] = constraint
