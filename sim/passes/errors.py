"""Errors of golden values on their way through layers without states, and through a product with a ReLU behind it.

What golden stands for lies at value − shift ± rest. A layer without a product moves both ends of that as itself, since
sums, means and maxima grow with what comes in; what it then errs by is known but for the width between these ends.
"""
from typing import Any

import numpy as np

from circulant.sim.arith.circulant import Product
from circulant.sim.arith.fixed import Reals
from circulant.sim.passes.bases import Known, Trace
from circulant.sim.passes.error_propagation import PropagatedError, Rows, Step
from circulant.sim.passes.layer import FloatLayer, GoldenLayer

__all__ = ["between", "ends", "monotone", "multiplied"]


def ends(x: Reals, shift: Reals, rest: Reals) -> tuple[Reals, Reals]:
    """The least and the greatest that the values stand for."""
    return x - shift - rest, x - shift + rest


def between(layer: GoldenLayer, known: Any, low: Reals, high: Reals) -> Known:
    """The outputs of a layer that stand for values between two ends before its ReLU."""
    values = [each[0] for each in known] if layer.joins else [known[0]]
    given = [form.quantize(each) for form, each in zip(layer.taken, values, strict=True)]
    golden = layer.output_format.real(layer(layer.argument(given)))
    if layer.relu:
        low, high = np.maximum(low, 0), np.maximum(high, 0)
    return golden, golden - (low + high) / 2, (high - low) / 2


def monotone(layer: GoldenLayer, exact: FloatLayer, trace: Trace, known: Known) -> Known:
    """The outputs of a layer that moves up with each of its arguments, as it does in float64."""
    return between(layer, known, *map(exact, ends(*known)))


def multiplied(product: Product, weight: Reals, known: Known, golden: Reals) -> PropagatedError:
    """The outputs (N, rows) of a product without a state from what it takes (N, columns).

    Parameters:
        weight: first columns (p, q, k) that it was quantized from.
    """
    step = Step(*np.zeros((2, len(golden), 0)))
    rows = Rows.of(golden.shape[-1], (product, weight, known[0].shape[-1]))
    return step.product(golden, rows, step.given(*known))
