import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.flatten import Flatten
from circulant.sim.refusal import Refusal

IMAGES = np.random.default_rng(0).integers(-99, 99, (2, 3, 4, 5))


def flatten(order, rows=False):
    return Flatten("flatten", 5, grid=(3, 4), order=order, rows=rows, input_format=Format(8, 4))


@pytest.mark.parametrize(("order", "rows", "axes", "shape"), [
    ("pixels", False, (0, 1, 2, 3), (2, 60)), ("channels", False, (0, 3, 1, 2), (2, 60)),
    ("pixels", True, (0, 1, 2, 3), (2, 3, 20)), ("channels", True, (0, 1, 3, 2), (2, 3, 20))])
def test_orders(order, rows, axes, shape):
    layer = flatten(order, rows)
    y = layer(IMAGES)
    assert np.array_equal(y, IMAGES.transpose(axes).reshape(shape))
    assert layer.outputs == shape[-1]
    came = IMAGES.reshape(*shape)
    assert np.array_equal(y, came[..., layer.permutation])


def test_unknown_order():
    with pytest.raises(Refusal, match=r"^Layer 'flatten' must flatten by 'pixels' or 'channels', not 'rows'; choose"):
        flatten("rows")
