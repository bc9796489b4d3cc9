"""The minimum of two tensors, value by value."""
import torch

from circulant.sim.kinds.minimum import FloatMinimum
from circulant.training.kinds.elementwise import Pair, arithmetic, bounded, greatest
from circulant.training.neutral import of_torch

__all__ = ["Minimum"]


class Minimum(Pair):
    """The lesser of both."""

    layer = FloatMinimum


of_torch("minimum")(greatest(Minimum))
arithmetic("Min")(bounded(torch.minimum, lambda x, ends: torch.clamp(x, max=min(ends))))
