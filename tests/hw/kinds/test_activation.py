import numpy as np
import pytest

from circulant.hw.arith.straight_lines import straight
from circulant.hw.kinds.activation import ActivationLayer
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_lines, fit_pwl
from circulant.sim.kinds.activation import Activation
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import stream

GIVEN = Format(9, 5)


@pytest.mark.parametrize(("function", "parameters", "made", "elements", "stalls"), [
    ("sigmoid", (), Format(8, 7), 2, (0.0, 0.0)), ("tanh", (), Format(8, 7), 4, (0.4, 0.5)),
    ("hard_tanh", (), Format(8, 7), 4, (0.0, 0.3)), ("relu", (), Format(7, 4), 8, (0.0, 0.7)),
    ("leaky_relu", (0.1,), Format(9, 5), 1, (0.5, 0.0)), ("clip", (-1.5, 2.7), Format(9, 6), 4, (0.2, 0.2)),
    ("silu", (), Format(10, 5), 3, (0.2, 0.3)), ("softplus", (2.0, 20.0), Format(9, 5), 4, (0.3, 0.2))])
def test_equals_golden(function, parameters, made, elements, stalls):
    """With tables and without, whole and ragged blocks, values that saturate."""
    table = (fit_pwl(function, GIVEN, made, error=0.01) if made.frac == 7 else
             fit_lines(function, parameters, GIVEN, made))
    assert straight(table) is (function in ("relu", "clip", "hard_tanh"))
    layer = Activation("act", 5, table)
    x = numbers(GIVEN, 12, 6, 5)
    given, wanted = ([block for vectors in some for block in blocks([vectors], elements)] for some in (x, layer(x)))
    unit = ActivationLayer(layer, elements=elements)
    assert stream(unit, given, stall_i=stalls[0], stall_o=stalls[1]) == wanted
    assert len(np.unique(layer(x))) > 10
    products = sum(each.copies for each in unit.parts.products)
    assert products == (0 if straight(table) else elements)
