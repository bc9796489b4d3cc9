import dataclasses

import numpy as np
import pytest

from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.conv import Conv
from circulant.sim.refusal import Refusal
from circulant.sim.shape.window import Window
from tests.refused import refused
from tests.sim import samples
from tests.sim.definitions import told


def conv(inputs=5, outputs=7, k=4, grid=(5, 4), window=None, *, relu=False, **formats):
    window = window or Window((3, 2), (2, 1), (1, 1))
    blocks = -(-inputs // k)
    return Conv("conv", inputs=inputs, outputs=outputs, grid=grid, window=window, product=samples.product(
        -(-outputs // k), window.positions * blocks, k, **formats), relu=relu)


@pytest.mark.parametrize(("inputs", "outputs", "k", "grid", "window"), [
    (1, 6, 1, (6, 6), Window((5, 5), padding=(2, 2))), (3, 4, 1, (4, 3), Window((1, 1))),
    (5, 7, 4, (5, 4), Window((3, 2), (2, 1), (1, 1))), (6, 16, 8, (5, 5), Window((3, 3), (2, 2))),
    (8, 3, 2, (9, 1), Window((3, 1), (2, 1), (1, 0))), (16, 16, 16, (3, 3), Window((3, 3), padding=(1, 1)))])
def test_equals_the_definition(inputs, outputs, k, grid, window):
    layer = conv(inputs, outputs, k, grid, window)
    images = np.random.default_rng(k).integers(-2 ** 15, 2 ** 15, (2, *grid, inputs))
    got = layer(images)
    assert got.shape == (2, *layer.output_grid, outputs)
    assert got.tolist() == [told(layer, image) for image in images.tolist()]


def test_relu():
    images = np.random.default_rng(0).integers(-2 ** 15, 2 ** 15, (3, 5, 4, 5))
    plain = conv()(images)
    assert (plain < 0).any()
    assert np.array_equal(conv(relu=True)(images), np.maximum(plain, 0))


def test_formats_and_products():
    layer = conv(input=(12, 3), output=(10, 2))
    assert (layer.kind, layer.input_format, layer.output_format) == ("conv", Format(12, 3), Format(10, 2))
    assert layer.products == {"product": layer.product}
    assert layer.blocks == 2


def test_init_wrong_size():
    assert refused(dataclasses.replace, conv(), inputs=9) == (
        "Layer 'conv': the matrix for 9 input and 7 output channels and 6 kernel positions must be 8x72 in blocks of "
        "4, not 8x48; export it again")
    with pytest.raises(Refusal, match=r"^Layer 'conv': the kernel must fit into the padded image, but 3 x 2 is larger"):
        dataclasses.replace(conv(), grid=(0, 4))
