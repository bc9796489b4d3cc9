"""Approximate products in logic: the circuits of `circulant.sim.arith.multiplier`, without a multiplier."""
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
    """2^e · (1 + f) of the sum of both logarithms, with a sign: whole bits e, and f behind the binary point. A sum of
    fractions of 1 or more is a carry into e. Nothing is lost to the right of the result."""
    width, bits = max(len(a), len(b)), len(a) + len(b)
    (mine, less), (its, its_less) = (_logarithm(m, x, width, name) for x, name in ((a, "a"), (b, "b")))
    there = mine[-1] & its[-1]  # Both have a greatest bit.
    fraction = Signal(width, name="fraction")
    shift = Signal(ceil_log2(bits), name="shift")
    result = Signal(bits, name="result_0")
    m.d.comb += [fraction.eq(mine[:-1] + its[:-1]), shift.eq(less + its_less + ~fraction[-1]),
                 result.eq(Cat(Const(0, bits - width), fraction[:-1] & there.replicate(width - 1), there))]
    for digit, one in enumerate(shift):
        shifted = Signal(bits, name=f"result_{digit + 1}")
        m.d.comb += shifted.eq(Mux(one, result[1 << digit:], result))
        result = shifted
    return _with_sign(result, a[-1] ^ b[-1]).as_signed()


def _logarithm(m: Module, x: Value, width: int, name: str) -> tuple[Value, Value]:
    """|x| with its greatest bit in the highest place of ``width``, and by how many places it is then further left than
    the highest number of x."""
    size, places = Signal(width, name=f"{name}_size"), list[Value]()
    m.d.comb += size.eq(Cat(Const(0, width - len(x)), _with_sign(x, x[-1])))
    for digit in reversed(range(ceil_log2(len(x)))):
        empty = Signal(name=f"{name}_empty_{digit}")
        shifted = Signal(width, name=f"{name}_{digit}")
        m.d.comb += [empty.eq(~size[-(1 << digit):].any()), shifted.eq(Mux(empty, size << (1 << digit), size))]
        places.insert(0, empty)
        size = shifted
    return size, Cat(places)


def _with_sign(x: Value, negative: Value) -> Value:
    """x, or -x, in as many bits."""
    return ((x ^ negative.replicate(len(x))) + negative)[:len(x)]
