"""How functions of single values, and a softmax, become nodes of the neutral graph, or why they cannot."""
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from circulant.sim.arith.activation import exact_function
from circulant.sim.refusal import Refusal
from circulant.training.capture.call import Call, Unsupported, Value
from circulant.training.capture.graph import Add, Function, Scale, Softmax
from circulant.training.models.quantizer import Quantizer

__all__ = ["FUNCTIONS", "MODULES"]


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


def _softmax(call: Call) -> Value:
    """A softmax over the features, or its logarithm; `simplify` drops it where it is the last node."""
    source = call.tensor
    axis = call.module.dim if call.module is not None else call.bind("dim", dim=None)["dim"]
    if axis is None or axis % source.rank != source.rank - 1 or source.batch == source.rank - 1:
        raise Unsupported(f"it must go over the features on the last axis, not dim={axis!r}; give it dim=-1")
    return call.emit(Softmax, (source,), source.batch, log="log" in call.kind.lower())


def _gelu(call: Call) -> Value:
    return _emitted(call, "gelu_tanh" if _given(call, {"approximate": "none"})["approximate"] == "tanh" else "gelu")


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


MODULES: dict[type[nn.Module], Callable[[Call], Value]] = {
    nn.ReLU: _relu, nn.Sigmoid: _named("sigmoid"), nn.Tanh: _named("tanh"), nn.Hardsigmoid: _named("hard_sigmoid"),
    nn.LeakyReLU: _named("leaky_relu", negative_slope=0.01), nn.SiLU: _named("silu"), nn.SELU: _named("selu"),
    nn.ELU: _named("elu", alpha=1.0), nn.CELU: _named("celu", alpha=1.0), nn.Mish: _named("mish"),
    nn.Softplus: _named("softplus", beta=1.0, threshold=20.0), nn.Softsign: _named("softsign"), nn.GELU: _gelu,
    nn.Hardswish: _named("hard_swish"), nn.PReLU: _prelu,
    **dict.fromkeys((nn.Hardtanh, nn.ReLU6), _clip("min_val", "max_val", None, None)),
    **dict.fromkeys((nn.Softmax, nn.LogSoftmax), _softmax), Quantizer: _quantizer,
}
"""By class of the module."""

FUNCTIONS: dict[str, Callable[[Call], Value]] = {
    **dict.fromkeys(("relu", "relu_"), _relu), "sigmoid": _named("sigmoid"), "tanh": _named("tanh"),
    "hardsigmoid": _named("hard_sigmoid"), "leaky_relu": _named("leaky_relu", negative_slope=0.01),
    "silu": _named("silu"), "selu": _named("selu"), "elu": _named("elu", alpha=1.0), "celu": _named("celu", alpha=1.0),
    "mish": _named("mish"), "softplus": _named("softplus", beta=1.0, threshold=20.0), "softsign": _named("softsign"),
    "gelu": _gelu, "hardswish": _named("hard_swish"), "prelu": _prelu,
    "relu6": _clip("min_val", "max_val", 0.0, 6.0), "hardtanh": _clip("min_val", "max_val", -1.0, 1.0),
    **dict.fromkeys(("clamp", "clip"), _clip("min", "max", None, None)),
    **dict.fromkeys(("softmax", "log_softmax"), _softmax),
}
"""By name of the function or method."""
