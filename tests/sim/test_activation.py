import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim.activation import FUNCTIONS, Pwl, fit_pwl, sigmoid
from circulant.sim.fixed import Format
from circulant.sim.refusal import Refusal
from tests.sim.definitions import pwl as plain
from tests.sim.definitions import repeatable

EXACT = {"sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)), "tanh": math.tanh}
SECOND = {"sigmoid": 1 / (6 * math.sqrt(3)), "tanh": 4 / (3 * math.sqrt(3))}
"""max |f″|"""
THIRD = {"sigmoid": 1 / 8, "tanh": 2}
"""max |f‴|"""
REACH = {"sigmoid": 8, "tanh": 4}

functions = pytest.mark.parametrize("function", ["sigmoid", "tanh"])
tables = pytest.mark.parametrize(("input", "output", "segments"), [
    (Format(8, 4), Format(8, 7), 16), (Format(12, 8), Format(12, 11), 32), (Format(16, 12), Format(16, 15), 64),
    (Format(16, 10), Format(16, 15), 256), (Format(16, 15), Format(16, 15), 64), (Format(18, 14), Format(12, 11), 1024),
    (Format(16, 12), Format(16, 15), 2), (Format(6, 1), Format(16, 15), 8), (Format(4, 2), Format(4, 3), 16),
])


def codes(pwl):
    return np.arange(pwl.input.lo, pwl.input.hi + 1)


def length(pwl):
    """Of a segment, as a real number."""
    return 2 * REACH[pwl.function] / pwl.segments


def rounding(pwl):
    """Half a step each of slope, over a whole segment, base and sum; a whole one where the output ends below 1."""
    return pwl.slope_format.step / 2 * length(pwl) + pwl.output.step


@pytest.mark.parametrize("x", [-1000.0, -20.0, -1.0, -1e-9, 0.0, 1e-9, 0.5, 3.0, 40.0, 1000.0])
def test_sigmoid(x):
    assert sigmoid(np.float64(x)) == pytest.approx(EXACT["sigmoid"](x), abs=1e-16, rel=1e-15)


@functions
def test_functions_are_near_their_limits_at_the_reach(function):
    exact, log_reach = FUNCTIONS[function]
    assert 2 ** log_reach == REACH[function]
    assert 0 < 1 - exact(2.0 ** log_reach) < 2 ** -10


@functions
@tables
def test_equals_plain_evaluation(function, input, output, segments):
    pwl = fit_pwl(function, input, output, segments)
    x = codes(pwl)[::max(1, 2 ** (input.width - 11))]
    assert pwl(x).tolist() == [plain(pwl, REACH[function], int(v)) for v in x]
    ends = np.array([input.lo, -1, 0, input.hi])
    assert pwl(ends).tolist() == [plain(pwl, REACH[function], int(v)) for v in ends]


@repeatable(200)
@given(st.sampled_from(["sigmoid", "tanh"]), st.integers(2, 24), st.integers(-2, 28), st.integers(2, 24),
       st.integers(-2, 26), st.integers(1, 10), st.data())
def test_any_table_equals_plain_evaluation(function, in_width, in_frac, out_width, out_frac, log_segments, data):
    """Slopes and bases need not come from a function; results may saturate, products may be shifted to the left."""
    input, output = Format(in_width, in_frac), Format(out_width, out_frac)
    rng = np.random.default_rng(data.draw(st.integers(0, 2 ** 32)))
    log_segments = min(log_segments, max(1, in_frac + FUNCTIONS[function][1]))
    slope = Format(out_width, data.draw(st.integers(out_width - 3, out_width)))
    pwl = Pwl(function, input, output, slope, rng.integers(slope.lo, slope.hi + 1, 1 << log_segments),
              rng.integers(output.lo, output.hi + 1, 1 << log_segments))
    x = np.append(rng.integers(input.lo, input.hi + 1, 20), [input.lo, input.hi, 0, -1])
    assert pwl(x).tolist() == [plain(pwl, REACH[function], int(v)) for v in x]


@functions
@tables
def test_max_error_is_within_its_bound(function, input, output, segments):
    """The minimax line of a segment of length h errs by h²/16·max|f″|; outside of the reach the value stays."""
    pwl = fit_pwl(function, input, output, segments)
    bound = length(pwl) ** 2 / 16 * SECOND[function] + rounding(pwl)
    if input.hi * input.step > REACH[function]:
        bound += 2 ** -10
    assert pwl.max_error <= bound


@functions
def test_max_error_is_minimax(function):
    """No line is better than the bound where the function is bent most."""
    pwl = fit_pwl(function, Format(16, 12), Format(24, 22), 64)
    assert pwl.max_error >= 0.95 * length(pwl) ** 2 / 16 * SECOND[function]


@functions
@tables
def test_max_error_is_that_of_the_worst_argument(function, input, output, segments):
    pwl = fit_pwl(function, input, output, segments)
    errors = [abs(y * output.step - EXACT[function](x * input.step))
              for x, y in zip(codes(pwl).tolist(), pwl(codes(pwl)).tolist(), strict=True)]
    assert pwl.max_error == pytest.approx(max(errors), rel=1e-9)


def test_max_error_of_a_wide_argument_sees_all_of_the_reach():
    narrow, wide = (fit_pwl("sigmoid", Format(width, width - 4), Format(24, 23), 32) for width in (16, 24))
    assert wide.max_error == pytest.approx(narrow.max_error, rel=0.01)


@functions
@tables
def test_rises_within_segments_and_hardly_falls_between_them(function, input, output, segments):
    """The minimax lines of neighbours do not meet; they part by half the difference of their greatest errors."""
    pwl = fit_pwl(function, input, output, segments)
    x = codes(pwl)
    clipped = np.clip(x, -(1 << pwl.input_bits - 1), (1 << pwl.input_bits - 1) - 1)
    rise, same = np.diff(output.real(pwl(x))), np.diff(clipped >> pwl.place_bits) == 0
    assert (rise[same] >= 0).all()
    assert (rise >= -(length(pwl) ** 3 / 16 * THIRD[function] + rounding(pwl))).all()


@functions
def test_outside_of_the_reach_the_value_stays(function):
    pwl = fit_pwl(function, Format(16, 8), Format(16, 15), 64)
    reach = REACH[function] << 8
    assert set(pwl(np.arange(reach, 2 ** 15)).tolist()) == {int(pwl(np.array(reach - 1)))}
    assert set(pwl(np.arange(-2 ** 15, -reach)).tolist()) == {int(pwl(np.array(-reach)))}
    assert pwl(np.array(2 ** 15 - 1)) * 2.0 ** -15 == pytest.approx(1, abs=2 ** -10)
    assert pwl(np.array(-2 ** 15)) * 2.0 ** -15 == pytest.approx(-1 if function == "tanh" else 0, abs=2 ** -10)


@functions
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_axes_are_kept(function, shape):
    y = fit_pwl(function, Format(16, 12), Format(16, 15), 64)(np.zeros(shape, np.int64))
    assert (y.shape, y.dtype) == (shape, np.int64)


@functions
@tables
def test_tables_lie_in_their_formats(function, input, output, segments):
    pwl = fit_pwl(function, input, output, segments)
    assert pwl.segments == len(pwl.slope) == segments
    for values, form in ((pwl.slope, pwl.slope_format), (pwl.base, output)):
        assert form.lo <= values.min()
        assert values.max() <= form.hi
    assert pwl.slope_format.width == output.width
    assert (pwl.slope >= 0).all()


def test_widths():
    pwl = fit_pwl("sigmoid", Format(16, 12), Format(16, 15), 64)
    assert (pwl.input_bits, pwl.place_bits) == (16, 10)
    assert pwl.shift == pwl.slope_format.frac + 12 - 15
    assert pwl.as_json() == {"function": "sigmoid", "input": {"width": 16, "frac": 12}, "segments": 64,
                             "output": {"width": 16, "frac": 15}, "slope": pwl.slope_format.as_json()}


@pytest.mark.parametrize(("function", "hint"), [
    ("sigmod", "; did you mean 'sigmoid'?"), ("Tanh", "; did you mean 'tanh'?"), ("relu", "")])
def test_fit_wrong_function(function, hint):
    with pytest.raises(Refusal) as refusal:
        fit_pwl(function, Format(16, 12), Format(16, 15), 64)
    assert str(refusal.value) == f"An activation must be one of sigmoid, tanh, not {function!r}{hint}"


@pytest.mark.parametrize(("function", "frac", "segments", "most"), [
    ("sigmoid", 12, 0, 32768), ("sigmoid", 12, 1, 32768), ("sigmoid", 12, 48, 32768), ("sigmoid", 12, -64, 32768),
    ("sigmoid", 12, 65536, 32768), ("tanh", 12, 32768, 16384), ("tanh", 2, 32, 16), ("sigmoid", -3, 4, 2),
])
def test_fit_wrong_segments(function, frac, segments, most):
    with pytest.raises(Refusal) as refusal:
        fit_pwl(function, Format(16, frac), Format(16, 15), segments)
    assert str(refusal.value) == (
        f"The segments of {function} must be a power of two from 2 to {most} with {frac} fraction bits of the "
        f"argument, not {segments}; choose another count or width")


@pytest.mark.parametrize(("function", "least"), [("sigmoid", -3), ("tanh", -2)])
def test_init_step_beyond_the_reach(function, least):
    """The coarsest argument that there is sees the signs only."""
    assert fit_pwl(function, Format(16, least), Format(16, 15), 2)(np.array([-9, 9])).shape == (2,)
    with pytest.raises(Refusal, match=f"^The argument of {function} must have at least {least} fraction bits, not "
                                      f"{least - 2}; choose a greater width$"):
        fit_pwl(function, Format(16, least - 2), Format(16, 15), 2)


def test_init_too_wide():
    with pytest.raises(Refusal) as refusal:
        fit_pwl("tanh", Format(60, 50), Format(24, 23), 64)
    assert str(refusal.value) == (
        "The products of tanh must fit into 63 bits, but with the argument Format(width=60, frac=50), the slope "
        "Format(width=24, frac=23) and 64 segments they do not; choose narrower ones")


def test_the_widest_table_does_not_wrap():
    pwl = fit_pwl("tanh", Format(44, 40), Format(24, 23), 64)
    x = np.array([pwl.input.lo, pwl.input.hi, -1, 0, 1 << 40, 3 << 40])
    assert pwl(x).tolist() == [plain(pwl, 4, int(v)) for v in x]
    with pytest.raises(Refusal, match=r"^The products of tanh must fit into 63 bits"):
        dataclasses.replace(pwl, input=Format(45, 41))


def test_plain_evaluation_by_hand():
    """Two segments of tanh: from −1 at −4 with slope 1/4, and from 0 with slope 1/4."""
    pwl = Pwl("tanh", Format(8, 3), Format(8, 7), Format(8, 8), np.array([64, 64]), np.array([-128, 0]))
    for x, y in ((0, 0), (8, 32), (-8, -32), (31, 124), (32, 124), (127, 124), (-32, -128), (-128, -128), (1, 4)):
        assert pwl(np.array(x)) == y == plain(pwl, 4, x) == math.floor(Fraction(min(31, max(-32, x)), 8) / 4 * 128)
