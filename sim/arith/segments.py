"""The segments of sigmoid and tanh, and the lines over them: as few as an error bound allows.

Where the argument is positive, tanh is concave. So the minimax line over a segment is the chord, moved up by half of
its greatest distance, which lies where tanh' = 1 - tanh² is the chord's slope. From the middle on, each segment is made
as long as the bound allows, which gives the least number of them; the last one is constant and goes on to infinity.
Around zero there is one segment with a line through the middle, so that tanh(0) = 0 and sigmoid(0) = 1/2, and the
other half mirrors the first. Starts of segments lie on a grid, so that few leading bits of the argument decide which
one it is in. As sigmoid(x) = (1 + tanh(x/2))/2, one fit serves both.
"""
import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from circulant.sim.arith.activation import FUNCTIONS, METHODS, Pwl, exact_function
from circulant.sim.arith.curves import CURVES, cut
from circulant.sim.arith.fixed import Format, Integers, Reals
from circulant.sim.arith.interpolated_table import CURVATURE, GUARD, SCALE, integers, interpolated
from circulant.sim.refusal import Refusal, nearest

__all__ = ["ERROR", "fit_lines", "fit_pwl"]

ERROR = 0.0005
"""How far the lines may be from the function where nothing is said."""

SLOPES = 1 / 16
"""Part of the bound that is left to the rounding of the slopes."""

HARD = {"hard_sigmoid": 3, "hard_tanh": 1}
"""From where on the value stays."""


def fit_pwl(function: str, input: Format, output: Format, segments: int = 0, *, error: float = ERROR,
            method: str = "pwl") -> Pwl:
    """A table of a function, with as few segments as ``error`` allows, or with ``segments`` at the most.

    The value is then off by ``error``, or half a step of ``output`` where that is more, and its own rounding. A hard
    function takes the three segments that it has.

    Parameters:
        segments: 0 to go by ``error``, else 3 or more, for a "lut" a power of two, which is taken unless there are
            fewer arguments.

    Raises:
        Refusal: for an unknown function or method, or a count or bound that no table can have.
    """
    if function not in FUNCTIONS:
        raise Refusal(f"An activation must be one of {', '.join(FUNCTIONS)}, not {function!r}"
                      f"{nearest(function, FUNCTIONS)}")
    check_table(method, error, segments)
    if function in HARD:
        return _hard(function, input, output)
    scale = SCALE[function]
    bound = max(error, output.step / 2) * (1 << scale) * (1 - SLOPES)
    if method == "lut":
        return interpolated(function, input, output, bound, segments)
    frac = input.frac + scale
    if segments:
        bound = _bound(segments, frac)
    grid, cuts = _cuts(bound, frac)
    reach = max(cuts[-1].bit_length() - grid, 1 - frac) + scale
    rounding = max(bound / (1 << scale), output.step / 2) * SLOPES
    return _lines(function, input, output, reach=reach, cuts=[cut << frac - grid for cut in cuts], rounding=rounding)


def fit_lines(function: str, parameters: tuple[float, ...], input: Format, output: Format, *,
              error: float = ERROR) -> Pwl:
    """The table of a function of `LINES`, over every argument. One of straight lines has a segment for each, and no
    error but the rounding of the value and, where a slope is neither 0 nor 1, half of that; a smooth one has as few as
    ``error`` allows, or half a step of ``output`` where that is more.

    Raises:
        Refusal: for an unknown function, or parameters that it cannot have.
    """
    exact = exact_function(function, parameters)
    reach = input.width - 1 - input.frac
    if function in CURVES:
        bound = max(error, output.step / 2) * (1 - SLOPES)
        start, slope, base = cut(exact, input, bound)
        longest = float(np.diff([*start, input.hi + 1]).max()) * input.step
        frac = max(0, -input.frac, output.frac + GUARD - input.frac, math.ceil(math.log2(longest / 2 / bound / SLOPES)))
        return _table(function, input, output, reach=reach, start=start, slope=slope, frac=frac, base=base,
                      parameters=parameters)
    corners = {"relu": (0.0,), "leaky_relu": (0.0,), "identity": (), "clip": parameters}[function]
    cuts = [math.ceil(math.ldexp(corner, input.frac)) for corner in corners]
    if function == "clip":  # The value stays beyond both corners, so that the table need not reach further.
        reach = min(reach, max(1, *(abs(cut).bit_length() for cut in cuts)) - input.frac)
    reach, start = _within(input, reach, cuts)
    number = np.searchsorted(cuts, start, "right")  # of the line of each segment
    slopes = {"relu": (0.0, 1.0), "leaky_relu": (*parameters, 1.0), "identity": (1.0,),
              "clip": (0.0, 1.0, 0.0)}[function]
    ends = [*(corners[:1] or (0.0,)), *corners]  # a place on each line
    slope, at = np.take(slopes, number), np.take(ends, number)
    exactly = all(each in (0.0, 1.0) for each in slopes)
    frac = max(0, -input.frac, output.frac + GUARD - input.frac if function == "clip" else 0,
               0 if exactly else output.frac + reach + 1)
    return _table(function, input, output, reach=reach, start=start, slope=slope, frac=frac,
                  base=lambda kept: np.asarray(exact(at) - kept * at), parameters=parameters)


def check_table(method: object, error: float, segments: int) -> None:
    """
    Raises:
        Refusal: when no table has such a method, bound or number of segments.
    """
    if method not in METHODS:
        raise Refusal(f"The table of an activation must be one of {', '.join(METHODS)}, not {method!r}; choose one")
    if not 1e-6 <= error <= 0.1:
        raise Refusal(f"The error of an activation's table must be from 1e-06 to 0.1, not {error!r}; choose another")
    least = 2 if method == "lut" else 3
    if segments and (not least <= segments <= 1024 or (method == "lut" and segments & segments - 1)):
        raise Refusal(f"The segments of an activation must be {'a power of two' if method == 'lut' else 'a number'} "
                      f"from {least} to 1024, or 0 for as many as its error asks for, not {segments!r}; choose one")


def _distance(a: float, b: float) -> float:
    """How far tanh is from its minimax line over a segment from a to b, 0 ≤ a < b."""
    slope = (math.tanh(b) - math.tanh(a)) / (b - a)
    peak = math.sqrt(max(0.0, 1 - slope))
    return (peak - math.tanh(a) - slope * (math.atanh(peak) - a)) / 2 if peak < 1 else 0.5


def _middle(a: float) -> tuple[float, float]:
    """Slope and greatest distance of the line through 0 that is nearest to tanh from -a to a."""
    lo, hi = math.tanh(a) / a, 1.0
    for _ in range(50):
        slope = (lo + hi) / 2
        peak = math.sqrt(1 - slope)
        if peak - slope * math.atanh(peak) > slope * a - math.tanh(a):  # too far below more than above
            lo = slope
        else:
            hi = slope
    return hi, hi * a - math.tanh(a)


@lru_cache(maxsize=256)
def _cuts(bound: float, frac: int) -> tuple[int, tuple[int, ...]]:
    """Fraction bits of a grid, ``frac`` at the most, and the ends on it of tanh's segments, from the middle one's on.

    It is 0 where there is none in the middle. The grid is as fine as a fraction of the shortest segment. Where it is
    that of the arguments, one of them alone is always within the bound.
    """
    grid = min(frac, math.ceil(math.log2(6 / math.sqrt(16 * bound / CURVATURE))))
    step = 2.0 ** -grid
    flat = max(1, math.ceil(math.atanh(1 - 2 * bound) / step))

    def furthest(within: Callable[[int], bool], least: int) -> int:
        """The last end up to ``flat`` that is within the bound; those behind it are not."""
        lo, hi = least, max(least, flat) + 1
        while hi - lo > 1:
            middle = (lo + hi) // 2
            lo, hi = (middle, hi) if within(middle) else (lo, middle)
        return lo

    def near(start: int, end: int) -> bool:
        return _distance(start * step, end * step) <= bound

    cuts = [furthest(lambda end: _middle(end * step)[1] <= bound, 0)]
    while cuts[-1] < flat:
        start = cuts[-1]
        cuts.append(furthest(partial(near, start), start + 1))
    return grid, tuple(cuts)


@lru_cache(maxsize=256)
def _bound(segments: int, frac: int) -> float:
    """The least bound for which so many segments suffice."""
    def enough(log_bound: float) -> bool:
        cuts = _cuts(2.0 ** log_bound, frac)[1]
        return 2 * len(cuts) + (cuts[0] > 0) <= segments

    lo = hi = math.log2(0.7 / segments ** 2)  # near what many segments of best length have
    while not enough(hi):
        hi = min(hi + 0.5, -1.01)
    while lo > -26 and enough(lo):
        lo -= 0.5
    for _ in range(8):
        middle = (lo + hi) / 2
        lo, hi = (lo, middle) if enough(middle) else (middle, hi)
    return 2.0 ** hi


def _table(function: str, input: Format, output: Format, reach: int, start: Integers, slope: Reals, frac: int,
           base: Callable[[Reals], Reals], parameters: tuple[float, ...] = ()) -> Pwl:
    """Lines in integers, from real slopes with ``frac`` fraction bits and, for those, the best bases."""
    slopes, slope_format = integers(slope, frac)
    bases, base_format = integers(base(slope_format.real(slopes)), min(output.frac + GUARD, frac + input.frac))
    return Pwl(function, method="pwl", reach=reach, input=input, output=output, slope_format=slope_format,
               base_format=base_format, start=start, slope=slopes, base=bases, parameters=parameters)


def _within(input: Format, reach: int, start: list[int]) -> tuple[int, Integers]:
    """The reach and the starts of segments that arguments can get to."""
    reach = min(reach, input.width - 1 - input.frac)
    half = 1 << max(0, input.frac + reach)
    return reach, np.array([-half, *(first for first in start if -half < first < half)], np.int64)


def _lines(function: str, input: Format, output: Format, reach: int, cuts: list[int], rounding: float) -> Pwl:
    """The minimax lines between ``cuts`` of the positive half, and their mirror images.

    Slopes are so fine that their rounding costs no more than ``rounding``.
    """
    reach, start = _within(input, reach, [-cut for cut in cuts[::-1]] + [cut for cut in cuts if cut])
    last = np.append(start[1:], 1 << input.frac + reach) - 1
    middle, negative = (start < 0) & (last >= 0) & (cuts[0] > 0), last < 0
    # Both ends as if on the positive half; that of the middle segment, which goes on to its cut, is its own.
    near = input.real(np.where(negative, -last, start))
    far = input.real(np.where(negative, -start, np.where(middle, cuts[0], last)))
    scale, exact = 1 << SCALE[function], FUNCTIONS[function]
    endless = near >= input.real(cuts[-1])
    flat = endless | (near == far)
    beyond = endless & ((near < far) | (reach < input.width - 1 - input.frac))  # Arguments outside of the reach, too.
    slope = (exact(far) - exact(near)) / np.where(flat, 1.0, far - near)
    if cuts[0]:
        slope[middle] = _middle(float(input.real(cuts[0])) / scale)[0] / scale ** 2
    slope[flat] = 0
    longest = float(np.where(flat, 0, np.where(middle, far, (far - near) / 2)).max(initial=input.step))
    frac = max(math.ceil(math.log2(longest / 2 / rounding)), output.frac + GUARD - input.frac)

    def base(slope: Reals) -> Reals:
        peak = scale * np.arctanh(np.sqrt(np.clip(1 - slope * scale ** 2, 0, 1 - 1e-15)))
        above = exact(np.clip(peak, near, far)) - slope * np.clip(peak, near, far)
        below = np.minimum(exact(near) - slope * near, exact(far) - slope * far)
        lines = np.where(beyond, (exact(near) + 1) / 2, (above + below) / 2)
        center = float(exact(np.zeros(1))[0])
        return np.asarray(np.where(middle, center, np.where(negative, 2 * center - lines, lines)))

    return _table(function, input, output=output, reach=reach, start=start, slope=slope, frac=frac, base=base)


def _hard(function: str, input: Format, output: Format) -> Pwl:
    """The three segments of a hard function."""
    end = HARD[function]
    cut = math.ldexp(end, input.frac)
    reach, start = _within(input, math.ceil(cut).bit_length() - input.frac, [math.ceil(-cut), math.ceil(cut)])
    exact = FUNCTIONS[function]
    lo, center, hi = exact(np.array([-end, 0.0, end]))
    side = np.where(start < math.ceil(-cut), lo, np.where(start < math.ceil(cut), center, hi))
    slope = np.where(side == center, (hi - lo) / (2 * end), 0.0)
    # tanh's slope is 1; a sixth is rounded so finely that it is not seen.
    frac = max(0, -input.frac, 0 if function == "hard_tanh" else output.frac + GUARD + max(2, -input.frac))
    return _table(function, input, output=output, reach=reach, start=start, slope=slope, frac=frac,
                  base=lambda _: np.asarray(side))
