import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.hw.ctext.value import Value, limits, number, register, storage, width
from circulant.sim.arith.fixed import Format, round_shift, saturate
from circulant.sim.refusal import Refusal
from tests.sim.definitions import repeatable


@pytest.mark.parametrize(("values", "type"), [
    ([0], "int8_t"), ([-128, 127], "int8_t"), ([128], "int16_t"), ([-129], "int16_t"), ([-2**15, 2**15 - 1], "int16_t"),
    ([2**15], "int32_t"), ([-2**31], "int32_t"), ([2**31], "int64_t"), ([-2**62], "int64_t")])
def test_the_narrowest_type_that_holds_all(values, type):
    assert number(values) == type
    assert limits(type)[0] <= min(values) <= max(values) <= limits(type)[1]


def test_a_format_is_stored_in_the_narrowest_type():
    assert [storage(Format(bits, 0)) for bits in (1, 8, 9, 16, 17, 32, 33, 62)] == [
        "int8_t", "int8_t", "int16_t", "int16_t", "int32_t", "int32_t", "int64_t", "int64_t"]
    assert [width(f"int{bits}_t") for bits in (8, 16, 32, 64)] == [8, 16, 32, 64]


def test_registers_have_32_bits_where_these_suffice():
    assert [register(-2**31, 2**31 - 1), register(0, 2**31), register(-2**62, 2**62 - 1)] == [32, 64, 64]
    for lo, hi in ((0, 2**62), (-2**62 - 1, 0)):
        with pytest.raises(Refusal, match=r"^Integers of the C target must fit into 63 bits, but here one may take 64"):
            register(lo, hi)


def test_what_fits_into_32_bits_stays_there():
    a, b = Value.of("a", -2**15, 2**15 - 1), Value.of("b", -2**15, 2**15 - 1)
    assert (a * b).text == "a * b"
    assert (a * b).local == "int32_t"
    assert (a * b + a).half_up(3).clip(16).text == "clip32(half_up32(a * b + a, 3), 16)"
    assert (b * (a - b).half_up(1)).text == "b * half_up32(a - b, 1)"
    assert (a - (b - a)).text == "a - (b - a)"


def test_what_does_not_is_widened_first():
    a, b = Value.of("a", -2**17, 2**17), Value.of("b", -2**17, 2**17)
    assert ((a * b).text, (a * b).bits) == ("(int64_t)a * b", 64)
    assert ((a + b) * b).text == "(int64_t)(a + b) * b"
    assert Value.of("a", 0, 2**31 - 1).half_up(1).text == "half_up64(a, 1)"
    assert (Value.of("a", 0, 2**31 - 1) + 1).text == "(int64_t)a + 1"


def test_a_saturation_that_cannot_happen_is_left_out():
    assert Value.of("a", -100, 100).clip(8).text == "a"
    assert Value.of("a", -100, 100).clip(7).text == "clip32(a, 7)"


def test_rounding_by_nothing_and_to_the_left():
    a = Value.of("a", -3, 5)
    assert a.half_up(0) == a
    assert a.half_up(-4).text == "a * 16"
    assert (a.half_up(-4).lo, a.half_up(-4).hi) == (-48, 80)
    assert a.half_up(-40).text == "a * INT64_C(1099511627776)"


def c_integers(bits):
    """The helpers of the generated file in numpy integers of their width, whose overflow is an error."""
    number = {32: np.int32, 64: np.int64}[bits]

    def half_up(x, s):
        return number(round_shift(int(number(x)), s))

    return {f"half_up{bits}": half_up, f"clip{bits}": lambda x, w: number(saturate(int(number(x)), w))}


ranges = st.tuples(st.integers(-2**20, 2**20), st.integers(0, 2**20)).map(lambda pair: (pair[0], pair[0] + pair[1]))
steps = st.lists(st.one_of(
    st.tuples(st.just("times"), st.sampled_from("abc")), st.tuples(st.just("plus"), st.sampled_from("abc")),
    st.tuples(st.just("minus"), st.sampled_from("abc")), st.tuples(st.just("half_up"), st.integers(-4, 30)),
    st.tuples(st.just("clip"), st.integers(2, 40))), min_size=1, max_size=6)


@repeatable(150)
@given(st.tuples(ranges, ranges, ranges), steps)
def test_no_expression_leaves_its_type_or_its_range(bounds, steps):
    leaves = {name: Value.of(name, *pair) for name, pair in zip("abc", bounds, strict=True)}
    value = leaves["a"]
    try:
        for step, operand in steps:
            value = {"times": lambda x, y: x * leaves[y], "plus": lambda x, y: x + leaves[y],
                     "minus": lambda x, y: x - leaves[y], "half_up": lambda x, y: x.half_up(y),
                     "clip": lambda x, y: x.clip(y)}[step](value, operand)
    except Refusal:
        return
    # numpy's integers have C's widths: int32 with int32 stays int32; a cast binds closer than a product, as ** does.
    text = value.text.replace("(int64_t)", "wide**").replace("(int32_t)", "narrow**")
    for corner in itertools.product(*bounds):
        known = {name: np.int64(n) if leaves[name].bits == 64 else np.int32(n)
                 for name, n in zip("abc", corner, strict=True)}
        known |= c_integers(32) | c_integers(64) | {
            "INT64_C": np.int64, "wide": Cast(np.int64), "narrow": Cast(np.int32)}
        with np.errstate(over="raise"):
            found = int(eval(text, known))
        assert value.lo <= found <= value.hi


class Cast:
    """``Cast(type) ** x`` is x in that type, which must hold it."""

    def __init__(self, type):
        self.type = type

    def __pow__(self, x):
        found = self.type(x)
        assert int(found) == int(x)
        return found


def test_a_value_of_64_bits_that_fits_is_narrowed_before_a_saturation_of_32():
    a = Value.of("a", 0, 46341)
    assert (a * a).half_up(1).clip(2).text == "clip32((int32_t)half_up64((int64_t)a * a, 1), 2)"
