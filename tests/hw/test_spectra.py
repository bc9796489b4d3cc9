import numpy as np
import pytest

from circulant.hw.spectra import SpectrumBuffer
from circulant.sim import fft
from circulant.sim.fixed import requantize
from tests.hw.golden import blocks, numbers, product
from tests.hw.simulate import Transfers, run, source, trace

BLOCK_SIZES = (1, 2, 4, 8, 16)


def golden(matrix, vectors):
    """Spectra (vectors, q, k)."""
    exact = fft.forward(vectors.reshape(len(vectors), -1, matrix.block_size), matrix.twiddle_bits)
    return requantize(exact, matrix.input.frac, matrix.spectrum).tolist()


def read(matrix, vectors, *, times=1, pause=0.0, stall_i=0.0, last=()):
    """What a reader sees who reads each vector ``times`` over, at once unless it pauses: its spectra, and its mark."""
    q = matrix.weights.shape[1]
    payloads = blocks([vectors], matrix.block_size)
    payloads = [{**payload, "last": int(n // q in last)} for n, payload in enumerate(payloads)]
    rng, data, reads, marks = np.random.default_rng(1), [], [], []

    def reader():
        shown = yield {}
        data.append(shown["data"])
        for _ in vectors:
            while not shown["full"] or rng.random() < pause:
                shown = yield {"free": 0}
                data.append(shown["data"])
            marks.append(shown["last"])
            for column in range(times * q):
                reads.append(len(data))
                shown = yield {"addr": column % q, "free": int(column == times * q - 1)}
                data.append(shown["data"])
        data.append((yield {"free": 0})["data"])

    run(SpectrumBuffer(matrix), source("i", payloads, Transfers(), stall=stall_i), reader())
    spectra = np.array([data[cycle + 1] for cycle in reads])
    return list(zip(spectra.reshape(len(vectors), times, q, -1).tolist(), marks, strict=True))


@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_spectra_equal_golden_as_often_as_they_are_read(k):
    matrix = product(1, 3, k)
    vectors = numbers(matrix.input, 6, 3 * k)
    assert read(matrix, vectors, times=2) == [([spectra] * 2, 0) for spectra in golden(matrix, vectors)]


@pytest.mark.parametrize("pause", [0.0, 0.9])
@pytest.mark.parametrize("stall_i", [0.0, 0.6])
@pytest.mark.parametrize("q", [1, 2, 5])
def test_pauses_on_both_sides_change_nothing(q, stall_i, pause):
    matrix = product(1, q, 4)
    vectors, last = numbers(matrix.input, 12, 4 * q), {0, 3, 4, 9, 11}
    assert read(matrix, vectors, stall_i=stall_i, pause=pause, last=last) == [
        ([spectra], int(n in last)) for n, spectra in enumerate(golden(matrix, vectors))]


@pytest.mark.parametrize("q", [1, 3])
def test_two_vectors_are_held_and_no_block_more(q):
    n = 2 * q + 6
    shown = trace(SpectrumBuffer(product(1, q, 2)), {
        "i.valid": [1] * n, "i.payload": [{"data": [0, 0], "last": 0}] * n, "free": [0] * n})
    assert shown["i.ready"] == [1] * (2 * q) + [0] * 6


def test_full_and_last_are_about_the_other_bank_in_the_cycle_of_free():
    """Vectors of one block: the first is the last of its sequence, the second is not; a third comes later."""
    n = 20
    feed = [{"data": [0], "last": 1}, {"data": [0], "last": 0}, *[{"data": [0], "last": 1}] * (n - 2)]
    shown = trace(SpectrumBuffer(product(1, 1, 1)), {
        "i.valid": [1, 1, *[int(t > 9) for t in range(2, n)]], "i.payload": feed,
        "free": [int(t in (6, 8)) for t in range(n)]})
    full, last = shown["full"], shown["last"]
    assert full[:3] == [0, 0, 1], "a block is in its bank after the transform and the write"
    assert (full[5], last[5]) == (1, 1)
    assert (full[6], last[6]) == (1, 0), "the first vector is freed, the second waits"
    assert (full[7], last[7]) == (1, 0)
    assert full[8] == full[9] == 0, "the second vector is freed, none waits"
    assert (full[12], last[12]) == (1, 1), "the third vector came into the bank of the first"


def test_nothing_is_held_after_a_reset():
    n = 12
    shown = trace(SpectrumBuffer(product(1, 2, 2)), {
        "i.valid": [int(t < 5) for t in range(n)], "i.payload": [{"data": [t, t], "last": 1} for t in range(n)],
        "reset": [int(t == 7) for t in range(n)]})
    assert (shown["full"][6], shown["i.ready"][6]) == (1, 0)
    assert (shown["full"][8:], shown["i.ready"][8:]) == ([0] * 4, [1] * 4)
