"""Numbers between two ends: what is made of them is as wide as its own ends ask for, and is clipped only where it can
leave a format. Low bits that are zero whatever the number is are known, too, so that no register holds them.
"""
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

from amaranth.hdl import Cat, Const, Value

from circulant.hw.arith.fixed import constant_product, round_shift, saturate
from circulant.sim.arith import fixed

__all__ = ["Bounded", "Span", "hull"]


class Span(NamedTuple):
    """The integers from the lowest to the highest one."""

    low: int
    high: int

    @classmethod
    def of_width(cls, width: int) -> Self:
        """All signed numbers of so many bits."""
        return cls(-(1 << width - 1), (1 << width - 1) - 1)

    @property
    def width(self) -> int:
        """Bits of a signed number that holds each of them."""
        return 1 + max(self.high.bit_length() if self.high > 0 else 0, (~self.low).bit_length() if self.low < 0 else 0)

    def times(self, other: "Span") -> "Span":
        """The span of the products."""
        return hull(Span(a * b, a * b) for a in self for b in other)


def hull(spans: Iterable[Span]) -> Span:
    """The smallest span that holds all others."""
    every = list(spans)
    return Span(min(each.low for each in every), max(each.high for each in every))


@dataclass(frozen=True)
class Bounded:
    """A signed number, its span, and how many of its low bits are always zero.

    Sums know nothing of what their terms have in common, so a span may be wider than what occurs.
    """

    number: Value
    span: Span
    zeros: int = 0

    @classmethod
    def of(cls, number: Value) -> Self:
        """Any number of its width."""
        return cls(number, Span.of_width(len(number)))

    @property
    def value(self) -> Value:
        """The number in as many bits as its span asks for."""
        width = self.span.width
        return self.number[:width].as_signed() if len(self.number) > width else self.number

    @property
    def significant(self) -> Value:
        """The value without the low bits that are always zero."""
        return self.value[self.zeros:].as_signed() if self.zeros else self.value

    def kept(self, significant: Value) -> "Bounded":
        """The same number, of which a register holds the significant bits."""
        number = Cat(Const(0, self.zeros), significant).as_signed() if self.zeros else significant
        return Bounded(number, self.span, self.zeros)

    def __add__(self, other: "Bounded") -> "Bounded":
        return Bounded(self.number + other.number,
                       Span(self.span.low + other.span.low, self.span.high + other.span.high),
                       min(self.zeros, other.zeros))

    def __sub__(self, other: "Bounded") -> "Bounded":
        return Bounded(self.number - other.number,
                       Span(self.span.low - other.span.high, self.span.high - other.span.low),
                       min(self.zeros, other.zeros))

    def __neg__(self) -> "Bounded":
        return Bounded(-self.number, Span(-self.span.high, -self.span.low), self.zeros)

    def __lshift__(self, bits: int) -> "Bounded":
        if self.span == (0, 0):
            return self
        return Bounded(self.number << bits, Span(self.span.low << bits, self.span.high << bits), self.zeros + bits)

    def times(self, constant: int) -> "Bounded":
        """The product with a constant, as shifts and additions."""
        if constant == 0:
            return Bounded(Const(0, 1).as_signed(), Span(0, 0))
        return Bounded(constant_product(self.number, constant), self.span.times(Span(constant, constant)),
                       self.zeros + (constant & -constant).bit_length() - 1)

    def rounded(self, shift: int) -> "Bounded":
        """The number divided by 2**shift, rounded half-up."""
        return Bounded(round_shift(self.value, shift), Span(*(fixed.round_shift(end, shift) for end in self.span)),
                       max(0, self.zeros - shift))

    def clipped(self, width: int) -> "Bounded":
        """The number in a format of ``width`` bits: itself where it has them."""
        if self.span.width <= width:
            return self
        low, high = Span.of_width(width)
        return Bounded(saturate(self.value, width), Span(max(self.span.low, low), min(self.span.high, high)))
