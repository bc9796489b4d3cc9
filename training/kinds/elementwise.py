"""Functions of two tensors, value by value: what sums, differences, products, maxima and minima share."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from circulant.sim.kinds.elementwise import FloatElementwise
from circulant.training.neutral import Builder, Call, Node, Stream, Unsupported, Value, lowered
from circulant.training.neutral.streams import unchanged
from circulant.training.onnx import OnnxCall, Run, Values, of_onnx

__all__ = ["Pair", "arithmetic", "bounded", "greatest", "joined", "operands", "pair"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair(Node):
    """A function of two tensors of one shape, value by value.

    Members:
        layer: what it becomes.
        verb: what it does to them, in refusals.
        title: begins the name of a layer where that of the node is none; the kind without it.
        ordered: whether they are not to be exchanged.
    """

    relu: bool = False
    single: ClassVar[bool] = True
    layer: ClassVar[type[FloatElementwise]]
    verb: ClassVar[str] = "compare"
    title: ClassVar[str] = ""
    ordered: ClassVar[bool] = False

    def exchanged(self) -> Node:
        return self.turned()


def operands(call: Call) -> list[Any]:
    """Both operands, one of which may be a constant."""
    pair = [*call.args, *(value for key, value in call.kwargs.items() if key in ("input", "other"))][:2]
    if len(pair) != 2 or not all(isinstance(each, Value | Tensor | int | float) for each in pair):
        raise Unsupported("it must take two tensors, or a tensor and a constant")
    return pair


def pair(call: Call, make: type[Pair], one: Value, other: Value) -> Value:
    """The value of a function of two tensors."""
    if (one.sizes, one.batch) != (other.sizes, other.batch):
        if one.rank != other.rank or one.batch != other.batch or any(
                1 not in pair and len(set(pair)) > 1 for pair in zip(one.sizes, other.sizes, strict=True)):
            raise Unsupported(f"it must {make.verb} two tensors of as many axes, which have the same sizes or 1, not "
                              f"{call.shape(one)} and {call.shape(other)}; unsqueeze the smaller one")
        sizes = tuple(map(max, one.sizes, other.sizes))
        one, other = (each if each.sizes == sizes else _expanded(each, sizes) for each in (one, other))
    return call.emit(make, (one, other), one.batch)


def _expanded(value: Value, sizes: tuple[int, ...]) -> Value:
    """A value whose axes of one element are made larger."""
    assert value.places is not None
    return Value(value.places.expand(sizes), value.batch, value.path, value.refused)


def greatest(make: type[Pair]) -> Callable[[Call], Value]:
    """The handler of the greater or lesser of two tensors."""
    def handler(call: Call) -> Value:
        one, other = operands(call)
        if not (isinstance(one, Value) and isinstance(other, Value)):
            raise Unsupported("it must take two tensors that depend on the input; use clamp for a constant")
        return pair(call, make, one, other)
    return handler


@lowered.register
def _(node: Pair, to: Builder) -> Stream | None:
    pair = [to.single(node, number) for number in (0, 1)]
    images = [stream.form.flow is not None and stream.form.flow.grid is not None for stream in pair]
    if len(set(images)) > 1 and None not in [stream.form.flow for stream in pair]:
        number = images.index(True)
        order = pair[1 - number].order  # Of a sequence whose features come first, another one than of values.
        steps = None if unchanged(order) else to.steps(node, number)
        pair[number] = Stream(steps.name, steps.form, order) if steps else to.taken(node, number)
    one, other = pair if node.ordered else sorted(pair, key=to.behind, reverse=True)
    if one.form.flow is None and other.form.flow is None:
        one.form.become(np.arange(one.order.size).reshape(node.sizes), images=len(node.sizes) > 2)
    for form, known in ((one.form, other.form), (other.form, one.form)):
        if form.flow is None:
            form.flow, form.shape = known.flow, known.shape
    if (one.form.flow, one.form.shape) != (other.form.flow, other.form.shape) or not np.array_equal(
            one.order, other.order):
        to.problem(node.name)
        return None
    return to.give(node.name, node.title or node.layer.kind, one, lambda name, flow: node.layer(
        name, flow.size, relu=node.relu), one.form, order=one.order, others=(other,))


def arithmetic(*names: str) -> Callable[[Run], Run]:
    """The decorator of what computes nodes of arithmetic of ONNX."""
    return of_onnx(*names, becomes="scales, clips, sums of branches", conditions=(
        "with constants that are the same for all samples; sums and differences also of two branches"))


def joined(function: Callable[[Any, Any], Any]) -> Run:
    """The run that joins all inputs of a node, constants among them, from the first on."""
    def run(call: OnnxCall, module: Any, values: Values) -> Any:
        return reduce(function, (call.operand(values, number) for number in range(len(call.node.inputs))))
    return run


def bounded(function: Callable[[Any, Any], Any], clip: Callable[[Any, list[float]], Any]) -> Run:
    """The run of the maximum or minimum of tensors, or of data and numbers, by ``clip``."""
    def run(call: OnnxCall, module: Any, values: Values) -> Any:
        names, constants = call.node.inputs, call.graph.constants
        ends = [float(constants[name].item()) for name in names if name in constants and constants[name].size == 1]
        if len(names) == 1 + len(ends):
            return clip(values[next(name for name in names if name in values)], ends)
        return joined(function)(call, module, values)
    return run
