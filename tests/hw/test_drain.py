# amaranth: UnusedElaboratable=no
import numpy as np
import pytest

from circulant.hw.drain import Drain
from circulant.hw.lane import LaneShape
from circulant.hw.sequencer import groups
from circulant.sim import fft
from circulant.sim.fixed import Format, requantize, round_shift, saturate
from tests.hw.golden import product
from tests.hw.simulate import RESET, trace

BLOCK_SIZES = (1, 2, 4, 8, 16)


def lane_sums(k, count):
    """Sums of lanes, half of them small enough for the format of a product."""
    shape = LaneShape(k=k, data_width=10, weight_width=8, terms=4)
    rng = np.random.default_rng(k)
    bits = np.where(np.arange(count) % 2, shape.sum_width - 1, 15)[:, None]
    return shape.sums, rng.integers(-(1 << bits), 1 << bits, (count, shape.products))


def golden(matrix, sums):
    """Rows (p, k) of y for the sums of each row."""
    k, (s1, s2, s3) = matrix.block_size, (sums[:, n::3] for n in (2, 3, 4))
    spectra = np.concatenate([sums[:, :2], np.stack([s1 - s3, s1 + s2], axis=-1).reshape(len(sums), -1)], axis=-1)
    sums_of_bins = requantize(spectra, matrix.spectrum.frac + matrix.weight.frac, matrix.product)
    exact = fft.inverse(sums_of_bins, matrix.twiddle_bits)
    y = round_shift(exact, matrix.product.frac + k.bit_length() - 1 - matrix.output.frac)
    return saturate(y + matrix.bias.reshape(-1, k), matrix.output.width).tolist()


def drained(matrices, lanes, order, *, gap=0, reset=None):
    """The rows of a drain, each with its matrix, the cycles in which they come, and those in which its groups start."""
    k = matrices[0].block_size
    layout, _ = lane_sums(k, 1)
    slots = []  # (start, first, matrix, sums) of each cycle
    for n, rows in order:
        padded = np.concatenate([rows, lane_sums(k, -len(rows) % lanes)[1]])  # what idle lanes hold does not count
        for at, row in enumerate(padded.tolist()):
            slots.append((int(at % lanes == 0), int(at == 0), n, row))
            if at % lanes == lanes - 1:
                slots += [(0, 1, 0, row)] * gap
    slots.append((0, 0, 0, slots[-1][3]))
    drain = Drain(name="part", products=matrices, lanes=lanes, sums=layout)
    columns = dict(zip(("start", "first", "matrix", "sums"), map(list, zip(*slots, strict=True)), strict=True))
    columns[RESET] = [int(t == reset) for t in range(len(slots))]
    shown = trace(drain, columns, extra=drain.latency + 20)
    cycles = [t for t, valid in enumerate(shown["o.valid"]) if valid]
    starts = [t for t, (start, *_) in enumerate(slots) if start]
    return [(shown["o.matrix"][t], shown["o.data"][t]) for t in cycles], cycles, starts


@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_rows_equal_golden(k):
    matrix = product(12, 4, k)
    _, sums = lane_sums(k, 12)
    rows = golden(matrix, sums)
    assert drained([matrix], 3, [(0, sums)] * 2)[0] == [(0, row) for row in rows * 2]
    assert {matrix.output.lo, matrix.output.hi} <= set(np.ravel(rows).tolist()), "nothing saturates"


@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_a_row_per_cycle_and_the_latency(k):
    matrix, latency = product(8, 4, k), {1: 4, 2: 5, 4: 6, 8: 8, 16: 10}[k]
    _, cycles, starts = drained([matrix], 4, [(0, lane_sums(k, 8)[1])])
    assert Drain(name="part", products=[matrix], lanes=4, sums=lane_sums(k, 1)[0]).latency == latency
    assert cycles == [start + latency + row for start in starts for row in range(4)]


@pytest.mark.parametrize("gap", [0, 1, 5])
@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 9])
def test_idle_lanes_give_no_row(lanes, gap):
    matrix = product(5, 4, 2)
    _, sums = lane_sums(2, 5)
    rows, _, starts = drained([matrix], lanes, [(0, sums)] * 3, gap=gap)
    assert rows == [(0, row) for row in golden(matrix, sums)] * 3
    assert len(starts) == 3 * groups(5, lanes)


def test_each_matrix_has_its_own_formats_and_biases():
    matrices = [product(3, 4, 4), product(5, 2, 4, seed=1, weight=Format(8, 3), product=Format(14, 5)),
                product(2, 1, 4, seed=2, spectrum=Format(9, 5), product=Format(12, 9), output=Format(11, 8))]
    work = [(n, lane_sums(4, len(matrices[n].weights))[1]) for n in (0, 1, 2, 2, 1, 0)]
    assert drained(matrices, 2, work)[0] == [(n, row) for n, sums in work for row in golden(matrices[n], sums)]


def test_results_of_rounding_to_the_left():
    """Formats whose results have more fraction bits than the sums."""
    matrix = product(6, 4, 2, spectrum=Format(10, -3), product=Format(16, 6), output=Format(11, 9))
    _, sums = lane_sums(2, 6)
    assert drained([matrix], 3, [(0, sums >> 8)])[0] == [(0, row) for row in golden(matrix, sums >> 8)]


def test_a_reset_stops_the_rows_that_are_on_their_way():
    matrix = product(4, 4, 2)
    _, sums = lane_sums(2, 4)
    rows, cycles, starts = drained([matrix], 4, [(0, sums)] * 4, reset=6)
    whole = [(0, row) for row in golden(matrix, sums)]
    assert (starts, cycles[:3]) == ([0, 4, 8, 12], [5, 6, 8 + 5])
    assert rows == whole[:2] + whole * 2, "two rows came before, groups 2 and 3 started after"
