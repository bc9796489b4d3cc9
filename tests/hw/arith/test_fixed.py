import numpy as np
import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.arith.fixed import constant_product, halves, requantize, round_shift, saturate
from circulant.sim.arith import fixed
from circulant.sim.arith.fixed import Format
from tests.hw.simulate import trace


class Expressions(wiring.Component):
    """y0, y1, …: functions of x, with every bit that their values have."""

    def __init__(self, width, functions):
        self._functions = functions
        shapes = [function(Signal(signed(width))).shape() for function in functions]
        super().__init__({"x": In(signed(width)), **{f"y{n}": Out(shape) for n, shape in enumerate(shapes)}})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [getattr(self, f"y{n}").eq(function(self.x)) for n, function in enumerate(self._functions)]
        return m


def evaluate(width, functions, xs):
    """Rows of values, one for each function."""
    shown = trace(Expressions(width, functions), {"x": xs})
    return [shown[f"y{n}"] for n in range(len(functions))]


EVERY = list(range(-(1 << 6), 1 << 6))
WIDE = [0, 1, -1, (1 << 39) - 1, -(1 << 39), 0x5555555555, -0x5555555555, 12345678901, -98765432109]
SHIFTS = range(-3, 9)
WIDTHS = range(1, 9)


@pytest.mark.parametrize(("width", "xs"), [(7, EVERY), (40, WIDE)])
def test_round_shift_equals_golden(width, xs):
    golden = [fixed.round_shift(np.array(xs), s).tolist() for s in SHIFTS]
    assert evaluate(width, [lambda x, s=s: round_shift(x, s) for s in SHIFTS], xs) == golden


@pytest.mark.parametrize(("width", "xs"), [(7, EVERY), (40, WIDE)])
def test_saturate_equals_golden(width, xs):
    golden = [fixed.saturate(np.array(xs), to).tolist() for to in WIDTHS]
    assert evaluate(width, [lambda x, to=to: saturate(x, to) for to in WIDTHS], xs) == golden


@pytest.mark.parametrize(("width", "xs"), [(7, EVERY), (40, WIDE)])
def test_requantize_equals_golden(width, xs):
    cases = [(shift, to) for shift in SHIFTS for to in WIDTHS]
    golden = [fixed.requantize(np.array(xs), shift, Format(to, 0)).tolist() for shift, to in cases]
    assert evaluate(width, [lambda x, c=case: requantize(x, *c) for case in cases], xs) == golden


def test_saturated_values_take_no_more_bits_than_asked_for():
    x = Signal(signed(7))
    assert [len(saturate(x, to)) for to in WIDTHS] == [1, 2, 3, 4, 5, 6, 7, 7]
    assert all(saturate(x, to).shape().signed for to in WIDTHS)


@pytest.mark.parametrize("constants", [
    range(-300, 0), range(301), [1 << 16, -(1 << 16), 46341, -60547, 25080, 65535, 43690]])
def test_constant_product_equals_the_product(constants):
    xs = [-32, -31, -17, -1, 0, 1, 2, 21, 30, 31]
    assert evaluate(6, [lambda x, c=c: constant_product(x, c) for c in constants], xs) == [
        [x * c for x in xs] for c in constants]


def test_constant_product_of_a_wide_number():
    xs, constants = [-(1 << 29), (1 << 29) - 1, 123456789, -987654], [46341, -46341, 60547, -25080]
    assert evaluate(30, [lambda x, c=c: constant_product(x, c) for c in constants], xs) == [
        [x * c for x in xs] for c in constants]


def test_constant_product_is_no_wider_than_the_product_may_become():
    x = Signal(signed(12))
    for constant in (*range(1, 300), 46341, 60547, 25080):
        assert len(constant_product(x, constant)) <= 12 + constant.bit_length()
        assert len(constant_product(x, -constant)) <= 12 + constant.bit_length() + 1


def test_constant_product_takes_one_term_for_each_canonical_signed_digit():
    def terms(value):
        """Additions and subtractions in an expression."""
        operands = getattr(value, "operands", [getattr(value, "value", None)])
        return (getattr(value, "operator", None) in ("+", "-")) + sum(terms(v) for v in operands if v is not None)

    digits = {1: 1, 2: 1, 7: 2, 255: 2, 0b10101: 3, 0b1101101: 4, 0b11001111: 4}
    assert {c: terms(constant_product(Signal(signed(8)), c)) for c in digits} == digits


def test_halves_share_the_digits():
    def digits(constant):
        """Of the non-adjacent form: as many as there are ones in what 3n and n do not share."""
        return bin(abs(constant) ^ abs(3 * constant)).count("1")

    for constant in (*range(-300, 301), 46341, -60547, 25080):
        low, high = halves(constant)
        assert low + high == constant
        assert digits(low) == (digits(constant) + 1) // 2
        assert digits(high) == digits(constant) // 2
