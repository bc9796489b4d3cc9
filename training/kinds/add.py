"""Sums of two tensors, or of a tensor and a constant; a factor can make them differences."""
from typing import Any

import torch

from circulant.sim.kinds.add import FloatAdd
from circulant.training.kinds.difference import Subtract
from circulant.training.kinds.elementwise import Pair, arithmetic, joined, operands, pair
from circulant.training.kinds.linear import bias_behind
from circulant.training.kinds.scale import affine
from circulant.training.neutral import Call, Value, of_torch
from circulant.training.onnx import OnnxCall, Values

__all__ = ["Add"]


class Add(Pair):
    """Their sum."""

    layer, verb, title = FloatAdd, "sum", "sum"


@of_torch("add", "radd", "iadd", "sub", "subtract", "isub", "rsub", constants=True)
def _captured(call: Call) -> Value:
    one, other = operands(call)[::-1 if call.kind == "rsub" else 1]
    factor = float(call.kwargs.get("alpha", call.args[2] if len(call.args) > 2 else 1))
    return _sum(call, one, other, factor if call.kind.endswith("add") else -factor)


def _sum(call: Call, one: Any, other: Any, factor: float) -> Value:
    """one + factor · other."""
    if isinstance(one, Value) and isinstance(other, Value):
        if abs(factor) != 1:
            other, factor = affine(call, other, factor, 0.0, part="scaled"), 1.0
        return pair(call, Add if factor == 1 else Subtract, one, other)
    if isinstance(one, Value):
        return affine(call, one, 1.0, factor * torch.as_tensor(other, dtype=torch.float64))
    return affine(call, other, factor, one)


@arithmetic("Add")
def _added(call: OnnxCall, module: Any, values: Values) -> Any:
    node = call.node
    for name in node.inputs:
        source = next((each for each in call.graph.nodes if name in each.outputs), None)
        if source is not None and (found := bias_behind(call.graph, source)) and found.name == node.name:
            return values[name]
    return joined(torch.add)(call, module, values)


@arithmetic("Mean")
def _mean(call: OnnxCall, module: Any, values: Values) -> Any:
    return joined(torch.add)(call, module, values) / len(call.node.inputs)


arithmetic("Sum")(joined(torch.add))
