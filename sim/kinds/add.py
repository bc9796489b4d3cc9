"""The sum of vectors, steps or images (He et al. 2016), with or without a ReLU behind it."""
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from circulant.sim.kinds.elementwise import SEVERAL, Elementwise, FloatElementwise, Places
from circulant.sim.passes.layer import Kind

__all__ = ["KIND", "Add", "FloatAdd"]


class _Sum(Places):
    kind = "add"

    @staticmethod
    def combined(values: Sequence[Any]) -> Any:
        return reduce(operator.add, values)


class Add(_Sum, Elementwise):
    """y = Σ x_i, or max(0, …)."""


class FloatAdd(_Sum, FloatElementwise):
    """y = Σ x_i, or max(0, …)."""

    golden = Add


KIND = Kind(Add, FloatAdd, SEVERAL)
