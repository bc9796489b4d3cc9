"""Sigmoid and tanh as values at equal distances, with straight lines between them: the look-up tables."""
import math

import numpy as np

from circulant.sim.arith.activation import FUNCTIONS, Pwl
from circulant.sim.arith.fixed import Format, Integers, Reals

__all__ = ["CURVATURE", "GUARD", "SCALE", "integers", "interpolated"]

GUARD = 2
"""Fraction bits of a base beyond the value's: they are rounded together with the product."""

CURVATURE = 4 / (3 * math.sqrt(3))
"""max |tanh″|"""

SCALE = {"sigmoid": 1, "tanh": 0}
"""Fraction bits that an argument has more as one of tanh; sigmoid's bound is half of tanh's, too."""


def integers(values: Reals, frac: int) -> tuple[Integers, Format]:
    """The nearest integers, and the narrowest format that holds them."""
    integers = np.floor(np.ldexp(values, frac) + 0.5).astype(np.int64)
    return integers, Format(max(int(v if v >= 0 else ~v).bit_length() for v in integers.tolist()) + 1, frac)


def interpolated(function: str, input: Format, output: Format, bound: float, segments: int) -> Pwl:
    """Values at equal distances. Beyond the last one the value stays in the middle of what is left to the limit."""
    scale, widest = SCALE[function], input.width - 1 - input.frac

    def beyond(reach: int) -> float:
        return (1 - math.tanh(2.0 ** reach)) / 2

    def between(log_cell: float) -> float:
        return 4.0 ** log_cell * CURVATURE / 8

    if segments:
        count = segments.bit_length() - 1
        reach = min(range(-4, 6), key=lambda reach: max(beyond(reach), between(reach + 1 - count)))
        return _nodes(function, input, output, reach + scale, count)
    cell = -math.ceil(math.log2(CURVATURE / 8 / bound) / 2)
    reach = next(reach for reach in range(-4, 6) if beyond(reach) <= bound)
    while True:
        found = _nodes(function, input, output, reach + scale, min(reach, widest - scale) + 1 - cell)
        last = float(found.output.real(found(np.array([input.hi])))[0])
        if reach >= widest - scale or 1 - last <= bound / (1 << scale) + output.step:
            return found
        reach += 1  # Arguments are so coarse that the last one within the reach is far from its end.


def _nodes(function: str, input: Format, output: Format, reach: int, count: int) -> Pwl:
    """A "lut" of 2**count segments within a reach, or of as many as there are arguments."""
    widest = input.width - 1 - input.frac
    reach = min(max(reach, 1 - input.frac), widest)
    bits = input.frac + reach + 1
    count = min(max(count, 1), bits)
    start = np.arange(1 << count) - (1 << count - 1) << bits - count
    x = input.real(np.append(start, 1 << bits - 1))
    exact = FUNCTIONS[function](x)
    if reach < widest:
        exact[0], exact[-1] = (exact[0] + FUNCTIONS[function](np.array(-1e3))) / 2, (exact[-1] + 1) / 2
    frac = output.frac + GUARD
    values = np.floor(np.ldexp(exact, frac) + 0.5).astype(np.int64)
    base, base_format = integers(np.ldexp(values[:-1].astype(np.float64), -frac), frac)
    slope_frac = frac + bits - count - input.frac
    slope, slope_format = integers(np.ldexp(np.diff(values).astype(np.float64), -slope_frac), slope_frac)
    return Pwl(function, method="lut", reach=reach, input=input, output=output, slope_format=slope_format,
               base_format=base_format, start=start, slope=slope, base=base)
