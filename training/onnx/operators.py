"""Operators of ONNX in torch, so that the capture of a module understands them."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from circulant.training.onnx.call import Call, Values
from circulant.training.onnx.graph import RECURRENT
from circulant.training.onnx.modules import bias_behind, padding_of

__all__ = ["KEEPING", "OPERATORS", "WAYS_OUT", "table"]

SELU = (1.67326319217681884765625, 1.05070102214813232421875)
"""The parameters that ONNX takes without being told, which are torch's."""

HARD_SIGMOID = (1 / 6, 0.5)
"""Slope and middle of torch's; those that ONNX takes without being told are others."""

Operator = Callable[[Call, Any, Values], Any]


def _module(call: Call, module: nn.Module, values: Values) -> Any:
    return module(call.data(values))


def _recurrent(call: Call, module: nn.Module, values: Values) -> Any:
    """Y (T, directions, N, hidden), and the last states (directions, N, hidden); in layout 1 the batch comes first."""
    x, first = call.data(values), bool(call.option("layout", 0))
    out, states = module(x.transpose(0, 1) if first else x)
    ways = 1 + (call.option("direction", "") == "bidirectional")
    out = out.unflatten(-1, (ways, -1))  # (T, N, directions, hidden)
    kept = states if isinstance(states, tuple) else (states,)
    return (out.transpose(0, 1), *(state.transpose(0, 1) for state in kept)) if first else (
        out.transpose(1, 2), *kept)


def _same(call: Call, module: Any, values: Values) -> Any:
    return call.data(values)


def _dropout(call: Call, module: Any, values: Values) -> Any:
    if call.number(2):
        raise call.node.refused("training_mode=1 drops values by chance; export it for inference")
    return call.data(values)


def _cast(call: Call, module: Any, values: Values) -> Any:
    if call.node.outputs[0] in call.graph.integers:
        raise call.node.refused("it must give floating-point numbers, as their rounding is lost in integers; leave it "
                                "out")
    return call.data(values)


def _reshape(call: Call, module: Any, values: Values) -> Any:
    """Reshape, Flatten, Squeeze, Unsqueeze."""
    batch = call.batch_of_reshaped(call.batch[call.node.inputs[0]])
    return call.data(values).reshape([-1 if axis == batch else size for axis, size in enumerate(call.result)])


def _transpose(call: Call, module: Any, values: Values) -> Any:
    return call.data(values).permute(call.permutation)


def _axis_apart(call: Call, default: int = 0) -> int:
    """The axis that a node works on, which is not that of the batch."""
    axis = call.axis(default)
    if axis == call.batch.get(call.node.inputs[0], -1):
        raise call.node.refused(f"it must leave the batch, axis {axis}, whole; name another axis")
    return axis


def _gather(call: Call, module: Any, values: Values) -> Any:
    """A state or direction of a recurrent node, a step of a sequence, a choice of features."""
    x, axis, at = call.data(values), _axis_apart(call), call.number(1)
    if isinstance(at, int):
        return x[tuple(at if each == axis else slice(None) for each in range(axis + 1))]
    return x[tuple(torch.tensor(at) % x.shape[axis] if each == axis else slice(None) for each in range(axis + 1))]


def _slice(call: Call, module: Any, values: Values) -> Any:
    """Slice, before opset 10 with attributes; a negative step goes back."""
    x = call.data(values)
    starts, ends = call.option("starts", call.number(1)), call.option("ends", call.number(2))
    axes = [call.place(axis) for axis in call.option("axes", call.number(3)) or range(len(starts))]
    for axis, start, end, step in zip(axes, starts, ends, call.number(4) or [1] * len(axes), strict=True):
        kept = range(call.source[axis])[start:end:step]
        if len(kept) == call.source[axis] and step == 1:
            continue
        if not kept:
            raise call.node.refused("it must leave something of its input; leave out what comes of it")
        if axis == call.batch[call.node.inputs[0]]:
            raise call.node.refused(f"it must leave the batch, axis {axis}, whole; name another axis")
        x = x.narrow(axis, kept[0], len(kept)) if step == 1 else x[tuple(
            torch.tensor(kept) if each == axis else slice(None) for each in range(axis + 1))]
    return x


def _split(call: Call, module: Any, values: Values) -> Any:
    axis = _axis_apart(call)
    return call.data(values).split([call.graph.shapes[name][axis] for name in call.node.outputs], axis)


def _concat(call: Call, module: Any, values: Values) -> Any:
    axis = call.option("axis", 0) % (len(call.result) - call.extra) + call.extra
    batch, like = call.batch[call.node.outputs[0]], next(values[name] for name in call.node.inputs if name in values)
    if axis == batch:
        raise call.node.refused(f"it must leave the batch, axis {axis}, whole; name another axis")
    return torch.cat([_beside(call.operand(values, number), like, batch, call.extra)
                      for number in range(len(call.node.inputs))], axis)


def _beside(part: Any, like: Any, batch: int, extra: int) -> Any:
    """A constant with as many samples as data has; data as it is."""
    if part.ndim < like.ndim or (extra and part.ndim == like.ndim - 1):
        part = part.unsqueeze(0)
    if part.shape[batch] == like.shape[batch]:
        return part
    return part.narrow(batch, 0, 1).expand([like.shape[batch] if axis == batch else -1 for axis in range(part.ndim)])


def _pad(call: Call, module: Any, values: Values) -> Any:
    """Pad by a constant, or by values of the edges, reflected or repeated."""
    x, mode = call.data(values), call.option("mode", "constant")
    given, value = call.option("pads", call.number(1)), call.option("value", call.number(2)) or 0.0
    if padding_of(call.graph, call.node) is not None:
        return x
    named = call.number(3)
    if min(given) < 0:
        raise call.node.refused("its pads must not be negative; use Slice")
    axes = [call.place(axis) for axis in (range(len(given) // 2) if named is None else named)]
    for axis, before, behind in zip(axes, given[:len(axes)], given[len(axes):], strict=True):
        if not before and not behind:
            continue
        if axis == call.batch[call.node.inputs[0]]:
            raise call.node.refused(f"it must leave the batch, axis {axis}, whole; name another axis")
        if mode != "constant":
            taken = np.pad(np.arange(x.shape[axis]), (before, behind), mode=mode)
            x = x.index_select(axis, torch.tensor(taken, device=x.device))
            continue
        ends = [x.new_full([pad if each == axis else size for each, size in enumerate(x.shape)], value)
                for pad in (before, behind)]
        x = torch.cat([each for each in (ends[0], x, ends[1]) if each.shape[axis]], axis)
    return x


def _expand(call: Call, module: Any, values: Values) -> Any:
    batch = call.batch[call.node.outputs[0]]
    return call.operand(values, 0).expand([-1 if axis == batch else size for axis, size in enumerate(call.result)])


def _tile(call: Call, module: Any, values: Values) -> Any:
    repeats = [1] * call.extra + call.number(1)
    if repeats[call.batch[call.node.inputs[0]]] != 1:
        raise call.node.refused("it must leave the batch whole, not repeat it; repeat other axes")
    return call.data(values).repeat(repeats)


def _add(call: Call, module: Any, values: Values) -> Any:
    node = call.node
    for name in node.inputs:
        source = next((each for each in call.graph.nodes if name in each.outputs), None)
        if source is not None and (found := bias_behind(call.graph, source)) and found.name == node.name:
            return values[name]
    return _operands(torch.add)(call, module, values)


def _operands(function: Callable[[Any, Any], Any]) -> Operator:
    """The operator that joins all its inputs, constants among them, from the first on."""
    def joined(call: Call, module: Any, values: Values) -> Any:
        return reduce(function, (call.operand(values, number) for number in range(len(call.node.inputs))))
    return joined


def _mean(call: Call, module: Any, values: Values) -> Any:
    return _operands(torch.add)(call, module, values) / len(call.node.inputs)


def _bounded(call: Call, module: Any, values: Values) -> Any:
    """The maximum or minimum of data and a number."""
    largest, names = call.node.op == "Max", call.node.inputs
    ends = [float(call.graph.constants[name].item()) for name in names
            if name in call.graph.constants and call.graph.constants[name].size == 1]
    if len(names) == 1 + len(ends):
        x = values[next(name for name in names if name in values)]
        return torch.clamp(x, max(ends)) if largest else torch.clamp(x, max=min(ends))
    return _operands(torch.maximum if largest else torch.minimum)(call, module, values)


def _where(call: Call, module: Any, values: Values) -> Any:
    if call.node.inputs[0] in values:
        raise call.node.refused("its condition must be a constant, not depend on the data; compute it beforehand")
    one, other = call.operand(values, 1), call.operand(values, 2)
    chosen = call.operand(values, 0)
    return one * chosen + other * (1 - chosen)


def _reduced(call: Call, module: Any, values: Values) -> Any:
    x, axes, keep = call.data(values), call.axes(), bool(call.option("keepdims", 1))
    if not axes and call.option("noop_with_empty_axes", 0):
        return x
    axes = axes or list(range(call.extra, len(call.source)))
    if call.batch[call.node.inputs[0]] in axes:
        raise call.node.refused(f"it must not reduce the batch, axis {call.batch[call.node.inputs[0]]}; name other "
                                "axes")
    function = {"ReduceMean": x.mean, "ReduceMax": x.amax, "ReduceSum": x.sum}[call.node.op]
    return function(tuple(axes), keepdim=keep)


def _softmax(call: Call, module: Any, values: Values) -> Any:
    function = functional.softmax if call.node.op == "Softmax" else functional.log_softmax
    opset = next(each.version for each in call.graph.proto.opset_import if not each.domain)
    rank, axis = len(call.result), call.axis(-1 if opset >= 13 else 1)
    if opset < 13 and axis != rank - 1:
        raise call.node.refused(f"before opset 13 it goes over all axes from axis {axis} on; give it the last axis")
    return function(call.data(values), dim=axis)


def _hard_sigmoid(call: Call, module: Any, values: Values) -> Any:
    slope, middle = call.option("alpha", 0.2), call.option("beta", 0.5)
    if np.allclose((slope, middle), HARD_SIGMOID, rtol=1e-5):
        return functional.hardsigmoid(call.data(values))
    return torch.clamp(call.data(values) * slope + middle, 0.0, 1.0)


def _clip(call: Call, module: Any, values: Values) -> Any:
    """A clip, or a quantizer."""
    if module is not None:
        return module(call.data(values))
    low, high = call.option("min", call.number(1)), call.option("max", call.number(2))
    if low is not None and high is not None and low >= high:
        raise call.node.refused(f"its ends must ascend, not be {low} and {high}; exchange them")
    return call.data(values) if low is None and high is None else torch.clamp(call.data(values), low, high)


def _selu(call: Call, module: Any, values: Values) -> Any:
    alpha, gamma = (call.option(name, default) for name, default in zip(("alpha", "gamma"), SELU, strict=True))
    if np.allclose((alpha, gamma), SELU, rtol=1e-6):
        return functional.selu(call.data(values))
    return functional.elu(call.data(values), alpha) * gamma


def _prelu(call: Call, module: Any, values: Values) -> Any:
    """One slope is a leaky ReLU; else each value, or channel, has its own: a · x + (1 - a) · relu(x)."""
    x, slopes = call.data(values), call.operand(values, 1)
    if call.node.inputs[1] in values:
        raise call.node.refused("its slopes must be constants, not computed from the data; export it for inference")
    if bool((slopes == slopes.flatten()[0]).all()):
        return functional.leaky_relu(x, float(slopes.flatten()[0]))
    return slopes * x + (1 - slopes) * functional.relu(x)


def _called(function: Callable[..., Any], *options: tuple[str, Any], **fixed: Any) -> Operator:
    """The operator of a function.

    Parameters:
        options: attributes that are its further arguments, with what they are without being told.
    """
    return lambda call, module, values: function(
        call.data(values), *(call.option(name, default) for name, default in options), **fixed)


@dataclass(frozen=True, eq=False)
class Group:
    """Operators that become the same.

    Parameters:
        becomes, conditions: as docs/onnx.md has them.
        keeps: whether they keep values as they are, so that they may be integers.
    """

    operators: dict[str, Operator]
    becomes: str
    conditions: str = ""
    keeps: bool = False


GROUPS = (
    Group(dict.fromkeys(("Gemm", "MatMul"), _module), "`Linear`, an `Add` of a vector behind it its bias",
          "weights are constants of the file; no `transA`"),
    Group({"Conv": _module}, "`Conv1d`, `Conv2d`",
          "padding alike on both sides, also as `auto_pad`, or "
          "in front of steps alone as far as the kernel reaches back"),
    Group(dict.fromkeys(RECURRENT, _recurrent), "`LSTM`, `GRU`, `RNN`, `PeepholeLstm`, `ResetBeforeGru`, `LinearRnn`",
          "forward or bidirectional, sigmoid and tanh; for the tanh of an RNN, or of a GRU that resets before its "
          "matrix, also ReLU; or, of an RNN, \"Affine\" with alpha 1; zeros as initial states, no clip; `Y_c` is "
          "refused"),
    Group(dict.fromkeys(("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"), _module), "pooling",
          "as of a convolution; `ceil_mode` where it adds nothing; padding counts in a mean"),
    Group({"BatchNormalization": _module}, "`BatchNorm1d`, `BatchNorm2d`", "no `training_mode`"),
    Group({"LayerNormalization": _module}, "`LayerNorm`", "over the last axis"),
    Group({"Relu": _called(functional.relu), "Sigmoid": _called(torch.sigmoid), "Tanh": _called(torch.tanh),
           "LeakyRelu": _called(functional.leaky_relu, ("alpha", 0.01)), "PRelu": _prelu,
           "HardSigmoid": _hard_sigmoid, "Clip": _clip, "HardSwish": _called(functional.hardswish), "Selu": _selu,
           "Elu": _called(functional.elu, ("alpha", 1.0)), "Celu": _called(functional.celu, ("alpha", 1.0)),
           "Gelu": lambda call, module, values: functional.gelu(call.data(values), approximate=call.option(
               "approximate", "none")),
           "Mish": _called(functional.mish), "Softplus": _called(functional.softplus),
           "Softsign": _called(functional.softsign)}, "functions of each value",
          "parameters as in torch; `Softsign` and `Gelu` also in several nodes"),
    Group(dict.fromkeys(("Softmax", "LogSoftmax"), _softmax), "nothing, at the end", "over the last axis"),
    Group({"Add": _add, "Sub": _operands(torch.sub), "Mul": _operands(torch.mul), "Div": _operands(torch.div),
           "Neg": _called(torch.neg), "Sum": _operands(torch.add), "Mean": _mean,
           **dict.fromkeys(("Max", "Min"), _bounded), "Where": _where}, "scales, clips, sums of branches",
          "with constants that are the same for all samples; sums and differences also of two branches"),
    Group(dict.fromkeys(("ReduceMean", "ReduceMax", "ReduceSum"), _reduced),
          "poolings, means and maxima over time", "not over the batch"),
    Group({**dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshape), "Transpose": _transpose,
           "Gather": _gather, "Slice": _slice, "Split": _split, "Concat": _concat, "Expand": _expand, "Tile": _tile,
           "Pad": _pad}, "moves of values, last steps, ends of both directions",
          "the batch stays an axis of its own; zeros around images pad a `Conv` behind them", keeps=True),
    Group({"Identity": _same, "Dropout": _dropout, "Cast": _cast}, "nothing", "casts to floating point", keeps=True),
)
"""Operators that are known; what the values that they become are, docs/models.md says."""

OPERATORS = {name: run for group in GROUPS for name, run in group.operators.items()}
"""By name."""

KEEPING = {name for group in GROUPS if group.keeps for name in group.operators}
"""Operators that keep values as they are."""

WAYS_OUT = {
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization", "RMSNormalization"),
                    "use BatchNormalization, whose statistics are constants"),
    "Erf": "export with opset 20, in which Gelu is a node",
    **dict.fromkeys(("QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"),
                    "export with QuantizeLinear and DequantizeLinear around nodes of floating-point numbers"),
    **dict.fromkeys(("If", "Loop", "Scan"), "unroll it in the export"),
    "ConvTranspose": "use Conv",
}
"""Ways out by operator that is not known."""


def table() -> str:
    """The operators in Markdown, as docs/onnx.md has them."""
    rows = [(group.operators, group.becomes, group.conditions) for group in GROUPS]
    rows += [({name: _same for name, each in WAYS_OUT.items() if each == way}, "refused", way)
             for way in dict.fromkeys(WAYS_OUT.values())]
    return "\n".join(["| operators | become | conditions |", "|---|---|---|", *(
        f"| {', '.join(f'`{name}`' for name in names)} | {becomes} | {conditions} |"
        for names, becomes, conditions in rows)])
