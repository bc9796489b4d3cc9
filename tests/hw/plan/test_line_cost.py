"""The cycles of an image where padding reaches beyond the kernel are those of the simulated hardware."""
import math

import numpy as np
import pytest

from circulant.hw.kinds.conv.conv import ConvLayer
from circulant.hw.kinds.conv.plan import conv_plans, tile_plans
from circulant.hw.kinds.conv.tile_conv import TileConvLayer
from circulant.hw.plan.line_cost import image_cycles
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles
from tests.sim.kinds.test_conv import conv

IMAGES = 7


def measured(dut, layer, pixels=1):
    """Cycles between the last beats of the last images."""
    k = layer.product.block_size
    x = numbers(layer.input_format, IMAGES, *layer.grid, layer.inputs)
    given = [beat for image in x for beat in blocks(
        [image.reshape(-1, layer.inputs * pixels)], k if k > 1 or pixels == 1 else pixels * layer.inputs)]
    _, went = cycles(dut, given, quiet=200)
    return np.diff(went[len(went) // IMAGES - 1::len(went) // IMAGES])[-3:].tolist()


@pytest.mark.parametrize(("layer", "each", "due"), [
    (conv(4, 2, 2, (8, 4), Window((1, 1), padding=(4, 0))), 1, 78),  # 64 cycles of input, 64 of output
    (conv(4, 2, 2, (8, 4), Window((1, 1), padding=(2, 0))), 1, 64),
    (conv(3, 4, 1, (4, 2), Window((1, 3), (1, 2), (2, 1))), 3, 25),  # 24 and 24
    (conv(2, 2, 2, (3, 4), Window((2, 1), (1, 2), (3, 2))), 2, 8 * 4 * 2)])
def test_padding_keeps_lines_waiting(layer, each, due):
    plan = next(plan for plan in conv_plans(layer) if plan.shape.cycles == each and plan.shape.fold == 1)
    assert layer.window.sees_padding_alone and plan.cycles == due
    assert measured(ConvLayer(plan.shape), layer) == [due] * 3


def test_tiles_wait_as_well():
    layer = conv(1, 2, 1, (8, 4), Window((1, 3), padding=(6, 1)))
    plan = next(plan for plan in tile_plans(layer, 2, leave=0) if plan.shape.cycles == 1)
    assert measured(TileConvLayer(plan.shape), layer, pixels=2) == [plan.cycles] * 3


@pytest.mark.parametrize("seed", range(8))
def test_random_geometry(seed):
    rng = np.random.default_rng((17, seed))
    while True:
        grid, kernel, stride = (tuple(map(int, rng.integers(1, high, 2))) for high in (7, 3, 3))
        window = Window(kernel, stride, tuple(int(rng.integers(size, size + 4)) for size in kernel))
        layer = conv(4, 2, 2, grid, window)
        plans = [plan for plan in conv_plans(layer) if plan.shape.cycles < 3 and plan.shape.fold == 1]
        if math.prod(layer.output_grid) < 80 and plans:
            break
    plan = plans[int(rng.integers(len(plans)))]
    assert measured(ConvLayer(plan.shape), layer) == [plan.cycles] * 3


def test_an_image_takes_its_input_and_its_output_at_the_least():
    layer = conv(4, 2, 2, (8, 4), Window((1, 1), padding=(4, 0)))
    shape = next(plan.shape for plan in conv_plans(layer) if plan.shape.cycles == 1)
    assert image_cycles(shape.walk, lines=100, cycles=1) == math.prod(layer.output_grid) == 8 * 4 * 2
    assert image_cycles(shape.walk, lines=shape.lines, cycles=5) == 5 * math.prod(layer.output_grid)
