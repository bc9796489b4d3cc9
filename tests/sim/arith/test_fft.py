import cmath
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim.arith import fft
from tests import independent
from tests.refused import refused
from tests.sim.definitions import exact, half_up, repeatable, turn

SIZES = (1, 2, 4, 8, 16, 32, 64)


def rounding_bound(k, peak, bits):
    """How far a forward transform of |x| ≤ peak may be off, derived level by level.

    A level adds the errors of its halves; the odd one, |O| ≤ peak·n/2, is turned by a factor that is off by τ, and then
    both parts are rounded, by √½ in modulus. Nothing is rounded up to n = 4.
    """
    if k <= 4:
        return 0.0
    tau = max(abs(complex(*fft.twiddle(m, k, bits)) / 2 ** bits - cmath.exp(2j * cmath.pi * m / k))
              for m in range(1, k // 4))
    return (2 + tau) * rounding_bound(k // 2, peak, bits) + tau * peak * k / 2 + math.sqrt(0.5)


def stimuli(k, peak):
    """A basis of all linear maps of k values twice over: deltas, and complex exponentials by their real parts."""
    t = np.arange(k)
    waves = [np.rint(peak * wave(2 * np.pi * f * t / k)) for f in range(k // 2 + 1) for wave in (np.cos, np.sin)]
    rows = [*(np.eye(k) * peak), *(-np.eye(k) * peak), *waves, np.full(k, peak), np.full(k, -peak), (-1.0) ** t * peak]
    return np.array(rows, np.int64)


@pytest.mark.parametrize("k", SIZES)
def test_check_block_size(k):
    assert fft.check_block_size(k) == k
    assert k in fft.BLOCK_SIZES


@pytest.mark.parametrize("k", [0, 3, 12, 128, -4, 4.0, True, None, "8"])
def test_check_block_size_wrong(k):
    assert refused(fft.check_block_size, k) == (
        f"Block size must be a power of two from 1 to 64, not {k!r}; choose one of 1, 2, 4, 8, 16, 32, 64")


@pytest.mark.parametrize("n", [8, 16, 32, 64])
@pytest.mark.parametrize("bits", [4, 11, 16, 20])
def test_twiddles_are_rounded_half_up(n, bits):
    for m in range(1, n // 4):
        assert fft.twiddle(m, n, bits) == turn(m, n, bits)


def test_twiddle_table():
    assert fft.twiddle(1, 8, 16) == (46341, 46341)
    assert fft.twiddle(1, 16, 8) == (237, 98)
    assert fft.twiddle(3, 16, 8) == (98, 237)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("bits", [4, 16])
def test_forward_is_exact_up_to_4(k, bits):
    x = np.random.default_rng(k).integers(-2 ** 23, 2 ** 23, (200, k))
    np.testing.assert_array_equal(fft.forward(x, bits), np.rint(exact(x)))


@pytest.mark.parametrize("k", [1, 2, 4])
def test_inverse_is_exact_up_to_4(k):
    x = np.random.default_rng(k).integers(-2 ** 23, 2 ** 23, (200, k))
    np.testing.assert_array_equal(fft.inverse(fft.forward(x, 16), 16), k * x)


@pytest.mark.parametrize("k", [8, 16, 32, 64])
@pytest.mark.parametrize("bits", [4, 8, 16, 20])
@pytest.mark.parametrize("peak", [100, 2 ** 15])
def test_forward_within_the_bound(k, bits, peak):
    rng = np.random.default_rng(k)
    x = np.concatenate([stimuli(k, peak), rng.integers(-peak, peak + 1, (200, k)),
                        rng.choice([-peak, peak], (100, k))])
    error = np.abs(fft.forward(x, bits) - exact(x)).max()
    bound = rounding_bound(k, peak, bits)
    assert bound / 20 < error <= bound


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize(("bits", "peak"), [(16, 2 ** 15), (20, 2 ** 23), (8, 100)])
def test_inverse_undoes_forward(k, bits, peak):
    """inverse(forward(x)) ≈ k·x: the errors of the spectrum's k bins add up, and so do those of the way back."""
    rng = np.random.default_rng(k)
    x = np.concatenate([stimuli(k, peak), rng.integers(-peak, peak + 1, (200, k))])
    error = np.abs(fft.inverse(fft.forward(x, bits), bits) - k * x).max()
    assert error <= 2 * k * rounding_bound(k, peak, bits)


@pytest.mark.parametrize("k", SIZES)
def test_forward_of_deltas_are_the_twiddles(k):
    """Scaled up, deltas show the whole matrix of the transform."""
    x = np.eye(k, dtype=np.int64) << 30
    tolerance = 1e-12 + rounding_bound(k, 1 << 30, 20) / 2 ** 30
    np.testing.assert_allclose(fft.forward(x, 20) / 2 ** 30, exact(np.eye(k)), rtol=0, atol=tolerance)


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("f", range(33))
def test_forward_of_exponentials_is_one_bin(k, f):
    if f > k // 2:
        return
    t, peak = np.arange(k), 2 ** 20
    wave = np.rint(peak * np.cos(2 * np.pi * f * t / k)).astype(np.int64)
    spectrum = fft.forward(wave, 20).tolist()
    floor = k + rounding_bound(k, peak, 20)  # The wave itself is rounded by half a step in each of its k values.
    for bin in range(k // 2 + 1):
        height = peak * k * (1 if f in (0, k / 2) else 0.5) if bin == f else 0
        re, im = (spectrum[bin and 1], 0) if bin in (0, k // 2) else spectrum[2 * bin:2 * bin + 2]
        assert math.hypot(re - height, im) <= floor


@repeatable(200)
@given(st.sampled_from(SIZES), st.integers(4, 20), st.integers(1, 24), st.data())
def test_equals_the_plain_transforms_bit_for_bit(k, bits, width, data):
    lo, hi = -2 ** (width - 1), 2 ** (width - 1) - 1
    x = data.draw(st.lists(st.integers(lo, hi) | st.sampled_from([lo, hi]), min_size=k, max_size=k))
    array = np.array(x)
    assert fft.forward(array, bits).tolist() == independent.fft(x, bits)
    assert fft.inverse(array, bits).tolist() == independent.ifft(x, bits)


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("bits", [4, 16])
def test_growth_is_as_promised(k, bits):
    """Forward log2 k bits; inverse log2 k + 1 bits, from any spectrum, also one that no real block has."""
    width = 12
    rng = np.random.default_rng(k)
    lo, hi = -2 ** (width - 1), 2 ** (width - 1) - 1
    x = np.concatenate([stimuli(k, hi), rng.choice([lo, hi], (2000, k)), np.full((1, k), lo)])
    reach = 2 ** (width - 1) * k
    assert -reach <= fft.forward(x, bits).min()
    assert fft.forward(x, bits).max() < reach
    # The worst spectrum for each output has the signs of its row in the inverse transform.
    rows = np.sign(fft.inverse(np.eye(k, dtype=np.int64) << 20, 16).T)
    worst = np.where(rows < 0, lo, hi)
    y = fft.inverse(np.concatenate([x, worst, -worst - 1]), bits)
    assert -2 * reach <= y.min()
    assert y.max() < 2 * reach
    if k >= 8:
        assert max(-y.min(), y.max()) > reach  # One bit less would not do.


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0, 3)])
def test_axes_are_kept(shape):
    x = np.random.default_rng(0).integers(-100, 100, (*shape, 8))
    flat = x.reshape(-1, 8)
    for transform in (fft.forward, fft.inverse):
        y = transform(x, 16)
        assert (y.shape, y.dtype) == (x.shape, np.int64)
        np.testing.assert_array_equal(y.reshape(-1, 8), np.array([transform(row, 16) for row in flat]).reshape(-1, 8))


def test_inputs_are_not_changed():
    x = np.arange(16)
    fft.forward(x, 16)
    fft.inverse(x, 16)
    assert x.tolist() == list(range(16))


def test_rounding_is_half_up_in_both_parts():
    """Four bits of twiddle, cos = sin = 11/16: 11·8/16 = 5.5 rounds to 6 and −5.5 to −5."""
    assert fft.twiddle(1, 8, 4) == (half_up(16 * math.sqrt(0.5)),) * 2 == (11, 11)
    delta = np.zeros(8, np.int64)
    delta[1] = 8
    assert fft.forward(delta, 4).tolist() == [8, -8, 6, -5, 0, -8, -6, -5]
