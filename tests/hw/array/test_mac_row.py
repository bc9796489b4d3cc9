import re
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Value
from amaranth.lib.wiring import In, Out

from circulant.hw.array.mac_row import CONTROL, MacRow, MacRowShape, data_operands, row_latency, weight_operands
from circulant.hw.array.row_pair import PairForms, RowPair
from circulant.hw.emit.target import PORT_BITS, VerilogTarget
from circulant.hw.stream.pipeline import LEVELS
from circulant.hw.unit import unelaborated
from circulant.sim.arith.circulant import multiplications
from circulant.sim.arith.fixed import Format
from tests.hw.golden import numbers, product
from tests.hw.simulate import trace

BLOCK_SIZES = (1, 2, 4, 8, 16)
DATA, WEIGHT = Format(10, 4), Format(8, 6)


def operands(spectrum):
    """X[0], X[k/2], and a + b, a, b for each bin a + jb."""
    bins = zip(spectrum[2::2], spectrum[3::2], strict=True)
    return [*spectrum[:2], *(value for a, b in bins for value in (a + b, a, b))]


def factors(spectrum):
    """W[0], W[k/2], and c, d - c, c + d for each bin c + jd."""
    bins = zip(spectrum[2::2], spectrum[3::2], strict=True)
    return [*spectrum[:2], *(value for c, d in bins for value in (c, d - c, c + d))]


def combined(sums):
    """The spectrum of a row: re = s1 - s3, im = s1 + s2."""
    bins = zip(sums[2::3], sums[3::3], sums[4::3], strict=True)
    return [*sums[:2], *(value for s1, s2, s3 in bins for value in (s1 - s3, s1 + s2))]


def row_shape(k=4, columns=1, terms=4, slots=1, fold=1, levels=LEVELS):
    return MacRowShape(k, columns=columns, data_width=DATA.width, weight_width=WEIGHT.width, terms=terms, slots=slots,
                       fold=fold, levels=levels)


def issued(shape, issues, *, chain=None):
    """The head of the drain in the cycle behind each issue's last, of (slot, first, load, weights, spectra) or None."""
    fold, each, latency = shape.fold, shape.multipliers, row_latency(shape.columns, shape.levels)
    cycles = len(issues) * fold
    n = cycles + latency + 2
    zero = [[0] * each] * shape.columns
    columns = {"w": [[[0] * shape.k] * shape.columns] * n, "phase": [0] * n, "x": [zero] * n, "add": [0] * n,
               "slot": [0] * n, "first": [0] * n, "load": [0] * n, "part": [0] * n,
               "chain": chain or [[0] * shape.products] * n}
    heads = []
    for at, issue in enumerate(issues):
        if issue is None:
            continue
        slot, first, load, weights, spectra = issue
        for phase in range(fold):
            t = at * fold + phase
            now = [(operands(spectrum) + [0] * each)[phase * each:(phase + 1) * each] for spectrum in spectra]
            columns["w"][t], columns["phase"][t], columns["x"][t + 1] = weights, phase, now
            later = t + latency - 2
            columns["add"][later], columns["slot"][later], columns["part"][later] = 1, slot, phase
            columns["first"][later] = int(first)
            columns["load"][later] = int(load and phase == fold - 1)
        if load:
            heads.append(at * fold + fold + latency)
    shown = trace(MacRow(shape), columns)["sums"]
    return [shown[t] for t in heads]


def summed(shape, issues):
    """What these issues add up to, with a Python dict as accumulators."""
    held, heads = {}, []
    for slot, first, load, weights, spectra in filter(None, issues):
        terms = np.array([np.multiply(operands(x), factors(w)) for x, w in zip(spectra, weights, strict=True)]).sum(0)
        held[slot] = terms if first else held[slot] + terms
        if load:
            heads.append(held[slot].tolist())
    return heads


@pytest.mark.parametrize("k", BLOCK_SIZES)
def test_products_are_those_of_the_arithmetic_minimum(k):
    assert row_shape(k).products == multiplications(k) == {1: 1, 2: 2, 4: 5, 8: 11, 16: 23}[k]


@pytest.mark.parametrize(("fold", "multipliers"), [(1, 11), (2, 6), (3, 4), (11, 1), (12, 1)])
def test_a_fold_takes_that_many_times_fewer_multipliers(fold, multipliers):
    assert row_shape(8, fold=fold).multipliers == multipliers


def test_operands_pair_to_the_three_products_of_a_bin():
    x, w = [1, 2, 3, 5, 7, 11, 13, 17], [19, 23, 29, 31, 37, 41, 43, 47]
    assert data_operands(x) == operands(x) == [1, 2, 8, 3, 5, 18, 7, 11, 30, 13, 17]
    assert weight_operands(w) == factors(w) == [19, 23, 29, 2, 60, 37, 4, 78, 43, 4, 90]
    assert data_operands(x[:1]) == x[:1]
    assert weight_operands(w[:2]) == w[:2]


@pytest.mark.parametrize(("k", "columns", "fold"), [
    (1, 1, 1), (2, 3, 1), (4, 2, 1), (4, 2, 2), (8, 1, 4), (8, 5, 1), (16, 1, 1), (16, 2, 23)])
def test_sums_equal_the_complex_products_of_golden(k, columns, fold):
    """Rows of 2 · columns blocks, whose halves meet in turn."""
    matrix, q = product(3, 2 * columns, k), 2 * columns
    spectra = numbers(matrix.spectrum, q, k)
    issues = [(0, half == 0, half == 1, row[half::2].tolist(), spectra[half::2].tolist())
              for row in matrix.weights for half in range(2)]
    golden = matrix.accumulate(spectra).tolist()
    assert [combined(sums) for sums in issued(row_shape(k, columns, q, fold=fold), issues)] == golden


@pytest.mark.parametrize("fold", [1, 2, 3])
@pytest.mark.parametrize(("columns", "slots"), [(1, 1), (1, 4), (3, 2), (4, 5)])
def test_sums_in_any_order_of_slots_equal_a_model(columns, slots, fold):
    """Random slots, gaps, beginnings and ends."""
    rng, shape = np.random.default_rng((columns, slots)), row_shape(4, columns, 60, slots, fold)
    begun, issues = set(), []
    for _ in range(60):
        if rng.random() < 0.2:
            issues.append(None)
            continue
        slot = int(rng.integers(slots))
        first, load = slot not in begun or rng.random() < 0.2, rng.random() < 0.3
        begun = begun - {slot} if load else begun | {slot}
        issues.append((slot, first, load, rng.integers(WEIGHT.lo, WEIGHT.hi + 1, (columns, 4)).tolist(),
                       rng.integers(DATA.lo, DATA.hi + 1, (columns, 4)).tolist()))
    heads = summed(shape, issues)
    assert len(heads) > 5
    assert issued(shape, issues) == heads


@pytest.mark.parametrize(("x", "w"), [
    ([-512, -512, -512, -512], [-128, -128, -128, -128]), ([511, 511, 511, 511], [-128, -128, -128, -128]),
    ([-512, 511, -512, 511], [127, -128, 127, -128]), ([-512, 511, 511, -512], [-128, 127, 127, -128])])
@pytest.mark.parametrize(("columns", "groups"), [(1, 1), (1, 4), (4, 1), (3, 2)])
def test_no_sum_of_extremes_wraps(columns, groups, x, w):
    issues = [(0, n == 0, n == groups - 1, [w] * columns, [x] * columns) for n in range(groups)]
    shape = row_shape(4, columns, columns * groups)
    assert issued(shape, issues) == summed(shape, issues)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5])
def test_the_latency_is_that_of_the_tree(columns):
    assert row_latency(columns) == 4 + (columns - 1).bit_length()


@pytest.mark.parametrize(("levels", "latencies"), [(4, [4, 5, 6, 7]), (6, [3, 4, 4, 5]), (9, [3, 4, 4, 4])])
def test_the_latency_for_more_levels_of_logic(levels, latencies):
    assert [row_latency(columns, levels) for columns in (1, 2, 4, 8)] == latencies


def test_the_drain_shifts_where_it_does_not_load():
    chain = [[n, -n] for n in range(10)]
    shown = trace(MacRow(row_shape(2)), {"chain": chain, "load": [int(n == 2) for n in range(10)]})["sums"]
    assert shown == [[0, 0], *chain[:4], [0, 0], *chain[5:9]]


def test_sums_that_a_chain_fetches_stay_until_the_next_ones_are_whole():
    """Sums of 6, 6 + 20 and 42, of which the second and the third are whole."""
    column = {"x": [[[0]], [[2]], [[4]], [[6]], *[[[0]]] * 6], "w": [[[3]], [[5]], [[7]], *[[[0]]] * 7],
              "add": [0, 0, 1, 1, 1, *[0] * 5], "first": [0, 0, 1, 0, 1, *[0] * 5], "load": [0, 0, 0, 1, 1, *[0] * 5]}
    shown = trace(MacRow(row_shape(1), apart=True), column)["sums"]
    assert shown == [[0]] * 5 + [[26]] + [[42]] * 4, "a cycle before those of a drain"


@pytest.mark.parametrize("fold", [2, 3])
def test_sums_of_several_phases_are_there_together_for_a_cycle(fold):
    """Products of weights that are all one, one after the other: each phase has its own."""
    shape, n = row_shape(4, fold=fold), 12
    each, added = shape.multipliers, range(-2, n - 2)
    inputs = {"w": [[[1, 0, 1, 0]]] * n, "x": [[[(c * each + i) % 400 for i in range(each)]] for c in range(n)],
              "phase": [c % fold for c in range(n)], "part": [c % fold for c in added], "first": [1] * n,
              "add": [int(c >= 0) for c in added], "load": [int(c >= 0 and c % fold == fold - 1) for c in added]}
    apart = trace(MacRow(shape, apart=True), inputs)["sums"]
    drained = trace(MacRow(shape), inputs | {"chain": [[0] * shape.products] * n})["sums"]
    whole = [c + 2 for c in range(n - 3) if inputs["load"][c]]
    assert [apart[c] for c in whole] == [drained[c + 1] for c in whole]
    assert any(any(drained[c + 1]) for c in whole)


def test_what_is_not_added_leaves_the_accumulators_alone():
    """Operands without ``add`` come between the two of a sum."""
    shape = replace(row_shape(1), slots=2)
    shown = trace(MacRow(shape), {
        "w": [[[3]], [[99]], [[5]], *[[[0]]] * 5], "x": [[[0]], [[7]], [[77]], [[11]], *[[[0]]] * 4],
        "add": [0, 0, 1, 0, 1, 0, 0, 0], "first": [0, 0, 1, 1, 0, 0, 0, 0], "load": [0, 0, 0, 0, 1, 0, 0, 0],
        "slot": [1] * 8, "chain": [[0]] * 8})["sums"]
    assert shown[7] == [3 * 7 + 5 * 11]


def test_a_tool_is_told_to_keep_what_the_accumulators_of_a_row_listen_to():
    text = VerilogTarget().convert(MacRow(row_shape(slots=2)), "row")
    kept = [name.strip() for names in re.findall(r"keep = 1 \*\) (?:reg|wire) (?:\[\d+:\d+\] )?([^;]+);", text)
            for name in names.split(",")]
    assert {"write", "row_first", "row_load", "row_loads", "address"} <= set(kept)


def bits(flow, kind, *arguments, **options):
    """The bits of all ports of a direction."""
    with unelaborated():
        unit = kind(*arguments, **options)
        found = sum(len(Value.cast(value)) for _, member, value in unit.signature.flatten(unit) if member.flow == flow)
        del unit
    return found


@pytest.mark.parametrize("shape", [row_shape(), row_shape(16, 5, 40, 7, levels=9), row_shape(64, 1, 200, 3, fold=12)])
def test_the_bits_that_go_into_a_row_are_counted(shape):
    assert 0 < shape.port_bits - bits(In, MacRow, shape, gated=True) < CONTROL
    forms = PairForms((), (None,) * shape.multipliers)
    assert 0 <= shape.pair_port_bits - max(
        bits(In, RowPair, shape, forms=forms, gated=True), bits(Out, RowPair, shape, forms=forms),
        bits(In, MacRow, shape, gated=True, given=True)) <= shape.products * shape.sum_width + CONTROL


@pytest.mark.soak
def test_a_row_with_more_bits_than_a_module_may_have_cannot_be_converted():
    """Or the limit may go, as Amaranth numbers them otherwise."""
    least = next(shape for columns in range(100, 140) if (shape := row_shape(64, columns, 144, fold=48)).port_bits
                 > PORT_BITS + CONTROL)
    with pytest.raises(AssertionError, match=r"^A cell must have at most 65,536 bits, but one has a bit 65536$"):
        VerilogTarget().convert(MacRow(least), "row")
    assert "module row" in VerilogTarget().convert(MacRow(replace(least, columns=least.columns - 2)), "row")
