import numpy as np
import pytest

from circulant.hw.activation import Activation
from circulant.sim.activation import FUNCTIONS, fit_pwl
from circulant.sim.fixed import Format
from tests.hw.simulate import trace

FORMATS = [  # argument, value, segments
    (Format(8, 4), Format(8, 7), 16),    # reaches beyond both limits
    (Format(8, 4), Format(8, 7), 2),     # two segments
    (Format(9, 2), Format(10, 9), 8),    # few fraction bits: a place is one or two bits wide
    (Format(7, 6), Format(6, 5), 8),     # reaches neither limit
    (Format(10, 7), Format(5, 4), 32),   # a value of few bits
    (Format(8, -1), Format(12, 11), 2),  # no fraction bits: the rise of tanh is shifted to the left
]


def activated(pwl, xs):
    unit = Activation(pwl, image="table")
    return trace(unit, {"x": xs}, extra=unit.latency)["y"][unit.latency:]


@pytest.mark.parametrize(("input", "output", "segments"), FORMATS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_argument_equals_golden(function, input, output, segments):
    pwl = fit_pwl(function, input, output, segments)
    xs = np.random.default_rng(0).permutation(np.arange(input.lo, input.hi + 1))
    assert activated(pwl, xs.tolist()) == pwl(xs).tolist()


def test_values_saturate():
    """Tables whose lines leave the format on both sides."""
    pwl = fit_pwl("tanh", Format(8, 4), Format(8, 7), 4)
    pwl.base[:] = [-128, -120, 120, 127]
    pwl.slope[:] = [-127, -127, 127, 127]
    xs = np.arange(-128, 128)
    assert {-128, 127} <= set(pwl(xs).tolist())
    assert activated(pwl, xs.tolist()) == pwl(xs).tolist()


def test_the_latency_is_four_cycles():
    pwl = fit_pwl("sigmoid", Format(8, 4), Format(8, 7), 16)
    shown = trace(Activation(pwl, image="table"), {"x": [127, -128, *[127] * 8]})["y"]
    lo, hi = pwl(np.array([-128, 127])).tolist()
    assert Activation.latency == 4
    assert shown[4:8] == [hi, lo, hi, hi]
