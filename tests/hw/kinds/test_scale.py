import numpy as np
import pytest

from circulant.hw.kinds.scale import ScaleLayer
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.scale import Scale
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import stream

FACTOR, GIVEN = Format(7, 5), Format(8, 4)


@pytest.mark.parametrize(("made", "relu", "elements", "stalls"), [
    (Format(8, 4), True, 2, (0.0, 0.0)), (Format(6, 2), False, 4, (0.4, 0.5)), (Format(12, 9), True, 8, (0.0, 0.7)),
    (Format(18, 11), False, 1, (0.5, 0.0))])
def test_equals_golden(made, relu, elements, stalls):
    """With roundings to both sides, whole and ragged blocks."""
    layer = Scale("norm", inputs=5, scale=numbers(FACTOR, 5), shift=numbers(made, 5, seed=1), factor=FACTOR,
                  input_format=GIVEN, output_format=made, relu=relu)
    x = numbers(GIVEN, 3, 6, 5)
    given, wanted = ([block for image in images for block in blocks([image], elements)] for images in (x, layer(x)))
    assert stream(ScaleLayer(layer, elements=elements), given, stall_i=stalls[0], stall_o=stalls[1]) == wanted
    assert len(np.unique(layer(x))) > 10
