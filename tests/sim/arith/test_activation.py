import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim.arith.activation import FUNCTIONS, METHODS, Pwl, hard_sigmoid, hard_tanh, sigmoid
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_pwl
from circulant.sim.refusal import Refusal
from tests.refused import refused
from tests.sim.definitions import pwl as plain
from tests.sim.definitions import repeatable

EXACT = {"sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x)), "tanh": math.tanh,
         "hard_sigmoid": lambda x: min(1.0, max(0.0, x / 6 + 0.5)), "hard_tanh": lambda x: min(1.0, max(-1.0, x))}

functions = pytest.mark.parametrize("function", FUNCTIONS)


@pytest.mark.parametrize("x", [-1000.0, -20.0, -1.0, -1e-9, 0.0, 1e-9, 0.5, 3.0, 40.0, 1000.0])
@functions
def test_functions(function, x):
    assert FUNCTIONS[function](np.float64(x)) == pytest.approx(EXACT[function](x), abs=1e-16, rel=1e-15)


def test_functions_by_name():
    assert (FUNCTIONS["sigmoid"], FUNCTIONS["hard_sigmoid"], FUNCTIONS["hard_tanh"]) == (
        sigmoid, hard_sigmoid, hard_tanh)


def random_table(rng, method, input, output, reach, log_cells):
    """Lines that come from no function."""
    bits = input.frac + reach + 1
    cells = 1 << min(log_cells, bits)
    start = (np.arange(cells) - cells // 2) * (1 << bits) // cells
    if method == "pwl":
        start = start[np.append(True, rng.random(cells - 1) < 0.5)]
    slope = Format(int(rng.integers(2, 20)), max(0, int(rng.integers(-3, 20)) - input.frac))
    base = Format(int(rng.integers(1, 24)), min(output.frac + int(rng.integers(0, 4)), slope.frac + input.frac))
    slopes, bases = (rng.integers(form.lo, form.hi + 1, len(start)) for form in (slope, base))
    return Pwl("tanh", method=method, reach=reach, input=input, output=output, slope_format=slope, base_format=base,
               start=start, slope=slopes, base=bases)


@repeatable(200)
@given(st.sampled_from(METHODS), st.integers(2, 24), st.integers(-2, 20), st.integers(2, 24), st.integers(-2, 26),
       st.integers(0, 4), st.integers(1, 7), st.integers(0, 2 ** 32))
def test_any_table_equals_plain_evaluation(method, in_width, in_frac, out_width, out_frac, reach, log_cells, seed):
    """Results may saturate, sums may be shifted to the left."""
    rng, input = np.random.default_rng(seed), Format(in_width, in_frac)
    pwl = random_table(rng, method, input, output=Format(out_width, out_frac), reach=max(reach, 1 - in_frac),
                       log_cells=log_cells)
    x = np.append(rng.integers(input.lo, input.hi + 1, 20), [input.lo, input.hi, 0, -1])
    assert pwl(x).tolist() == plain(pwl, x.tolist())
    assert pwl._computed(x).tolist() == pwl(x).tolist(), "what is looked up is what is computed"


def test_plain_evaluation_by_hand():
    """From -1 at -4 with slope 1/4 to 0, then 0 + x/4 in the other form."""
    tables = [Pwl("tanh", method="lut", reach=2, input=Format(8, 3), output=Format(8, 7), slope_format=Format(8, 8),
                  base_format=Format(8, 7), start=np.array([-32, 0]),
                  slope=np.array([64, 64]), base=np.array([-128, 0])),
              Pwl("tanh", method="pwl", reach=2, input=Format(8, 3), output=Format(8, 7), slope_format=Format(8, 8),
                  base_format=Format(8, 7), start=np.array([-32]), slope=np.array([64]), base=np.array([0]))]
    for x, y in ((0, 0), (8, 32), (-8, -32), (31, 124), (32, 124), (127, 124), (-32, -128), (-128, -128), (1, 4)):
        for pwl in tables:
            assert [pwl(np.array(x))] == [y] == plain(pwl, [x])
        assert y == math.floor(Fraction(min(31, max(-32, x)), 8) / 4 * 128)


def test_sums_are_rounded_once():
    """Half a step of the base and half a step of the product make one step, and half a step rounds up."""
    pwl = Pwl("tanh", method="pwl", reach=2, input=Format(8, 3), output=Format(8, 4), slope_format=Format(8, 2),
              base_format=Format(8, 5), start=np.array([-32]), slope=np.array([1]), base=np.array([1]))
    assert [int(pwl(np.array(x))) for x in (0, 1, -1, -2)] == [1, 1, 0, 0]  # 1/2, 1, 0, -1/2, halves upwards


@functions
@pytest.mark.parametrize("method", METHODS)
def test_max_error_is_that_of_the_worst_argument(function, method):
    pwl = fit_pwl(function, Format(12, 8), Format(12, 11), error=0.004, method=method)
    codes = np.arange(-2048, 2048)
    errors = [abs(y * 2.0 ** -11 - EXACT[function](x / 256))
              for x, y in zip(codes.tolist(), pwl(codes).tolist(), strict=True)]
    assert pwl.max_error == pytest.approx(max(errors), rel=1e-9)


def test_max_error_of_a_wide_argument_sees_all_of_the_reach():
    narrow, wide = (fit_pwl("sigmoid", Format(width, width - 4), Format(24, 23), error=0.002) for width in (16, 24))
    assert wide.max_error == pytest.approx(narrow.max_error, rel=0.01)


@functions
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_axes_are_kept(function, shape):
    y = fit_pwl(function, Format(16, 12), Format(16, 15))(np.zeros(shape, np.int64))
    assert (y.shape, y.dtype) == (shape, np.int64)


@pytest.mark.parametrize(("starts", "cell_bits", "cells"), [
    ([-32], 5, [0, 0]), ([-32, 0], 5, [0, 1]), ([-32, -8, 8], 3, [0, 0, 0, 1, 1, 2, 2, 2]),
    ([-32, 1], 0, [0] * 33 + [1] * 31)])
def test_cells(starts, cell_bits, cells):
    table = np.zeros(len(starts), np.int64)
    pwl = Pwl("tanh", method="pwl", reach=2, input=Format(8, 3), output=Format(8, 7), slope_format=Format(8, 8),
              base_format=Format(8, 7), start=np.array(starts), slope=table, base=table)
    assert (pwl.cell_bits, pwl.cells) == (cell_bits, cells)
    assert pwl.ends.tolist() == [list(pair) for pair in zip(starts, [s - 1 for s in starts[1:]] + [31], strict=True)]


TABLE = Pwl("tanh", method="lut", reach=2, input=Format(8, 3), output=Format(8, 7), slope_format=Format(8, 8),
            base_format=Format(8, 7), start=np.array([-32, -16, 0, 16]),
            slope=np.zeros(4, np.int64), base=np.zeros(4, np.int64))


@pytest.mark.parametrize(("changes", "sentence"), [
    ({"start": np.array([-31, -16, 0, 16])}, "The segments of tanh's table must ascend from -32 and start below 32, "
                                             "but they do not; fit it again"),
    ({"start": np.array([-32, -16, 16, 0])}, "The segments of tanh's table must ascend from -32 and start below 32, "
                                             "but they do not; fit it again"),
    ({"start": np.array([-32, -16, 0, 32])}, "The segments of tanh's table must ascend from -32 and start below 32, "
                                             "but they do not; fit it again"),
    ({"start": np.array([-32, -16, 0, 8])}, "A look-up table of tanh must have a power of two of equal segments, from "
                                            "2 to 64, not 4; fit it again"),
    ({"start": np.array([-32, -16, 0]), "slope": np.zeros(3, np.int64), "base": np.zeros(3, np.int64)},
     "A look-up table of tanh must have a power of two of equal segments, from 2 to 64, not 3; fit it again"),
    ({"slope": np.zeros(3, np.int64)}, "tanh's table must have 4 values of slope in the Format(width=8, frac=8), but "
                                       "it has 3 from 0 to 0; fit it again"),
    ({"base": np.full(4, 128)}, "tanh's table must have 4 values of base in the Format(width=8, frac=7), but it has 4 "
                                "from 0 to 128; fit it again"),
    ({"reach": -3}, "The argument of tanh must have at least 4 fraction bits within a reach of 2**-3, not 3; choose a "
                    "greater width"),
])
def test_wrong_tables(changes, sentence):
    assert refused(dataclasses.replace, TABLE, **changes) == sentence


def test_too_wide():
    """Nothing on the way may leave int64: at the limit the sums are right, beyond it they are refused."""
    at_most = fit_pwl("tanh", Format(38, 34), Format(24, 23), error=1e-6)
    grown = dataclasses.replace(at_most, slope_format=Format(at_most.slope_format.width, at_most.slope_format.frac))
    x = np.array([at_most.input.lo, at_most.input.hi, -1, 0, 1 << 34, 3 << 34])
    assert grown(x).tolist() == plain(at_most, x.tolist())
    with pytest.raises(Refusal, match=r"^The sums of tanh must fit into 63 bits and hold its bases, but with the "
                                      r"argument Format\(width=60, frac=55\), the slope "):
        fit_pwl("tanh", Format(60, 55), Format(24, 23), error=1e-6)
    with pytest.raises(Refusal, match=r"^The sums of tanh must fit into 63 bits and hold its bases"):
        dataclasses.replace(TABLE, base_format=Format(8, 12))


def test_as_json():
    pwl = fit_pwl("sigmoid", Format(16, 12), Format(16, 15))
    assert pwl.as_json() == {
        "function": "sigmoid", "method": "pwl", "reach": 3, "segments": pwl.segments,
        "input": {"width": 16, "frac": 12}, "output": {"width": 16, "frac": 15},
        "slope": pwl.slope_format.as_json(), "base": pwl.base_format.as_json()}


@pytest.mark.parametrize(("change", "words"), [
    ({"reach": 60}, "must have at most 62 bits, but with"),
    ({"start": lambda start: np.array([start[0], 2 ** 63 - 1, -2 ** 63, 0])}, "must ascend from")])
def test_a_table_of_nonsense_is_refused(change, words):
    """Starts whose differences wrap around int64 do not ascend."""
    table = fit_pwl("tanh", Format(12, 8), Format(12, 10), 4)
    change = {name: value(table.start) if callable(value) else value for name, value in change.items()}
    with pytest.raises(Refusal, match=words):
        dataclasses.replace(table, **change)
