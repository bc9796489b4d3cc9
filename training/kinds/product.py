"""Products of two tensors, value by value; of all steps or pixels with one vector they are gates."""
import torch
from torch import nn

from circulant.sim.kinds.product import FloatProduct
from circulant.training.kinds.activation import Function
from circulant.training.kinds.elementwise import Pair, arithmetic, joined, operands, pair
from circulant.training.kinds.scale import affine
from circulant.training.neutral import Builder, Call, Stream, Unsupported, Value, lowered, of_torch

__all__ = ["Multiply"]


class Multiply(Pair):
    """Their product."""

    layer, verb = FloatProduct, "multiply"


@of_torch("mul", "multiply", "rmul", "imul", constants=True)
def _captured(call: Call) -> Value:
    one, other = operands(call)
    if isinstance(one, Value) and isinstance(other, Value):
        return pair(call, Multiply, one, other)
    source, factor = (one, other) if isinstance(one, Value) else (other, one)
    return affine(call, source, factor, 0.0)


@of_torch(nn.GLU, "glu")
def _glu(call: Call) -> Value:
    """The first half of an axis times the sigmoid of the second."""
    source = call.tensor
    axis = (call.module.dim if call.module is not None else call.bind("dim", dim=-1)["dim"]) % source.rank
    if axis == source.batch:
        raise Unsupported("it must halve an axis of each sample, not the batch; name another axis")
    assert source.places is not None
    first, second = (Value(half, source.batch, source.path) for half in source.places.chunk(
        2, axis - (axis > source.batch)))
    gate = call.emit(Function, (second,), source.batch, part="gate", function="sigmoid")
    return call.emit(Multiply, (first, gate), source.batch)


@lowered.register
def _(node: Multiply, to: Builder) -> Stream | None:
    return (None if node.relu else to.gate(node)) or lowered.dispatch(Pair)(node, to)


arithmetic("Mul")(joined(torch.mul))
