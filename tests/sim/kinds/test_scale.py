import dataclasses
import math

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.scale import Scale
from circulant.sim.refusal import Refusal

LAYER = Scale("norm", inputs=3, scale=np.array([100, -128, 7]), shift=np.array([-20, 15, 0]), factor=Format(8, 6),
              input_format=Format(10, 6), output_format=Format(9, 4))


@pytest.mark.parametrize("relu", [False, True])
def test_equals_the_definition(relu):
    x = np.random.default_rng(0).integers(-512, 512, (20, 4, 3))
    layer = dataclasses.replace(LAYER, relu=relu)
    for got, row in zip(layer(x).reshape(-1, 3).tolist(), x.reshape(-1, 3).tolist(), strict=True):
        exact = [math.floor(a * s / 2 ** 8 + 0.5) + t
                 for a, s, t in zip(row, (100, -128, 7), (-20, 15, 0), strict=True)]
        assert got == [max(0 if relu else -256, min(255, y)) for y in exact]


def test_refusals():
    with pytest.raises(Refusal, match=r"^Layer 'norm': the scale must be 3 integers of 8 bits, not \(3,\) from 0 to"):
        dataclasses.replace(LAYER, scale=np.array([0, 1, 128]))
    with pytest.raises(Refusal, match=r"^Layer 'norm': the shift must be 3 integers of 9 bits, not \(2,\) from 0 to 1"):
        dataclasses.replace(LAYER, shift=np.array([0, 1]))


@pytest.mark.parametrize("factor", [Format(48, 4), Format(8, 70), Format(8, -60)])
def test_sums_beyond_int64_are_refused(factor):
    with pytest.raises(Refusal, match=r"^Layer 'scale': its sums must fit into 63 bits, but with the argument Format"):
        Scale("scale", inputs=1, scale=np.array([1]), shift=np.array([0]), factor=factor, input_format=Format(16, 8),
              output_format=Format(16, 8))
