"""A sample passes through a graph in the cycles that are planned, and queues hold what waits, no more."""
import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.plan.dataflow import depths, forked, latencies, stage_cycles
from circulant.hw.plan.latency import reblocked
from circulant.hw.plan.sizes import Sizes
from circulant.hw.planner import plan
from circulant.hw.top import Top
from circulant.hw.unit import unelaborated
from circulant.sim.quantize.quantize import quantize
from circulant.sim.refusal import Refusal
from tests.hw.golden import blocks
from tests.hw.plan import test_latency
from tests.hw.plan.test_latency import closed_loop
from tests.hw.simulate import cycles
from tests.hw.test_top import Beats
from tests.random_graphs import graph

BUDGET = 300
STEPS = 12


def made(seed):
    model = graph(seed, nodes=int(np.random.default_rng(seed).integers(2, 11)), wide=True)
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (6, *((4,) if model.sequence else ()), model.flow.size))
    return quantize(model, x, activation_bits=10, weight_bits=8)


def inputs(network, count):
    form = network.input_format
    return np.random.default_rng(0).integers(form.lo, form.hi + 1, (count, network.flow.size))


@pytest.mark.parametrize("seed", [0, 1, 3, 28, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(30, 90))])
def test_the_latency_of_a_graph_is_that_of_the_hardware(seed, monkeypatch):
    """Where a layer gives narrow blocks to some and wide ones to others, in joins of every kind, over steps, vectors,
    and vectors of whole sequences."""
    network = made(seed)
    try:
        plans = plan(network, 60)
    except Refusal:
        plans = plan(network, BUDGET)
    monkeypatch.setattr(test_latency, "SILENCE", 600)
    top = Top(network, plans)
    assert Sizes(network)(plans) == top.blocks
    late = latencies(network, plans, top.blocks)
    x = inputs(network, 3 if network.sequence else 1)
    found = closed_loop(top, network, x)
    assert found == [late["latency_spaced"]] * len(found) and found
    if network.per_step or not network.sequence:
        assert closed_loop(top, network, x, pause=False) == found
        assert late["latency_contiguous"] == late["latency_spaced"]
    else:
        assert late["latency_contiguous"] is None


def ending(network, change):
    """The cycle of the last beat of samples back to back, with queues whose depths are changed."""
    dut = Beats(network, BUDGET)
    for n, unit in enumerate(dut.top.units):
        if hasattr(unit, "depths"):
            unit.depths = change(n, unit.depths)
    x = inputs(network, STEPS)
    samples = [x] if network.sequence else list(x[:, None])
    beats = -(-network.end.size // dut.top.output_block)
    count = beats * (1 if network.sequence and not network.per_step else STEPS)
    _, went = cycles(dut, blocks(samples, dut.top.input_block), quiet=900, count=count)
    assert len(went) == count
    return went[-1]


@pytest.mark.parametrize("seed", [3, 13, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(14, 40))])
def test_a_graph_is_as_fast_as_with_endless_queues(seed):
    """That of seed 13 puts vectors side by side of which the first come long before the others."""
    network = made(seed)
    if not network.arrangement.chain:
        assert ending(network, lambda n, own: own) == ending(network, lambda n, own: [500] * len(own))


def test_a_queue_of_few_words_less_stalls():
    """Where most waits. In many graphs few words less do not show: the stages have small queues of their own, which the
    plan does not count on, and no queue may be shorter than a vector."""
    network = made(31)
    plans = plan(network, BUDGET)
    with unelaborated():
        top = Top(network, plans)
        found, planned = stage_cycles(network, plans, top.blocks), depths(network, plans, top.blocks)
        own = {n: unit.depths for n, unit in enumerate(top.units) if hasattr(unit, "depths")}
        del top
    assert own == planned
    deeper = [(n, at, words) for n, each in own.items() for at, words in enumerate(each)
              if words > len(found[n].comes[at])]
    assert deeper == [(6, 0, 47)] and len(found[6].comes[0]) == 16
    assert ending(network, lambda n, words: [44, *words[1:]] if n == 6 else words) > ending(
        network, lambda n, words: words)


@pytest.mark.parametrize(("k", "own", "size"), [(4, 1, 10), (1, 4, 10), (2, 8, 13), (8, 2, 13), (4, 4, 9), (8, 4, 3)])
def test_one_reader_takes_blocks_as_in_a_chain(k, own, size):
    rng = np.random.default_rng(size)
    for gap in (1, 3):
        leaves = np.cumsum(rng.integers(1, gap + 1, -(-size // k))).tolist()
        assert forked(leaves, size, k, [own]) == [reblocked(leaves, size, k, own)]


def test_a_block_waits_for_the_slowest_reader():
    assert forked([5, 6, 9], 12, 4, [1, 4, 12]) == [
        [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], [5, 9, 13], [14]]


def test_the_manifest_has_the_words_of_each_queue():
    network = made(13)
    design = generate(network, multipliers=BUDGET)
    waits = {each["name"]: each["waiting"] for each in design.manifest["layers"] if "waiting" in each}
    assert set(waits) == {layer.name for layer in network.layers if layer.joins}
    assert all(words >= 1 for each in waits.values() for words in each)
    assert design.manifest["latency_spaced"] > 0 and design.manifest["latency_contiguous"] is not None
