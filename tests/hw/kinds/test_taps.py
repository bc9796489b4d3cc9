"""Taps of earlier steps equal golden, whatever stalls, also behind a reset; a block leaves in each cycle."""
import numpy as np
import pytest

from circulant.hw.kinds.taps import TapsLayer
from circulant.hw.plan.ladders import ladder
from circulant.hw.unit import Site, unelaborated, unit
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.taps import Taps
from circulant.sim.refusal import Refusal
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import stream, transfers

FORM = Format(9, 4)

SHAPES = [(4, 2, 1, 4), (8, 3, 1, 4), (7, 3, 2, 4), (1, 4, 3, 1), (3, 2, 5, 4), (5, 5, 1, 1), (12, 3, 2, 4)]
"""Values of a vector, taps, dilation, values of a block: rings of one word, of one for each step, and of more."""


def made(inputs, taps, dilation, k, early=True):
    layer = Taps("taps", inputs, taps, dilation, width=-(-inputs // k) * k, input_format=FORM)
    x = numbers(FORM, 27, inputs)
    xs = [x[:12], x[12:13], x[13:18], x[18:]]
    wanted = blocks([layer(each[None])[0] for each in xs], k)
    return TapsLayer(layer, k=k, early=early), blocks(xs, k), wanted


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.4, 0.4)])
@pytest.mark.parametrize(("inputs", "taps", "dilation", "k"), SHAPES)
@pytest.mark.parametrize("early", [False, True])
def test_taps_equal_golden(inputs, taps, dilation, k, stalls, early):
    dut, given, wanted = made(inputs, taps, dilation, k, early)
    ahead = early * (taps - 1) * dut._beats  # The older taps of a step that does not come: zeros.
    found = stream(dut, given, stall_i=stalls[0], stall_o=stalls[1], count=len(wanted) + ahead)
    assert found[:len(wanted)] == wanted
    assert found[len(wanted):] == [{"data": [0] * k, "last": 0}] * ahead


def test_a_reset_forgets():
    dut, given, wanted = made(7, 3, 2, 4)
    assert stream(dut, given, stall_i=0.3, reset_at=50, count=len(wanted))[:len(wanted)] == wanted


@pytest.mark.parametrize(("inputs", "taps", "dilation", "k"), SHAPES)
def test_a_block_leaves_in_each_cycle_and_older_taps_before_the_newest(inputs, taps, dilation, k):
    dut, given, wanted = made(inputs, taps, dilation, k)
    came, went = transfers(dut, given, count=len(wanted))
    assert set(np.diff(went.cycles)) == {1}
    each = taps * dut._beats
    newest = [cycle for n, cycle in enumerate(went.cycles[:len(wanted)]) if n % each >= each - dut._beats]
    assert [left - taken for taken, left in zip(came.cycles, newest, strict=True)] == [dut.latency] * len(came.cycles)
    late, waits = transfers(dut, given, stall_i=0.9, count=len(wanted))
    first = late.cycles[5 * dut._beats]
    assert waits.cycles[5 * each + each - dut._beats - 1] < first + dut.latency


def test_blocks_are_those_of_what_lies_behind_where_they_suit():
    layer = Taps("taps", 24, 2, 1, width=24, input_format=FORM)
    with unelaborated():
        found = [(each._k, each._early) for each in (
            unit(layer, None, Site(wanted=wanted)) for wanted in (1, 4, 8, 16))]
        assert found == [(8, False), (4, True), (8, True), (8, False)]
    assert ladder(layer, streams=1, count=1).rungs[0][0].cycles == 6


def test_refusals():
    layer = Taps("taps", 8, 2, 1, width=8, input_format=FORM)
    with pytest.raises(Refusal, match=r"^Layer 'taps' keeps the vectors of one sequence, but 3 are interleaved; set"):
        ladder(layer, streams=3, count=1)
    with pytest.raises(Refusal, match=r"^Layer 'taps' keeps vectors of earlier steps, which a reloadable design"):
        unit(layer, None, Site(config=object()))
