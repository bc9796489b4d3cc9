"""Linear layers that compute with their first columns where that takes less time."""
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils import parametrize

from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.blocks.product import faster, product

__all__ = ["use_fast_forward"]


def use_fast_forward(module: nn.Module) -> None:
    """Let a Linear whose weight is `BlockCirculant` take the faster of the two ways of `product`; no other is changed.

    torch gives every parametrized module a class of its own, so that no other is touched, and what removes the
    parametrization removes this too.
    """
    if isinstance(module, nn.Linear) and parametrize.is_parametrized(module, "weight"):
        own: Any = type(module)
        own.forward = _forward


def _forward(self: Any, x: Tensor) -> Tensor:
    chain = self.parametrizations.weight
    if len(chain) == 1 and isinstance(chain[0], BlockCirculant) and chain[0].spectral and _counts(x):
        rows, columns = chain[0].rows, chain[0].columns
        _, p, q, k = chain[0].shape
        if faster(x.numel() // columns, p, q, k) == "spectrum":
            return product(x, chain[0].settled(chain.original)[0], rows, columns, self.bias, path="spectrum")
    return linear(x, self.weight, self.bias)


def _counts(x: Tensor) -> bool:
    """Whether multiplications dominate the time; on a GPU they do not, least of all in 16 bits."""
    return x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
