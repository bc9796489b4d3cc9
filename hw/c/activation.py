"""`sim.activation.Pwl` in C: one table look-up, one multiplication."""
import numpy as np

from circulant.hw.c.unit import Unit, render
from circulant.hw.c.value import Value
from circulant.sim.activation import Pwl
from circulant.sim.refusal import Refusal

__all__ = ["emit"]


def emit(unit: Unit, prefix: str, pwl: Pwl) -> tuple[str, Value]:
    """Tables and the function ``<prefix>(x)``, and the value that it returns.

    Raises:
        Refusal: when the segments do not cut the arguments evenly.
    """
    segments, place_bits = pwl.segments, pwl.place_bits
    if segments < 2 or segments & (segments - 1) or place_bits < 0:
        raise Refusal(f"The segments of {pwl.function} must be a power of two, 2 or more, and no more than there are "
                      f"arguments, not {segments}; fit the table again")
    x = Value.of("x", pwl.input.lo, pwl.input.hi)
    address = x.clip(pwl.input_bits) + (1 << pwl.input_bits - 1)
    place = Value.of("place", 0, (1 << place_bits) - 1)
    slope = Value.of("slope", int(pwl.slope.min()), int(pwl.slope.max()))
    base = Value.of("base", int(pwl.base.min()), int(pwl.base.max()))
    rise = (slope * place).half_up(pwl.shift)
    lo, hi = _reached(pwl, address)
    # base and slope do not take their extremes together: what they reach is read off the table.
    total = base + rise
    y = Value(total.text, max(lo, total.lo), min(hi, total.hi), total.bits, total.rank).clip(pwl.output.width)
    text = render("activation.c.j2", name=prefix, pwl=pwl, x=x, address=address, place=place, slope=slope,
                  base=base, y=y, slopes=unit.table(f"{prefix}_slope", pwl.slope.tolist(), looked_up=True),
                  bases=unit.table(f"{prefix}_base", pwl.base.tolist(), looked_up=True))
    return text, y


def _reached(pwl: Pwl, address: Value) -> tuple[int, int]:
    """The least and the greatest value before saturation: a line takes them at the ends of its segments."""
    first, last = address.lo >> pwl.place_bits, address.hi >> pwl.place_bits
    values = []
    for slope, base in zip(pwl.slope[first:last + 1].tolist(), pwl.base[first:last + 1].tolist(), strict=True):
        for place in (0, (1 << pwl.place_bits) - 1):
            rise = Value.of("", slope * place, slope * place).half_up(pwl.shift)
            values.append(base + rise.lo)
    return int(np.min(values)), int(np.max(values))
