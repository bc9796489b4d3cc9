"""The maximum of two tensors, value by value."""
import torch

from circulant.sim.kinds.maximum import FloatMaximum
from circulant.training.kinds.elementwise import Pair, arithmetic, bounded, greatest
from circulant.training.neutral import of_torch

__all__ = ["Maximum"]


class Maximum(Pair):
    """The greater of both."""

    layer = FloatMaximum


of_torch("maximum")(greatest(Maximum))
arithmetic("Max")(bounded(torch.maximum, lambda x, ends: torch.clamp(x, max(ends))))
