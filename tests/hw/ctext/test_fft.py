import itertools

import numpy as np
import pytest

from circulant.hw.ctext import fft
from circulant.hw.ctext.unit import Unit
from circulant.sim.arith import fft as golden
from circulant.sim.refusal import Refusal


def extremes(k, peak):
    """Blocks that drive every bin to its greatest value: all signs up to k = 8, and those of the basis functions."""
    if k <= 8:
        return peak * np.array(list(itertools.product([-1, 1], repeat=k)))
    angle = 2 * np.pi * np.outer(np.arange(k), np.arange(k)) / k
    waves = np.concatenate([np.cos(angle + phase) for phase in np.linspace(0, 3, 16)])
    return peak * np.where(waves >= 0, 1, -1)


@pytest.mark.parametrize("k", golden.BLOCK_SIZES)
@pytest.mark.parametrize("bits", [1, 4, 9, 16])
def test_bounds_hold_and_are_no_more_than_one_bit_above(k, bits):
    for direction, transform in (("forward", golden.forward), ("inverse", golden.inverse)):
        for peak in (1, 1000):
            bound = getattr(fft, direction)(k, bits, peak).peak
            seen = int(np.abs(transform(extremes(k, peak), bits)).max())
            assert seen <= bound
            if bits >= 9 and peak == 1000:
                assert bound <= 2 * seen


def test_types_follow_from_the_bounds():
    narrow, wide = fft.forward(16, 9, 1 << 11), fft.forward(16, 16, 1 << 15)
    assert (narrow.values, narrow.products, narrow.type) == (32, 32, "int32_t")
    assert (wide.values, wide.products) == (32, 64)
    assert fft.inverse(64, 16, 1 << 30).values == 64


def test_a_function_is_written_once_with_all_that_it_calls():
    unit = Unit("net")
    for _ in range(2):
        assert fft.forward(64, 9, 100).function(unit) == "forward64_t9_i32"
    assert list(unit.functions) == ["forward8_t9_i32", "forward16_t9_i32", "forward32_t9_i32", "forward64_t9_i32"]
    assert fft.inverse(4, 9, 100).function(unit) == "inverse4_i32"
    assert all(len(text.splitlines()) < 45 for text in unit.functions.values())


@pytest.mark.parametrize("bits", fft.TWIDDLE_BITS)
def test_cosine_and_sine_of_an_eighth_turn_are_one_number(bits):
    c, s = golden.twiddle(1, 8, bits)
    assert c == s  # The straight line of 8 multiplies once by their common value.


@pytest.mark.parametrize("bits", [0, 31])
def test_refuses_twiddle_bits(bits):
    with pytest.raises(Refusal, match=f"^The twiddle bits of the C target must be from 1 to 30, not {bits}; quantize "
                                      "again$"):
        fft.forward(8, bits, 1)
