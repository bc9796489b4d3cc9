"""Scales and shifts: batch normalisations that no matrix takes in, and arithmetic with constants."""
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from circulant.sim.kinds.scale import FloatScale
from circulant.training.kinds.elementwise import arithmetic, joined, operands
from circulant.training.neutral import Builder, Call, Node, Stream, Unsupported, Value, fault, lowered, of_torch
from circulant.training.neutral.streams import as_numpy
from circulant.training.onnx import OnnxCall, OnnxGraph, OnnxNode, Values, called, constant, filled, module_of, of_onnx

__all__ = ["Scale", "affine"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Scale(Node):
    """A scale and shift for each channel of an axis, or one for all values where it is None: a batch normalisation that
    is not folded, arithmetic with constants."""

    scale: Tensor
    shift: Tensor
    axis: int | None
    relu: bool = False
    single: ClassVar[bool] = True

    def exchanged(self) -> Node:
        return self.turned()


@fault.register
def _(module: nn.BatchNorm1d | nn.BatchNorm2d) -> str:
    return "" if module.running_var is not None else (
        "it must keep running statistics, as those of the batch are no constants; build it with "
        "track_running_stats=True")


@of_torch(nn.BatchNorm1d, nn.BatchNorm2d)
def _batch_norm(call: Call) -> Value:
    """A batch normalisation with its running statistics, as a scale and shift for each channel."""
    source, module = call.tensor, call.module
    if source.rank < 2 or source.batch != 0:
        raise Unsupported("it must take the batch on axis 0 and the channels on axis 1; transpose the axes")
    scale: Tensor = (module.running_var + module.eps).rsqrt()
    if module.affine:
        scale = scale * module.weight.detach()
    shift = -module.running_mean * scale + (module.bias.detach() if module.affine else 0)
    return call.emit(Scale, (source,), 0, scale=scale, shift=shift, axis=1)


@of_torch("div", "divide", "true_divide", "truediv", "itruediv", "rdiv", constants=True)
def _divide(call: Call) -> Value:
    one, other = operands(call)
    if isinstance(other, Value) or call.kind == "rdiv":
        raise Unsupported("it must divide by a constant, not by what depends on the data; multiply by a reciprocal")
    if call.kwargs.get("rounding_mode") is not None:
        raise Unsupported(f"rounding_mode={call.kwargs['rounding_mode']!r} is not supported; leave it out")
    return affine(call, one, 1 / torch.as_tensor(other, dtype=torch.float64), 0.0)


@of_torch("neg", "negative", constants=True)
def _negate(call: Call) -> Value:
    return affine(call, call.tensor, -1.0, 0.0)


def affine(call: Call, source: Value, scale: Any, shift: Any, part: str = "") -> Value:
    """scale · source + shift, with one constant for all values or one for each channel."""
    shape, pair = call.shape(source), []
    for each in (scale, shift):
        constant = torch.as_tensor(each, dtype=torch.float64).detach()
        if not bool(torch.isfinite(constant).all()):
            raise Unsupported("its constants must be finite")
        try:
            first, *others = constant.broadcast_to(shape).unbind(source.batch)
        except RuntimeError:
            raise Unsupported(f"a constant of the shape {tuple(constant.shape)} must not make {shape} larger; "
                              "broadcasting is not supported") from None
        if not all(torch.equal(first, other) for other in others):
            raise Unsupported("a constant must be the same for all samples of a batch")
        pair.append(first)
    axes = [axis for axis in range(len(source.sizes)) if any(
        not torch.equal(each, each.narrow(axis, 0, 1).expand(each.shape)) for each in pair)]
    if len(axes) > 1:  # One for each value: that is, for each feature of a vector of all of them.
        assert source.places is not None
        flat = Value(source.places.reshape(-1), 0, source.path, source.refused)
        made = call.emit(Scale, (flat,), 0, part=part, shape=(None, flat.sizes[0]), axis=1,
                         **{name: each.reshape(-1) for name, each in zip(("scale", "shift"), pair, strict=True)})
        assert made.places is not None
        return Value(made.places.reshape(source.sizes), source.batch)
    ends = [each.movedim(axes[0], 0).reshape(len(each.movedim(axes[0], 0)), -1)[:, 0] if axes else
            each.reshape(-1)[:1] for each in pair]
    axis = axes[0] + (axes[0] >= source.batch) if axes else None
    return call.emit(Scale, (source,), source.batch, part=part, scale=ends[0], shift=ends[1], axis=axis)


@lowered.register
def _(node: Scale, to: Builder) -> Stream | None:
    if node.axis is None:
        source = to.single(node)
        return to.give(node.name, "scale", source, lambda name, flow: FloatScale(
            name, flow.size, np.repeat(as_numpy(node.scale), flow.size), np.repeat(as_numpy(node.shift), flow.size),
            node.relu), source.form, order=source.order)
    axis = node.axis - (node.axis > node.batch)
    stream, places = to.source(node.inputs[0])
    at = stream.at(places)
    if stream.form.flow is None and not stream.form.become(at, images=at.ndim > 1 and axis == 0) and at.ndim == 2:
        stream.form.become(at.T, images=False)
    source = to.single(node)
    form = source.form
    channel = np.arange(node.sizes[axis]).reshape(-1, *(1,) * (len(node.sizes) - 1 - axis))
    if form.flow is not None:
        found = np.broadcast_to(channel, node.sizes).reshape(-1)[source.order].reshape(form.shape)
        found = np.moveaxis(found, 0, -1) if form.flow.grid else found
        found = found.reshape(-1, form.flow.size)
        if (found == found[0]).all():
            return to.give(node.name, "scale", source, lambda name, flow: FloatScale(
                name, flow.size, as_numpy(node.scale)[found[0]], as_numpy(node.shift)[found[0]], node.relu), form,
                order=source.order)
    to.problem(node.name)
    return None


def _module(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    if node.attributes.get("training_mode", 0):
        raise node.refused("training_mode=1 takes the statistics of each batch; export it for inference")
    scale, shift, mean, variance = (constant(graph, node, number) for number in range(1, 5))
    kind: Any = nn.BatchNorm2d if len(graph.shapes[node.inputs[0]]) == 4 else nn.BatchNorm1d
    if len(graph.shapes[node.inputs[0]]) > 4:
        raise node.refused("it must take vectors, or images of one or two axes; reshape them")
    epsilon = node.attributes.get("epsilon", 1e-5)
    return filled(kind(len(scale), eps=epsilon), weight=scale, bias=shift, running_mean=mean, running_var=variance)


of_onnx("BatchNormalization", module=_module, becomes="`BatchNorm1d`, `BatchNorm2d`", conditions="no `training_mode`")(
    module_of)
arithmetic("Div")(joined(torch.div))
arithmetic("Neg")(called(torch.neg))


@arithmetic("Where")
def _where(call: OnnxCall, module: Any, values: Values) -> Any:
    if call.node.inputs[0] in values:
        raise call.node.refused("its condition must be a constant, not depend on the data; compute it beforehand")
    one, other = call.operand(values, 1), call.operand(values, 2)
    chosen = call.operand(values, 0)
    return one * chosen + other * (1 - chosen)
