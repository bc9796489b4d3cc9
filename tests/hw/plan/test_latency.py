"""The latency that is predicted is the one that a closed loop shows: a sample, silence, its result, silence."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw.plan.latency import reblocked, sample_latencies, sample_latency
from circulant.hw.planner import plan
from circulant.hw.stream.link import values
from circulant.hw.stream.width_converter import WidthConverter
from circulant.hw.top import Top, container_bits
from circulant.hw.unit import unelaborated
from circulant.sim.arith.fixed import Format
from circulant.sim.golden.network import Network
from circulant.sim.kinds.over_time import OverTime
from tests.hw.golden import network, recurrent
from tests.hw.plan.shared.drawn_stacks import stack
from tests.hw.played import step_cycles
from tests.hw.simulate import run, transfers

SILENCE = 120
"""Cycles, longer than any of these networks thinks."""


def single(kind, **options):
    layer = recurrent(kind, k=4, inputs=7, hidden=10, **options)
    return Network.chain("single", 7, True, (layer,))


def over_time(mode, k=0):
    before = network(4, 6, 6, returns="sequence")
    form = before.output_format
    layers = *before.layers, OverTime("pool", 6, mode, form, form)
    if k:
        behind = network(4, 6, 6, outputs=6, k_out=k).layers[-1]
        layers = *layers, replace(behind, product=replace(behind.product, input=form))
    return Network.chain("pooled", 6, True, layers)


NETWORKS = {
    "an LSTM": lambda: single("lstm", peephole=True),
    "a projection": lambda: single("lstm", projection=6),
    "a GRU that resets before": lambda: single("before"),
    "a last state, and blocks that are split": lambda: network(4, 8, 6, outputs=6, k_out=2),
    "each state, and blocks that are gathered": lambda: network(2, 8, 6, outputs=6, k_out=4, returns="sequence"),
    "a class": lambda: network(4, 8, 6, outputs=6, k_out=1).with_argmax(),
    "a plain layer": lambda: single("rnn"),
    "a maximum over time": lambda: over_time("max"),
    "a mean over time": lambda: over_time("mean"),
    "a mean whose blocks are split": lambda: over_time("mean", 1),
    "a mean whose blocks are gathered": lambda: over_time("mean", 8),
}


def closed_loop(dut, net, x, *, pause=True):
    """Latencies of the steps of a sequence (T, inputs), each alone in the circuit, whose last one is marked; without a
    pause each comes in the cycle behind the result of the one before. Of sequences (N, T, inputs) each as a whole. The
    circuit is a `Top`, or `tests.hw.test_top.Beats` around one."""
    top, bare = getattr(dut, "top", dut), not hasattr(dut, "top")
    offers, takes, gives = ("s_axis_tvalid", "s_axis_tready", "m_axis_tvalid") if bare else (
        "i.valid", "i.ready", "o.valid")
    beats, bits = -(-net.flow.size // top.input_block), container_bits(net.input_format.width)
    found, cycle = [], 0

    def offered(part, last):
        if not bare:
            return {offers: 1, "i.payload": {"data": part, "last": last}, "o.ready": 1}
        word = sum((value & (1 << bits) - 1) << bits * j for j, value in enumerate(part))
        return {offers: 1, "s_axis_tdata": word, "m_axis_tready": 1, "s_axis_tlast": last}

    def agent():
        nonlocal cycle
        for n, vectors in enumerate(x.reshape(len(x), -1, net.flow.size)):
            padded = np.pad(vectors, ((0, 0), (0, beats * top.input_block - net.flow.size)))
            padded = padded.reshape(-1, top.input_block)
            taken = given = 0
            for beat, part in enumerate(padded.tolist()):
                shown = yield offered(part, int(beat == len(padded) - 1 and n == len(x) - 1))
                cycle += 1
                while not shown[takes]:
                    shown = yield {}
                    cycle += 1
                taken = cycle
            shown = yield {offers: 0}
            cycle += 1
            left = -1 if pause else -(-net.end.size // top.output_block)
            for _ in range(SILENCE if pause else 10 * SILENCE):
                given = cycle if shown[gives] else given
                left -= shown[gives]
                if not left and given:
                    break
                shown = yield {}
                cycle += 1
            if given:
                found.append(given - taken)

    run(dut, agent())
    return found


@pytest.mark.parametrize(("name", "levels"), [
    *zip(NETWORKS, (4, 9, 6, 4, 9, 6, 6, 4, 9, 4, 6), strict=True),
    *(pytest.param(name, levels, marks=pytest.mark.soak) for name in NETWORKS for levels in (4, 6, 9))])
def test_it_is_that_of_the_hardware(name, levels):
    net = NETWORKS[name]()
    plans = plan(net, 60, levels=levels)
    top = Top(net, plans)
    predicted = sample_latency(net, plans, [(values(unit.i), values(unit.o)) for unit in top.units])
    x = np.random.default_rng(0).integers(net.input_format.lo, net.input_format.hi + 1, (3, net.flow.size))
    found = closed_loop(top, net, x)
    assert found == [predicted] * (3 if net.per_step else 1), "the first step has no state, and takes as long"
    if net.per_step:
        assert closed_loop(top, net, x, pause=False) == [predicted] * 3, "nothing is under way when its result is out"
    late = sample_latencies(net, plans, [(values(unit.i), values(unit.o)) for unit in top.units])
    assert late["latency_spaced"] == predicted
    assert (late["latency_contiguous"] == predicted) == (late.get("estimates") is None) == net.per_step


@pytest.mark.parametrize(("seed", "streams"), [
    (3, 1), *(pytest.param(seed, streams, marks=pytest.mark.soak) for seed in range(8) for streams in (1, 3))])
def test_samples_back_to_back_on_a_shared_array_take_as_long_as_is_predicted(seed, streams):
    net, plans, _ = stack(seed, streams)
    top = Top(net, plans)
    late = sample_latencies(net, plans, [(values(unit.i), values(unit.o)) for unit in top.units])
    x = np.random.default_rng(0).integers(net.input_format.lo, net.input_format.hi + 1, (12, net.flow.size))
    found = closed_loop(top, net, x, pause=False)
    assert found[6:] == [late["latency_contiguous"]] * 6
    if (seed, streams) == (3, 1):
        assert late == {"latency_spaced": 96, "latency_contiguous": 101}, "its array still multiplies the state"


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_the_latency_of_sequences_back_to_back_is_an_estimate(objective):
    """Its 32 steps come as soon as they are taken, behind a reset, so that here it is exact."""
    net = network(4, 8, 6, outputs=6)
    plans = plan(net, 60, objective=objective)
    top = Top(net, plans)
    late = sample_latencies(net, plans, [(values(unit.i), values(unit.o)) for unit in top.units])
    assert late["estimates"] == ["latency_contiguous"]
    x = np.random.default_rng(0).integers(net.input_format.lo, net.input_format.hi + 1, (32, net.flow.size))
    found, = closed_loop(top, net, x.reshape(1, 32, -1), pause=False)
    assert found == late["latency_contiguous"] > late["latency_spaced"]


def test_the_latency_of_a_mean_alone_is_known_for_a_sample_alone():
    """It has no array, so that there is nothing to play."""
    form = Format(12, 8)
    net = Network.chain("mean", 3, True, (OverTime("pool", 3, "mean", form, form),))
    plans = plan(net, 8)
    with unelaborated():
        late = sample_latencies(net, plans, [(values(unit.i), values(unit.o)) for unit in Top(net, plans).units])
    assert late["latency_spaced"] > 0 and late["latency_contiguous"] is None


def test_more_levels_of_logic_make_steps_shorter():
    net = single("lstm", peephole=True)
    found = [plan(net, 60, levels=levels)[0] for levels in (4, 6, 9)]
    periods = [step_cycles(net.stages[0], each.program(net.stages[0]), each.elements) for each in found]
    assert periods == [each.cycles for each in found]
    assert periods[0] > periods[1] > periods[2]


@pytest.mark.parametrize(("size", "k_in", "k_out"), [
    (10, 4, 2), (10, 2, 4), (9, 4, 1), (6, 8, 2), (7, 1, 4), (8, 4, 4)])
def test_other_blocks_leave_when_they_leave_a_converter(size, k_in, k_out):
    dut = WidthConverter(size=size, width=4, k_in=k_in, k_out=k_out)
    came, went = transfers(dut, [{"data": [0] * k_in, "last": 0}] * -(-size // k_in), quiet=9)
    split = min(k_out, size) <= k_in != k_out  # A wide block waits at the input until its last part leaves.
    assert went.cycles == reblocked([0] * len(came.cycles) if split else came.cycles, size, k_in, k_out)
