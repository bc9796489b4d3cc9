"""Streams that carry several blocks a cycle: results are golden's, and cycles those that are planned."""
import re
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.families import _Family
from benchmarks.rnn import layer
from circulant.hw import generate, writes
from circulant.hw.array.plans import LayerPlan, sharings
from circulant.hw.beats import AUTO
from circulant.hw.design import Design
from circulant.hw.plan.dataflow import latencies
from circulant.hw.plan.latency import with_state_first
from circulant.hw.plan.layer_plan import candidates
from circulant.hw.plan.sizes import Sizes
from circulant.hw.planner import plan
from circulant.hw.top import Top
from circulant.sim.golden.network import Network
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real.float_model import Model
from circulant.sim.refusal import Refusal
from circulant.sim.shape.graph import Input
from circulant.sim.shape.window import Flow
from tests.hw import drawn_layers
from tests.hw.golden import blocks
from tests.hw.plan import test_latency
from tests.hw.session import Host
from tests.hw.simulate import cycles, stream
from tests.hw.test_reload_words import same
from tests.hw.test_top import Beats


def network(grow, *sizes, block=4, inputs=1, sequence=True):
    """A family of `benchmarks.families`, quantized."""
    family = _Family(block)
    getattr(family, grow)(*sizes)
    model = Model(grow, (Input("x", Flow(inputs, sequence=sequence)),), tuple(family.nodes),
                  (family.nodes[-1].layer.name,))
    x = np.random.default_rng(0).normal(0, 1, (6, *((6,) if sequence else ()), inputs))
    return quantize(model, x, activation_bits=10, weight_bits=8)


def cell(kind, inputs, hidden, projection=0, *, block=4, behind=()):
    """A layer of `benchmarks.rnn`, and what lies behind it, quantized."""
    made = layer(kind, inputs, hidden, projection, block)
    x = np.random.default_rng(0).normal(0, 1, (6, 6, inputs))
    return quantize(Model.chain(kind, inputs, True, (made, *behind)), x, activation_bits=10, weight_bits=8)


NETWORKS = {"perceptron": lambda: network("perceptron", 2, 19, inputs=19, sequence=False),
            "steps": lambda: network("perceptron", 2, 19, inputs=19),
            "tcn": lambda: network("tcn", 12),
            "causal": lambda: network("causal", 20, 3, inputs=20),
            "dense": lambda: network("causal", 8, 2, inputs=8, block=1),
            "wavenet": lambda: network("wavenet", 12, 2),
            "space": lambda: network("space", 24, 16, inputs=24),
            "projected": lambda: cell("lstm", 8, 24, 16),
            "gru": lambda: cell("gru", 8, 16)}


CASES = [("perceptron", 2, 90, "throughput"), ("perceptron", AUTO, 120, "auto"), ("steps", 2, 90, "auto"),
         ("tcn", 2, 200, "auto"), ("causal", 4, 300, "throughput"), ("causal", AUTO, 300, "auto"),
         ("dense", 2, 120, "throughput"), ("wavenet", AUTO, 200, "auto"),
         ("steps", AUTO, 300, "latency"), ("perceptron", 2, 150, "area"),
         ("projected", 2, 500, "throughput"), ("projected", 2, 400, "latency"), ("gru", 4, 300, "auto"),
         ("space", AUTO, 200, "auto")]
"""Vectors of 5 and of 3 blocks, with beats of several, also through one array; cells, one of which has a second
vector."""


@pytest.fixture(scope="module", params=CASES)
def made(request):
    """The name of a network, the network, its plans, and the circuit, which is compiled once for both tests."""
    name, beat_blocks, multipliers, objective = request.param
    found = NETWORKS[name]()
    plans = plan(found, multipliers, levels=6, objective=objective, beat_blocks=beat_blocks)
    return name, found, plans, Beats(found, 0, plans)


def test_a_sample_takes_what_is_planned(made, monkeypatch):
    monkeypatch.setattr(test_latency, "SILENCE", 600)
    _, found, plans, dut = made
    top = dut.top
    assert Sizes(found)(plans) == top.blocks
    late = latencies(found, plans, top.blocks)
    form = found.input_format
    count = 3 if found.sequence else 1
    x = np.random.default_rng(1).integers(form.lo, form.hi + 1, (count, found.flow.size))
    apart = any(each.apart for each in sharings(plans))  # Then older taps come first behind a reset.
    assert test_latency.closed_loop(dut, found, x)[apart:] == [late["latency_spaced"]] * (count - apart)
    if not apart and not (late["latency_contiguous"] is None and with_state_first(found.stages, plans)):
        assert test_latency.closed_loop(dut, found, x, pause=False) == [late["latency_contiguous"]] * count


def test_results_are_those_of_golden_and_vectors_come_in_the_period_that_is_planned(made):
    name, found, plans, dut = made
    assert any(max(plan.shape.takes, plan.shape.gives) > 1 for plan in plans if isinstance(plan, LayerPlan))
    form = found.input_format
    x = np.random.default_rng(2).integers(form.lo, form.hi + 1, (3, 4, found.flow.size))
    if not found.sequence:
        x = x.reshape(-1, 1, found.flow.size)
    given = blocks(list(x), dut.top.input_block)
    wanted = blocks([np.atleast_2d(found.run_integers(each[None] if found.sequence else each)[0]) for each in x],
                    dut.top.output_block)
    assert stream(dut, given, stall_i=0.3, stall_o=0.3, quiet=700) == wanted
    if name in ("tcn", "causal", "dense", "wavenet"):
        return
    x = np.random.default_rng(2).integers(form.lo, form.hi + 1, (34, 1, found.flow.size))
    steps = x if found.stages[0].kind == "linear" else x.swapaxes(0, 1)  # Vectors, or a sequence of them.
    leaves = -(-found.end.size // dut.top.output_block)
    left = cycles(dut, blocks(list(steps), dut.top.input_block), quiet=300)[1][leaves - 1::leaves]
    assert (left[-1] - left[-13]) / 12 == max(each.cycles for each in plans)


def test_products_that_the_result_waits_for_take_more_values():
    """Multipliers that are left go to joins, too."""
    found, elements = network("wavenet", 24, 2), []
    for beat_blocks, objective in ((1, "throughput"), (2, "auto")):
        plans = plan(found, 120, levels=6, objective=objective, beat_blocks=beat_blocks)
        elements.append([plan.elements for stage, plan in zip(found.stages, plans, strict=True)
                         if stage.kind == "product"])
        assert max(plan.cycles for plan in plans) <= 27
    assert elements == [[1, 1], [2, 2]]


@pytest.mark.parametrize("elements", [4, 1])
def test_a_range_that_waits_holds_up_nothing_beside_it(elements, monkeypatch):
    """Six blocks of each of two ranges, one behind the other, to functions of which each takes a block in ``4 /
    elements`` cycles."""
    monkeypatch.setattr(test_latency, "SILENCE", 600)
    found = network("wavenet", 24, 2)
    plans = [replace(each, elements=elements, cycles=24 // elements, multipliers=elements)
             if stage.kind == "activation" else each for stage, each in zip(
                 found.stages, plan(found, 1500, levels=6, objective="throughput"), strict=True)]
    top, x = Top(found, plans), np.random.default_rng(1).integers(-100, 100, (3, 1))
    assert test_latency.closed_loop(top, found, x) == [latencies(found, plans, top.blocks)["latency_spaced"]] * 3


def test_more_blocks_shorten_period_and_latency():
    found = NETWORKS["perceptron"]()
    figures = []
    for beat_blocks in (1, 4, AUTO):
        design = generate(found, multipliers=400, levels=6, objective="throughput", beat_blocks=beat_blocks)
        figures.append((design.figures.cycles, design.manifest["latency_spaced"]))
        assert design.manifest.get("beat_blocks", 1) == beat_blocks
    assert figures[2] <= figures[1] < figures[0] and figures[1][1] < figures[0][1]


def reloaded(kind, seed):
    """A cell and a fully connected layer, whose formats do not depend on the seed."""
    projected = {"projection": 16} if kind == "lstm" else {}
    made = getattr(drawn_layers, kind)(seed, k=4, inputs=8, hidden=24, **projected)
    return Network.chain(kind, 8, True, (made, drawn_layers.linear(seed + 1, k=4, inputs=made.outputs, outputs=13)))


@pytest.mark.parametrize(("kind", "beat_blocks"), [("gru", 4), ("lstm", 2)])
def test_a_reloadable_design_takes_what_is_planned_and_other_weights_between_two_steps(kind, beat_blocks, monkeypatch):
    monkeypatch.setattr(test_latency, "SILENCE", 600)
    own, other = reloaded(kind, 3), reloaded(kind, 7)
    plans = plan(own, 600, levels=6, objective="throughput", reloadable=True, beat_blocks=beat_blocks)
    plans[0] = next(each for each in candidates(own.stages[0], 1, 6, beat_blocks) if each.shape.gives > 1)
    assert plans[1].shape.gives > 1
    x = np.random.default_rng(1).integers(-25000, 25000, (1, 5, 8))
    top = Top(own, plans, reloadable=True)
    for pause, name in ((True, "latency_spaced"), (False, "latency_contiguous")):
        late = latencies(own, plans, top.blocks)[name]
        assert test_latency.closed_loop(top, own, x[0, :3], pause=pause) == [late] * 3
    config, host = top.config.map, Host(own, top, stall=0.3)
    words = writes(Design(own, plans, "", {}, {"configuration": config.as_json()}), other)
    first, state = own.resume(x[:, :3], own.initial(1))
    host.vectors(x[0, :3], 3, False)
    host.operations([*config.hold(), *config.save(), *config.load(words), *config.restore(state), *config.release()])
    host.vectors(x[0, 3:], 2, [False, True])
    got = host.play()
    assert got[0].tolist() == first[0].tolist()
    same(config.saved(got[1], state), state)
    assert got[2].tolist() == other.resume(x[:, 3:], state)[0][0].tolist() != own.resume(x[:, 3:], state)[0][0].tolist()


@pytest.mark.parametrize(("blocks", "options", "words"), [
    (3, {}, "hardware.beat_blocks must be 1, 2, 4, 8, 16, or 0 for the best of them, not 3; give a power of two"),
    (True, {}, "not True; give a power of two"),
    (2, {"objective": "area"}, "must be 1 or 0 where objective 'area' gives all layers one array, not 2; leave it out"),
    (2, {"streams": 2}, "where 2 streams are interleaved, not 2")])
def test_what_has_no_wide_beats_is_refused(blocks, options, words):
    found = cell("gru", 8, 8, behind=(replace(layer("gru", 8, 8, 0, 4), name="behind"),))
    with pytest.raises(Refusal, match=re.escape(words)):
        generate(found, multipliers=100, beat_blocks=blocks, **options)
