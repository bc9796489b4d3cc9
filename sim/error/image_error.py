"""Errors of golden values on their way through layers over images: the part of `sim.error.error_bound` without states.

What golden stands for lies at value − shift ± rest. A layer without a product moves both ends of that as itself, since
sums, means and maxima grow with what comes in; what it then errs by is known but for the width between these ends.
"""
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import pad
from circulant.sim.arith.fixed import Reals
from circulant.sim.error.error_propagation import Rows, Step
from circulant.sim.golden.conv import Conv
from circulant.sim.golden.flatten import Flatten
from circulant.sim.golden.pool import Pool
from circulant.sim.golden.residual import Residual
from circulant.sim.golden.scale import Scale
from circulant.sim.real import float_model
from circulant.sim.shape.geometry import flattened

__all__ = ["IMAGES", "Known", "through"]

IMAGES = (Conv, Flatten, Pool, Residual, Scale)

Known = tuple[Reals, Reals, Reals]
"""Golden values, and what they err by: a known part, ± a bound."""


def through(layer: Any, exact: Any, x: Reals, shift: Reals, rest: Reals) -> Known:
    """The outputs of a layer of `IMAGES` from its inputs (N, height, width, channels), or a scale's of vectors.

    Parameters:
        exact: what ``layer`` was quantized from.
        x, shift, rest: golden inputs, and what they err by.
    """
    if isinstance(layer, Flatten):
        first, second, third = (flattened(part, layer.order, rows=layer.rows) for part in (x, shift, rest))
        return first, second, third
    golden = layer.output_format.real(layer(layer.input_format.quantize(x)))
    if isinstance(layer, Conv):
        low, high = _conv(layer, exact, x, shift, rest)
    elif isinstance(layer, Pool):
        low, high = (_pooled(layer, end) for end in (x - shift - rest, x - shift + rest))
    elif isinstance(layer, Scale):
        ends = [exact.scale * end + exact.shift for end in (x - shift - rest, x - shift + rest)]
        low, high = np.minimum(*ends), np.maximum(*ends)
    else:
        sides = [_chain(chain, getattr(exact, side), (x, shift, rest)) for side, chain in layer.branches.items()]
        (y, s, r), (other_y, other_s, other_r) = sides
        low, high = (y - s + other_y - other_s + sign * (r + other_r) for sign in (-1, 1))
    if getattr(layer, "relu", False):
        low, high = np.maximum(low, 0), np.maximum(high, 0)
    return golden, golden - (low + high) / 2, (high - low) / 2


def _chain(layers: Sequence[Any], exact: Sequence[Any], known: Known) -> Known:
    for layer, mine in zip(layers, exact, strict=True):
        known = through(layer, mine, *known)
    return known


def _conv(layer: Conv, exact: float_model.Conv, x: Reals, shift: Reals, rest: Reals) -> tuple[Reals, Reals]:
    """What the sums of a convolution may be in truth, before its ReLU."""
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
