import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.golden.residual import Residual
from circulant.sim.golden.scale import Scale
from circulant.sim.refusal import Refusal

GIVEN = Format(10, 6)


def scale(name, factor, output):
    return Scale(name, inputs=2, scale=np.array([factor, factor]), shift=np.array([0, 0]), factor=Format(8, 4),
                 input_format=GIVEN, output_format=output)


@pytest.mark.parametrize("relu", [False, True])
def test_branches_of_different_formats(relu):
    body, shortcut = (scale("a", 16, Format(12, 8)),), (scale("b", -32, Format(9, 5)),)
    layer = Residual("sum", inputs=2, grid=(2, 2), body=body, shortcut=shortcut, input_format=GIVEN,
                     output_format=Format(8, 4), relu=relu)
    x = np.random.default_rng(0).integers(-100, 100, (5, 2, 2, 2))
    a, b = body[0](x) / 2 ** 8, shortcut[0](x) / 2 ** 5
    wanted = np.clip(np.floor((a + b) * 2 ** 4 + 0.5), -128, 127)
    assert np.array_equal(layer(x), np.maximum(wanted, 0) if relu else wanted)
    assert layer.formats == (Format(12, 8), Format(9, 5))
    assert layer.outputs == 2


def test_a_shortcut_without_layers():
    layer = Residual("sum", inputs=2, grid=(1, 1), body=(scale("a", 16, Format(12, 8)),), shortcut=(),
                     input_format=GIVEN, output_format=Format(12, 6))
    x = np.random.default_rng(0).integers(-100, 100, (5, 1, 1, 2))
    assert np.array_equal(layer(x), 2 * x)


@pytest.mark.parametrize(("other", "output"), [(Format(12, 60), GIVEN), (Format(12, 8), Format(12, -70))])
def test_sums_beyond_int64_are_refused(other, output):
    body = Scale("a", inputs=2, scale=np.array([1, 1]), shift=np.array([0, 0]), factor=Format(8, other.frac - 6),
                 input_format=GIVEN, output_format=other)
    with pytest.raises(Refusal, match=r"^Layer 'sum': the sum must fit into 63 bits, but with the branches Format"):
        Residual("sum", inputs=2, grid=(1, 1), body=(body,), shortcut=(), input_format=GIVEN, output_format=output)
