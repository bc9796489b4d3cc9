"""The least of vectors, steps or images, value by value."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.elementwise import SEVERAL, Elementwise, FloatElementwise, Places, quantized
from circulant.sim.passes import bases
from circulant.sim.passes.formats import Peaks, Widths
from circulant.sim.passes.layer import Kind

__all__ = ["KIND", "FloatMinimum", "Minimum"]


class _Minimum(Places):
    kind = "minimum"
    chooses = True

    @staticmethod
    def combined(values: Sequence[Any]) -> Any:
        return np.minimum.reduce(values)


class Minimum(_Minimum, Elementwise):
    """y = min x_i, or max(0, …)."""


class FloatMinimum(_Minimum, FloatElementwise):
    """y = min x_i, or max(0, …)."""


@bases.quantize_layer.register
def _(layer: FloatMinimum, input: tuple[Format, ...], peaks: Peaks, bits: Widths) -> Elementwise:
    return quantized(Minimum, layer, input, peaks, bits)


KIND = Kind(Minimum, FloatMinimum, SEVERAL)
