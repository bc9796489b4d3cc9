"""The meaning of the neutral graph, by torch, to be compared with that of the model that it was captured from."""
from functools import singledispatch

import torch
from torch.nn import functional

from circulant.training.kinds.activation import Function, Softmax
from circulant.training.kinds.add import Add
from circulant.training.kinds.blend import Blend
from circulant.training.kinds.cell import Recurrent
from circulant.training.kinds.conv import Conv
from circulant.training.kinds.decay import Decay
from circulant.training.kinds.depthwise import Depthwise
from circulant.training.kinds.linear import Linear
from circulant.training.kinds.norm import Norm
from circulant.training.kinds.over_time import Reduce
from circulant.training.kinds.pool import Pool
from circulant.training.kinds.product import Multiply
from circulant.training.kinds.scale import Scale
from circulant.training.kinds.taps import CausalConv
from circulant.training.neutral.graph import Input, Move

FUNCTIONS = {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "hard_sigmoid": functional.hardsigmoid,
             "hard_tanh": functional.hardtanh, "leaky_relu": functional.leaky_relu, "clip": torch.clamp,
             "gelu": functional.gelu,
             "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"), "hard_swish": functional.hardswish,
             **{name: getattr(functional, name) for name in (
                 "silu", "elu", "selu", "celu", "softplus", "softsign", "mish")}}


def run(graph, x):
    """The output of a graph for inputs x."""
    values = {}
    for node in graph.nodes:
        given = [values[name] for name in node.inputs] or [x]
        if isinstance(node, Input) and node.axes:
            given = [x.permute(0, *(axis + 1 for axis in node.axes)).reshape(len(x), *node.sizes)]
        if isinstance(node, Move):
            flat = torch.cat([each.movedim(graph[name].batch, 0).flatten(1)
                              for name, each in zip(node.inputs, given, strict=True)], 1)
            values[node.name] = flat[:, node.places].movedim(0, node.batch)
        else:
            y = compute(node, *given)
            values[node.name] = functional.relu(y) if getattr(node, "relu", False) else y
    return values[graph.outputs[0].node]


@singledispatch
def compute(node, x):
    """The result of a node, without the ReLU that has become part of it."""
    raise TypeError(type(node).__name__)


@compute.register
def _(node: Input, x):
    return x


@compute.register
def _(node: Linear, x):
    return functional.linear(x, node.constraint(node.first).to(x), node.bias.to(x))


@compute.register
def _(node: Conv, x):
    convolve = functional.conv2d if len(node.stride) == 2 else functional.conv1d
    return convolve(x, node.constraint(node.first).to(x), node.bias.to(x), node.stride, node.padding,
                    dilation=node.dilation)


@compute.register
def _(node: Depthwise, x):
    convolve = functional.conv2d if len(node.stride) == 2 else functional.conv1d
    weight = node.weight.T.to(x).reshape(-1, 1, *node.kernel)
    return convolve(x, weight, node.bias.to(x), node.stride, node.padding,
                    dilation=node.dilation, groups=len(weight))


@compute.register
def _(node: CausalConv, x):
    weight = node.constraint(node.first).to(x)
    padded = functional.pad(x, ((weight.shape[-1] - 1) * node.dilation, 0))
    return functional.conv1d(padded, weight, node.bias.to(x), dilation=node.dilation)


@compute.register
def _(node: Blend, gate, x):
    states = [torch.zeros_like(x[:, 0])]
    for z, value in zip(gate.unbind(1), x.unbind(1), strict=True):
        states.append(states[-1] + z * (value - states[-1]))
    return torch.stack(states[1:], 1)


@compute.register
def _(node: Decay, x):
    if node.turns is not None:
        factors, x = torch.complex(node.factors, node.turns), torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    else:
        factors = node.factors
    states = [torch.zeros_like(x[:, 0])]
    for value in x.unbind(1):
        states.append(factors.to(x) * states[-1] + value)
    found = torch.stack(states[1:], 1)
    return found if node.turns is None else torch.view_as_real(found).flatten(-2)


@compute.register
def _(node: Norm, x):
    if node.mode == "layer":
        return functional.layer_norm(x, x.shape[-1:], node.gain.to(x), node.shift.to(x), node.epsilon)
    return functional.rms_norm(x, x.shape[-1:], node.gain.to(x), node.epsilon) + node.shift.to(x)


@compute.register
def _(node: Scale, x):
    axis = x.ndim - 1 if node.axis is None else node.axis
    scale, shift = (part.to(x).view(-1, *(1,) * (x.ndim - 1 - axis)) for part in (node.scale, node.shift))
    return x * scale + shift


@compute.register
def _(node: Recurrent, x):
    steps, states = node.module(x)
    last = states[0] if isinstance(states, tuple) else states  # (layers · directions, N, outputs)
    return steps if node.returns == "sequence" else torch.cat(tuple(last[-node.ways:]), -1)


@compute.register
def _(node: Function, x):
    return FUNCTIONS[node.function](x, *node.parameters)


@compute.register
def _(node: Softmax, x):
    return (functional.log_softmax if node.log else functional.softmax)(x, -1)


@compute.register
def _(node: Pool, x):
    name = f"{'max' if node.mode == 'max' else 'avg'}_pool{len(node.kernel)}d"
    return getattr(functional, name)(x, node.kernel, node.stride, node.padding)


@compute.register
def _(node: Reduce, x):
    return (x.mean if node.mode == "mean" else x.amax)(node.axes, keepdim=node.keep)


@compute.register
def _(node: Add, x, other=None):
    return x + (x if other is None else other)


@compute.register
def _(node: Multiply, x, other=None):
    return x * (x if other is None else other)
