import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_lines, fit_pwl
from circulant.sim.golden.network import Network
from circulant.sim.kinds.activation import Activation
from circulant.sim.refusal import Refusal
from tests.random_networks import Random

GIVEN = Format(10, 6)
FUNCTIONS = [("sigmoid", ()), ("tanh", ()), ("hard_sigmoid", ()), ("hard_tanh", ()), ("relu", ()),
             ("leaky_relu", (0.1,)), ("clip", (0.0, 6.0)), ("clip", (-1.3, 0.7))]


@pytest.mark.parametrize(("function", "parameters"), FUNCTIONS, ids=str)
def test_it_is_the_function_of_each_value(function, parameters):
    made = Format(11, 10) if function.endswith(("sigmoid", "tanh")) else Format(12, 7)
    table = (fit_pwl(function, GIVEN, made, error=0.002) if made.frac == 10 else
             fit_lines(function, parameters, GIVEN, made))
    layer, x = Activation("act", 4, table), np.arange(GIVEN.lo, GIVEN.hi + 1).reshape(-1, 2, 4)
    error = np.abs(made.real(layer(x)) - np.clip(table.exact(GIVEN.real(x)), -1e9, made.real(made.hi)))
    assert layer(x).shape == x.shape
    assert error.max() <= 0.002 + made.step
    assert len(np.unique(layer(x))) > 20


def test_the_table_of_a_clip_reaches_no_further_than_its_corners():
    wide, made = Format(24, 4), Format(7, 3)
    table = fit_lines("clip", (-8.0, 7.875), wide, made)
    x = np.array([wide.lo, -129, -128, 100, 126, 127, wide.hi])
    assert table.input_bits == 9 and table(x).tolist() == [-64, -64, -64, 50, 63, 63, 63]


@pytest.mark.parametrize(("function", "parameters", "message"), [
    ("leaky_relu", (1.5,), r"^The slope of a leaky ReLU must be from 0 to 1, not 1.5; choose another one$"),
    ("clip", (2.0, 1.0), r"^The ends of a clip must ascend, not be 2.0 and 1.0; exchange them$"),
    ("clip", (1.0,), r"^An activation must be one of sigmoid, .*, not 'clip' with 1; choose one of them$"),
    ("swish", (), r"^An activation must be one of sigmoid, .*, not 'swish' with 0; choose one of them$")])
def test_refusals(function, parameters, message):
    with pytest.raises(Refusal, match=message):
        fit_lines(function, parameters, GIVEN, GIVEN)


def test_its_files_hold_function_and_parameters(tmp_path):
    r = Random(3)
    network = r.network([r.linear("a", 5, 6, 2), r.activation("leaky", 6, "leaky_relu", 0.2),
                         r.activation("bent", 6, "tanh")], 5)
    network.save(tmp_path)
    again = Network.load(tmp_path)
    assert again.hash == network.hash
    assert (again.layers[1].table.function, again.layers[1].table.parameters) == ("leaky_relu", (0.2,))
    x = r.inputs(network, samples=40)
    assert np.array_equal(again.run_integers(x), network.run_integers(x))
