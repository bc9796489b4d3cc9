"""Errors of golden values on their way through layers without states: over images, and the functions of values.

What golden stands for lies at value − shift ± rest. A layer without a product moves both ends of that as itself, since
sums, means and maxima grow with what comes in; what it then errs by is known but for the width between these ends.
"""
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import pad
from circulant.sim.arith.fixed import Reals
from circulant.sim.arith.trace import Tensor
from circulant.sim.error.error_propagation import Rows, Step
from circulant.sim.golden.activation import Activation
from circulant.sim.golden.add import Add
from circulant.sim.golden.concat import Concat
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.flatten import Flatten
from circulant.sim.golden.pool import Pool
from circulant.sim.golden.reduce.over_time import OverTime
from circulant.sim.golden.reverse import Reverse
from circulant.sim.golden.scale import Scale
from circulant.sim.real import float_model
from circulant.sim.shape.flows import JOINS
from circulant.sim.shape.geometry import flattened
from circulant.sim.shape.kinds import unknown

__all__ = ["Known", "Trace", "propagate"]

Known = tuple[Reals, Reals, Reals]
"""Golden values, and what they err by: a known part, ± a bound."""

Trace = Mapping[str, Tensor]
"""Golden tensors by their names."""


@singledispatch
def propagate(layer: Any, exact: Any, trace: Trace, known: Any) -> Known:
    """The outputs of a layer from its inputs: (N, height, width, channels), (N, T, size) or (N, size).

    Parameters:
        exact: what ``layer`` was quantized from.
        known: golden inputs, and what they err by: `Known`, of a join a list of them.
    """
    raise unknown(layer, "bounded in its error")


@propagate.register
def _(layer: Flatten, exact: Any, trace: Trace, known: Known) -> Known:
    first, second, third = (flattened(part, layer.order, rows=layer.rows) for part in known)
    return first, second, third


@propagate.register
def _(layer: Conv, exact: Any, trace: Trace, known: Known) -> Known:
    return _between(layer, known, *_conv(layer, exact, *known))


@propagate.register
def _(layer: Pool, exact: Any, trace: Trace, known: Known) -> Known:
    return _between(layer, known, *(_pooled(layer, end) for end in _ends(*known)))


@propagate.register
def _(layer: Scale, exact: Any, trace: Trace, known: Known) -> Known:
    ends = [exact.scale * end + exact.shift for end in _ends(*known)]
    return _between(layer, known, np.minimum(*ends), np.maximum(*ends))


@propagate.register
def _(layer: Activation, exact: Any, trace: Trace, known: Known) -> Known:
    return _between(layer, known, *map(exact.exact, _ends(*known)))


@propagate.register
def _(layer: OverTime, exact: Any, trace: Trace, known: Known) -> Known:
    """Both move up with each of their arguments."""
    return _between(layer, known, *map(exact, _ends(*known)))


@propagate.register
def _(layer: Add, exact: Any, trace: Trace, known: Sequence[Known]) -> Known:
    low, high = (sum(ends) for ends in zip(*(_ends(*each) for each in known), strict=True))
    return _between(layer, known, np.asarray(low), np.asarray(high))


@propagate.register
def _(layer: Concat, exact: Any, trace: Trace, known: Sequence[Known]) -> Known:
    low, high = (np.concatenate(ends, -1) for ends in zip(*(_ends(*each) for each in known), strict=True))
    if layer.rounds:
        return _between(layer, known, low, high)
    golden, shift, rest = (np.concatenate(parts, -1) for parts in zip(*known, strict=True))
    return golden, shift, rest


@propagate.register
def _(layer: Reverse, exact: Any, trace: Trace, known: Known) -> Known:
    golden, shift, rest = (part[:, ::-1] for part in known)
    return golden, shift, rest


def _ends(x: Reals, shift: Reals, rest: Reals) -> tuple[Reals, Reals]:
    """The least and the greatest that the values stand for."""
    return x - shift - rest, x - shift + rest


def _between(layer: Any, known: Any, low: Reals, high: Reals) -> Known:
    """The outputs of a layer that stand for values between two ends before its ReLU."""
    if layer.kind in JOINS:
        given: Any = [form.quantize(each[0]) for form, each in zip(layer.input_formats, known, strict=True)]
    else:
        given = layer.input_format.quantize(known[0])
    golden = layer.output_format.real(layer(given))
    if getattr(layer, "relu", False):
        low, high = np.maximum(low, 0), np.maximum(high, 0)
    return golden, golden - (low + high) / 2, (high - low) / 2


def _conv(layer: Conv, exact: float_model.Conv, x: Reals, shift: Reals, rest: Reals) -> tuple[Reals, Reals]:
    """The true sums of a convolution, before its ReLU, as an interval."""
    before = replace(layer, relu=False)
    y = layer.output_format.real(before(layer.input_format.quantize(x)))
    seen = [np.stack(list(layer.window.views(pad(part, layer.blocks * layer.product.block_size), layer.grid, axis=1)),
                     axis=3).reshape(-1, layer.product.columns) for part in (x, shift, rest)]
    step = Step(*np.zeros((2, len(seen[0]), 0)))
    rows = Rows.of(layer.outputs, (layer.product, exact.matrix, layer.product.columns))
    near = step.product(y.reshape(-1, layer.outputs), rows, step.given(*seen))
    middle = y - near.shift.reshape(y.shape)
    return middle - near.rest.reshape(y.shape), middle + near.rest.reshape(y.shape)


def _pooled(layer: Pool, x: Reals) -> Reals:
    fill: Any = -np.inf if layer.mode == "max" else 0
    views = np.stack(list(layer.window.views(x, layer.grid, axis=1, fill=fill)))
    return np.asarray(views.max(0) if layer.mode == "max" else views.mean(0))
