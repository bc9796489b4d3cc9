from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.lane import Lane, LaneShape, data_operands, weight_operands
from circulant.sim.circulant import multiplications
from tests.hw.golden import numbers, product
from tests.hw.simulate import trace

BLOCK_SIZES = (1, 2, 4, 8, 16)


def operands(spectrum):
    """X[0], X[k/2], and a + b, a, b for each bin a + jb."""
    bins = zip(spectrum[2::2], spectrum[3::2], strict=True)
    return [*spectrum[:2], *(value for a, b in bins for value in (a + b, a, b))]


def combined(sums):
    """The spectrum of a row: re = s1 - s3, im = s1 + s2."""
    bins = zip(sums[2::3], sums[3::3], sums[4::3], strict=True)
    return [*sums[:2], *(value for s1, s2, s3 in bins for value in (s1 - s3, s1 + s2))]


def rows(shape, weights, spectra):
    """The sums that a lane gives for the rows of a matrix (p, q, k), all times one vector (q, k)."""
    p, q, _ = weights.shape
    n, dead = p * q, 3  # cycles in which a lane is fed, and those behind the last
    zero = [0] * shape.products
    loads = [t + Lane.latency + 1 for t in range(q - 1, n, q)]  # the operands come a cycle after the weights
    firsts = [t + Lane.latency for t in range(0, n, q)]
    shown = trace(Lane(shape), {
        "w": [*weights.reshape(n, -1).tolist(), *[weights[0, 0].tolist()] * dead],
        "x": [zero, *[operands(x) for x in spectra.tolist()] * p, *[zero] * (dead - 1)],
        "first": [int(t in firsts) for t in range(n + dead)],
        "load": [int(t in loads) for t in range(n + dead)],
        "chain": [zero] * (n + dead),
    }, extra=1)["sums"]
    return [shown[t + 1] for t in loads]


def lane_shape(q, k, data=10, weight=8):
    return LaneShape(k=k, data_width=data, weight_width=weight, terms=q)


@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_products_are_those_of_the_arithmetic_minimum(k):
    assert lane_shape(3, k).products == multiplications(k) == {1: 1, 2: 2, 4: 5, 8: 11, 16: 23}[k]


def test_operands_pair_to_the_three_products_of_a_bin():
    x, w = [1, 2, 3, 5, 7, 11, 13, 17], [19, 23, 29, 31, 37, 41, 43, 47]
    assert data_operands(x) == operands(x) == [1, 2, 8, 3, 5, 18, 7, 11, 30, 13, 17]
    assert weight_operands(w) == [19, 23, 29, 2, 60, 37, 4, 78, 43, 4, 90]
    assert data_operands(x[:1]) == x[:1]
    assert weight_operands(w[:2]) == w[:2]


@pytest.mark.parametrize("q", [1, 2, 5])
@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_sums_equal_the_complex_products_of_golden(k, q):
    matrix = product(4, q, k)
    spectra = numbers(matrix.spectrum, q, k)
    golden = matrix.accumulate(spectra).tolist()
    assert [combined(sums) for sums in rows(lane_shape(q, k), matrix.weights, spectra)] == golden


def test_each_sum_is_that_of_its_products():
    matrix = product(3, 4, 8)
    spectra = numbers(matrix.spectrum, 4, 8)
    (a, b), (c, d) = ((s[..., 2::2], s[..., 3::2]) for s in (spectra, matrix.weights))
    bins = np.stack([c * (a + b), a * (d - c), b * (c + d)], axis=-1).reshape(3, 4, -1)
    golden = np.concatenate([matrix.weights[..., :2] * spectra[..., :2], bins], axis=-1)
    assert rows(lane_shape(4, 8), matrix.weights, spectra) == golden.sum(1).tolist()


@pytest.mark.parametrize("q", [1, 4, 5])
@pytest.mark.parametrize(("x", "w"), [
    ([-512, -512, -512, -512], [-128, -128, -128, -128]), ([511, 511, 511, 511], [-128, -128, -128, -128]),
    ([-512, 511, -512, 511], [127, -128, 127, -128]), ([-512, 511, 511, -512], [-128, 127, 127, -128])])
def test_no_sum_of_extremes_wraps(x, w, q):
    weights, spectra = np.tile(w, (2, q, 1)), np.tile(x, (q, 1))
    matrix = replace(product(2, q, 4), weights=weights)
    assert [combined(sums) for sums in rows(lane_shape(q, 4), weights, spectra)] == matrix.accumulate(spectra).tolist()


def test_the_drain_shifts_where_it_does_not_load():
    chain = [[n, -n] for n in range(10)]
    shown = trace(Lane(lane_shape(1, 2)), {"chain": chain, "load": [int(n == 4) for n in range(10)]})["sums"]
    assert shown == [[0, 0], *chain[:4], [0, 0], *chain[5:9]]


def test_a_row_that_starts_anew_forgets_what_was_there():
    """While a group waits its first product is repeated: only the last repetition counts."""
    shape = lane_shape(2, 1)
    shown = trace(Lane(shape), {
        "w": [[3], [3], [3], [5], [0], [0], [0], [0]], "x": [[0], [7], [7], [7], [11], [0], [0], [0]],
        "first": [0, 0, 1, 1, 1, 0, 0, 0], "load": [0, 0, 0, 0, 0, 0, 1, 0], "chain": [[0]] * 8})["sums"]
    assert shown[7] == [3 * 7 + 5 * 11]
