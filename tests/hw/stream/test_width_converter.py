from functools import cache

import pytest

from circulant.hw.stream.width_converter import WidthConverter
from circulant.sim.arith.fixed import Format
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles, stream

STALLS = [(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.4, 0.4)]
CASES = [  # values of a vector, blocks of, into blocks of
    (8, 8, 2), (8, 2, 8),      # whole blocks
    (5, 8, 2), (5, 2, 8),      # parts that hold nothing but padding
    (1, 16, 1), (1, 1, 16),    # all but one of them
    (17, 16, 4), (17, 4, 16),  # in the second block only
    (9, 4, 1), (9, 1, 4),
    (6, 4, 4),                 # nothing to do
]


@cache
def width_converter(size, k_in, k_out):
    """Compiled once for all tests."""
    return WidthConverter(size=size, width=7, k_in=k_in, k_out=k_out)


def sequences(size):
    return [numbers(Format(7, 0), t, size, seed=n) for n, t in enumerate((1, 3, 2, 1, 1, 4))]


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize(("size", "k_in", "k_out"), CASES)
def test_the_same_vectors_in_other_blocks(size, k_in, k_out, stall_i, stall_o):
    xs, dut = sequences(size), width_converter(size, k_in, k_out)
    assert stream(dut, blocks(xs, k_in), stall_i=stall_i, stall_o=stall_o, seed=size) == blocks(xs, k_out)


@pytest.mark.parametrize("reset_at", [1, 4, 9])
@pytest.mark.parametrize(("k_in", "k_out"), [(8, 2), (2, 8)])
def test_nothing_is_left_after_a_reset_in_the_middle_of_a_vector(k_in, k_out, reset_at):
    xs, dut = sequences(11), width_converter(11, k_in, k_out)
    assert stream(dut, blocks(xs, k_in), stall_o=0.3, reset_at=reset_at) == blocks(xs, k_out)


def test_a_wide_block_is_held_while_its_parts_leave():
    dut = width_converter(11, 8, 2)
    assert cycles(dut, blocks(sequences(11)[:1], 8), quiet=5) == ([3, 5], [0, 1, 2, 3, 4, 5])


def test_narrow_blocks_are_collected_without_a_pause():
    dut = width_converter(11, 2, 8)
    assert cycles(dut, blocks(sequences(11)[1:2], 2), quiet=5) == (list(range(18)), [4, 6, 10, 12, 16, 18])
