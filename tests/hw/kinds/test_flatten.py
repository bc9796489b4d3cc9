import numpy as np
import pytest

from circulant.hw.kinds.flatten import FlattenLayer
from circulant.hw.plan.stream_plan import stream_plan
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.flatten import Flatten
from tests.hw.golden import blocks, numbers, unmarked
from tests.hw.simulate import cycles, stream


@pytest.mark.parametrize(("k", "k_out", "channels", "order", "rows", "stalls"), [
    (4, 2, 6, "pixels", False, (0.0, 0.0)), (4, 8, 6, "channels", False, (0.4, 0.6)),
    (8, 4, 5, "channels", True, (0.4, 0.6)), (1, 1, 3, "pixels", True, (0.0, 0.0)),
    (8, 8, 8, "pixels", True, (0.4, 0.6)), (4, 1, 5, "channels", False, (0.0, 0.8))])
def test_equals_golden(k, k_out, channels, order, rows, stalls):
    layer = Flatten("flatten", channels, grid=(3, 4), order=order, rows=rows, input_format=Format(9, 5))
    x = numbers(Format(9, 5), 4, 3, 4, channels)
    y = layer(x).reshape(4, -1, layer.outputs)
    given = [block for image in x for block in blocks([image.reshape(-1, channels)], k)]
    wanted = [block for image in y for block in blocks([image], k_out)]
    assert stream(FlattenLayer(layer, k=k, k_out=k_out), given, stall_i=stalls[0], stall_o=stalls[1]) == wanted


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize(("k_out", "channels", "rows", "rest"), [
    (8, 1, False, 1), (8, 5, False, 5), (8, 7, False, 7), (4, 5, True, 3), (2, 5, True, 1), (8, 8, False, 0),
    (8, 1, True, 3)])  # Three values: no block is full.
def test_a_last_block_that_is_not_full_ends_with_zeros(k_out, channels, rows, rest, marked):
    layer = Flatten("flatten", channels, grid=(3, 3), order="channels", rows=rows, input_format=Format(9, 5))
    assert layer.outputs % k_out == rest
    x = numbers(Format(9, 5), 3, 3, 3, channels)
    given = [block for image in x for block in blocks([image.reshape(-1, channels)], 4)]
    wanted = [block for image in layer(x).reshape(3, -1, layer.outputs) for block in blocks([image], k_out)]
    got = stream(FlattenLayer(layer, k=4, k_out=k_out, marked=marked), given, stall_i=0.2, stall_o=0.3)
    assert got == (wanted if marked else unmarked(wanted))


@pytest.mark.parametrize("k_out", [1, 2, 4])
def test_an_image_takes_the_cycles_of_its_plan(k_out):
    layer = Flatten("flatten", 4, grid=(4, 4), order="channels", rows=False, input_format=Format(9, 5))
    given = [block for image in numbers(Format(9, 5), 5, 4, 4, 4) for block in blocks([image.reshape(-1, 4)], 4)]
    _, went = cycles(FlattenLayer(layer, k=4, k_out=k_out), given)
    each = layer.outputs // k_out
    assert np.diff(went[each - 1::each])[1:].tolist() == [stream_plan(layer).cycles] * 3
