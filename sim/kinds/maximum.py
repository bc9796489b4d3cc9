"""The greatest of vectors, steps or images, value by value."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from circulant.sim.kinds.elementwise import SEVERAL, Elementwise, FloatElementwise, Places
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

    golden = Maximum


KIND = Kind(Maximum, FloatMaximum, SEVERAL)
