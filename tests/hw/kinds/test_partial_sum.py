"""Shares of a matrix's columns and what adds up their sums equal golden, whatever stalls."""
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from circulant.hw.arith.fft import fft_latency
from circulant.hw.array.layer_programs import layer_program
from circulant.hw.array.program import ArrayShape
from circulant.hw.chips.columns import column_share, column_sum
from circulant.hw.kinds.linear import LinearLayer
from circulant.hw.kinds.partial_sum import PartialSumLayer
from circulant.hw.plan.dataflow import joined
from circulant.sim.kinds.linear import Linear
from tests.hw.golden import blocks, numbers, product
from tests.hw.simulate import Transfers, run, sink, source, stream


def shares(k, ends, relu=False, shifts=(), multiplier="exact"):
    """A layer whose last output block is not whole, its shares and their sums of some vectors."""
    matrix = replace(product(3, ends[-1], k), row_shifts=shifts, multiplier=multiplier)
    layer = Linear("whole", ends[-1] * k, 3 * k - k // 2, matrix, relu)
    parts = [column_share(layer, f"share{n}", *each) for n, each in enumerate(pairwise(ends))]
    x = numbers(layer.input_format, 12, layer.inputs)
    return layer, x, parts, [part(x[:, begin * k:end * k]) for part, (begin, end) in zip(
        parts, pairwise(ends), strict=True)]


@pytest.mark.parametrize(("k", "levels", "multiplier"), [
    (1, 4, "exact"), (4, 4, "mitchell"), (4, 6, "exact"), (8, 4, "exact"), (8, 6, "truncated:3")])
def test_a_share_gives_its_sums(k, levels, multiplier):
    _, x, parts, (sums, _) = shares(k, (0, 3, 5), multiplier=multiplier)
    dut = LinearLayer(parts[0], program=layer_program(parts[0], ArrayShape(2, 1, 1, levels=levels), (1, 1, 1)))
    given, wanted = ([block for row in rows for block in blocks([row[None]], k)] for rows in (x[:, :3 * k], sums))
    assert stream(dut, given, stall_i=0.3, stall_o=0.4) == wanted


@pytest.mark.parametrize(("k", "ends", "relu", "shifts"), [
    (4, (0, 2, 5), False, ()), (8, (0, 1, 2, 5), True, (0, 2, 1)), (1, (0, 4, 9), False, (1, 0, 0)),
    (16, (0, 1, 3), False, ())])
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_sums_of_shares_become_the_outputs_of_the_layer(k, ends, relu, shifts, stall):
    layer, x, parts, sums = shares(k, ends, relu, shifts)
    whole = column_sum(layer, [part.output_format for part in parts])
    dut = PartialSumLayer(whole, beside=[0] * len(sums))
    came, left = [Transfers() for _ in sums], Transfers()
    wanted = blocks([y[None] for y in layer(x)], k)
    run(dut, *(source(f"i_{n}", blocks([row[None] for row in each], k), passed, stall=stall, seed=n)
               for n, (each, passed) in enumerate(zip(sums, came, strict=True))),
        sink("o", left, came, stall=stall, quiet=200, count=len(wanted)))
    assert left.payloads == wanted and np.unique(layer(x)).size > 3
    if not stall:
        turns, _, more = joined(whole, [each.cycles for each in came], k)
        assert left.cycles == [turn + more for turn in turns] and more > fft_latency(k)
