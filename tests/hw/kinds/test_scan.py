"""Scans equal golden, whatever stalls; a step takes as many cycles as blocks, or as the way to its state."""
import numpy as np
import pytest

from circulant.hw.array.plans import ValuesPlan
from circulant.hw.kinds.blend import LATENCY as BLEND
from circulant.hw.kinds.blend import BlendLayer
from circulant.hw.kinds.decay import LATENCY as DECAY
from circulant.hw.kinds.decay import DecayLayer
from circulant.hw.plan.ladders import ladder
from circulant.hw.plan.latency import leaving
from circulant.hw.unit import Site, unit
from circulant.sim.arith.fixed import Format
from circulant.sim.kinds.blend import Blend
from circulant.sim.kinds.decay import Decay
from circulant.sim.kinds.spiral import Spiral
from circulant.sim.refusal import Refusal
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import Transfers, cycles, run, sink, source, stream

SHAPES = [(7, 2), (4, 4), (1, 1), (5, 1), (9, 4)]
"""Values of a vector, and of a block."""

STALLS = [((0.0, 0.0), 0.0), ((0.6, 0.0), 0.3), ((0.0, 0.7), 0.6)]


def steps(form, inputs, seed):
    x = numbers(form, 27, inputs, seed=seed)
    return [x[:12], x[12:13], x[13:]]


WIDE = Format(12, 8)


def decay(inputs, output=WIDE):
    factors = numbers(Format(8, 7), inputs)
    return Decay("decay", inputs, factors, Format(8, 7), input_format=Format(10, 6), output_format=output)


def spiral(inputs, output=WIDE):
    factors, turns = (numbers(Format(8, 7), inputs // 2, seed=n) for n in (0, 1))
    return Spiral("spiral", inputs, factors, Format(8, 7), input_format=Format(10, 6), output_format=output,
                  turns=turns)


def played(dut, layer, stalls=(0.0, 0.0), out=0.0):
    """The blocks of a blend, and when they came and left; those of golden."""
    k = dut.k
    xs = [steps(form, layer.inputs, n) for n, form in enumerate(layer.input_formats)]
    came, left = [Transfers(), Transfers()], Transfers()
    wanted = blocks([layer([z[None], x[None]])[0] for z, x in zip(*xs, strict=True)], k)
    run(dut, *(source(f"i_{n}", blocks(each, k), passed, stall=stall, seed=n)
               for n, (each, passed, stall) in enumerate(zip(xs, came, stalls, strict=True))),
        sink("o", left, came, stall=out, quiet=200, count=len(wanted)))
    return left, wanted


@pytest.mark.parametrize(("stalls", "out"), STALLS)
@pytest.mark.parametrize("output", [Format(12, 8), Format(9, 3)])
@pytest.mark.parametrize(("inputs", "k"), SHAPES)
def test_blend_equals_golden(inputs, k, output, stalls, out):
    layer = Blend("blend", inputs, (Format(8, 7), Format(10, 6)), output)
    left, wanted = played(BlendLayer(layer, k=k, beside=(0, 0)), layer, stalls, out)
    assert left.payloads == wanted


@pytest.mark.parametrize(("stalls", "out"), STALLS)
@pytest.mark.parametrize("output", [Format(12, 8), Format(9, 3), Format(20, 2)])
@pytest.mark.parametrize(("inputs", "k"), SHAPES)
def test_decay_equals_golden(inputs, k, output, stalls, out):
    layer = decay(inputs, output)
    xs = steps(layer.input_format, inputs, 0)
    wanted = blocks([layer(x[None])[0] for x in xs], k)
    dut = DecayLayer(layer, elements=k)
    assert stream(dut, blocks(xs, k), stall_i=stalls[0], stall_o=out, count=len(wanted)) == wanted
    assert stream(dut, blocks(xs, k), stall_i=stalls[1], reset_at=31, count=len(wanted)) == wanted


@pytest.mark.parametrize(("stalls", "out"), STALLS)
@pytest.mark.parametrize(("inputs", "k"), [(6, 2), (4, 4), (2, 2), (10, 8)])
def test_spiral_equals_golden(inputs, k, stalls, out):
    layer = spiral(inputs)
    xs = steps(layer.input_format, inputs, 0)
    wanted = blocks([layer(x[None])[0] for x in xs], k)
    assert stream(DecayLayer(layer, elements=k), blocks(xs, k), stall_i=stalls[0], stall_o=out,
                  count=len(wanted)) == wanted
    plans = [each for (each,) in ladder(layer, streams=1, count=1).rungs]
    assert all((plan.multipliers, plan.elements % 2) == (2 * plan.elements, 0) for plan in plans)


@pytest.mark.parametrize(("inputs", "k"), SHAPES)
def test_steps_take_the_planned_cycles(inputs, k):
    layer = decay(inputs)
    plans = [each for (each,) in ladder(layer, streams=1, count=1).rungs]
    beats = -(-inputs // k)
    came, went = cycles(DecayLayer(layer, elements=k), blocks(steps(layer.input_format, inputs, 0), k))
    assert set(np.diff(came[::beats])) == {max(beats, DECAY)}
    assert went == leaving(layer, ValuesPlan(k, 1, k), came, k)
    assert all(plan.cycles == max(DECAY, -(-inputs // plan.elements)) for plan in plans)
    blend = Blend("blend", inputs, (Format(8, 7), Format(10, 6)), Format(12, 8))
    left, _ = played(BlendLayer(blend, k=k, beside=(0, 0)), blend)
    assert set(np.diff(left.cycles[::beats])) == {max(beats, BLEND)}


def test_refusals():
    layer = decay(4)
    with pytest.raises(Refusal, match=r"^Layer 'decay' keeps the state of one sequence, but 2 are interleaved; set"):
        ladder(layer, streams=2, count=1)
    for each in (layer, Blend("blend", 4, (Format(8, 7), Format(10, 6)), Format(12, 8))):
        with pytest.raises(Refusal, match=r"keeps a state that a reloadable design cannot exchange; leave hard"):
            unit(each, ValuesPlan(4, 1, 4), Site(config=object(), beside=(0, 0)))
