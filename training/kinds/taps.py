"""Causal convolutions over time: taps on a stream of vectors, and what is computed of them."""
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from circulant.sim.kinds.add import FloatAdd
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.kinds.scale import FloatScale
from circulant.sim.kinds.slice import FloatSlice
from circulant.sim.kinds.taps import FloatTaps
from circulant.sim.real.float_model import Stage
from circulant.sim.shape.window import Flow
from circulant.training.kinds.matrix import Matrix
from circulant.training.neutral import Builder, Call, Node, Stream, Unsupported, Value, lowered, of_torch
from circulant.training.neutral.call import HIDDEN
from circulant.training.neutral.streams import Form, as_numpy

__all__ = ["CausalConv", "CausalDepthwise", "Padded", "both_sides", "of_steps", "reaching"]


@dataclass(frozen=True, eq=False, kw_only=True)
class CausalConv(Matrix):
    """A matrix for each of several steps up to the newest; the channels are axis 1, the steps axis 2."""

    dilation: int
    stepwise: ClassVar[bool] = True


@dataclass(frozen=True, eq=False, kw_only=True)
class CausalDepthwise(Node):
    """A weight (taps, channels) for each channel of several steps up to the newest; axes as of `CausalConv`."""

    weight: Tensor
    bias: Tensor
    dilation: int
    relu: bool = False
    stepwise: ClassVar[bool] = True


class Padded(Value):
    """Value with zeros in front of its steps, which only a causal convolution takes.

    Members:
        before: the value without them.
        count: of the zeros.
    """

    before: Value
    count: int

    @classmethod
    def of(cls, before: Value, count: int) -> "Padded":
        assert before.places is not None
        zeros = torch.full((*before.sizes[:-1], count), HIDDEN)
        made = cls(torch.cat((zeros, before.places), -1), before.batch, before.path, refused=(
            "zeros in front of steps need a Conv1d behind them that reaches back over all of them"))
        object.__setattr__(made, "before", before)
        object.__setattr__(made, "count", count)
        return made


@of_torch(nn.ConstantPad1d, nn.ZeroPad1d, "pad")
def _pad(call: Call) -> Value:
    source = call.tensor
    if call.module is None:
        given = call.bind("pad", "mode", "value", mode="constant", value=None)
        sides, plain = tuple(given["pad"]), given["mode"] == "constant" and not given["value"]
    else:
        sides, plain = tuple(call.module.padding), not getattr(call.module, "value", 0)
    if not plain or source.rank != 3 or source.batch or len(sides) != 2 or sides[1] or sides[0] < 0:
        raise Unsupported("only zeros in front of the steps of (N, channels, steps) are supported, for a causal Conv1d "
                          "behind them; give other layers their padding")
    return Padded.of(source, sides[0]) if sides[0] else source


def reaching(call: Call) -> Padded | None:
    """The value that a causal Conv1d takes, whose outputs know no later steps; None of any other one."""
    source, module = call.tensor, call.module
    if not isinstance(source, Padded) or len(module.kernel_size) != 1:
        return None
    if isinstance(module.padding, str) or any(module.padding):
        raise Unsupported("a causal Conv1d must have no padding but the zeros in front of it; set its own to 0")
    if source.count != (module.kernel_size[0] - 1) * module.dilation[0]:
        raise Unsupported(f"it must have as many zeros in front of it as it reaches back, "
                          f"{(module.kernel_size[0] - 1) * module.dilation[0]}, not {source.count}; pad by that")
    if module.stride != (1,) and (steps := [name for name, kind in call.before(source.before) if kind.stepwise]):
        raise Unsupported(f"a causal Conv1d with a stride takes whole sequences, and cannot stand behind {steps[0]}, "
                          f"which gives one step after the other; put it in front of {steps[-1]}, or give it a stride "
                          "of 1")
    return source


def both_sides(weight: Tensor) -> Tensor:
    """Weights (positions, …) of a causal convolution with a stride as one over an image of one column, padded alike on
    both sides: with zeros behind the newest one, as many as there are older ones."""
    return torch.cat((weight, torch.zeros_like(weight[1:])))


@lowered.register
def _(node: CausalConv, to: Builder) -> Stream | None:
    return of_steps(node, to, node.dilation)


def of_steps(node: Matrix, to: Builder, dilation: int = 1) -> Stream | None:
    """The newest and earlier vectors side by side, and a linear layer over them."""
    source, constraint = to.steps(node), node.constraint
    if source is None:
        return None
    (taps,), k, steps = constraint.kernel, constraint.block_size, source.form.shape[0]
    width = -(-constraint.columns // k) * k
    first, bias = as_numpy(node.first), as_numpy(node.bias)
    past = source if taps == 1 else to.give(node.name, "taps", source, lambda name, flow: FloatTaps(
        name, flow.size, taps, dilation, width), Form.of(Flow(taps * width, sequence=True), steps),
        path=f"{node.name}_taps")
    weight = np.moveaxis(first, 0, 1).reshape(first.shape[1], -1, k)
    made = to.give(node.name, "conv", past, lambda name, flow: FloatLinear(
        name, flow.size, constraint.rows, weight=weight, bias=bias, relu=node.relu),
        Form.of(Flow(constraint.rows, sequence=True), steps),
        order=np.arange(constraint.rows * steps).reshape(constraint.rows, steps).T.reshape(-1))
    to.note_grid(made.name, {k}, product=node.grid)
    return made


@lowered.register
def _(node: CausalDepthwise, to: Builder) -> Stream | None:
    """The newest and earlier vectors side by side, a factor for each value, and the sum of the taps."""
    source = to.steps(node)
    if source is None:
        return None
    steps, (taps, size), weight, bias = source.form.shape[0], node.weight.shape, as_numpy(node.weight), as_numpy(
        node.bias)
    every, one = (Form.of(Flow(values, sequence=True), steps) for values in (taps * size, size))
    past = to.give(node.name, "taps", source, lambda name, flow: FloatTaps(
        name, size, taps, node.dilation, size), every, path=f"{node.name}_taps")
    scaled = to.give(node.name, "scale", past, lambda name, flow: FloatScale(
        name, taps * size, weight.reshape(-1), np.append(np.zeros((taps - 1) * size), bias)), every,
        path=f"{node.name}_scale")
    first, *others = (to.give(node.name, "range", scaled, partial(_tap, n, taps * size, size), one,
                              path=f"{node.name}_tap") for n in range(taps))
    return to.give(node.name, "conv", first, lambda name, flow: FloatAdd(name, size, taps, relu=node.relu), one,
                   order=np.arange(size * steps).reshape(size, steps).T.reshape(-1), others=tuple(others))


def _tap(number: int, inputs: int, size: int, name: str, flow: Flow) -> Stage:
    return FloatSlice(name, inputs, number * size, size)
