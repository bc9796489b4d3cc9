"""Rounding and saturation in Amaranth: the same text as `sim.arith.fixed`."""
from collections.abc import Iterator

from amaranth.hdl import Cat, Const, Mux, Shape, Value, ValueCastable, signed

__all__ = ["constant_product", "digits", "halves", "requantize", "round_shift", "rounded_sum", "saturate"]


def round_shift(x: Value, s: int) -> Value:
    """x / 2**s rounded half-up to an integer: ``(x + (1 << (s-1))) >> s``; a negative ``s`` shifts to the left."""
    if s <= 0:
        return x << -s
    return (x + Const(1 << (s - 1), signed(s + 1)))[s:].as_signed()


def rounded_sum(x: Value, s: int, y: Value) -> Value:
    """`round_shift` of x, and a signed integer, in one sum: half a step stands below y."""
    if s <= 0:
        return (x << -s) + y
    return (x + Cat(Const(1 << s - 1, s), y).as_signed())[s:].as_signed()


def saturate(x: Value, width: int) -> Value:
    """x clipped to [-2**(width-1), 2**(width-1) - 1], ``width`` bits wide at the most."""
    if len(x) <= width:
        return x
    above = x[width - 1:]
    lo, hi = Const(-(1 << (width - 1)), signed(width)), Const((1 << (width - 1)) - 1, signed(width))
    return Mux((above == 0) | above.all(), x[:width].as_signed(), Mux(x[-1], lo, hi))


def requantize(x: Value, shift: int, width: int) -> Value:
    """x rounded by ``shift`` bits, then saturated to ``width`` bits."""
    return saturate(round_shift(x, shift), width)


def constant_product(x: Value | ValueCastable, constant: int) -> Value:
    """x · constant as shifts and additions, one for each non-zero digit of the constant in canonical signed digits."""
    x = Value.cast(x)
    total: Value = Const(0, signed(1))
    for digit, place in sorted(digits(constant), reverse=True):  # What is added first needs no negation.
        total = total + (x << place) if digit == 1 else total - (x << place)
    width = Shape.cast(x.shape()).width + abs(constant).bit_length()
    return total[:width].as_signed() if len(total) > width else total


def halves(constant: int) -> tuple[int, int]:
    """Two numbers whose sum is the constant, with half of its canonical signed digits each, the lower ones first."""
    each = list(digits(constant))
    middle = (len(each) + 1) // 2
    low, high = (sum(digit << place for digit, place in part) for part in (each[:middle], each[middle:]))
    return low, high


def digits(constant: int) -> Iterator[tuple[int, int]]:
    """(±1, place) of the canonical signed digits, from the lowest one on."""
    sign, rest, place = 1 if constant > 0 else -1, abs(constant), 0
    while rest:
        if rest & 1:
            digit = 2 - (rest & 3)  # 1 when the next bit is 0, else -1 with a carry
            rest -= digit
            yield sign * digit, place
        place, rest = place + 1, rest >> 1
