import numpy as np
import pytest
import torch
from torch.nn import functional as F

from circulant.sim.arith.activation import exact_function
from circulant.sim.arith.curves import CURVES, TURNS
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_lines
from circulant.sim.refusal import Refusal

TORCH = {"silu": (F.silu, ()), "gelu": (F.gelu, ()), "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), ()),
         "elu": (F.elu, (0.7,)), "selu": (F.selu, ()), "celu": (F.celu, (1.4,)), "softplus": (F.softplus, (2.0, 20.0)),
         "softsign": (F.softsign, ()), "hard_swish": (F.hardswish, ()), "mish": (F.mish, ())}

X = np.arange(-4096, 4096) / 256


@pytest.mark.parametrize("name", CURVES)
def test_each_is_that_of_torch(name):
    function, parameters = TORCH[name]
    assert np.allclose(exact_function(name, parameters)(X), function(torch.from_numpy(X), *parameters), atol=1e-12)


@pytest.mark.parametrize("error", [0.004, 0.0005])
@pytest.mark.parametrize(("input", "output"), [(Format(12, 8), Format(16, 11)), (Format(16, 9), Format(18, 11)),
                                               (Format(8, 2), Format(12, 5)), (Format(20, 14), Format(16, 10))],
                         ids=str)
@pytest.mark.parametrize("name", CURVES)
def test_the_bound_holds_for_every_argument(name, input, output, error):
    table = fit_lines(name, TORCH[name][1], input, output, error=error)
    codes = np.arange(input.lo, input.hi + 1, 3)
    wanted = np.clip(table.exact(input.real(codes)), output.real(output.lo), output.real(output.hi))
    assert np.abs(output.real(table(codes)) - wanted).max() <= max(error, output.step / 2) + output.step + 1e-12
    assert len(table.start) <= 260


@pytest.mark.parametrize("name", CURVES)
def test_a_tighter_bound_takes_more_segments(name):
    one, other = (fit_lines(name, TORCH[name][1], Format(14, 10), Format(18, 14), error=error).segments
                  for error in (0.01, 0.0002))
    assert one < other < 200


@pytest.mark.parametrize("name", CURVES)
def test_only_some_turn_around(name):
    y = exact_function(name, TORCH[name][1])(X)
    falls = np.nonzero(np.diff(y) < -1e-12)[0]
    assert bool(len(falls)) == (name in TURNS)
    if name in TURNS:
        assert abs(X[falls[-1] + 1] - TURNS[name]) < 2 / 256


def test_parameters_are_positive():
    with pytest.raises(Refusal, match=r"^Parameters of elu must be greater than 0, not \(-1\.0,\); choose others$"):
        fit_lines("elu", (-1.0,), Format(8, 4), Format(8, 4))
