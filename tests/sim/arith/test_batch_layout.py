import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circulant.sim.arith import batch_layout
from tests.sim.definitions import repeatable


@repeatable(40)
@given(st.integers(0, 3), st.lists(st.integers(0, 3), max_size=2), st.integers(1, 9), st.sampled_from((1, 2, 4)))
def test_rows_give_back_what_was_spread(count, steps, size, k):
    x = np.random.default_rng(size).integers(-9, 9, (count, *steps, size))
    columns = -(-size // k) * k
    spread = batch_layout.spread(x, columns, k)
    assert spread.shape == (k, columns // k, *steps, count)
    assert spread.flags.c_contiguous
    np.testing.assert_array_equal(batch_layout.rows(spread, size), x)
    assert not batch_layout.rows(spread, columns)[..., size:].any()


def test_the_place_of_a_value():
    """Value j of block i of vector n stands at (j, i, n)."""
    x = np.arange(2 * 6).reshape(2, 6)
    spread = batch_layout.spread(x, 8, 4)
    assert spread[3, 0].tolist() == [3, 9]
    assert spread[1, 1].tolist() == [5, 11]
    assert spread[2:, 1].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(("size", "k"), [(1, 4), (5, 4), (7, 4), (8, 4), (3, 1), (12, 4)])
def test_clear(size, k):
    columns = -(-size // k) * k
    x = np.arange(1, 3 * columns + 1).reshape(3, columns)
    cleared = batch_layout.clear(batch_layout.spread(x, columns, k), size)
    np.testing.assert_array_equal(batch_layout.rows(cleared, columns), np.where(np.arange(columns) < size, x, 0))


@pytest.mark.parametrize(("k", "widths"), [(1, [1]), (2, [1, 1]), (4, [1, 1, 2]), (8, [1, 1, 2, 2, 2])])
def test_bins(k, widths):
    places = batch_layout.bins(k)
    assert [place.stop - place.start for place in places] == widths
    assert [i for place in places for i in range(place.start, place.stop)] == list(range(k))


@pytest.mark.parametrize("reach", [batch_layout.EXACT - 1, batch_layout.EXACT])
@pytest.mark.parametrize("k", [1, 2, 8])
def test_accumulate_over_parts(k, reach):
    """The parts side by side are one product, and complex bins multiply as complex numbers."""
    rng = np.random.default_rng(k)
    weights, spectra = rng.integers(-99, 99, (3, 5, k)), rng.integers(-99, 99, (k, 5, 2, 4))
    matrices = batch_layout.matrices(weights, reach)
    number = np.dtype(np.float64 if reach < batch_layout.EXACT else np.int64)
    assert {matrix.dtype for matrix in matrices} == {number}
    sums = batch_layout.accumulate(matrices, spectra)
    assert (sums.shape, sums.dtype) == ((k, 3, 2, 4), number)
    np.testing.assert_array_equal(batch_layout.accumulate(matrices, spectra[:, :2], spectra[:, 2:]), sums)
    for place in batch_layout.bins(k):
        def bin(values, place=place):
            return values[place.start] + (1j * values[place.start + 1] if place.stop - place.start == 2 else 0)

        expected = np.einsum("pq,qtn->ptn", bin(weights.transpose(2, 0, 1)), bin(spectra))
        np.testing.assert_array_equal(bin(sums), expected)


@pytest.mark.parametrize(("bits", "number"), [(1, np.int32), (32, np.int32), (33, np.int64), (63, np.int64)])
def test_the_integers_that_hold_so_many_bits(bits, number):
    assert batch_layout.number(bits) is number
