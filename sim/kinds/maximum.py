"""The greatest of vectors, steps or images, value by value."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.elementwise import SEVERAL, Elementwise, FloatElementwise, Places, quantized
from circulant.sim.passes import bases
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import Kind

__all__ = ["KIND", "FloatMaximum", "Maximum"]


class _Maximum(Places):
    kind = "maximum"
    chooses = True

    @staticmethod
    def combined(values: Sequence[Any]) -> Any:
        return np.maximum.reduce(values)


class Maximum(_Maximum, Elementwise):
    """y = max x_i, or max(0, …)."""


class FloatMaximum(_Maximum, FloatElementwise):
    """y = max x_i, or max(0, …)."""


@bases.quantize_layer.register
def _(layer: FloatMaximum, input: tuple[Format, ...], peaks: Peaks, bits: Widths) -> Elementwise:
    return quantized(Maximum, layer, input, peaks, bits)


KIND = Kind(Maximum, FloatMaximum, SEVERAL)
