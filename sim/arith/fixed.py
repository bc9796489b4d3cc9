"""Fixed-point numbers: the only owner of rounding, saturation and binary points.

Rounding is half-up and saturation clips; `hw/arith/fixed.py` says the same text in Amaranth and `training` imitates it.
"""
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from circulant.sim.refusal import Refusal

__all__ = ["Format", "Integers", "Reals", "fit", "requantize", "round_shift", "rounding_bits", "saturate"]

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
            raise Refusal("Only finite values can be quantized, but the tensor holds NaN or infinity; "
                          "find out where it comes from")
        with np.errstate(over="ignore"):  # What is too large saturates.
            scaled = np.clip(np.ldexp(real, self.frac), self.lo, -self.lo)
        below = np.floor(scaled)
        # floor(scaled + 0.5) would round 0.49999999999999994 up.
        return np.asarray(np.minimum(below.astype(np.int64) + (scaled - below >= 0.5), self.hi))

    def real(self, integers: ArrayLike) -> Reals:
        """The values that integers stand for."""
        return np.ldexp(np.asarray(integers, np.float64), -self.frac)

    def as_json(self) -> dict[str, int]:
        return {"width": self.width, "frac": self.frac}

    @classmethod
    def from_json(cls, data: Mapping[str, int]) -> "Format":
        return cls(width=data["width"], frac=data["frac"])


def round_shift(x: Any, s: int, out: Any = None) -> Any:
    """x / 2**s rounded half-up to an integer: ``(x + (1 << (s-1))) >> s``; a negative ``s`` shifts to the left.

    Arrays of float64 hold integers, too: what is exact in them below 2**53 stays so.

    Parameters:
        out: an array for the result, such as x itself.
    """
    if isinstance(x, np.ndarray) and x.dtype == np.float64:
        y = np.multiply(x, 2.0 ** -s, out=out)
        return y if s <= 0 else np.floor(np.add(y, 0.5, out=y), out=y)
    if s <= 0:
        return x << -s if out is None else np.left_shift(x, -s, out=out)
    y = x + (1 << (s - 1)) if out is None else np.add(x, 1 << (s - 1), out=out)
    y >>= s  # in place where it is an array
    return y


def rounding_bits(bits: int, s: int) -> int:
    """Bits, sign included, that hold everything on the way through `round_shift` for an x of ``bits`` bits."""
    return max(bits, s) + 1 if s > 0 else bits - s


def saturate(x: Any, width: int, out: Integers | None = None) -> Any:
    """x clipped to [-2**(width-1), 2**(width-1) - 1]."""
    return np.clip(x, -(1 << (width - 1)), (1 << (width - 1)) - 1, out=out)


def requantize(x: Any, frac: int, to: Format) -> Any:
    """Integers with ``frac`` fraction bits brought to the format ``to``: rounded half-up, then saturated."""
    y = round_shift(x, frac - to.frac)
    return saturate(y, to.width, out=y if isinstance(y, np.ndarray) else None)


def fit(peak: float, width: int) -> Format:
    """The finest format of ``width`` bits that holds ±``peak`` without saturation.

    A peak of zero is taken as one, so that a tensor that is never exercised keeps a harmless format.

    Raises:
        Refusal: when the peak is not finite.
    """
    if not math.isfinite(peak):
        raise Refusal(f"The peak that a format is fitted to must be finite, not {peak!r}; find out where it comes from")
    peak, hi = abs(peak) or 1.0, Format(width, 0).hi
    frac = width - 1 - math.ceil(math.log2(peak)) + 1  # one bit more than surely fits
    while math.ldexp(peak, frac) >= hi + 0.5:
        frac -= 1
    return Format(width, frac)
