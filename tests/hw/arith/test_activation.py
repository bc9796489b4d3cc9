import numpy as np
import pytest

from circulant.hw.arith.activation import Activation, activation_latency
from circulant.sim.arith.activation import METHODS, Pwl
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_pwl
from tests.hw.simulate import trace

FORMATS = [  # argument, value, error
    (Format(8, 4), Format(8, 7), 0.0005),    # reaches beyond both limits
    (Format(8, 4), Format(8, 7), 0.1),       # few segments
    (Format(9, 2), Format(10, 9), 0.0005),   # few fraction bits: segments of single arguments
    (Format(7, 6), Format(6, 5), 0.1),       # reaches neither limit: one segment
    (Format(10, 7), Format(5, 4), 0.01),     # a value of few bits
    (Format(8, -1), Format(12, 11), 0.001),  # no fraction bits
]


def activated(pwl, xs):
    unit = Activation(pwl, image="table")
    return trace(unit, {"x": xs}, extra=unit.latency)["y"][unit.latency:]


@pytest.mark.parametrize(("input", "output", "error"), FORMATS)
@pytest.mark.parametrize(("function", "method"), [
    ("sigmoid", "pwl"), ("tanh", "pwl"), ("tanh", "lut"), ("hard_sigmoid", "pwl"), ("hard_tanh", "pwl")])
def test_every_argument_equals_golden(function, input, output, error, method):
    pwl = fit_pwl(function, input, output, error=error, method=method)
    xs = np.random.default_rng(0).permutation(np.arange(input.lo, input.hi + 1))
    assert activated(pwl, xs.tolist()) == pwl(xs).tolist()


@pytest.mark.parametrize("lift", [0, 1, 4])
@pytest.mark.parametrize("method", METHODS)
def test_any_lines(method, lift):
    """Lines that leave the format on both sides, over segments of one argument and of many; bases finer and coarser
    than the value."""
    rng, slope = np.random.default_rng(lift), Format(6, 4)
    start = np.arange(-32, 32, 16) if method == "lut" else np.array([-32, -31, -30, -8, 0, 1, 16, 17])
    base = Format(7, slope.frac + 3 - lift)
    slopes, bases = (rng.integers(form.lo, form.hi + 1, len(start)) for form in (slope, base))
    pwl = Pwl("tanh", method=method, reach=2, input=Format(8, 3), output=Format(5, 4), slope_format=slope,
              base_format=base,
              start=start, slope=slopes, base=bases)
    xs = np.arange(-128, 128)
    assert {-16, 15} <= set(pwl(xs).tolist()), "the values must saturate"
    assert activated(pwl, xs.tolist()) == pwl(xs).tolist()


def test_the_latency_is_five_cycles():
    pwl = fit_pwl("sigmoid", Format(8, 4), Format(8, 7))
    shown = trace(Activation(pwl, image="table"), {"x": [127, -128, *[127] * 8]})["y"]
    lo, hi = pwl(np.array([-128, 127])).tolist()
    assert activation_latency() == 5
    assert shown[5:9] == [hi, lo, hi, hi]


@pytest.mark.parametrize("method", ["pwl", "cells"])
def test_fewer_registers_change_the_latency_alone(method):
    form = Format(8, 4)
    pwl = fit_pwl("sigmoid", form, Format(8, 7)) if method == "pwl" else fit_pwl("tanh", form, Format(8, 7), segments=8)
    xs = np.arange(form.lo, form.hi + 1)
    unit = Activation(pwl, image="table", levels=6)
    assert unit.latency == activation_latency(6) == 3
    assert trace(unit, {"x": xs.tolist()}, extra=3)["y"][3:] == pwl(xs).tolist()
