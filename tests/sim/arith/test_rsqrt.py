"""1/√v: near the mathematics within its own bound, and the same integers as the definition."""
import math

import numpy as np

from circulant.sim.arith.rsqrt import INDEX, MANTISSA, ROOT, _root, inverse_root, starts

SEEN = np.unique(np.concatenate([
    np.arange(1, 3000), [(1 << n) + d for n in range(2, 62) for d in (-1, 0, 1)],
    np.random.default_rng(0).integers(1, 1 << 62, 500), np.floor(2 ** np.random.default_rng(1).uniform(0, 62, 5000))
]).astype(np.int64))


def test_is_within_its_bound_which_is_met():
    """The greatest |r · 2^−(ROOT + h) √v − 1| of all mantissas, at both ends of what is cut to each."""
    m = np.arange(1 << MANTISSA - 2, 1 << MANTISSA)
    found = np.ldexp(_root(m).astype(np.float64), -ROOT)
    bound = max(np.abs(found * np.sqrt(np.ldexp(each.astype(np.float64), -MANTISSA)) - 1).max() for each in (m, m + 1))
    r, h = inverse_root(SEEN)
    error = [abs(int(a) * math.sqrt(int(v)) / 2 ** (ROOT + int(b)) - 1) for a, b, v in zip(r, h, SEEN, strict=True)]
    assert 0.85 * bound < max(error) <= bound * (1 + 1e-12) < 3e-5


def test_r_fits_18_bits_and_h_counts_pairs_of_bits():
    r, h = inverse_root(SEEN)
    assert r.min() >= 1 << ROOT and r.max() < 1 << ROOT + 1
    assert h.tolist() == [-(-int(v).bit_length() // 2) for v in SEEN]


def test_the_table_is_of_the_middles_of_its_cells():
    assert len(starts()) == 3 << INDEX - 2 and (np.diff(starts()) < 0).all()
    assert starts()[[0, -1]].tolist() == [2040, 1025]
    assert MANTISSA > INDEX
