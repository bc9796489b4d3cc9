"""`sim.arith.activation.Pwl` in C: a table look-up, one multiplication."""
from circulant.hw.ctext.unit import Unit, beside
from circulant.hw.ctext.value import Value
from circulant.sim.arith.activation import Pwl

__all__ = ["emit"]

render = beside(__file__)


def emit(unit: Unit, prefix: str, pwl: Pwl) -> tuple[str, Value]:
    """Tables and the function ``<prefix>(x)``, and the value that it returns."""
    x = Value.of("x", pwl.input.lo, pwl.input.hi)
    clipped = x.clip(pwl.input_bits)
    place_bits, half = pwl.cell_bits, 1 << pwl.input_bits - 1
    argument = Value.of("argument", clipped.lo, clipped.hi)
    address = argument + half
    place = argument if pwl.method == "pwl" else Value.of("place", 0, (1 << place_bits) - 1)
    slope = Value.of("slope", int(pwl.slope.min()), int(pwl.slope.max()))
    base = Value.of("base", int(pwl.base.min()), int(pwl.base.max()))
    sums = slope * place + base.half_up(-pwl.lift)
    # Base and slope do not take their extremes together: what they reach is read off the table.
    lo, hi = _reached(pwl, argument)
    y = Value(sums.text, max(lo, sums.lo), min(hi, sums.hi), sums.bits, sums.rank).half_up(pwl.shift).clip(
        pwl.output.width)
    looked_up = pwl.segments < 1 << pwl.input_bits - place_bits
    text = render("table.c.j2", name=prefix, pwl=pwl, x=x, clipped=clipped, argument=argument, address=address,
                  place=place, slope=slope, base=base, y=y, cells=pwl.input_bits - place_bits,
                  segments=unit.table(f"{prefix}_segment", pwl.cells, looked_up=True) if looked_up else "",
                  slopes=unit.table(f"{prefix}_slope", pwl.slope.tolist(), looked_up=True),
                  bases=unit.table(f"{prefix}_base", pwl.base.tolist(), looked_up=True))
    return text, y


def _reached(pwl: Pwl, argument: Value) -> tuple[int, int]:
    """The least and the greatest sum of a line: it takes them at the ends of its segment."""
    sums = []
    for (first, last), slope, base in zip(pwl.ends.tolist(), pwl.slope.tolist(), pwl.base.tolist(), strict=True):
        if first <= argument.hi and last >= argument.lo:
            sums += [slope * (x - first * (pwl.method == "lut")) + (base << pwl.lift) for x in (first, last)]
    return min(sums), max(sums)
