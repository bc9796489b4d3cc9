"""Integers of the C text together with the range that they are proven to stay in, which decides their C types.

A `Value` is an expression: its text, the least and the greatest number that it takes, and whether C computes it in
int32_t or int64_t. Each operation widens to 64 bits exactly where 32 could overflow, leaves out a saturation that
cannot happen, and refuses what 64 bits cannot hold. So no generated expression overflows, whatever the data.
"""
from collections.abc import Iterable
from dataclasses import dataclass

from circulant.sim.arith.fixed import Format, round_shift
from circulant.sim.refusal import Refusal

__all__ = ["Value", "limits", "number", "register", "storage", "width"]

WIDTHS = (8, 16, 32, 64)
LIMIT = 1 << 62
"""Magnitudes below it leave `half_up64` room for its rounding."""

ATOM, PRODUCT, SUM = range(3)


def number(values: Iterable[int]) -> str:
    """The narrowest of stdint's exact types that holds all ``values``."""
    values = list(values)
    return next(f"int{bits}_t" for bits in WIDTHS if all(-1 << bits - 1 <= v < 1 << bits - 1 for v in values))


def storage(form: Format) -> str:
    """The narrowest type that holds the integers of a format."""
    return number((form.lo, form.hi))


def width(type: str) -> int:
    """Bits of an exact type of stdint."""
    return int(type.removeprefix("int").removesuffix("_t"))


def limits(type: str) -> tuple[int, int]:
    """The least and the greatest integer of an exact type of stdint."""
    half = 1 << width(type) - 1
    return -half, half - 1


def register(lo: int, hi: int) -> int:
    """Bits, 32 or 64, in which integers of this range are computed.

    Raises:
        Refusal: when they do not fit into 63 bits, sign included.
    """
    if lo >= -1 << 31 and hi < 1 << 31:
        return 32
    if lo >= -LIMIT and hi < LIMIT:
        return 64
    raise Refusal("Integers of the C target must fit into 63 bits, but here one may take "
                  f"{max(-lo - 1, hi).bit_length() + 1}; choose narrower formats, or binary points nearer to each "
                  "other")


@dataclass(frozen=True)
class Value:
    """An integer expression of C.

    Parameters:
        text: what stands in C.
        lo, hi: the least and the greatest value that it takes.
        bits: 32 or 64: C computes it in int32_t or int64_t.
        rank: how loosely the text binds.
    """

    text: str
    lo: int
    hi: int
    bits: int
    rank: int = ATOM

    @classmethod
    def of(cls, text: str, lo: int, hi: int) -> "Value":
        """A variable that is declared with the type `local` of this value."""
        return cls(text, lo, hi, register(lo, hi))

    @classmethod
    def given(cls, text: str, form: Format, *, foreign: bool) -> "Value":
        """An integer of a format; one from outside may be any of its type, and is clipped to the format."""
        lo, hi = limits(storage(form)) if foreign else (form.lo, form.hi)
        return cls.of(text, lo, hi).clip(form.width)

    @property
    def local(self) -> str:
        """The type of a local variable that holds it, wide enough to compute with."""
        return f"int{register(self.lo, self.hi)}_t"

    @property
    def peak(self) -> int:
        return max(-self.lo, self.hi)

    def __add__(self, other: "Value | int") -> "Value":
        if isinstance(other, int):
            sign, magnitude = ("+", other) if other >= 0 else ("-", -other)
            return self._sum(sign, Value.of(str(magnitude), magnitude, magnitude), self.lo + other, self.hi + other)
        return self._sum("+", other, self.lo + other.lo, self.hi + other.hi)

    def __sub__(self, other: "Value") -> "Value":
        return self._sum("-", other, self.lo - other.hi, self.hi - other.lo)

    def __mul__(self, other: "Value") -> "Value":
        corners = [a * b for a in (self.lo, self.hi) for b in (other.lo, other.hi)]
        bits = max(self.bits, other.bits, register(min(corners), max(corners)))
        right = other._bracketed(ATOM)
        return Value(f"{self._wide(bits, other, PRODUCT)} * {right}", min(corners), max(corners), bits, PRODUCT)

    def greater(self, other: "Value") -> "Value":
        """The greater of two, both computed in as many bits."""
        return self._chosen(">", other, max(self.lo, other.lo), max(self.hi, other.hi))

    def less(self, other: "Value") -> "Value":
        """The less of two."""
        return self._chosen("<", other, min(self.lo, other.lo), min(self.hi, other.hi))

    def _chosen(self, sign: str, other: "Value", lo: int, hi: int) -> "Value":
        one, two = self._bracketed(PRODUCT), other._bracketed(PRODUCT)
        return Value(f"({one} {sign} {two} ? {one} : {two})", lo, hi, max(self.bits, other.bits))

    def half_up(self, shift: int) -> "Value":
        """`sim.arith.fixed.round_shift`."""
        if shift == 0:
            return self
        if shift < 0:
            factor = 1 << -shift
            return self * Value(str(factor) if factor < LIMIT >> 31 else f"INT64_C({factor})", factor, factor,
                                register(0, factor))
        bits = max(self.bits, register(self.lo, max(0, self.hi) + (1 << shift - 1)))
        lo, hi = round_shift(self.lo, shift), round_shift(self.hi, shift)
        return Value(f"half_up{bits}({self.text}, {shift})", lo, hi, bits)

    def clip(self, width: int) -> "Value":
        """`sim.arith.fixed.saturate`."""
        lo, hi = (max(-1 << width - 1, min((1 << width - 1) - 1, bound)) for bound in (self.lo, self.hi))
        if (lo, hi) == (self.lo, self.hi):
            return self
        bits = register(self.lo, self.hi)
        return Value(f"clip{bits}({self.cast('int32_t') if bits < self.bits else self.text}, {width})", lo, hi, bits)

    def cast(self, to: str) -> str:
        """The text, converted to a type that holds every value."""
        return f"({to}){self._bracketed(ATOM)}"

    def _sum(self, sign: str, other: "Value", lo: int, hi: int) -> "Value":
        bits = max(self.bits, other.bits, register(lo, hi))
        right = other._bracketed(PRODUCT)
        return Value(f"{self._wide(bits, other, SUM)} {sign} {right}", lo, hi, bits, SUM)

    def _wide(self, bits: int, other: "Value", rank: int) -> str:
        """The left operand, converted where neither operand is as wide as the result."""
        return self.cast("int64_t") if max(self.bits, other.bits) < bits else self._bracketed(rank)

    def _bracketed(self, rank: int) -> str:
        return self.text if self.rank <= rank else f"({self.text})"
