"""The least of vectors, steps or images, value by value."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from circulant.sim.kinds.elementwise import SEVERAL, Elementwise, FloatElementwise, Places
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

    golden = Minimum


KIND = Kind(Minimum, FloatMinimum, SEVERAL)
