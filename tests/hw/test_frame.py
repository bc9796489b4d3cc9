from itertools import chain

import pytest
from amaranth.hdl import signed
from amaranth.lib import data

from circulant.hw.frame import Frame
from tests.hw.simulate import stream, trace

SHAPE = data.StructLayout({"data": data.ArrayLayout(signed(6), 2), "last": 1})


def image(*values):
    return [{"data": [value, -value], "last": int(n == len(values) - 1)} for n, value in enumerate(values)]


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.4, 0.6)])
def test_images_of_the_wrong_size_do_not_harm_the_next(stalls):
    """Right, too short by two and by all but one, too long, too long by one, right."""
    given = [image(1, 2, 3, 4), image(5, 6), image(7), image(8, 9, 10, 11, 12, 13), image(14, 15, 16, 17, 18),
             image(19, 20, 21, 22)]
    wanted = [image(1, 2, 3, 4), image(5, 6, 0, 0), image(7, 0, 0, 0), image(8, 9, 10, 11), image(14, 15, 16, 17),
              image(19, 20, 21, 22)]
    dut = Frame(SHAPE, blocks=4)
    assert stream(dut, list(chain(*given)), stall_i=stalls[0], stall_o=stalls[1]) == list(chain(*wanted))


@pytest.mark.parametrize(("images", "wanted"), [
    ([image(1, 2, 3), image(1, 2, 3)], 0), ([image(1, 2)], 1), ([image(1, 2, 3, 4)], 1),
    ([image(1, 2), image(1, 2, 3)], 1)])
def test_the_flag_stays(images, wanted):
    payloads = list(chain(*images))
    shown = trace(Frame(SHAPE, blocks=3), {"i.valid": [1] * len(payloads) + [0], "i.payload": [*payloads, payloads[0]],
                                           "o.ready": [1] * (len(payloads) + 1)}, extra=3)
    assert shown["malformed"][-1] == wanted
