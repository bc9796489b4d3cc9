"""Sigmoid and tanh as piecewise-linear functions on integers.

The real axis from -reach to +reach is cut into equal segments, a power of two of them, so that the leading bits of the
input are the address of a table entry (slope, base) and the trailing bits the place inside of the segment.
"""
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from circulant.sim.fixed import Format, Integers, Reals, fit, round_shift, rounding_bits, saturate
from circulant.sim.refusal import Refusal, nearest

__all__ = ["FUNCTIONS", "Pwl", "fit_pwl", "sigmoid"]


def sigmoid(x: Reals) -> Reals:
    return 0.5 * (1 + np.tanh(0.5 * x))


FUNCTIONS: dict[str, tuple[Callable[[Reals], Reals], int]] = {"sigmoid": (sigmoid, 3), "tanh": (np.tanh, 2)}
"""The function and log2 of its reach: outside of it the function is within 2**-10 of its limit."""


TABLE_BITS = 18
"""Arguments of this width or less are looked up: all values take 2 MiB at the most."""


@dataclass(frozen=True, eq=False)
class Pwl:
    """A piecewise-linear function on integers: ``base[s] + slope[s] · place``, rounded half-up, saturated.

    Parameters:
        function: "sigmoid" or "tanh".
        input, output: formats of argument and value.
        slope_format: format of the slopes.
        slope, base: (segments,) integers, segments in ascending order; base is of the format ``output``.

    Raises:
        Refusal: when a step of the argument is longer than the reach, or a product could leave int64.
    """

    function: str
    input: Format
    output: Format
    slope_format: Format
    slope: Integers
    base: Integers

    def __post_init__(self) -> None:
        if self.input_bits < 1:
            raise Refusal(f"The argument of {self.function} must have at least {1 - self.input_bits + self.input.frac} "
                          f"fraction bits, not {self.input.frac}; choose a greater width")
        if rounding_bits(self.slope_format.width + self.place_bits, self.shift) + 1 > 63:
            raise Refusal(f"The products of {self.function} must fit into 63 bits, but with the argument {self.input}, "
                          f"the slope {self.slope_format} and {self.segments} segments they do not; choose narrower "
                          "ones")

    @property
    def segments(self) -> int:
        return len(self.base)

    @property
    def input_bits(self) -> int:
        """Width of the argument after it is clipped to the reach."""
        return self.input.frac + FUNCTIONS[self.function][1] + 1

    @property
    def place_bits(self) -> int:
        """Width of the place inside of a segment, unsigned."""
        return self.input_bits - int(math.log2(self.segments))

    @property
    def shift(self) -> int:
        """Bits by which the product of slope and place is rounded."""
        return self.slope_format.frac + self.input.frac - self.output.frac

    def __call__(self, x: Integers) -> Integers:
        if self.input_bits <= TABLE_BITS:
            return np.take(self._values, np.add(x, 1 << self.input_bits - 1, dtype=np.intp), mode="clip")
        return self._computed(x)

    @cached_property
    def _values(self) -> Integers:
        """What every argument within the reach gives."""
        half = 1 << self.input_bits - 1
        return self._computed(np.arange(-half, half))

    def _computed(self, x: Integers) -> Integers:
        clipped = saturate(x, self.input_bits)
        segment = (clipped >> self.place_bits) + self.segments // 2
        place = clipped & ((1 << self.place_bits) - 1)
        rise = round_shift(self.slope[segment] * place, self.shift)
        return np.asarray(saturate(self.base[segment] + rise, self.output.width))

    @property
    def max_error(self) -> float:
        """The greatest distance from the function, over every argument or, if there are more, 2**20 of them."""
        codes = np.arange(self.input.lo, self.input.hi + 1, 1 << max(0, self.input.width - 20))
        exact = FUNCTIONS[self.function][0](self.input.real(codes))
        return float(np.abs(self.output.real(self(codes)) - exact).max())

    def as_json(self) -> dict[str, Any]:
        return {"function": self.function, "input": self.input.as_json(), "output": self.output.as_json(),
                "slope": self.slope_format.as_json(), "segments": self.segments}


def fit_pwl(function: str, input: Format, output: Format, segments: int) -> Pwl:
    """The minimax line on each segment (the chord, moved by half its greatest distance), rounded to the formats.

    On segments of length h it errs by h²/16·max|f″|. Neighbours do not meet: from one to the next the value may fall by
    h³/16·max|f‴|.

    Raises:
        Refusal: for an unknown function, a segment count that is no power of two, or more segments than arguments.
    """
    if function not in FUNCTIONS:
        raise Refusal(f"An activation must be one of {', '.join(FUNCTIONS)}, not {function!r}"
                      f"{nearest(function, FUNCTIONS)}")
    exact, log_reach = FUNCTIONS[function]
    most = 1 << max(input.frac + log_reach, 1)  # One bit of place is left.
    if segments < 2 or segments & (segments - 1) or segments > most:
        raise Refusal(f"The segments of {function} must be a power of two from 2 to {most} with "
                      f"{input.frac} fraction bits of the argument, not {segments!r}; choose another count or width")
    edges = np.linspace(-(2.0 ** log_reach), 2.0 ** log_reach, segments + 1)
    left, right = edges[:-1], edges[1:]
    slope = (exact(right) - exact(left)) / (right - left)
    t = np.linspace(0, 1, 257)[:, None]
    x = left + t * (right - left)
    distance = exact(x) - (exact(left) + slope * (x - left))
    base = exact(left) + (distance.max(0) + distance.min(0)) / 2
    slope_format = fit(float(np.abs(slope).max()), output.width)
    return Pwl(function, input, output, slope_format, slope_format.quantize(slope), output.quantize(base))
