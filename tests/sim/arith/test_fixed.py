import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim.arith.fixed import Format, fit, requantize, round_shift, rounding_bits, saturate
from circulant.sim.refusal import Refusal
from tests.sim.definitions import clip, half_up, repeatable, scaled

formats = st.builds(Format, st.integers(1, 62), st.integers(-40, 80))
reals = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("width", [0, -1, 63, 64])
def test_format_wrong_width(width):
    message = f"^The width of a format must be from 1 to 62 bits, not {width}; choose fewer bits$"
    with pytest.raises(Refusal, match=message):
        Format(width, 0)


@pytest.mark.parametrize(("width", "frac", "lo", "hi", "step"), [
    (1, 0, -1, 0, 1.0),
    (2, 0, -2, 1, 1.0),
    (8, 7, -128, 127, 2.0 ** -7),
    (8, 20, -128, 127, 2.0 ** -20),
    (8, -3, -128, 127, 8.0),
    (62, 0, -2 ** 61, 2 ** 61 - 1, 1.0),
])
def test_format(width, frac, lo, hi, step):
    form = Format(width, frac)
    assert (form.lo, form.hi, form.step) == (lo, hi, step)


def test_format_is_a_value():
    assert Format(8, 3) == Format(8, 3) != Format(8, 4)
    assert len({Format(8, 3), Format(8, 3)}) == 1
    assert Format.from_json(Format(8, -3).as_json()) == Format(8, -3)
    assert Format(8, -3).as_json() == {"width": 8, "frac": -3}


@pytest.mark.parametrize(("real", "integer"), [
    (0.5, 1), (-0.5, 0), (1.5, 2), (-1.5, -1), (2.5, 3), (-2.5, -2),  # halves go upwards
    (0.49999999999999994, 0), (-0.49999999999999994, 0), (-0.5000000000000001, -1),
    (7.49, 7), (7.5, 7), (8.0, 7), (1e300, 7), (-8.0, -8), (-8.5, -8), (-8.6, -8), (-1e300, -8),
    (-0.0, 0), (5e-324, 0), (-5e-324, 0),
])
def test_quantize_boundaries(real, integer):
    assert Format(4, 0).quantize(real) == integer
    assert Format(4, 3).quantize(real / 8) == integer
    assert Format(4, -3).quantize(real * 8) == integer


@repeatable(250)
@given(formats, reals)
def test_quantize_is_rounding_half_up_and_saturation(form, real):
    assert int(form.quantize(real)) == clip(half_up(scaled(Fraction(real), form.frac)), form.width)


@repeatable(150)
@given(formats, st.data())
def test_quantize_close_to_halves(form, data):
    """Floats around the halfway points, where a rounding goes wrong first."""
    half = data.draw(st.integers(-2 ** 20, 2 ** 20)) + 0.5
    near = data.draw(st.sampled_from([half, math.nextafter(half, math.inf), math.nextafter(half, -math.inf)]))
    real = math.ldexp(near, -form.frac)
    assert int(form.quantize(real)) == clip(half_up(scaled(Fraction(real), form.frac)), form.width)


@repeatable(100)
@given(st.integers(1, 53), st.integers(-40, 80), st.data())
def test_real_is_undone_by_quantize(width, frac, data):
    form = Format(width, frac)
    integer = data.draw(st.integers(form.lo, form.hi))
    assert Fraction(float(form.real(integer))) == scaled(integer, -frac)
    assert form.quantize(form.real(integer)) == integer


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4)])
def test_arrays_keep_their_shape(shape):
    form = Format(10, 4)
    integers = form.quantize(np.ones(shape))
    assert (integers.shape, integers.dtype) == (shape, np.int64)
    assert (form.real(integers).shape, form.real(integers).dtype) == (shape, np.float64)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_quantize_not_finite(value):
    message = ("^Only finite values can be quantized, but the tensor holds NaN or infinity; find out where it comes "
               "from$")
    with pytest.raises(Refusal, match=message):
        Format(8, 4).quantize([0.0, value, 1.0])


@pytest.mark.parametrize(("x", "s", "result"), [
    (5, 0, 5), (5, 1, 3), (-5, 1, -2), (6, 2, 2), (-6, 2, -1), (-7, 2, -2), (1, 2, 0), (2, 2, 1), (-2, 2, 0),
    (5, -2, 20), (-5, -2, -20),
])
def test_round_shift_table(x, s, result):
    assert round_shift(x, s) == result


@repeatable(150)
@given(st.integers(-2 ** 40, 2 ** 40), st.integers(-20, 45))
def test_round_shift_is_rounding_half_up(x, s):
    exact = half_up(scaled(x, -s))
    assert round_shift(x, s) == exact
    assert round_shift(np.array([x]), s).tolist() == [exact]


def test_round_shift_of_every_small_integer():
    x = np.arange(-300, 300)
    for s in range(-3, 12):
        assert round_shift(x, s).tolist() == [half_up(scaled(int(v), -s)) for v in x]


@repeatable(150)
@given(st.integers(1, 70), st.integers(-10, 70), st.data())
def test_rounding_bits_hold_every_intermediate_result(bits, s, data):
    lo, hi = -2 ** (bits - 1), 2 ** (bits - 1) - 1
    x = data.draw(st.sampled_from([lo, hi]) | st.integers(lo, hi))
    enough = 2 ** (rounding_bits(bits, s) - 1)
    met = [x << -s] if s <= 0 else [x, 1 << (s - 1), x + (1 << (s - 1)), (x + (1 << (s - 1))) >> s]
    assert all(-enough <= value < enough for value in met)


@repeatable(200)
@given(st.integers(-2 ** 62, 2 ** 62), st.integers(1, 62))
def test_saturate(x, width):
    assert int(saturate(np.int64(x), width)) == clip(x, width)


def test_saturate_table():
    x = np.array([-300, -129, -128, -127, -1, 0, 1, 126, 127, 128, 300])
    assert saturate(x, 8).tolist() == [-128, -128, -128, -127, -1, 0, 1, 126, 127, 127, 127]
    assert saturate(x, 1).tolist() == [-1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0]


@repeatable(200)
@given(st.integers(-2 ** 40, 2 ** 40), st.integers(-10, 40),
       st.builds(Format, st.integers(1, 40), st.integers(-10, 30)))
def test_requantize_rounds_then_saturates(x, frac, to):
    shift = frac - to.frac
    if rounding_bits(42, shift) <= 63:
        assert int(requantize(np.int64(x), frac, to)) == clip(half_up(scaled(x, -shift)), to.width)


@pytest.mark.parametrize(("peak", "width", "frac"), [
    (1.0, 8, 6), (127 / 128, 8, 7), (0.999, 8, 6), (127.0, 8, 0), (127.49, 8, 0), (127.5, 8, -1), (128.0, 8, -1),
    (-1.0, 8, 6), (0.0, 8, 6), (0.25, 8, 8), (3.0, 8, 5), (1.0, 1, -2), (1e-300, 8, 1003), (1e300, 8, -990),
])
def test_fit_table(peak, width, frac):
    assert fit(peak, width) == Format(width, frac)


@repeatable(250)
@given(st.floats(1e-30, 1e30) | st.integers(-60, 60).map(lambda e: 2.0 ** e), st.integers(1, 62))
def test_fit_is_the_finest_that_holds_the_peak(peak, width):
    form = fit(peak, width)
    finer = Format(width, form.frac + 1)
    for sign in (1, -1):
        assert form.lo <= half_up(scaled(Fraction(sign * peak), form.frac)) <= form.hi
    assert half_up(scaled(Fraction(peak), finer.frac)) > finer.hi


def test_fit_wrong_width():
    with pytest.raises(Refusal, match=r"^The width of a format must be from 1 to 62 bits, not 0; choose fewer bits$"):
        fit(1.0, 0)


@pytest.mark.parametrize("peak", [math.nan, math.inf, -math.inf])
def test_fit_wrong_peak(peak):
    with pytest.raises(Refusal, match=f"^The peak that a format is fitted to must be finite, not {peak}; find out "
                                      "where it comes from$"):
        fit(peak, 8)
