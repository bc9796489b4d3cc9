"""Approximate products in logic: the circuits of `circulant.sim.arith.multiplier`, without a multiplier."""
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from circulant.hw.emit.target import Platform
from circulant.sim.arith.multiplier import columns_left_out

__all__ = ["ApproximateProduct"]


class ApproximateProduct(wiring.Component):
    """The product of a and b by a multiplier's name, in the same cycle.

    Parameters:
        a_bits, b_bits: of the operands; a truncated one has more than the columns that it leaves out.

    Members:
        a, b: operands.
        o: their product.
    """

    def __init__(self, multiplier: str, a_bits: int, b_bits: int) -> None:
        self._multiplier = multiplier
        super().__init__({"a": In(signed(a_bits)), "b": In(signed(b_bits)), "o": Out(signed(a_bits + b_bits))})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        if self._multiplier == "mitchell":
            m.d.comb += self.o.eq(_mitchell(m, self.a, self.b))
        else:
            m.d.comb += self.o.eq(_truncated(self.a, self.b, columns_left_out(self._multiplier)))
        return m


def _truncated(a: Value, b: Value, columns: int) -> Value:
    """The sum of the partial products, a row for each bit of b. Those with one sign are negative: they are inverted,
    and a constant is added (Baugh and Wooley, IEEE Trans. Computers C-22, 1973)."""
    last, end, bits = len(a) - 1, len(b) - 1, len(a) + len(b)
    terms: list[Value] = [Const((1 << last) + (1 << end) + (1 << bits - 1), bits)]
    for j, bit in enumerate(b):
        row = Cat(~(one & bit) if (i == last) != (j == end) else one & bit for i, one in enumerate(a))
        terms.append(row[max(0, columns - j):] << max(columns, j))
    while len(terms) > 1:
        terms = [sum(terms[n + 1:n + 2], terms[n]) for n in range(0, len(terms), 2)]
    return terms[0][:bits].as_signed()


def _mitchell(m: Module, a: Value, b: Value) -> Value:
    """s + max(s, 2ⁱ⁺ʲ) with a sign. As s < 2 · 2ⁱ⁺ʲ, it is 2s where that bit of s is set, and else s with the bit."""
    (place, rest, i, none), (_, its_rest, j, its_none) = (
        _logarithm(m, x, name) for x, name in ((a, "a"), (b, "b")))
    bits = len(a) + len(b)
    both, between = Signal(bits, name="both"), Signal(bits, name="between")
    m.d.comb += [both.eq(_shifted(place, j, bits)),
                 between.eq(_shifted(rest, j, bits) + _shifted(its_rest, i, bits))]
    size = Mux((between & both).any(), between << 1, between | both)[:bits]
    sign = a[-1] ^ b[-1]
    magnitude = Signal(bits, name="magnitude")
    m.d.comb += magnitude.eq(Mux(none | its_none, 0, size))
    return Mux(sign, -magnitude, magnitude)[:bits].as_signed()


def _logarithm(m: Module, x: Value, name: str) -> tuple[Value, Value, Value, Value]:
    """The greatest power of two in |x|, the rest of it, the power's exponent, and whether x is 0."""
    bits = len(x)
    size, place = Signal(bits, name=f"{name}_size"), Signal(bits, name=f"{name}_place")
    m.d.comb += [size.eq(Mux(x[-1], -x, x)),
                 place.eq(Cat(size[n] & ~size[n + 1:].any() if n + 1 < bits else size[n] for n in range(bits)))]
    exponent = Cat(reduce(or_, (place[n] for n in range(bits) if n >> digit & 1), Const(0, 1))
                   for digit in range(ceil_log2(bits)))
    return place, size & ~place, exponent, ~size.any()


def _shifted(x: Value, by: Value, bits: int) -> Value:
    """x · 2^by in ``bits`` bits."""
    for digit, one in enumerate(by):
        x = Mux(one, x << (1 << digit), x)[:bits]
    return x
