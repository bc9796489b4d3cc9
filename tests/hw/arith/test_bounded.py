import numpy as np
import pytest
from amaranth.hdl import Signal, signed
from hypothesis import given
from hypothesis import strategies as st

from circulant.hw.arith.bounded import Bounded, Span, hull
from circulant.sim.arith import fixed
from circulant.sim.arith.fixed import Format
from tests.hw.arith.test_fixed import evaluate

WIDTH = 5
EVERY = list(range(-16, 16))
FUNCTIONS = {  # of x and of 3 - x, neither of which says that they are related
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "negative": lambda x, y: -(x - y),
    "shifted": lambda x, y: (x << 2) - y,
    "product": lambda x, y: x.times(-13),
    "low zeros": lambda x, y: x.times(24) - (y << 2),
    "zeros rounded away": lambda x, y: (x.times(24) + (y << 4)).rounded(2),
    "nothing": lambda x, y: (x.times(0) + x.times(0)) << 2,
    "rounded": lambda x, y: (x + x + x).rounded(2),
    "to the left": lambda x, y: x.rounded(-2),
    "clipped": lambda x, y: (x + y + x).clipped(6),
    "not clipped": lambda x, y: (x - y).clipped(7),
}


class Integer:
    """The same of integers."""

    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Integer(self.value + other.value)

    def __sub__(self, other):
        return Integer(self.value - other.value)

    def __neg__(self):
        return Integer(-self.value)

    def __lshift__(self, bits):
        return Integer(self.value << bits)

    def times(self, constant):
        return Integer(self.value * constant)

    def rounded(self, shift):
        return Integer(fixed.round_shift(self.value, shift))

    def clipped(self, width):
        return Integer(fixed.requantize(np.array([self.value]), 0, Format(width, 0))[0])


def of_both(function):
    """A function of x alone."""
    return lambda x: function(Bounded.of(x), Bounded(3 - x, Span(-12, 19)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_equal_those_of_integers_and_lie_in_their_span(name):
    function = FUNCTIONS[name]
    golden = [int(function(Integer(x), Integer(3 - x)).value) for x in EVERY]

    def from_register(x):
        number = of_both(function)(x)
        return number.kept(number.significant).value

    found, kept = evaluate(WIDTH, [lambda x: of_both(function)(x).value, from_register], EVERY)
    assert found == golden and kept == golden
    number = of_both(function)(Signal(signed(WIDTH)))
    assert number.span.low <= min(golden) and max(golden) <= number.span.high
    assert all(value % (1 << number.zeros) == 0 for value in golden)


def test_a_register_holds_no_bit_that_is_always_zero():
    x = Bounded.of(Signal(signed(8)))
    product = x.times(40) + (x << 4)
    assert (product.zeros, len(product.value), len(product.significant)) == (3, 14, 11)
    assert product.rounded(2).zeros == 1 and product.rounded(5).zeros == 0
    assert (product + x).zeros == 0


def cut(value, bits):
    """The lower bits of an integer, as a signed number."""
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@given(st.integers(-300, 300), st.integers(0, 300))
def test_the_width_of_a_span_is_the_least_that_holds_it(low, more):
    span = Span(low, low + more)
    assert all(cut(value, span.width) == value for value in span)
    assert span.width == 1 or any(cut(value, span.width - 1) != value for value in span)


def test_the_negative_of_a_difference_takes_no_more_bits():
    x, y = (Bounded.of(Signal(signed(8))) for _ in range(2))
    assert (len((x - y).value), len((-(x - y)).value)) == (9, 9)
    assert len((-x).value) == 9  # the lowest number has no negative one of its width


def test_only_what_can_leave_a_format_is_clipped():
    x = Bounded.of(Signal(signed(8)))
    four = x + x + x + x
    assert four.clipped(10) is four
    assert four.clipped(9).span == Span(-256, 255)
    assert (four + x).clipped(11).value.shape() == signed(11)
    assert four.rounded(2).clipped(8).span == Span(-128, 127)


def test_a_hull_holds_all():
    assert hull([Span(0, 0), Span(-3, 2), Span(1, 9)]) == Span(-3, 9)
