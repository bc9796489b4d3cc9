"""The product of two vectors, steps or images, value by value: gates."""
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from circulant.sim.arith.fixed import Reals
from circulant.sim.kinds.elementwise import PAIR, Elementwise, FloatElementwise, Places
from circulant.sim.passes.layer import Kind

__all__ = ["KIND", "FloatProduct", "Product"]


class _Product(Places):
    kind = "product"
    pair = True
    aligned = False

    @staticmethod
    def combined(values: Sequence[Any]) -> Any:
        one, other = values
        return one * other

    @classmethod
    def extremes(cls, low: Sequence[Reals], high: Sequence[Reals]) -> tuple[Reals, Reals]:
        corners = [one * other for one in (low[0], high[0]) for other in (low[1], high[1])]
        return np.minimum.reduce(corners), np.maximum.reduce(corners)

    @classmethod
    def bits(cls, widths: Sequence[int]) -> int:
        return sum(widths)

    @classmethod
    def reach(cls, peaks: Sequence[float]) -> float:
        return math.prod(peaks)


class Product(_Product, Elementwise):
    """y = x_0 · x_1, or max(0, …)."""


class FloatProduct(_Product, FloatElementwise):
    """y = x_0 · x_1, or max(0, …)."""

    golden = Product


KIND = Kind(Product, FloatProduct, PAIR)
