"""Operators of ONNX in torch, so that the capture of a module understands them."""
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from circulant.training.onnx.graph import OnnxGraph, OnnxNode
from circulant.training.onnx.modules import bias_behind

__all__ = ["OPERATORS", "Call"]

HARD_SIGMOID = (1 / 6, 0.5)
"""Slope and middle of torch's; those that ONNX takes without being told are others."""


@dataclass(frozen=True, eq=False)
class Call:
    """A node in its graph.

    Parameters:
        batch: by tensor the axis of the batch.
    """

    node: OnnxNode
    graph: OnnxGraph
    batch: dict[str, int]

    def data(self, values: dict[str, Any], number: int = 0) -> Any:
        """An input that depends on the data."""
        name = self.node.inputs[number]
        if name not in values:
            raise self.node.refused("it must take what depends on the data, not a constant; compute that beforehand")
        return values[name]

    def number(self, number: int) -> Any:
        """An input that is a constant, or None where there is none."""
        name = self.node.inputs[number] if number < len(self.node.inputs) else ""
        if name and name not in self.graph.constants:
            raise self.node.refused("its sizes must be constants, not computed from the data; export it with fixed "
                                    "sizes")
        return self.graph.constants[name].tolist() if name else None

    def axes(self, number: int = 1) -> list[int] | None:
        """Axes as an attribute or an input, none negative."""
        found = self.node.attributes.get("axes", self.number(number))
        rank = len(self.graph.shapes[self.node.inputs[0]])
        return None if found is None else [axis % rank for axis in found]

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the first output."""
        return self.graph.shapes[self.node.outputs[0]]

    def follow_batch(self) -> None:
        """Note which axis of the outputs is that of the batch."""
        node, came = self.node, self.batch.get(self.node.inputs[0])
        if came is None:
            came = next(self.batch[name] for name in node.inputs if name in self.batch)
        axis = came
        if node.op in ("LSTM", "GRU", "RNN"):
            self.batch.update(zip(node.outputs, (2, 1, 1), strict=False))
            return
        if node.op == "Transpose":
            axis = self.permutation.index(came)
        elif node.op in ("Reshape", "Flatten", "Squeeze", "Unsqueeze"):
            axis = self.batch_of_reshaped(came)
        elif node.op == "Gather":
            axis -= node.attributes.get("axis", 0) < came
        elif node.op in ("ReduceMean", "ReduceMax") and not node.attributes.get("keepdims", 1):
            axis -= sum(each < came for each in self.axes() or [])
        self.batch.update(dict.fromkeys(node.outputs, axis))

    @property
    def permutation(self) -> list[int]:
        rank = len(self.graph.shapes[self.node.inputs[0]])
        return list(self.node.attributes.get("perm", range(rank)[::-1]))

    def batch_of_reshaped(self, came: int) -> int:
        """The axis of the result that has as many values before it and as many in it as the batch had."""
        shape = self.graph.shapes[self.node.inputs[0]]
        before = int(np.prod(shape[:came]))
        for axis, size in enumerate(self.result):
            if size == shape[came] and int(np.prod(self.result[:axis])) == before:
                return axis
        raise self.node.refused(f"it must leave the batch an axis of its own, not turn {shape} into {self.result}; "
                                "export it with a batch of more than 1")


Operator = Callable[[Call, Any, dict[str, Any]], Any]


def _module(call: Call, module: nn.Module, values: dict[str, Any]) -> Any:
    return module(call.data(values))


def _recurrent(call: Call, module: nn.Module, values: dict[str, Any]) -> Any:
    """Y (T, directions, N, hidden), and the last states."""
    out, states = module(call.data(values))
    ways = 1 + (call.node.attributes.get("direction") == "bidirectional")
    return out.unflatten(-1, (ways, -1)).transpose(1, 2), *(states if isinstance(states, tuple) else (states,))


def _same(call: Call, module: Any, values: dict[str, Any]) -> Any:
    return call.data(values)


def _reshape(call: Call, module: Any, values: dict[str, Any]) -> Any:
    """Reshape, Flatten, Squeeze, Unsqueeze."""
    batch = call.batch_of_reshaped(call.batch[call.node.inputs[0]])
    return call.data(values).reshape([-1 if axis == batch else size for axis, size in enumerate(call.result)])


def _transpose(call: Call, module: Any, values: dict[str, Any]) -> Any:
    return call.data(values).permute(call.permutation)


def _gather(call: Call, module: Any, values: dict[str, Any]) -> Any:
    """A state or direction of a recurrent node, or the last step of a sequence."""
    x, axis, at = call.data(values), call.node.attributes.get("axis", 0), call.number(1)
    rank = len(call.graph.shapes[call.node.inputs[0]])
    if not isinstance(at, int) or axis % rank == call.batch[call.node.inputs[0]]:
        raise call.node.refused(f"it must take the last step of a sequence, not number {at} of axis {axis}; take "
                                "out[:, -1]")
    return x[tuple(at if each == axis % rank else slice(None) for each in range(axis % rank + 1))]


def _concat(call: Call, module: Any, values: dict[str, Any]) -> Any:
    return torch.cat([call.data(values, n) for n in range(len(call.node.inputs))], call.node.attributes["axis"])


def _add(call: Call, module: Any, values: dict[str, Any]) -> Any:
    node = call.node
    for name in node.inputs:
        source = next((each for each in call.graph.nodes if name in each.outputs), None)
        if source is not None and (found := bias_behind(call.graph, source)) and found.name == node.name:
            return values[name]
    if any(name in call.graph.constants for name in node.inputs):
        raise node.refused("a constant may only be added right behind a MatMul, as its bias; make it part of a layer")
    return call.data(values, 0) + call.data(values, 1)


def _reduced(call: Call, module: Any, values: dict[str, Any]) -> Any:
    axes = call.axes()
    if axes is None:
        raise call.node.refused("it must name the axes that it reduces; name them")
    x, keep = call.data(values), bool(call.node.attributes.get("keepdims", 1))
    return (x.mean if call.node.op == "ReduceMean" else x.amax)(tuple(axes), keepdim=keep)


def _softmax(call: Call, module: Any, values: dict[str, Any]) -> Any:
    function = functional.softmax if call.node.op == "Softmax" else functional.log_softmax
    opset = next(each.version for each in call.graph.proto.opset_import if not each.domain)
    rank, axis = len(call.result), call.node.attributes.get("axis", -1 if opset >= 13 else 1)
    if opset < 13 and axis % rank != rank - 1:
        raise call.node.refused(f"before opset 13 it goes over all axes from axis {axis} on; give it the last axis")
    return function(call.data(values), dim=axis)


def _hard_sigmoid(call: Call, module: Any, values: dict[str, Any]) -> Any:
    given = call.node.attributes.get("alpha", 0.2), call.node.attributes.get("beta", 0.5)
    if not np.allclose(given, HARD_SIGMOID, rtol=1e-5):
        raise call.node.refused(f"its alpha and beta must be 1/6 and 1/2, as torch has them, not {given}; use those")
    return functional.hardsigmoid(call.data(values))


def _clip(call: Call, module: Any, values: dict[str, Any]) -> Any:
    """A clip, or a quantizer."""
    if module is not None:
        return module(call.data(values))
    options = call.node.attributes
    low, high = options.get("min", call.number(1)), options.get("max", call.number(2))
    return torch.clamp(call.data(values), low, high)


def _called(function: Callable[..., Any]) -> Operator:
    return lambda call, module, values: function(call.data(values))


OPERATORS: dict[str, Operator] = {
    **dict.fromkeys(("Gemm", "MatMul", "Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool",
                     "BatchNormalization"), _module),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(("Identity", "Dropout"), _same),
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshape),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    "Transpose": _transpose, "Gather": _gather, "Concat": _concat, "Add": _add, "ReduceMean": _reduced,
    "ReduceMax": _reduced,
    "Relu": _called(functional.relu), "Sigmoid": _called(torch.sigmoid), "Tanh": _called(torch.tanh),
    "HardSigmoid": _hard_sigmoid, "Clip": _clip,
    "LeakyRelu": lambda call, module, values: functional.leaky_relu(
        call.data(values), call.node.attributes.get("alpha", 0.01)),
}
"""By name."""
