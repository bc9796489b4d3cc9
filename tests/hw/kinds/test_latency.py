"""The latency that each unit over images states is what its simulation takes."""
import pytest

from circulant.hw.array.line_shape import LineBufferShape
from circulant.hw.kinds.activation import ActivationLayer
from circulant.hw.kinds.conv.conv import ConvLayer
from circulant.hw.kinds.flatten import FlattenLayer
from circulant.hw.kinds.pool.pool import PoolLayer
from circulant.hw.kinds.pool.window_pool import WindowPoolLayer
from circulant.hw.kinds.residual import needed
from circulant.hw.kinds.scale import ScaleLayer
from circulant.sim.arith.fixed import Format
from circulant.sim.arith.segments import fit_lines, fit_pwl
from circulant.sim.kinds.activation import Activation
from circulant.sim.kinds.flatten import Flatten
from circulant.sim.kinds.scale import Scale
from circulant.sim.shape.window import Window
from tests.hw.golden import blocks, numbers
from tests.hw.kinds import test_residual
from tests.hw.kinds.conv import test_conv
from tests.hw.kinds.pool.test_pool import GIVEN, pool
from tests.hw.simulate import run

APART = 64
"""Cycles between two blocks that come, so that none waits for another one."""


def moves(dut, given, count):
    """Cycles in which blocks are taken, and those in which blocks leave."""
    came, left = [], []

    def feed():
        for block in given:
            yield {"i.valid": 1, "i.payload": block}
            for _ in range(APART - 1):
                yield {"i.valid": 0}

    def watch():
        ports, cycle = (yield {"o.ready": 1}), 0
        while len(left) < count:
            assert cycle < APART * (len(given) + 2), f"{count} blocks must leave, not {len(left)}"
            if ports["i.valid"]:
                assert ports["i.ready"], "a block must be taken at once"
                came.append(cycle)
            if ports["o.valid"]:
                left.append(cycle)
            ports, cycle = (yield {}), cycle + 1

    run(dut, feed(), watch())
    return came, left


def pixels(image, k):
    return blocks([image.reshape(-1, image.shape[-1])], k)


def check(layer, dut, k_in, k_out, *, first=False):
    """Each output pixel leaves ``latency`` cycles after the last block (or the ``first``) of the last pixel that it
    needs, those excepted that leave behind another one that needs the same."""
    (image,) = numbers(layer.input_format, 1, *layer.grid, layer.inputs)
    beats_in, beats_out = -(-layer.inputs // k_in), -(-layer.outputs // k_out)
    need = needed([layer], layer.grid).tolist()
    came, left = moves(dut, pixels(image, k_in), beats_out * len(need))
    taken = [came[(pixel - 1) * beats_in + (0 if first else beats_in - 1)] for pixel in need]
    found = {pixel: left[n * beats_out] - taken[n] for n, pixel in reversed([*enumerate(need)])}
    assert set(found.values()) == {dut.latency}


@pytest.mark.parametrize("name", ["dense, in turns", "blocks, in turns", "one axis", "strides of padding"])
def test_convolution(name):
    layer, array = test_conv.CASES[name]
    k = layer.product.block_size
    dut = ConvLayer(LineBufferShape(layer, *array))
    check(layer, dut, k, k * array[3])


def test_pooling_from_a_block_to_that_of_the_window():
    layer = pool("max", (4, 6), Window((2, 2), (2, 2)))
    check(layer, PoolLayer(layer, k=4), 4, 4, first=True)


def test_pooling_of_pixels_side_by_side():
    layer = pool("max", (4, 8), Window((2, 2), (2, 2)), channels=3)
    (image,) = numbers(GIVEN, 1, 4, 8, 3)
    came, left = moves(PoolLayer(layer, k=12, pixels=4), blocks([image.reshape(-1, 12)], 12), 8)
    assert left[::2] == [came[n] + 5 for n in (2, 3, 6, 7)]


@pytest.mark.parametrize("mode", ["max", "average"])
def test_pooling_over_lines(mode):
    layer = pool(mode, (3, 4), Window((3, 3), (2, 2), (1, 1)))
    check(layer, WindowPoolLayer(layer, k=4), 4, 4)


def test_residual_sum_is_as_late_as_its_longer_branch():
    layer, dut = test_residual.made("half")
    check(layer, dut, 2, 4)


@pytest.mark.parametrize(("k", "k_out", "order"), [(4, 8, "channels"), (8, 1, "channels"), (4, 2, "pixels")])
def test_vector_of_an_image(k, k_out, order):
    layer = Flatten("flatten", 4, grid=(3, 2), order=order, rows=False, input_format=GIVEN)
    dut = FlattenLayer(layer, k=k, k_out=k_out)
    (image,) = numbers(GIVEN, 1, 3, 2, 4)
    came, left = moves(dut, pixels(image, k), 1)
    assert left[0] - came[0 if order == "pixels" else -1] == dut.latency


def test_scale_and_functions_from_a_block_to_the_same():
    form = Format(8, 7)
    scale = Scale("norm", inputs=4, scale=numbers(form, 4), shift=numbers(form, 4), factor=form, input_format=GIVEN,
                  output_format=form, relu=False)
    tables = fit_pwl("tanh", GIVEN, form, error=0.05), fit_lines("relu", (), GIVEN, form)
    for dut in (ScaleLayer(scale, elements=2), *(ActivationLayer(Activation("act", 4, table), elements=2)
                                                 for table in tables)):
        came, left = moves(dut, blocks([numbers(GIVEN, 3, 4)], 2), 6)
        assert {gone - taken for taken, gone in zip(came, left, strict=True)} == {dut.latency}, dut
