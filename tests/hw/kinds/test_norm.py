"""Normalisations equal golden, whatever stalls, take a block in each cycle, and give it when it is planned."""
import numpy as np
import pytest

from circulant.hw.array.plans import ValuesPlan
from circulant.hw.kinds.norm import NormLayer
from circulant.hw.plan.ladders import ladder
from circulant.hw.plan.latency import leaving
from circulant.hw.unit import unelaborated
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.norm import Norm
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles, stream

SHAPES = [(6, 2), (7, 4), (1, 1), (16, 4), (5, 1), (9, 16)]
"""Values of a vector, and of a block."""


def made(inputs, elements, mode, levels=4, **formats):
    forms = {"factor": Format(8, 6), "normal": Format(11, 8), "input_format": Format(9, 4),
             "output_format": Format(9, 5)} | formats
    layer = Norm("norm", inputs, mode, numbers(forms["factor"], inputs),
                 numbers(forms["output_format"], inputs, seed=1), epsilon=3, **forms)
    x = numbers(layer.input_format, 30, inputs)
    x[3] = 0
    x[7:12] >>= np.arange(2, 7)[:, None]
    xs = [x[:3], x[3:4], x[4:]]
    dut = NormLayer(layer, elements=elements, levels=levels)
    return layer, dut, blocks(xs, elements), blocks(map(layer, xs), elements)


@pytest.mark.parametrize("mode", ["layer", "rms"])
@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.6), (0.4, 0.5)])
@pytest.mark.parametrize(("inputs", "elements"), SHAPES)
def test_equals_golden(inputs, elements, stalls, mode):
    _, dut, given, wanted = made(inputs, elements, mode)
    assert stream(dut, given, stall_i=stalls[0], stall_o=stalls[1], count=len(wanted)) == wanted


@pytest.mark.parametrize("formats", [
    {"input_format": Format(20, 12)}, {"normal": Format(16, 14)}, {"normal": Format(5, 0)},
    {"output_format": Format(20, 18)}], ids=str)
def test_other_formats_equal_golden(formats):
    for mode in ("layer", "rms"):
        _, dut, given, wanted = made(11, 4, mode, **formats)
        assert stream(dut, given, count=len(wanted)) == wanted


@pytest.mark.parametrize("mode", ["layer", "rms"])
@pytest.mark.parametrize(("inputs", "elements", "levels"), [
    *((*shape, 4) for shape in SHAPES), (7, 4, 6), (16, 4, 6), (23, 8, 6), (23, 8, 9), (6, 2, 12)])
def test_a_block_is_taken_in_each_cycle_and_leaves_when_it_is_planned(inputs, elements, levels, mode):
    layer, dut, given, wanted = made(inputs, elements, mode, levels)
    came, went = cycles(dut, given, count=len(wanted))
    assert stream(dut, given, count=len(wanted)) == wanted
    assert np.diff(came).tolist() == [1] * (len(came) - 1)
    each, plan = -(-inputs // elements), ValuesPlan(elements, 1, 0, levels=levels)
    for n in range(30):
        assert went[n * each:(n + 1) * each] == leaving(layer, plan, came[n * each:(n + 1) * each], elements)


@pytest.mark.parametrize(("mode", "latencies"), [("layer", [22, 19, 17, 17]), ("rms", [21, 17, 15, 15])])
def test_more_levels_of_logic_take_fewer_cycles(mode, latencies):
    with unelaborated():
        layer = made(16, 4, mode)[0]
        plans = [ladder(layer, streams=1, count=1, levels=levels).rungs[0][0] for levels in (4, 6, 9, 12)]
    assert [leaving(layer, plan, [0], plan.elements)[0] for plan in plans] == latencies


def test_a_reset_forgets():
    _, dut, given, wanted = made(7, 2, "layer")
    assert stream(dut, given, stall_i=0.2, reset_at=40, count=len(wanted)) == wanted


def test_plans_take_three_multipliers_for_a_value():
    with unelaborated():
        layer = made(8, 2, "rms")[0]
    assert [(plan.elements, plan.cycles, plan.multipliers) for (plan,) in ladder(layer, streams=1, count=1).rungs] == [
        (1, 8, 5), (2, 4, 8), (4, 2, 14), (8, 1, 26)]
