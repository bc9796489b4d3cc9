"""Depthwise convolutions over images: a weight for each channel and position of a window."""
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor, nn

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.depthwise import FloatDepthwise
from circulant.training.kinds.conv import convolution, window_of_module
from circulant.training.kinds.matrix import bias_of, grid_of
from circulant.training.kinds.taps import CausalDepthwise, both_sides, reaching
from circulant.training.kinds.window import window_of, windowed
from circulant.training.neutral import Builder, Call, Node, Stream, Value, lowered, of_torch
from circulant.training.neutral.streams import as_numpy

__all__ = ["Depthwise"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Depthwise(Node):
    """A weight for each channel and position of a window over images; the channels are axis 1.

    Parameters:
        weight: (positions, channels), row by row.
        grid: as of `circulant.training.kinds.matrix.Matrix`.
    """

    weight: Tensor
    bias: Tensor
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    grid: Format | None = None
    relu: bool = False
    over_images: ClassVar[bool] = True

    def exchanged(self) -> Node:
        return self.turned(stride=self.stride[::-1], padding=self.padding[::-1], dilation=self.dilation[::-1],
                           kernel=self.kernel[::-1],
                           weight=self.weight.unflatten(0, self.kernel).transpose(0, 1).flatten(0, 1))

    def scaled(self, scale: Tensor, shift: Tensor) -> Node | None:
        return None if self.relu or self.grid else replace(
            self, weight=self.weight * scale, bias=shift + scale * self.bias)

    def causal(self, steps: int) -> Node | None:
        reach = (self.kernel[0] - 1) * self.dilation[0]
        return CausalDepthwise(name=self.name, kind=self.kind, inputs=self.inputs, shape=(*self.shape[:-1], steps),
                               weight=self.weight, bias=self.bias, relu=self.relu, dilation=self.dilation[0]) if (
            self.stride, self.padding, self.grid, self.shape[-1]) == ((1,), (reach,), None, steps + reach) else None


def _fits(module: Any) -> bool:
    return bool(module.groups == module.in_channels == module.out_channels > 1)


@of_torch(nn.Conv1d, nn.Conv2d, fits=_fits)
def _captured(call: Call) -> Value:
    module, source, grid = call.module, reaching(call), grid_of(call.module)
    if source is not None and grid is not None:
        return convolution(call)
    weight = module.weight.detach().flatten(1).T
    bias = bias_of(module, weight)
    if source is None:
        return call.emit(Depthwise, (call.tensor,), 0, weight=weight, bias=bias, grid=grid,
                         kernel=tuple(module.kernel_size), **window_of_module(call))
    if module.stride == (1,):
        return call.emit(CausalDepthwise, (source.before,), 0, weight=weight, bias=bias, dilation=module.dilation[0])
    return call.emit(Depthwise, (source.before,), 0, weight=both_sides(weight), bias=bias,
                     kernel=(2 * len(weight) - 1,), stride=module.stride, padding=(source.count,),
                     dilation=module.dilation)


@lowered.register
def _(node: Depthwise, to: Builder) -> Stream | None:
    window, weight, bias = window_of(node.kernel, node.stride, node.padding, node.dilation), *map(
        as_numpy, (node.weight, node.bias))
    made = windowed(node, to, window, lambda name, flow: FloatDepthwise(
        name, flow.size, flow.grid or (1, 1), window, weights=weight, bias=bias, relu=node.relu))
    if made is not None:
        to.note_grid(made.name, {1}, weights=node.grid)
    return made
