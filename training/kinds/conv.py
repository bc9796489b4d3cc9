"""Convolutions over images: a matrix for each position of a window."""
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import nn

from circulant.sim.kinds.conv import FloatConv
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.real.float_model import Stage
from circulant.sim.shape.window import Flow
from circulant.training.blocks.blocks import BlockCirculant
from circulant.training.kinds.matrix import Matrix, weights_of
from circulant.training.kinds.taps import CausalConv, both_sides, of_steps, reaching
from circulant.training.kinds.window import check_images, pads_of, rank_of, window_of, windowed
from circulant.training.models.quantizer import set_grids
from circulant.training.neutral import Builder, Call, Node, Stream, Value, fault, lowered, of_torch
from circulant.training.neutral.streams import Form, as_numpy, unchanged
from circulant.training.onnx import OnnxGraph, OnnxNode, constant, filled, grids, module_of, of_onnx

__all__ = ["Conv", "convolution", "window_of_module"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Conv(Matrix):
    """A matrix for each position of a window over images; the channels are axis 1.

    Parameters:
        groups: of channels, between which the matrices are zero.
    """

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    over_images: ClassVar[bool] = True

    def exchanged(self) -> Node:
        old, kernel = self.constraint, self.constraint.kernel
        return self.turned(stride=self.stride[::-1], padding=self.padding[::-1], dilation=self.dilation[::-1],
                           first=self.first.unflatten(0, kernel).transpose(0, 1).flatten(0, 1),
                           constraint=BlockCirculant(old.rows, old.columns, old.block_size, old.groups, kernel[::-1]))

    def causal(self, steps: int) -> Node | None:
        reach = (self.constraint.kernel[0] - 1) * self.dilation[0]
        return CausalConv(name=self.name, kind=self.kind, inputs=self.inputs, shape=(*self.shape[:-1], steps),
                          first=self.first, constraint=self.constraint, bias=self.bias, grid=self.grid, relu=self.relu,
                          dilation=self.dilation[0]) if (self.stride, self.padding, self.groups, self.shape[-1]) == (
                              (1,), (reach,), 1, steps + reach) else None


@fault.register
def _(module: nn.Conv1d | nn.Conv2d) -> str:
    found = []
    if module.padding_mode != "zeros":
        found.append(f"padding_mode={module.padding_mode!r} is not supported; only 'zeros' is")
    if module.padding == "same" and not all(size % 2 for size in module.kernel_size):
        found.append("padding='same' needs odd kernels; give the padding as numbers")
    return ", ".join(found)


@of_torch(nn.Conv1d, nn.Conv2d)
def convolution(call: Call) -> Value:
    """A convolution with a matrix for each position; of zeros in front of steps a causal one."""
    module, weights = call.module, weights_of(call.module)
    source = reaching(call)
    if source is None:
        return call.emit(Conv, (call.tensor,), 0, **weights, **window_of_module(call), groups=module.groups)
    if module.stride == (1,):
        return call.emit(CausalConv, (source.before,), 0, **weights, dilation=module.dilation[0])
    own = weights["constraint"]
    wider = BlockCirculant(own.rows, own.columns, own.block_size, kernel=(2 * own.kernel[0] - 1,))
    first = both_sides(weights["first"])
    return call.emit(Conv, (source.before,), 0, **weights | {"first": first, "constraint": wider}, stride=module.stride,
                     padding=(source.count,), dilation=module.dilation)


def window_of_module(call: Call) -> dict[str, tuple[int, ...]]:
    """The stride, padding and dilation of a Conv1d or Conv2d over images, which are checked."""
    module = call.module
    check_images(call.tensor, len(module.kernel_size))
    padding = module.padding
    if isinstance(padding, str):
        padding = tuple(size // 2 * gap if padding == "same" else 0 for size, gap in zip(
            module.kernel_size, module.dilation, strict=True))
    return {"stride": tuple(module.stride), "padding": tuple(padding), "dilation": tuple(module.dilation)}


@lowered.register
def _(node: Conv, to: Builder) -> Stream | None:
    def conv(name: str, flow: Flow) -> Stage:
        return FloatConv(name, flow.size, constraint.rows, flow.grid or (1, 1), window, weight=as_numpy(node.first),
                         bias=as_numpy(node.bias), relu=node.relu)

    constraint = node.constraint
    if (constraint.kernel, node.stride, node.padding, node.groups) == ((1,), (1,), (0,), 1) and (
            came := to.source(node.inputs[0])[0].form.flow) and came.sequence:
        return of_steps(node, to)
    if {*to.graph[node.inputs[0]].sizes[1:], *node.sizes[1:]} <= {1} and (made := _of_a_pixel(node, to)):
        return made
    window = window_of(constraint.kernel, node.stride, node.padding, node.dilation)
    made = windowed(node, to, window, conv, rows=constraint.rows)
    if made is not None:
        to.note_grid(made.name, {constraint.block_size}, product=node.grid)
    if node.groups > 1:
        to.notes[node.name] = f"with zeros between its {node.groups} groups, which are multiplied as other weights are"
    return made


def _of_a_pixel(node: Conv, to: Builder) -> Stream | None:
    """The stream of the one position of a kernel that does not meet zeros, over vectors; None where images come."""
    stream, places = to.source(node.inputs[0])
    if stream.form.flow is None or stream.form.flow.grid or stream.form.flow.sequence or not unchanged(
            stream.at(places)) or places.size != stream.order.size:
        return None
    at = int(np.ravel_multi_index(node.padding, node.constraint.kernel))
    rows, weight = node.constraint.rows, as_numpy(node.first)[at]
    made = to.give(node.name, "linear", to.settled(stream), lambda name, flow: FloatLinear(
        name, flow.size, rows, weight=weight, bias=as_numpy(node.bias), relu=node.relu), Form.of(Flow(rows)))
    to.note_grid(made.name, {node.constraint.block_size}, product=node.grid)
    return made


def _module(graph: OnnxGraph, node: OnnxNode) -> nn.Module:
    options, rank = node.attributes, rank_of(graph, node)
    weight = constant(graph, node, 1)  # (outputs, inputs / groups, …)
    kernel = weight.shape[2:]
    pads, reaches = pads_of(graph, node, kernel)
    bias = constant(graph, node, 2) if len(node.inputs) > 2 and node.inputs[2] else np.zeros(len(weight))
    groups = int(options.get("group", 1))
    make: Any = {1: nn.Conv1d, 2: nn.Conv2d}[rank]
    stride, dilation = (tuple(options.get(name, [1] * rank)) for name in ("strides", "dilations"))
    module = filled(make(weight.shape[1] * groups, len(weight), kernel, stride=stride, dilation=dilation, groups=groups,
                         padding=(0,) if reaches else pads), weight=weight, bias=bias)
    set_grids(module, grids(graph, node, {1: {"weight": weight}}))
    return nn.Sequential(nn.ConstantPad1d((pads[0], 0), 0.0), module) if reaches else module


of_onnx("Conv", module=_module, becomes="`Conv1d`, `Conv2d`", conditions="padding alike on both sides, also as "
        "`auto_pad`, or in front of steps alone as far as the kernel reaches back")(module_of)
