"""The difference of two vectors, steps or images."""
from collections.abc import Sequence
from typing import Any

from circulant.sim.arith.fixed import Reals
from circulant.sim.kinds.elementwise import PAIR, Elementwise, FloatElementwise, Places
from circulant.sim.passes.layer import Kind

__all__ = ["KIND", "FloatDifference", "Difference"]


class _Difference(Places):
    kind = "difference"
    pair = True

    @staticmethod
    def combined(values: Sequence[Any]) -> Any:
        one, other = values
        return one - other

    @classmethod
    def extremes(cls, low: Sequence[Reals], high: Sequence[Reals]) -> tuple[Reals, Reals]:
        return low[0] - high[1], high[0] - low[1]


class Difference(_Difference, Elementwise):
    """y = x_0 − x_1, or max(0, …)."""


class FloatDifference(_Difference, FloatElementwise):
    """y = x_0 − x_1, or max(0, …)."""

    golden = Difference


KIND = Kind(Difference, FloatDifference, PAIR)
