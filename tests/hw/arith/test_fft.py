import re
from functools import cache

import numpy as np
import pytest

from circulant.hw.arith.fft import FftShape, ForwardFft, InverseFft, fft_latency
from circulant.hw.emit.target import VerilogTarget
from circulant.sim.arith import fft
from circulant.sim.arith.fixed import Format, round_shift, saturate
from circulant.sim.refusal import Refusal
from tests.hw.simulate import cycles, stream

BLOCK_SIZES = (1, 2, 4, 8, 16)
STALLS = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.4, 0.6)]
ROUNDINGS = [  # width, twiddle bits, shift, width of the spectrum
    (10, 9, 1, 8),    # rounds, and saturates on both sides
    (8, 16, 0, 13),   # keeps the whole spectrum
    (7, 4, 5, 6),     # twiddle factors of little precision
    (6, 7, -2, 9),    # shifts to the left, saturates
]


def stimuli(k, width):
    """Deltas and exponentials are a basis of all blocks; extremes, and random blocks."""
    form, n = Format(width, 0), np.arange(k)
    bins = [2 * np.pi * m * n / k for m in range(k // 2 + 1)]
    named = {
        "zero": np.zeros((1, k)),
        "deltas": np.concatenate([np.eye(k) * form.hi, np.eye(k) * form.lo, np.eye(k)]),
        "exponentials": np.array([form.hi * wave(angle) for angle in bins for wave in (np.cos, np.sin)]).round(),
        "extremes": np.full((2, k), [[form.lo], [form.hi]]),
        "alternating": np.where([n % 2, 1 - n % 2], form.lo, form.hi),
        "signs": np.random.default_rng(k).choice([form.lo, form.hi], (10, k)),
        "random": np.random.default_rng(k).integers(form.lo, form.hi + 1, (30, k)),
    }
    return np.concatenate(list(named.values())).astype(np.int64)


def worst(k, width, twiddle_bits):
    """For each output of the inverse transform the spectra that make it greatest and least."""
    form = Format(width, 0)
    rows = fft.inverse(np.eye(k, dtype=np.int64) << 20, twiddle_bits).T
    return np.concatenate([np.where(rows > 0, form.lo, form.hi), np.where(rows > 0, form.hi, form.lo)])


@cache
def forward(k, width, twiddle_bits, shift, spectrum_width):
    return ForwardFft(FftShape(k, width, twiddle_bits), shift=shift, spectrum_width=spectrum_width)


@cache
def inverse(k, width, twiddle_bits):
    return InverseFft(FftShape(k, width, twiddle_bits))


def spectra(x, twiddle_bits, shift, spectrum_width):
    return saturate(round_shift(fft.forward(x, twiddle_bits), shift), spectrum_width)


@pytest.mark.parametrize("k", [0, 3, 12, -8, 128, 2.0, True])
def test_init_wrong_block_size(k):
    with pytest.raises(Refusal, match=f"^Block size must be a power of two from 1 to 64, not {re.escape(repr(k))}; "
                                      "choose one of 1, 2, 4, 8, 16, 32, 64$"):
        FftShape(k, 12, 10)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_forward_equals_golden(k, rounding):
    x = stimuli(k, rounding[0])
    assert stream(forward(k, *rounding), x.tolist()) == spectra(x, *rounding[1:]).tolist()


@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_the_stimuli_saturate_a_spectrum(k):
    width, *rounding = ROUNDINGS[0]
    assert {0, -128, 127} <= set(spectra(stimuli(k, width), *rounding).ravel().tolist())


@pytest.mark.parametrize(("width", "twiddle_bits"), [(9, 9), (7, 4), (6, 16)])
@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_inverse_equals_golden(k, width, twiddle_bits):
    y = np.concatenate([stimuli(k, width), worst(k, width, twiddle_bits)])
    golden = fft.inverse(y, twiddle_bits)
    assert stream(inverse(k, width, twiddle_bits), y.tolist()) == golden.tolist()


@pytest.mark.parametrize("k", [32, 64])
def test_large_blocks_equal_golden(k):
    x = stimuli(k, 7)[-12:]
    assert stream(forward(k, *ROUNDINGS[2]), x.tolist()) == spectra(x, *ROUNDINGS[2][1:]).tolist()
    assert stream(inverse(k, 7, 4), x.tolist()) == fft.inverse(x, 4).tolist()


@pytest.mark.parametrize("k", [k for k in BLOCK_SIZES if k <= 4])
def test_inverse_uses_every_bit_of_its_width(k):
    """Where no twiddle factor is rounded the worst block fills the width."""
    shape = FftShape(k, 9, 4)
    golden = fft.inverse(worst(k, 9, 4), 4)
    assert golden.max() == (1 << shape.inverse_width - 1) - 1
    assert golden.min() == -(1 << shape.inverse_width - 1)


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_stalls_change_nothing(k, stall_i, stall_o):
    x = stimuli(k, 10)
    assert stream(forward(k, *ROUNDINGS[0]), x.tolist(), stall_i=stall_i, stall_o=stall_o, seed=k) == (
        spectra(x, *ROUNDINGS[0][1:]).tolist())
    assert stream(inverse(k, 10, 9), x.tolist(), stall_i=stall_i, stall_o=stall_o, seed=k) == (
        fft.inverse(x, 9).tolist())


@pytest.mark.parametrize("reset_at", [1, 7, 23])
def test_nothing_is_left_after_a_reset(reset_at):
    x = stimuli(8, 10)
    assert stream(forward(8, *ROUNDINGS[0]), x.tolist(), stall_o=0.3, reset_at=reset_at) == (
        spectra(x, *ROUNDINGS[0][1:]).tolist())


@pytest.mark.parametrize(("k", "levels"), [(1, 0), (2, 1), (4, 2), (8, 6), (16, 10)])
def test_a_block_per_cycle_and_the_latency(k, levels):
    there, back = forward(k, *ROUNDINGS[0]), inverse(k, 10, 9)
    assert (there.latency, back.latency) == (levels + 1, levels)
    for unit in (there, back):
        assert cycles(unit, stimuli(k, 10)[:20].tolist(), quiet=20) == (
            list(range(20)), list(range(unit.latency, 20 + unit.latency)))


@pytest.mark.parametrize(("k", "levels", "latency"), [(4, 6, 1), (8, 6, 3), (16, 6, 5), (8, 9, 2), (16, 12, 3)])
def test_fewer_registers_change_the_latency_alone(k, levels, latency):
    shape, x = FftShape(k, 10, 9, levels), stimuli(k, 10)[:40]
    width, bits, shift, spectrum = ROUNDINGS[0]
    there = ForwardFft(FftShape(k, width, bits, levels), shift=shift, spectrum_width=spectrum)
    back = InverseFft(shape)
    assert (back.latency, there.latency) == (latency, -(-(fft_latency(k) + 1) // (levels // 3)))
    assert cycles(back, x.tolist(), quiet=20)[1][0] == latency
    assert stream(back, x.tolist(), stall_o=0.4) == fft.inverse(x, 9).tolist()
    assert stream(there, x.tolist(), stall_i=0.4) == spectra(x, *ROUNDINGS[0][1:]).tolist()


def test_twiddle_products_take_no_multiplier():
    target = VerilogTarget()
    text = target.convert(InverseFft(FftShape(16, 10, 9)), "inverse")
    counted = target.inventories.of("inverse")
    assert (counted.multipliers, counted.memory_bits) == (0, 0)
    assert " * " not in re.sub(r"\(\*.*?\*\)|//.*", "", text.partition("module circulant_rom")[0])
