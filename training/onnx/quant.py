"""Quantizing operators as their specifications say them: for constants, and for the file's own outputs."""
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import reference
from onnx.reference.op_run import OpRun

__all__ = ["DOMAINS", "QUANTS", "file_outputs", "integer_range", "quantized", "text"]

DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
"""Where exporters put the operator."""

QUANTS = ("Quant", "IntQuant")
"""Its names."""

ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "ROUND": np.round, "HALF_EVEN": np.round, "CEIL": np.ceil, "FLOOR": np.floor, "DOWN": np.fix,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5),
}
"""Rounding modes; the half of ``HALF_UP`` is rounded away from zero."""


def integer_range(bits: int, *, signed: bool, narrow: bool) -> tuple[int, int]:
    """The least and the greatest integer."""
    if signed:
        return -(1 << bits - 1) + narrow, (1 << bits - 1) - 1
    return 0, (1 << bits) - 1 - narrow


def quantized(x: ArrayLike, scale: ArrayLike, zero: ArrayLike, bits: ArrayLike, *, signed: bool, narrow: bool,
              rounding: str) -> NDArray[np.float64]:
    """The values that ``Quant`` gives of x, in float64."""
    x, scale, zero = (np.asarray(each, np.float64) for each in (x, scale, zero))
    y, width = x / scale + zero, int(np.asarray(bits).item())
    if width == 1 and signed:
        y = np.where(y >= 0, 1.0, -1.0)
    else:
        y = ROUNDINGS[rounding](np.clip(y, *integer_range(width, signed=signed, narrow=narrow)))
    return np.asarray((y - zero) * scale)


def text(value: Any) -> str:
    """An attribute that is a text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _operator(name: str, domain: str) -> type[OpRun]:
    """The operator for the reference evaluator of the ``onnx`` package."""
    def run(self: Any, x: Any, scale: Any, zero: Any, bits: Any, narrow: Any = None, rounding_mode: Any = None,
            signed: Any = None) -> tuple[Any]:
        given = {"narrow": narrow, "rounding_mode": rounding_mode, "signed": signed}
        options = {"narrow": 0, "rounding_mode": "ROUND", "signed": 1} | {
            key: value for key, value in given.items() if value is not None}
        return (quantized(x, scale, zero, bits, signed=bool(options["signed"]), narrow=bool(options["narrow"]),
                          rounding=text(options["rounding_mode"]).upper()).astype(x.dtype),)

    return type(name, (OpRun,), {"op_domain": domain, "_run": run})


class QuantizeLinear(OpRun):
    """The operator of ONNX for every version of it, integers in float32, one scale for all."""

    op_domain = ""

    def _run(self, x: Any, scale: Any, zero: Any = None, **options: Any) -> tuple[Any]:
        zero = np.zeros((), np.uint8) if zero is None else np.asarray(zero)
        ends = np.iinfo(zero.dtype)
        y = ROUNDINGS["ROUND"](np.asarray(x, np.float64) / scale) + float(zero.item())
        return (np.clip(y, ends.min, ends.max).astype(np.float32),)


class DequantizeLinear(OpRun):
    """The operator of ONNX for every version of it."""

    op_domain = ""

    def _run(self, x: Any, scale: Any, zero: Any = None, axis: int = 1, **options: Any) -> tuple[Any]:
        shape = [-1 if number == axis % x.ndim else 1 for number in range(x.ndim)] if np.size(scale) > 1 else []
        scale, zero = (np.reshape(each, shape).astype(np.float64) for each in (scale, zero if zero is not None else 0))
        return (((x.astype(np.float64) - zero) * scale).astype(np.float32),)


OPERATORS: list[type[OpRun]] = [QuantizeLinear, DequantizeLinear,
                                *(_operator(name, domain) for name in QUANTS for domain in DOMAINS)]


def file_outputs(path: str | Path, x: NDArray[Any]) -> NDArray[Any] | None:
    """The outputs of a file with its quantizers for inputs x, as many as its batch divides.

    None where the evaluator of the ``onnx`` package lacks an operator.
    """
    model = onnx.load(path)
    known = {each.name for each in model.graph.initializer}
    taken = next(each for each in model.graph.input if each.name not in known)
    batch = taken.type.tensor_type.shape.dim[0].dim_value or len(x)
    evaluator: Any = reference.ReferenceEvaluator(model, new_ops=OPERATORS)
    try:
        parts = [evaluator.run(None, {taken.name: x[start:start + batch]})[0]
                 for start in range(0, len(x) - batch + 1, batch)]
    except (NotImplementedError, RuntimeError):
        return None
    return np.concatenate(parts) if parts else None
