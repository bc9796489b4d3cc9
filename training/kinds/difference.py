"""The difference of two tensors, value by value; `add` has what of torch becomes one."""
import torch

from circulant.sim.kinds.difference import FloatDifference
from circulant.training.kinds.elementwise import Pair, arithmetic, joined

__all__ = ["Subtract"]


class Subtract(Pair):
    """The first less the second."""

    layer, verb, ordered = FloatDifference, "subtract", True


arithmetic("Sub")(joined(torch.sub))
