import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.slice import FloatSlice, Slice
from circulant.sim.refusal import Refusal


def test_gives_its_range_of_vectors_and_steps():
    x = np.arange(42).reshape(2, 3, 7)
    layer = Slice("part", 7, 2, 3, Format(8, 4))
    assert layer(x).tolist() == x[:, :, 2:5].tolist() and layer.outputs == 3 and layer.output_format == Format(8, 4)
    assert FloatSlice("part", 7, 2, 3)(x[0] / 3).tolist() == (x[0, :, 2:5] / 3).tolist()


@pytest.mark.parametrize(("first", "size"), [(-1, 3), (5, 3), (0, 0), (7, 1)])
@pytest.mark.parametrize("make", [FloatSlice, lambda *fields: Slice(*fields, Format(8, 4))])
def test_a_range_beyond_the_vector_is_refused(make, first, size):
    with pytest.raises(Refusal, match=r"^Layer 'part': the range must lie within the 7 values that come, not begin at"):
        make("part", 7, first, size)
