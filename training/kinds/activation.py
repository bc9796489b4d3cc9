"""Functions of single values, and a softmax."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from circulant.sim.arith.activation import exact_function
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.activation import FloatActivation
from circulant.sim.refusal import Refusal
from circulant.training.kinds.add import Add
from circulant.training.kinds.scale import Scale
from circulant.training.models.quantizer import Quantizer
from circulant.training.neutral import Builder, Call, Node, Stream, Unsupported, Value, lowered, of_torch
from circulant.training.neutral.making import NO_LAYER
from circulant.training.onnx import OnnxCall, Values, called, of_onnx

__all__ = ["Function", "Softmax"]

SELU = (1.67326319217681884765625, 1.05070102214813232421875)
"""The parameters that ONNX takes without being told, which are torch's."""

HARD_SIGMOID = (1 / 6, 0.5)
"""Slope and middle of torch's; those that ONNX takes without being told are others."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Function(Node):
    """A function of each value.

    Parameters:
        function, parameters: as `circulant.sim.arith.activation.exact_function` has them.
        format: of its values, where a quantizer says one.
    """

    function: str
    parameters: tuple[float, ...] = ()
    format: Format | None = None
    single: ClassVar[bool] = True

    def exchanged(self) -> Node:
        return self.turned()


@dataclass(frozen=True, eq=False, kw_only=True)
class Softmax(Node):
    """A softmax over the last axis, or its logarithm."""

    log: bool


@of_torch(nn.ReLU, "relu", "relu_", stepwise=True)
def _relu(call: Call) -> Value:
    return call.emit(Function, (call.tensor,), call.tensor.batch, function="relu")


def _named(function: str, **parameters: float) -> Callable[[Call], Value]:
    """The handler of a function.

    Parameters:
        parameters: by the names that they have as attributes of a module and as arguments of a function, with defaults.
    """
    def handler(call: Call) -> Value:
        return _emitted(call, function, tuple(float(value) for value in _given(call, parameters).values()))
    return handler


def _clip(least: str, most: str, *ends: float | None) -> Callable[[Call], Value]:
    """The handler of a clip: that from -1 to 1 has a name of its own, and one from 0 without an end is a ReLU.

    Parameters:
        least, most: the names of its ends.
        ends: their defaults.
    """
    def handler(call: Call) -> Value:
        low, high = _given(call, dict(zip((least, most), ends, strict=True))).values()
        if low == 0 and high is None:
            return _relu(call)
        if low is None or high is None:
            return _bounded(call, low, high)
        return _emitted(call, "hard_tanh") if (low, high) == (-1, 1) else _emitted(call, "clip", (low, high))
    return handler


def _bounded(call: Call, low: float | None, high: float | None) -> Value:
    """A clip with one end: low + relu(x - low), or high - relu(high - x)."""
    if low is None and high is None:
        raise Unsupported("it must have one end or two, not none; leave it out")
    sign, end = (1.0, low) if high is None else (-1.0, high)
    if not isinstance(end, int | float):
        raise Unsupported("its ends must be numbers; use relu")
    source = call.tensor
    for part, scale, shift in (("distance", sign, -sign * end), ("", sign, float(end))):
        source = call.emit(Scale, (source,), source.batch, part=part, axis=None,
                           **{name: torch.tensor([value], dtype=torch.float64) for name, value in (
                               ("scale", scale), ("shift", shift))})
        if part:
            source = call.emit(Function, (source,), source.batch, part="relu", function="relu")
    return source


def _given(call: Call, defaults: dict[str, Any]) -> dict[str, Any]:
    if call.module is not None:
        return {name: getattr(call.module, name) for name in defaults}
    return call.bind(*defaults, **defaults)


@of_torch(Quantizer)
def _quantizer(call: Call) -> Value:
    module: Any = call.module
    return _emitted(call, "clip", (module.min_val, module.max_val), format=module.format)


def _emitted(call: Call, function: str, parameters: tuple[float, ...] = (), **more: Any) -> Value:
    source, parameters = call.tensor, tuple(map(float, parameters))
    try:
        exact_function(function, parameters)
    except Refusal as refusal:
        raise Unsupported(str(refusal)) from None
    return call.emit(Function, (source,), source.batch, function=function, parameters=parameters, **more)


@of_torch(nn.Softmax, nn.LogSoftmax, "softmax", "log_softmax")
def _softmax(call: Call) -> Value:
    """A softmax over the features, or its logarithm; `simplify` drops it where it is the last node."""
    source = call.tensor
    axis = call.module.dim if call.module is not None else call.bind("dim", dim=None)["dim"]
    if axis is None or axis % source.rank != source.rank - 1 or source.batch == source.rank - 1:
        raise Unsupported(f"it must go over the features on the last axis, not dim={axis!r}; give it dim=-1, "
                          "or take a mean over time where it weighs steps")
    return call.emit(Softmax, (source,), source.batch, log="log" in call.kind.lower())


@of_torch(nn.GELU, "gelu", stepwise=True)
def _gelu(call: Call) -> Value:
    return _emitted(call, "gelu_tanh" if _given(call, {"approximate": "none"})["approximate"] == "tanh" else "gelu")


@of_torch(nn.PReLU, "prelu", constants=True)
def _prelu(call: Call) -> Value:
    """One slope is a leaky ReLU; one for each channel is a · x + (1 - a) · relu(x)."""
    slopes = call.module.weight.detach() if call.module is not None else call.bind("weight")["weight"]
    if isinstance(slopes, Value):
        raise Unsupported("its slopes must be constants, not depend on the data")
    if bool((slopes == slopes.flatten()[0]).all()):
        return _emitted(call, "leaky_relu", (float(slopes.flatten()[0]),))
    source, zeros = call.tensor, torch.zeros_like(slopes)
    if source.batch or source.rank < 2:
        raise Unsupported("it must take the batch on axis 0 and the channels on axis 1; transpose the axes")
    risen = call.emit(Function, (source,), 0, part="relu", function="relu")
    first = call.emit(Scale, (source,), 0, part="slope", scale=slopes, shift=zeros, axis=1)
    second = call.emit(Scale, (risen,), 0, part="rest", scale=1 - slopes, shift=zeros, axis=1)
    return call.emit(Add, (first, second), 0)


@lowered.register
def _(node: Softmax, to: Builder) -> None:
    to.problem(node.name, f"{NO_LAYER} within a network; leave it out, or let it be the last node, where it is dropped")


@lowered.register
def _(node: Function, to: Builder) -> Stream:
    source = to.single(node)
    kind = "relu" if node.function == "relu" else "activation"
    made = to.give(node.name, kind, source, lambda name, flow: FloatActivation(
        name, flow.size, node.function, node.parameters), source.form, order=source.order)
    if node.format:
        to.formats[made.name] = node.format
    return made


_function = partial(of_onnx, becomes="functions of each value", conditions=(
    "parameters as in torch; `Softsign` and `Gelu` also in several nodes"))


@of_onnx("Softmax", "LogSoftmax", becomes="nothing, at the end", conditions="over the last axis")
def _softmax_of(call: OnnxCall, module: Any, values: Values) -> Any:
    function = functional.softmax if call.node.op == "Softmax" else functional.log_softmax
    opset = next(each.version for each in call.graph.proto.opset_import if not each.domain)
    rank, axis = len(call.result), call.axis(-1 if opset >= 13 else 1)
    if opset < 13 and axis != rank - 1:
        raise call.node.refused(f"before opset 13 it goes over all axes from axis {axis} on; give it the last axis")
    return function(call.data(values), dim=axis)


@_function("HardSigmoid")
def _hard_sigmoid(call: OnnxCall, module: Any, values: Values) -> Any:
    slope, middle = call.option("alpha", 0.2), call.option("beta", 0.5)
    if np.allclose((slope, middle), HARD_SIGMOID, rtol=1e-5):
        return functional.hardsigmoid(call.data(values))
    return torch.clamp(call.data(values) * slope + middle, 0.0, 1.0)


@_function("Clip")
def _clip_of(call: OnnxCall, module: Any, values: Values) -> Any:
    """A clip, or a quantizer."""
    if module is not None:
        return module(call.data(values))
    low, high = call.option("min", call.number(1)), call.option("max", call.number(2))
    if low is not None and high is not None and low >= high:
        raise call.node.refused(f"its ends must ascend, not be {low} and {high}; exchange them")
    return call.data(values) if low is None and high is None else torch.clamp(call.data(values), low, high)


@_function("Selu")
def _selu(call: OnnxCall, module: Any, values: Values) -> Any:
    alpha, gamma = (call.option(name, default) for name, default in zip(("alpha", "gamma"), SELU, strict=True))
    if np.allclose((alpha, gamma), SELU, rtol=1e-6):
        return functional.selu(call.data(values))
    return functional.elu(call.data(values), alpha) * gamma


@_function("PRelu")
def _prelu_of(call: OnnxCall, module: Any, values: Values) -> Any:
    """One slope is a leaky ReLU; else each value, or channel, has its own: a · x + (1 - a) · relu(x)."""
    x, slopes = call.data(values), call.operand(values, 1)
    if call.node.inputs[1] in values:
        raise call.node.refused("its slopes must be constants, not computed from the data; export it for inference")
    if bool((slopes == slopes.flatten()[0]).all()):
        return functional.leaky_relu(x, float(slopes.flatten()[0]))
    return slopes * x + (1 - slopes) * functional.relu(x)


_function("Relu")(called(functional.relu))
_function("Gelu")(lambda call, module, values: functional.gelu(call.data(values), approximate=call.option(
    "approximate", "none")))

of_torch(nn.Hardtanh, nn.ReLU6)(_clip("min_val", "max_val", None, None))
of_torch("relu6")(_clip("min_val", "max_val", 0, 6))
of_torch("hardtanh")(_clip("min_val", "max_val", -1, 1))
of_torch("clamp", "clip")(_clip("min", "max", None, None))

for name, module, run, operator, parameters in (
        ("sigmoid", nn.Sigmoid, torch.sigmoid, "Sigmoid", {}), ("tanh", nn.Tanh, torch.tanh, "Tanh", {}),
        ("silu", nn.SiLU, functional.silu, "", {}), ("mish", nn.Mish, functional.mish, "Mish", {}),
        ("hard_swish", nn.Hardswish, functional.hardswish, "HardSwish", {}),
        ("softsign", nn.Softsign, functional.softsign, "Softsign", {}),
        ("leaky_relu", nn.LeakyReLU, functional.leaky_relu, "LeakyRelu", {"negative_slope": 0.01}),
        ("elu", nn.ELU, functional.elu, "Elu", {"alpha": 1.0}),
        ("celu", nn.CELU, functional.celu, "Celu", {"alpha": 1.0}),
        ("softplus", nn.Softplus, functional.softplus, "Softplus", {"beta": 1.0, "threshold": 20.0}),
        ("hard_sigmoid", nn.Hardsigmoid, functional.hardsigmoid, "", {}), ("selu", nn.SELU, functional.selu, "", {})):
    of_torch(module, run.__name__, stepwise=True)(_named(name, **parameters))
    if operator:  # Its one parameter is called alpha; those of a softplus are fixed.
        _function(operator)(called(run, *(("alpha", value) for value in parameters.values() if len(parameters) == 1)))
