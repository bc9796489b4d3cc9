import numpy as np
import pytest

from circulant.hw.arith.straight_lines import StraightLines, straight
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_lines, fit_pwl
from tests.hw.simulate import trace


@pytest.mark.parametrize(("given", "made"), [(Format(7, 4), Format(9, 7)), (Format(7, 4), Format(5, 1)),
                                             (Format(6, -2), Format(7, 3)), (Format(6, 8), Format(6, 6))], ids=str)
@pytest.mark.parametrize(("function", "parameters"), [("relu", ()), ("clip", (-0.9, 2.3)), ("leaky_relu", (0.0,))],
                         ids=str)
def test_every_argument(function, parameters, given, made):
    table = fit_lines(function, parameters, given, made)
    assert straight(table)
    x = np.arange(given.lo, given.hi + 1)
    unit = StraightLines(table)
    seen = trace(unit, {"x": x.tolist()}, extra=unit.latency)["y"][unit.latency:]
    assert seen == table(x).tolist()


def test_what_takes_a_multiplier_is_not_straight():
    form = Format(8, 4)
    assert not straight(fit_pwl("tanh", form, Format(8, 7)))
    assert not straight(fit_lines("leaky_relu", (0.3,), form, form))
    assert straight(fit_pwl("hard_tanh", form, Format(8, 7)))
