"""The maximum of two tensors, value by value."""
import torch

from circulant.sim.kinds.maximum import FloatMaximum
from circulant.training.kinds.elementwise import Pair, arithmetic, bounded, greatest, pair
from circulant.training.kinds.scale import affine
from circulant.training.neutral import Call, Value, of_torch
from circulant.training.onnx import called

__all__ = ["Maximum"]


class Maximum(Pair):
    """The greater of both."""

    layer = FloatMaximum


@of_torch("abs", "absolute")
def _absolute(call: Call) -> Value:
    """max(x, -x)."""
    return pair(call, Maximum, call.tensor, affine(call, call.tensor, -1.0, 0.0, part="negative"))


of_torch("maximum")(greatest(Maximum))
arithmetic("Max")(bounded(torch.maximum, lambda x, ends: torch.clamp(x, max(ends))))
arithmetic("Abs")(called(torch.abs))
