"""Operators of ONNX in torch, so that the capture of a module understands them; kinds register theirs, here are others.
"""
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from circulant.training.models.quantizer import Quantizer
from circulant.training.onnx.call import OnnxCall, Values
from circulant.training.onnx.modules import padding_of
from circulant.training.onnx.nodes import OnnxGraph, OnnxNode

__all__ = ["OPERATORS", "WAYS_OUT", "Run", "called", "made", "module_of", "of_onnx", "table"]

Run = Callable[[OnnxCall, Any, Values], Any]
"""A computation of a node: from its call, its module or None, and the tensors so far."""


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator that is known; what the values that it becomes are, docs/models.md says.

    Parameters:
        becomes, conditions: as docs/onnx.md has them, which puts those that say the same together.
        keeps: whether it keeps values as they are, so that they may be integers.
        module: the module of a node with its weights; None where it has none.
        batched: whether that module takes a batch alone.
    """

    run: Run
    becomes: str
    conditions: str = ""
    keeps: bool = False
    module: Callable[[OnnxGraph, OnnxNode], nn.Module] | None = None
    batched: bool = True


OPERATORS: dict[str, Operator] = {}
"""By name."""


def of_onnx(*names: str, becomes: str, conditions: str = "", **more: Any) -> Callable[[Run], Run]:
    """The decorator of what computes nodes of these operators; see `Operator`."""
    def register(run: Run) -> Run:
        OPERATORS.update(dict.fromkeys(names, Operator(run, becomes, conditions, **more)))
        return run
    return register


def called(function: Callable[..., Any], *options: tuple[str, Any], **fixed: Any) -> Run:
    """The run of a function.

    Parameters:
        options: attributes that are its further arguments, with what they are without being told.
    """
    return lambda call, module, values: function(
        call.data(values), *(call.option(name, default) for name, default in options), **fixed)


def module_of(call: OnnxCall, module: nn.Module, values: Values) -> Any:
    """The run of a node that is its module."""
    return module(call.data(values))


def made(graph: OnnxGraph, node: OnnxNode) -> nn.Module | None:
    """The module of a node, with its weights; None where it has none.

    Raises:
        Refusal: when its weights are no constants, or it has what torch has not.
    """
    if found := graph.ranges.get(node.outputs[0]):
        return Quantizer(found.low, found.high, found.frac)
    operator = OPERATORS[node.op]
    if operator.module and operator.batched and graph.batch is None:
        raise node.refused("it must take a batch, for which the file has no axis; give data with the axes of the file, "
                           "the batch first")
    return operator.module(graph, node) if operator.module else None


_nothing = partial(of_onnx, becomes="nothing", conditions="casts to floating point", keeps=True)
_move = partial(of_onnx, keeps=True, becomes="moves of values, last steps, ends of both directions", conditions=(
    "the batch stays an axis of its own; zeros around images pad a `Conv` behind them"))


@_nothing("Identity")
def _same(call: OnnxCall, module: Any, values: Values) -> Any:
    return call.data(values)


@_nothing("Dropout")
def _dropout(call: OnnxCall, module: Any, values: Values) -> Any:
    if call.number(2):
        raise call.node.refused("training_mode=1 drops values by chance; export it for inference")
    return call.data(values)


@_nothing("Cast")
def _cast(call: OnnxCall, module: Any, values: Values) -> Any:
    if call.node.outputs[0] in call.graph.integers:
        raise call.node.refused("it must give floating-point numbers, as their rounding is lost in integers; leave it "
                                "out")
    return call.data(values)


@_move("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def _reshape(call: OnnxCall, module: Any, values: Values) -> Any:
    """Reshape, Flatten, Squeeze, Unsqueeze."""
    batch = call.batch_of_reshaped(call.batch[call.node.inputs[0]])
    return call.data(values).reshape([-1 if axis == batch else size for axis, size in enumerate(call.result)])


@_move("Transpose")
def _transpose(call: OnnxCall, module: Any, values: Values) -> Any:
    return call.data(values).permute(call.permutation)


def _apart(call: OnnxCall, axis: int, tensor: str = "") -> int:
    """An axis that a node works on, which is not that of the batch in a tensor, the first input without one."""
    if axis == call.batch.get(tensor or call.node.inputs[0], -1):
        raise call.node.refused(f"it must leave the batch, axis {axis}, whole; name another axis")
    return axis


@_move("Gather")
def _gather(call: OnnxCall, module: Any, values: Values) -> Any:
    """A state or direction of a recurrent node, a step of a sequence, a choice of features."""
    x, axis, at = call.data(values), _apart(call, call.axis(0)), call.number(1)
    if isinstance(at, int):
        return x[tuple(at if each == axis else slice(None) for each in range(axis + 1))]
    return x[tuple(torch.tensor(at) % x.shape[axis] if each == axis else slice(None) for each in range(axis + 1))]


@_move("Slice")
def _slice(call: OnnxCall, module: Any, values: Values) -> Any:
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
        _apart(call, axis)
        x = x.narrow(axis, kept[0], len(kept)) if step == 1 else x[tuple(
            torch.tensor(kept) if each == axis else slice(None) for each in range(axis + 1))]
    return x


@_move("Split")
def _split(call: OnnxCall, module: Any, values: Values) -> Any:
    axis = _apart(call, call.axis(0))
    return call.data(values).split([call.graph.shapes[name][axis] for name in call.node.outputs], axis)


@_move("Concat")
def _concat(call: OnnxCall, module: Any, values: Values) -> Any:
    axis = call.option("axis", 0) % (len(call.result) - call.extra) + call.extra
    batch, like = call.batch[call.node.outputs[0]], next(values[name] for name in call.node.inputs if name in values)
    _apart(call, axis, call.node.outputs[0])
    return torch.cat([_beside(call.operand(values, number), like, batch, call.extra)
                      for number in range(len(call.node.inputs))], axis)


def _beside(part: Any, like: Any, batch: int, extra: int) -> Any:
    """A constant with as many samples as data has; data as it is."""
    if part.ndim < like.ndim or (extra and part.ndim == like.ndim - 1):
        part = part.unsqueeze(0)
    if part.shape[batch] == like.shape[batch]:
        return part
    return part.narrow(batch, 0, 1).expand([like.shape[batch] if axis == batch else -1 for axis in range(part.ndim)])


@_move("Expand")
def _expand(call: OnnxCall, module: Any, values: Values) -> Any:
    batch = call.batch[call.node.outputs[0]]
    return call.operand(values, 0).expand([-1 if axis == batch else size for axis, size in enumerate(call.result)])


@_move("Tile")
def _tile(call: OnnxCall, module: Any, values: Values) -> Any:
    repeats = [1] * call.extra + call.number(1)
    if repeats[call.batch[call.node.inputs[0]]] != 1:
        raise call.node.refused("it must leave the batch whole, not repeat it; repeat other axes")
    return call.data(values).repeat(repeats)


@_move("Pad")
def _pad(call: OnnxCall, module: Any, values: Values) -> Any:
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
        _apart(call, axis)
        if mode != "constant":
            taken = np.pad(np.arange(x.shape[axis]), (before, behind), mode=mode)
            x = x.index_select(axis, torch.tensor(taken, device=x.device))
            continue
        ends = [x.new_full([pad if each == axis else size for each, size in enumerate(x.shape)], value)
                for pad in (before, behind)]
        x = torch.cat([each for each in (ends[0], x, ends[1]) if each.shape[axis]], axis)
    return x


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
    rows = dict[tuple[str, str], list[str]]()
    for name, each in sorted(OPERATORS.items(), key=lambda item: (item[1].keeps, item[0])):
        rows.setdefault((each.becomes, each.conditions), []).append(name)
    for name, way in WAYS_OUT.items():
        rows.setdefault(("refused", way), []).append(name)
    return "\n".join(["| operators | become | conditions |", "|---|---|---|", *(
        f"| {', '.join(f'`{name}`' for name in names)} | {becomes} | {conditions} |"
        for (becomes, conditions), names in rows.items())])
