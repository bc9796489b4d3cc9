# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest

from circulant.hw.array.mac_row import MacRowShape, data_operands, row_latency, tree_latency, weight_operands
from circulant.hw.array.split_row import SplitRow, SumRow, divides
from circulant.sim.arith.fixed import Format
from tests.hw.simulate import trace

DATA, WEIGHT = Format(10, 4), Format(8, 6)


def row_shape(columns, *, k=4, fold=1, levels=4, terms=0):
    return MacRowShape(k, columns=columns, data_width=DATA.width, weight_width=WEIGHT.width, terms=terms or columns,
                       slots=1, fold=fold, levels=levels)


@pytest.mark.parametrize(("levels", "gated"), [(4, False), (4, True), (6, False), (9, True), (12, False)])
@pytest.mark.parametrize(("columns", "head"), [(2, 1), (3, 1), (3, 2), (5, 2), (5, 4), (7, 4), (19, 10)])
def test_columns_go_to_the_row_that_their_flag_says(columns, head, levels, gated):
    """Random spectra in each cycle, of three groups: of the first row, of both, and of the second row."""
    shape, rng, n = row_shape(columns, levels=levels), np.random.default_rng((columns, head)), 12
    w = rng.integers(WEIGHT.lo, WEIGHT.hi + 1, (n, columns, 4)).tolist()
    x = rng.integers(DATA.lo, DATA.hi + 1, (n, columns, 4)).tolist()
    flags = [(head_first, tail_first) for head_first, tail_first in rng.permutation([(1, 1), (1, 0), (0, 0)] * 4)]
    live = rng.random(n) < (0.6 if gated else 1)
    depth, extra = tree_latency(columns, levels), 12
    none, zero = [[0] * 4] * columns, [[0] * 5] * columns
    late = [(0, 0)] * (depth - 1)
    shown = trace(SplitRow(shape, head=head, gated=gated), {
        "w": [*[none] * (not shape.late), *w, *[none] * extra][:n + extra], "phase": [0] * (n + extra),
        "x": [zero, *([data_operands(each) for each in spectra] for spectra in x), *[zero] * (extra - 1)],
        "head": [each[0] for each in (*late, *flags, *[(0, 0)] * extra)][:n + extra],
        "tail": [each[1] for each in (*late, *flags, *[(0, 0)] * extra)][:n + extra],
        **({"live": [0, *map(int, live), *[0] * (extra - 1)]} if gated else {})})
    for t in np.flatnonzero(live):
        products = np.array([np.multiply(data_operands(a), weight_operands(b))
                             for a, b in zip(x[t], w[t], strict=True)])
        mine = np.where(np.arange(columns) < head, *map(bool, flags[t]))
        wanted = [products[mine].sum(0).tolist(), products[~mine].sum(0).tolist()]
        assert [shown[f"sums.{row}"][t + 1 + depth] for row in range(2)] == wanted


def test_the_sums_of_both_rows_take_as_long_as_those_of_a_row():
    """They are added up, and leave, when those of a `MacRow` would."""
    shape = row_shape(3, terms=6)
    sums = [[n, -n, 2 * n, 7, 9] for n in range(9)]
    shown = trace(SumRow(shape), {
        "row_sums": sums, "add": [0, 1, 0, 1, 0, 0, 0, 0, 0], "first": [0, 1, 0, 0, 0, 0, 0, 0, 0],
        "load": [0, 0, 0, 1, 0, 0, 0, 0, 0], "chain": [[0] * 5] * 9})["sums"]
    behind = row_latency(3) - tree_latency(3)
    assert shown[4 + behind] == [6, -6, 12, 14, 18]


def test_products_over_several_cycles():
    shape = row_shape(3, fold=2)
    spectrum, weights = [[5, -3, 2, 7]] * 3, [[1, 2, 3, 4], [-5, 6, 7, 8], [9, -1, 2, 3]]
    depth = tree_latency(3)
    x = [[data_operands(each)[:3] for each in spectrum], [[*data_operands(each)[3:], 0] for each in spectrum]]
    zero = [[0] * 3] * 3
    shown = trace(SplitRow(shape, head=1), {
        "w": [weights, weights, *[[[0] * 4] * 3] * 8], "phase": [0, 1, *[0] * 8], "x": [zero, *x, *[zero] * 7],
        "head": [1] * 10, "tail": [0] * 10})
    each = [np.multiply(data_operands(a), weight_operands(b)) for a, b in zip(spectrum, weights, strict=True)]
    for row, wanted in enumerate((each[0], each[1] + each[2])):
        assert [*shown[f"sums.{row}"][1 + depth], *shown[f"sums.{row}"][2 + depth]] == [*wanted, 0]


def test_both_parts_fit_trees_of_one_step_less():
    assert [(columns, head) for columns in range(1, 10) for head in range(columns + 1) if divides(columns, head)] == [
        (2, 1), (3, 1), (3, 2), (4, 2), (5, 1), (5, 2), (5, 3), (5, 4), (6, 2), (6, 3), (6, 4), (7, 3), (7, 4), (8, 4),
        *((9, head) for head in range(1, 9))]
    with pytest.raises(ValueError, match=re.escape(
            "Both parts of a split row must fit trees of one step less than that of 6 columns, not 1 and 5 columns")):
        SplitRow(row_shape(6), head=1)
