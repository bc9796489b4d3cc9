"""How functions of single values, and a softmax, become nodes of the neutral graph, or why they cannot."""
from collections.abc import Callable
from typing import Any

from torch import nn

from circulant.sim.arith.activation import exact_function
from circulant.sim.refusal import Refusal
from circulant.training.capture.call import Call, Unsupported, Value
from circulant.training.capture.graph import Function, Softmax
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
            raise Unsupported(f"it must have two ends, not {low!r} and {high!r}; give both, or use relu")
        return _emitted(call, "hard_tanh") if (low, high) == (-1, 1) else _emitted(call, "clip", (low, high))
    return handler


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


MODULES: dict[type[nn.Module], Callable[[Call], Value]] = {
    nn.ReLU: _relu, nn.Sigmoid: _named("sigmoid"), nn.Tanh: _named("tanh"), nn.Hardsigmoid: _named("hard_sigmoid"),
    nn.LeakyReLU: _named("leaky_relu", negative_slope=0.01),
    **dict.fromkeys((nn.Hardtanh, nn.ReLU6), _clip("min_val", "max_val", None, None)),
    **dict.fromkeys((nn.Softmax, nn.LogSoftmax), _softmax), Quantizer: _quantizer,
}
"""By class of the module."""

FUNCTIONS: dict[str, Callable[[Call], Value]] = {
    **dict.fromkeys(("relu", "relu_"), _relu), "sigmoid": _named("sigmoid"), "tanh": _named("tanh"),
    "hardsigmoid": _named("hard_sigmoid"), "leaky_relu": _named("leaky_relu", negative_slope=0.01),
    "relu6": _clip("min_val", "max_val", 0.0, 6.0), "hardtanh": _clip("min_val", "max_val", -1.0, 1.0),
    **dict.fromkeys(("clamp", "clip"), _clip("min", "max", None, None)),
    **dict.fromkeys(("softmax", "log_softmax"), _softmax),
}
"""By name of the function or method."""
