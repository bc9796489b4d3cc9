"""Fixed-point numbers: the only owner of rounding, saturation and binary points.

Rounding is half-up and saturation clips; `hw/fixed.py` says the same text in Amaranth and `training` imitates it.
"""
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circulant.sim.refusal import Refusal

__all__ = ["Format", "Integers", "Reals", "fit", "requantize", "round_shift", "saturate"]

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Format:
    """A two's-complement number of ``width`` bits, ``frac`` of them after the binary point.

    ``frac`` may exceed ``width`` (small numbers) or be negative (large ones): the value is integer · 2**-frac.

    Raises:
        Refusal: when ``width`` is not from 1 to 62, which int64 and its sums hold.
    """

    width: int
    frac: int

    def __post_init__(self) -> None:
        if not 1 <= self.width <= 62:
            raise Refusal(f"The width of a format must be from 1 to 62 bits, not {self.width!r}; choose fewer bits")

    @property
    def lo(self) -> int:
        """The least integer."""
        return -(1 << (self.width - 1))

    @property
    def hi(self) -> int:
        """The greatest integer."""
        return (1 << (self.width - 1)) - 1

    @property
    def step(self) -> float:
        """The value of one unit in the last place."""
        return 2.0 ** -self.frac

    def quantize(self, real: ArrayLike) -> Integers:
        """The nearest integers, halves upwards, saturated.

        Raises:
            Refusal: when a value is not finite.
        """
        real = np.asarray(real, np.float64)
        if not np.isfinite(real).all():
            raise Refusal("Only finite values can be quantized, but the tensor holds NaN or infinity; look at its origin")
        scaled = np.clip(np.floor(np.ldexp(real, self.frac) + 0.5), self.lo, self.hi)
        return np.asarray(scaled, np.int64)

    def real(self, integers: ArrayLike) -> Reals:
        """The values that integers stand for."""
        return np.ldexp(np.asarray(integers, np.float64), -self.frac)

    def as_json(self) -> dict[str, int]:
        return {"width": self.width, "frac": self.frac}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Format":
        return cls(width=data["width"], frac=data["frac"])


def round_shift(x: Any, s: int) -> Any:
    """x / 2**s rounded half-up to an integer: ``(x + (1 << (s-1))) >> s``; a negative ``s`` shifts to the left."""
    if s <= 0:
        return x << -s
    return (x + (1 << (s - 1))) >> s


def saturate(x: Any, width: int) -> Any:
    """x clipped to [-2**(width-1), 2**(width-1) - 1]."""
    return np.clip(x, -(1 << (width - 1)), (1 << (width - 1)) - 1)


def requantize(x: Any, frac: int, to: Format) -> Any:
    """Integers with ``frac`` fraction bits brought to the format ``to``: rounded half-up, then saturated."""
    return saturate(round_shift(x, frac - to.frac), to.width)


def fit(peak: float, width: int) -> Format:
    """The finest format of ``width`` bits that holds ±``peak`` without saturation.

    A peak of zero is taken as one unit, so that a tensor that is never exercised keeps a harmless format.
    """
    peak = abs(peak) or 1.0
    frac = width - 1 - math.ceil(math.log2(peak)) + 1  # one bit more than surely fits
    while math.floor(math.ldexp(peak, frac) + 0.5) > (1 << (width - 1)) - 1:
        frac -= 1
    return Format(width, frac)
