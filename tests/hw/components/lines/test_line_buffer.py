import numpy as np
import pytest

from circulant.hw.array.line_shape import LineBufferShape
from circulant.sim.shape.window import Window
from tests.sim.kinds.test_conv import conv


@pytest.mark.parametrize("array", [(9, 2, 2, 1), (4, 1, 1, 1), (2, 2, 2, 2), (1, 1, 1, 1, 5)])
def test_every_weight_stands_where_its_pixel_is_read(array):
    """The lane of a row and a column multiplies what the lines give it in that turn, and zero beside the kernel."""
    layer = conv(7, 8, 4, (5, 5), Window((3, 3)))
    shape, weights = LineBufferShape(layer, *array), layer.product.weights.reshape(2, 9, 2, 4)
    program, (outer, inner) = shape.program, shape.turns
    assert program.cycles == shape.passes * outer * inner == shape.cycles // shape.fold
    for row in range(shape.rows):
        for column in range(shape.array.columns):
            words = program.weights(row, column).reshape(shape.passes, outer, inner, 4)
            for n, turn, part in np.ndindex(words.shape[:3]):
                position = turn * shape.positions + column // shape.blocks
                block = part * shape.blocks + column % shape.blocks
                inside = position < 9 and block < 2 and n * shape.rows + row < 2
                wanted = weights[n * shape.rows + row, position, block] if inside else np.zeros(4)
                assert words[n, turn, part].tolist() == wanted.tolist()
