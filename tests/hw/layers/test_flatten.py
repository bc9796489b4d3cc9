import pytest

from circulant.hw.layers.flatten import FlattenLayer
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.flatten import Flatten
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import stream


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
