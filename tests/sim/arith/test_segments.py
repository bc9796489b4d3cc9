import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from circulant.sim.arith import segments as fits
from circulant.sim.arith.activation import FUNCTIONS, METHODS
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_pwl
from circulant.sim.refusal import Refusal
from tests.refused import refused
from tests.sim.definitions import repeatable

SMOOTH = ["sigmoid", "tanh"]
smooth = pytest.mark.parametrize("function", SMOOTH)
methods = pytest.mark.parametrize("method", METHODS)


@pytest.mark.parametrize("frac", [9, 10, 11, 12, 13])
@smooth
def test_better_than_the_tables_of_c_lstm(function, frac):
    """Within 0.002 of the function over every 16-bit argument, with 22 segments at the most; C-LSTM's tables of 22 err
    by 0.0041 and 0.0151."""
    pwl = fit_pwl(function, Format(16, frac), Format(16, 15), error=0.002)
    assert pwl.segments <= 22
    assert pwl.max_error <= 0.002


@repeatable(150)
@given(st.sampled_from(SMOOTH), st.sampled_from(METHODS), st.integers(4, 18), st.integers(-3, 20), st.integers(4, 24),
       st.integers(0, 2), st.floats(-6, -1))
# Arguments beyond the reach, whose last segment has a single one.
@example(function="sigmoid", method="pwl", in_width=4, in_frac=0, out_width=8, whole=0, log_error=-1.5)
def test_the_bound_holds_for_every_argument(function, method, in_width, in_frac, out_width, whole, log_error):
    """Besides it there is the rounding of base and value; 1 may be a step beyond the format."""
    output, error = Format(out_width, out_width - 1 - whole), max(1e-6, 10 ** log_error)
    pwl = fit_pwl(function, Format(in_width, in_frac), output, error=error, method=method)
    rounding = output.step * (1 if whole == 0 else 0.625 + 1e-9)
    assert pwl.max_error <= max(error, output.step / 2) + rounding + 1e-12


@pytest.mark.parametrize("bound", [0.02, 0.002, 0.0005, 0.00005])
def test_no_fewer_segments_would_do(bound):
    """An independent count: with free ends, N lines err by (∫ √|f″|)² / 16 N² at the least, and as N grows at most."""
    x = np.linspace(-12, 12, 200001)
    second = 2 * np.tanh(x) / np.cosh(x) ** 2
    least = np.sum(np.sqrt(np.abs(second))) * (x[1] - x[0]) / 4 / math.sqrt(bound)
    pwl = fit_pwl("tanh", Format(24, 20), Format(24, 23), error=bound)
    assert 0.95 * least - 2 < pwl.segments < 1.15 * least + 1


@smooth
def test_segments_grow_as_the_error_falls(function):
    counts = [fit_pwl(function, Format(20, 16), Format(20, 19), error=error).segments
              for error in (0.1, 0.02, 0.004, 0.0008, 0.00016)]
    assert counts == sorted(set(counts))


@pytest.mark.parametrize("segments", [3, 4, 8, 22, 64, 100])
@smooth
def test_a_number_of_segments(function, segments):
    """It is an upper bound, and reached but for the symmetry."""
    pwl = fit_pwl(function, Format(16, 12), Format(16, 15), segments)
    assert segments - 4 <= pwl.segments <= segments
    more = fit_pwl(function, Format(16, 12), Format(16, 15), 2 * segments + 4)
    assert more.max_error < pwl.max_error


@pytest.mark.parametrize("segments", [2, 4, 64, 256])
@smooth
def test_a_number_of_entries(function, segments):
    pwl = fit_pwl(function, Format(16, 12), Format(16, 15), segments, method="lut")
    assert (pwl.segments, set(np.diff(pwl.start).tolist())) == (segments, {(2 << 12 + pwl.reach) // segments})


@smooth
def test_lines_are_minimax(function):
    """Within a segment the error is as great on both sides, at three places; the middle goes through the center."""
    pwl = fit_pwl(function, Format(24, 20), Format(24, 23), error=0.001)
    exact, center = FUNCTIONS[function], FUNCTIONS[function](np.array(0.0))
    for (first, last), slope, base in zip(pwl.ends.tolist(), pwl.slope.tolist(), pwl.base.tolist(), strict=True):
        x = np.linspace(first, last, 4001) * 2.0 ** -20
        off = exact(x) - (slope * pwl.slope_format.step * x + base * pwl.base_format.step)
        if first < 0 <= last:
            assert base * pwl.base_format.step == center
        if slope:
            assert off.max() == pytest.approx(-off.min(), abs=0.1e-3)
        assert np.abs(off).max() <= 0.001


@smooth
@methods
def test_the_function_is_odd_around_its_center(function, method):
    pwl = fit_pwl(function, Format(16, 12), Format(16, 14), error=0.001, method=method)
    x, center = np.arange(2 ** 15), 2 ** 14 // (1 if function == "sigmoid" else 2 ** 20)
    inside = np.isin(x, np.abs(pwl.start), invert=True)  # The start of a segment belongs to one side.
    assert np.abs(pwl(x) + pwl(-x) - center)[inside].max() <= 2
    assert pwl(np.array(0)) == center // 2


@smooth
def test_interpolation_has_no_steps(function):
    pwl = fit_pwl(function, Format(16, 12), Format(24, 23), error=0.001, method="lut")
    rise = np.diff(pwl(np.arange(-2 ** 15, 2 ** 15)))
    assert rise.min() >= 0
    assert rise.max() * 2.0 ** -23 <= 2.0 ** -12 * (1 if function == "tanh" else 0.25) + 2.0 ** -23


@smooth
def test_the_value_hardly_falls_from_segment_to_segment(function):
    """Neighbours part by half the difference of their errors, so the grid's share of the bound."""
    pwl = fit_pwl(function, Format(16, 12), Format(24, 23), error=0.001)
    assert np.diff(pwl(np.arange(-2 ** 15, 2 ** 15))).min() * 2.0 ** -23 >= -0.001


@smooth
@methods
def test_outside_of_the_reach_the_value_stays(function, method):
    pwl = fit_pwl(function, Format(16, 8), Format(16, 15), error=0.0005, method=method)
    reach = 1 << 8 + pwl.reach
    assert set(pwl(np.arange(reach, 2 ** 15)).tolist()) == {int(pwl(np.array(reach - 1)))}
    assert pwl(np.array(2 ** 15 - 1)) * 2.0 ** -15 == pytest.approx(1, abs=0.0006)
    assert pwl(np.array(-2 ** 15)) * 2.0 ** -15 == pytest.approx(-1 if function == "tanh" else 0, abs=0.0006)


@pytest.mark.parametrize("function", ["tanh", "sigmoid"])
def test_segments_that_no_argument_gets_to_are_left_out(function):
    narrow, wide = (fit_pwl(function, Format(16, frac), Format(16, 15)) for frac in (15, 12))
    assert narrow.segments < wide.segments
    assert (narrow.reach, narrow.start[0]) == (0, -2 ** 15)


@smooth
def test_the_tables_are_small(function):
    """Their slopes are as fine as the bound asks for, not more."""
    pwl = fit_pwl(function, Format(16, 12), Format(16, 15))
    assert pwl.slope_format.width + pwl.base_format.width <= 32
    assert pwl.input_bits - pwl.cell_bits <= 9
    assert pwl.segments <= 41


@pytest.mark.parametrize(("width", "frac"), [(16, 12), (8, 4), (9, 6), (8, 7), (10, -1), (6, -4), (24, 19)])
@pytest.mark.parametrize(("out_width", "out_frac"), [(16, 15), (8, 7), (12, 9)])
@methods
def test_hard_tanh_is_exact(width, frac, out_width, out_frac, method):
    input, output = Format(width, frac), Format(out_width, out_frac)
    x = np.arange(input.lo, input.hi + 1, 1 << max(0, width - 14))
    pwl = fit_pwl("hard_tanh", input, output, method=method)
    np.testing.assert_array_equal(pwl(x), output.quantize(FUNCTIONS["hard_tanh"](input.real(x))))
    assert pwl.segments <= 3


@pytest.mark.parametrize(("width", "frac"), [(16, 12), (8, 4), (9, 6), (8, 7), (10, -1), (6, -4), (24, 19)])
@pytest.mark.parametrize(("out_width", "out_frac"), [(16, 15), (8, 7), (12, 9)])
def test_hard_sigmoid_is_the_nearest_but_for_ties(width, frac, out_width, out_frac):
    """A sixth is no binary fraction: at the most a value near the middle between two integers goes the other way."""
    input, output = Format(width, frac), Format(out_width, out_frac)
    x = np.arange(input.lo, input.hi + 1, 1 << max(0, width - 14))
    pwl = fit_pwl("hard_sigmoid", input, output)
    exact = np.ldexp(FUNCTIONS["hard_sigmoid"](input.real(x)), out_frac)
    assert np.abs(np.minimum(pwl(x), output.hi) - np.minimum(exact, output.hi)).max() <= 0.625
    assert pwl.segments <= 3
    ends = input.real(x)
    assert set(pwl(x[ends >= 3]).tolist()) <= {output.quantize(1.0).item()}
    assert set(pwl(x[ends <= -3]).tolist()) <= {0}


@pytest.mark.parametrize(("function", "hint"), [
    ("sigmod", "; did you mean 'sigmoid'?"), ("Tanh", "; did you mean 'tanh'?"), ("relu", "")])
def test_wrong_function(function, hint):
    assert refused(fit_pwl, function, Format(16, 12), Format(16, 15)) == (
        f"An activation must be one of sigmoid, tanh, hard_sigmoid, hard_tanh, not {function!r}{hint}")


@pytest.mark.parametrize(("method", "segments", "rule"), [
    ("pwl", 2, "a number from 3"), ("pwl", 1025, "a number from 3"), ("pwl", -1, "a number from 3"),
    ("lut", 1, "a power of two from 2"), ("lut", 48, "a power of two from 2")])
def test_wrong_segments(method, segments, rule):
    with pytest.raises(Refusal) as refusal:
        fit_pwl("tanh", Format(16, 12), Format(16, 15), segments, method=method)
    assert str(refusal.value) == (f"The segments of an activation must be {rule} to 1024, or 0 for as many as its "
                                  f"error asks for, not {segments}; choose one")


@pytest.mark.parametrize("error", [0.0, 1e-7, 0.2, -1.0, float("nan")])
def test_wrong_error(error):
    assert refused(fit_pwl, "tanh", Format(16, 12), Format(16, 15), error=error) == (
        f"The error of an activation's table must be from 1e-06 to 0.1, not {error}; choose another")


def test_wrong_method():
    with pytest.raises(Refusal) as refusal:
        fit_pwl("tanh", Format(16, 12), Format(16, 15), method="cordic")
    assert str(refusal.value) == "The table of an activation must be one of pwl, lut, not 'cordic'; choose one"


def test_distance_and_middle_against_a_search():
    """The closed forms against lines tried out."""
    for a, b in ((0.0, 0.3), (0.5, 0.7), (1.0, 2.5)):
        x = np.linspace(a, b, 2001)
        slopes = np.linspace(0, 1, 4001)[:, None]
        off = np.tanh(x) - slopes * x
        assert fits._distance(a, b) == pytest.approx((np.ptp(off, axis=1) / 2).min(), abs=1e-4)
    for a in (0.2, 1.0, 3.0):
        x = np.linspace(0, a, 2001)
        assert fits._middle(a)[1] == pytest.approx(
            np.abs(np.tanh(x) - np.linspace(0, 1, 4001)[:, None] * x).max(1).min(), abs=1e-3)
