"""Bidirectional networks as a whole: plan, manifest, what happens to long sequences, and Verilog against golden."""
import re

import numpy as np
import pytest

from circulant.hw import generate
from circulant.hw.array.layer_programs import layer_program
from circulant.hw.plan.layer_plan import PairPlan
from circulant.hw.planner import layer_multiplications, plan
from circulant.sim.cosim import verify
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from tests.hw.golden import blocks, numbers
from tests.hw.played import sequence_cycles
from tests.hw.simulate import Transfers, run, sink, source
from tests.hw.test_top import Beats
from tests.sim import samples

BITS = {"activation_bits": 10, "weight_bits": 6, "weight_scale": "row", "twiddle_bits": 8, "segments": 16}


def network(*, layers=1, hidden=6, projection=0, outputs=3, returns="sequence", kind="lstm", k=4, inputs=5):
    """Bidirectional layers, the last of which returns ``returns``, and a Linear behind them."""
    chain, given = [], inputs
    options = {"projection": projection} if kind == "lstm" else {}
    for n in range(layers):
        chain.append(samples.bidirectional(kind, given, hidden, k=k, name=f"both{n}", scale=0.5, **options,
                                           returns=returns if n == layers - 1 else "sequence"))
        given = chain[-1].outputs
    rng = np.random.default_rng(5)
    chain.append(FloatLinear("out", given, outputs, rng.normal(0, 0.5, (-(-outputs // k), -(-given // k), k)),
                             rng.normal(0, 0.5, outputs)))
    model = float_model.Model.chain("both_ways", inputs, True, tuple(chain))
    return quantize(model, samples.data(model), **BITS)


def test_the_directions_share_the_budget_and_grow_together():
    net, before = network(), 10 ** 9
    for budget in (30, 50, 80, 130, 200, 400):
        both, out = plan(net, budget)
        assert isinstance(both, PairPlan)
        assert both.forward == both.backward, "they have the same size"
        assert both.multipliers + out.multipliers <= budget
        assert both.cycles == max(both.forward.cycles, both.blocks) <= before
        before = both.cycles
    assert both.blocks == 3


def test_directions_of_different_sizes_take_about_the_same_time():
    wide, narrow = (samples.bidirectional("gru", 5, hidden, k=4) for hidden in (48, 8))
    model = samples.chain(float_model.Bidirectional("both", wide.forward, narrow.backward))
    both, = plan(quantize(model, samples.data(model), **BITS), 60)
    assert both.forward.multipliers > 2 * both.backward.multipliers
    assert both.backward.cycles <= both.forward.cycles


def test_the_smallest_budget_counts_both_directions():
    with pytest.raises(Refusal, match=r"needs at least (\d+) multipliers") as refused:
        plan(network(), 5)
    least = int(re.search(r"least (\d+)", str(refused.value))[1])
    assert sum(each.multipliers for each in plan(network(), least)) <= least


def test_interleaved_streams_are_refused():
    with pytest.raises(Refusal, match=r"^Sequences can only be interleaved if all layers run forward, but layer "
                                      r"'both0' is bidirectional; set hardware\.streams to 1, not 2$"):
        generate(network(), streams=2)


def top_ports(design):
    """The text of the ports of the top."""
    return re.search(r"^module circulant_top \((.*?)^\);", design.verilog, re.M | re.S)[1]


@pytest.mark.parametrize("steps", [0, -1, 1.5, True])
def test_a_number_of_steps_that_is_none_is_refused(steps):
    with pytest.raises(Refusal, match=f"^max_steps must be a positive integer, not {re.escape(repr(steps))}; give the "
                                      "length of the longest sequence$"):
        generate(network(), max_steps=steps)


@pytest.mark.parametrize(("returns", "per"), [
    ("sequence", "step"), pytest.param("last", "sequence", marks=pytest.mark.soak)])
def test_the_manifest(returns, per):
    net = network(returns=returns)
    design = generate(net, multipliers=100, max_steps=9, objective="throughput")
    both, out = map(layer_multiplications, net.stages)
    manifest, (pair, _) = design.manifest, design.plans
    assert (manifest["max_steps"], manifest["streams"], manifest["output"]["per"]) == (9, 1, per)
    assert manifest["multiplications"] == (
        {"per_step": both + out, "per_sequence": 0} if per == "step" else {"per_step": both, "per_sequence": out})
    entry = manifest["layers"][0]
    assert (entry["name"], entry["kind"], entry["cycles"]) == ("both0", "bidirectional", pair.cycles)
    assert entry["floor"] == -(-both // pair.multipliers)
    for name in ("forward", "backward"):
        assert entry[name]["name"] == f"both0.{name}"
        assert entry[name]["cycles"] == getattr(pair, name).cycles
    assert design.multipliers == sum(each.multipliers for each in design.plans) <= 100
    assert re.search(r"^  output (reg )?overflow\b", top_ports(design), re.M)


def test_the_memories_grow_with_the_sequences():
    """The reversed input and output and what waits for them: two sequences each."""
    net = network()
    small, large = (generate(net, multipliers=24, max_steps=steps, objective="throughput") for steps in (10, 11))
    width, blocks_in, blocks_out = net.stages[0].input_format.width, 2, 2
    out = net.stages[0].output_format.width
    assert large.memory_bits - small.memory_bits == 2 * (
        4 * width * blocks_in + 4 * out * blocks_out + (4 * out + 1) * blocks_out)
    assert abs(small.verilog.count("\n") - large.verilog.count("\n")) < 20


class Watched(Beats):
    """A top with its ``overflow``, of sequences of three steps."""

    def __init__(self, net):
        super().__init__(net, 100, max_steps=3)


@pytest.mark.parametrize("returns", ["sequence", "last"])
def test_a_long_sequence_is_cut_and_its_parts_are_sequences(returns):
    net = network(layers=2, hidden=4, returns=returns)
    dut = Watched(net)
    xs = [numbers(net.input_format, t, net.flow.size, seed=t) for t in (3, 2, 8, 1)]
    parts = [x[start:start + 3] for x in xs for start in range(0, len(x), 3)]
    ys = [np.atleast_2d(net.run_integers(x[None])[0]) for x in parts]
    wanted = blocks(ys, dut.top.output_block)
    came, went, told = Transfers(), Transfers(), []

    def watch():
        while not came.done:
            shown = yield {}
            told.append((len(came.payloads), shown["overflow"]))

    run(dut, source("i", blocks(xs, dut.top.input_block), came, stall=0.1),
        sink("o", went, [came], stall=0.2, quiet=800, count=len(wanted)), watch())
    assert went.payloads == wanted
    beats = -(-net.flow.size // dut.top.input_block)
    first = (3 + 2 + 3) * beats
    assert {overflow for count, overflow in told if count < first} == {0}
    assert {overflow for count, overflow in told if count > first} == {1}


def test_without_a_bidirectional_layer_any_length_will_do():
    model = samples.model()
    net = quantize(model, samples.data(model), **BITS)
    design = generate(net, multipliers=60, objective="throughput")
    assert design.manifest["max_steps"] is None
    assert "overflow" not in top_ports(design)


@pytest.mark.parametrize(("returns", "options"), [
    ("sequence", {"layers": 2, "hidden": 6}),
    pytest.param("last", {"layers": 1, "hidden": 7, "projection": 5}, marks=pytest.mark.soak),
])
def test_the_verilog_equals_golden(tmp_path, returns, options):
    net = network(returns=returns, **options)
    x = np.random.default_rng(2).uniform(-1, 1, (24, 6, net.flow.size))
    design = generate(net, multipliers=60, max_steps=6, objective="throughput")
    design.write(tmp_path / "design")
    result = verify(tmp_path / "design", net.vectors(x))
    assert (result.mismatches, result.first) == (0, None)
    assert result.words_compared > 3 * result.words
    pairs = list(zip(net.stages, design.plans, strict=True))[:-1]
    assert result.cycles_per_step == design.plans[0].cycles, "memories of whole sequences take what the first one gives"
    assert result.cycles_per_sequence == max(
        sequence_cycles(each, layer_program(each, got.shape, got.spacing), got.elements, steps=6)
        for layer, pair in pairs for each, got in zip(layer.directions.values(), (pair.forward, pair.backward),
                                                      strict=True)), "until they are full"
    lengths = np.random.default_rng(3).integers(1, 7, 24)
    mixed = verify(tmp_path / "design", net.vectors(x, lengths=lengths), stalls=False)
    assert (mixed.mismatches, mixed.words) == (0, net.end.size * (lengths.sum() if returns == "sequence" else 24))
