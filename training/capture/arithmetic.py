"""How sums, differences, products and quotients become nodes of the neutral graph, or why they cannot."""
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from circulant.training.capture.call import Call, Unsupported, Value
from circulant.training.capture.graph import Add, Function, Maximum, Minimum, Multiply, Pair, Scale, Subtract

__all__ = ["CONSTANTS", "FUNCTIONS", "glu"]


def _add(call: Call) -> Value:
    one, other = _pair(call, "other")
    return _sum(call, one, other, _alpha(call))


def _subtract(call: Call) -> Value:
    one, other = _pair(call, "other")
    return _sum(call, one, other, -_alpha(call))


def _subtract_from(call: Call) -> Value:
    one, other = _pair(call, "other")
    return _sum(call, other, one, -_alpha(call))


def _multiply(call: Call) -> Value:
    one, other = _pair(call, "other")
    if isinstance(one, Value) and isinstance(other, Value):
        return _both(call, Multiply, one, other, "multiply")
    source, factor = (one, other) if isinstance(one, Value) else (other, one)
    return _affine(call, source, factor, 0.0)


def _divide(call: Call) -> Value:
    one, other = _pair(call, "other")
    if isinstance(other, Value) or call.kind == "rdiv":
        raise Unsupported("it must divide by a constant, not by what depends on the data; multiply by a reciprocal")
    if call.kwargs.get("rounding_mode") is not None:
        raise Unsupported(f"rounding_mode={call.kwargs['rounding_mode']!r} is not supported; leave it out")
    return _affine(call, one, 1 / torch.as_tensor(other, dtype=torch.float64), 0.0)


def _negate(call: Call) -> Value:
    return _affine(call, call.tensor, -1.0, 0.0)


def _greatest(make: type[Pair], verb: str) -> Callable[[Call], Value]:
    """The handler of the greater or lesser of two tensors."""
    def handler(call: Call) -> Value:
        one, other = _pair(call, "other")
        if not (isinstance(one, Value) and isinstance(other, Value)):
            raise Unsupported("it must take two tensors that depend on the input; use clamp for a constant")
        return _both(call, make, one, other, verb)
    return handler


def glu(call: Call) -> Value:
    """The first half of an axis times the sigmoid of the second."""
    source = call.tensor
    axis = (call.module.dim if call.module is not None else call.bind("dim", dim=-1)["dim"]) % source.rank
    if axis == source.batch:
        raise Unsupported("it must halve an axis of each sample, not the batch; name another axis")
    assert source.places is not None
    first, second = (Value(half, source.batch, source.path) for half in source.places.chunk(
        2, axis - (axis > source.batch)))
    gate = call.emit(Function, (second,), source.batch, part="gate", function="sigmoid")
    return call.emit(Multiply, (first, gate), source.batch)


def _pair(call: Call, name: str) -> list[Any]:
    """Both operands, one of which may be a constant."""
    pair = [*call.args, *(value for key, value in call.kwargs.items() if key in ("input", name))][:2]
    if len(pair) != 2 or not all(isinstance(each, Value | Tensor | int | float) for each in pair):
        raise Unsupported("it must take two tensors, or a tensor and a constant")
    return pair


def _alpha(call: Call) -> float:
    return float(call.kwargs.get("alpha", call.args[2] if len(call.args) > 2 else 1))


def _sum(call: Call, one: Any, other: Any, factor: float) -> Value:
    """one + factor · other."""
    if isinstance(one, Value) and isinstance(other, Value):
        if abs(factor) != 1:
            other, factor = _affine(call, other, factor, 0.0, part="scaled"), 1.0
        return _both(call, Add if factor == 1 else Subtract, one, other, "sum" if factor == 1 else "subtract")
    if isinstance(one, Value):
        return _affine(call, one, 1.0, factor * torch.as_tensor(other, dtype=torch.float64))
    return _affine(call, other, factor, one)


def _both(call: Call, make: type[Pair], one: Value, other: Value, verb: str) -> Value:
    """The value of a function of two tensors."""
    if (one.sizes, one.batch) != (other.sizes, other.batch):
        if one.rank != other.rank or one.batch != other.batch or any(
                1 not in pair and len(set(pair)) > 1 for pair in zip(one.sizes, other.sizes, strict=True)):
            raise Unsupported(f"it must {verb} two tensors of as many axes, which have the same sizes or 1, not "
                              f"{call.shape(one)} and {call.shape(other)}; unsqueeze the smaller one")
        sizes = tuple(map(max, one.sizes, other.sizes))
        one, other = (each if each.sizes == sizes else _expanded(each, sizes) for each in (one, other))
    return call.emit(make, (one, other), one.batch)


def _expanded(value: Value, sizes: tuple[int, ...]) -> Value:
    """A value whose axes of one element are made larger."""
    assert value.places is not None
    return Value(value.places.expand(sizes), value.batch, value.path, value.refused)


def _affine(call: Call, source: Value, scale: Any, shift: Any, part: str = "") -> Value:
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


FUNCTIONS: dict[str, Callable[[Call], Value]] = {
    **dict.fromkeys(("add", "radd", "iadd"), _add), **dict.fromkeys(("sub", "subtract", "isub"), _subtract),
    "rsub": _subtract_from, **dict.fromkeys(("mul", "multiply", "rmul", "imul"), _multiply),
    **dict.fromkeys(("div", "divide", "true_divide", "truediv", "itruediv", "rdiv"), _divide),
    **dict.fromkeys(("neg", "negative"), _negate), "maximum": _greatest(Maximum, "compare"),
    "minimum": _greatest(Minimum, "compare"),
}
"""By name of the function or method."""

CONSTANTS = {*FUNCTIONS, "prelu"} - {"maximum", "minimum"}
"""Functions that a tensor of the model may be a constant of."""
