"""Reloadable designs as a whole: several layers under Verilator, both directions, and what the port costs."""
from dataclasses import replace

import numpy as np
import pytest

from circulant.hw import generate, writes
from circulant.hw.array.layer_programs import layer_program
from circulant.hw.array.plans import with_protection
from circulant.hw.design import Design
from circulant.hw.planner import plan
from circulant.hw.top import Top
from circulant.sim.configuration import HOLD, IDLE, READ, STATUS, WRITE, Operation
from circulant.sim.cosim import SimulationError, exchange, verify
from circulant.sim.golden.network import Network
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.quantize.quantize_like import quantize_like
from circulant.sim.real import float_model
from circulant.sim.refusal import Refusal
from tests.hw import drawn_layers as layers
from tests.hw.played import sequence_cycles
from tests.hw.session import Host
from tests.sim import samples

BITS = {"activation_bits": 10, "weight_bits": 8, "twiddle_bits": 8, "segments": 16}


def deep(seed):
    """An LSTM, a GRU of another block size, a Linear; formats that do not depend on the seed."""
    return Network.chain(f"deep {seed}", 6, True, (
        layers.lstm(seed, k=4, inputs=6, hidden=10, projection=6),
        replace(layers.gru(seed + 1, k=2, inputs=6, hidden=5, reset="before"), name="gru"),
        layers.linear(seed + 2, k=4, inputs=5, outputs=3)))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    design = generate(deep(3), multipliers=90, streams=2, reloadable=True, objective="throughput", protection="scrub")
    return design, design.write(tmp_path_factory.mktemp("reloadable") / "design")


@pytest.fixture(scope="module")
def fixed():
    """The same without a port."""
    return generate(deep(3), multipliers=90, streams=2, objective="throughput", protection="secded")


def test_networks_and_states_are_exchanged_in_verilog(written):
    design, folder = written
    own, other = design.network, deep(7)
    vectors = own.vectors(np.random.default_rng(2).uniform(-1, 1, (5, 6, 6)))
    words = writes(design, other)
    result = exchange(folder, own, other, words, vectors.inputs)
    assert (result.mismatches, result.first, result.wrong_values) == (0, None, 0)
    assert result.words_written == len(words) > 100
    assert result.values_compared == 3 * 2 * (6 + 10 + 5), "three readings of two streams: y and c, h"
    blamed = exchange(folder, own, deep(8), words, vectors.inputs)
    assert blamed.mismatches > 0, "the words of another network have to be found out"
    assert blamed.first.run == "other network"


def test_a_chain_of_layers_takes_the_cycles_of_the_slowest_one(written):
    design, folder = written
    net = design.network
    ordinary = verify(folder, net.vectors(np.random.default_rng(2).uniform(-1, 1, (24, 6, 6))), stalls=False)
    assert ordinary.mismatches == 0
    assert ordinary.cycles_per_step == design.plans[0].cycles, "queues take what the first layer gives"
    slowest = max(sequence_cycles(layer, layer_program(layer, got.shape, got.spacing), got.elements, steps=6, streams=2)
                  for layer, got in zip(net.stages[:2], design.plans, strict=False))
    assert 2 * ordinary.cycles_per_sequence == slowest, "of two streams at a time"


def test_a_port_that_refused_a_word_is_named(written):
    design, folder = written
    control = [(0, 0), (64, 1), (0, 1)]  # Released, written too early, held anew: the release waits for an open port.
    vectors = design.network.vectors(np.zeros((2, 2, 6)))
    with pytest.raises(SimulationError, match=r"port must answer within 2000 cycles.*\(other network\)$"):
        exchange(folder, design.network, deep(7), [*control, (64, 1)], vectors.inputs, patience=2000)


def test_a_design_that_takes_a_beat_while_it_is_held_is_found_out(tmp_path):
    own, other = (Network.chain("dense", 6, False, (layers.linear(seed, k=2, inputs=6, outputs=4),))
                  for seed in (1, 2))
    design = generate(own, multipliers=4, reloadable=True)
    inputs, gate = own.vectors(np.zeros((2, 6))).inputs, "config__hold & ~entering"
    assert design.verilog.count(gate) == 1
    open_to_all = replace(design, verilog=design.verilog.replace(gate, "1'b0"))
    sound, broken = (each.write(tmp_path / name) for name, each in (("sound", design), ("broken", open_to_all)))
    assert exchange(sound, own, other, writes(design, other), inputs).mismatches == 0
    with pytest.raises(SimulationError, match=r"s_axis_tready must be clear while the design is held, but a beat was "
                                              r"taken in cycle \d+ \(other network\)"):
        exchange(broken, own, other, writes(design, other), inputs)


def test_only_the_port_is_added(written, fixed):
    design, _ = written
    assert "configuration" not in fixed.manifest
    assert "cfg" not in fixed.verilog
    assert "circulant_loadable" not in fixed.verilog
    assert design.multipliers == fixed.multipliers
    assert design.plans == with_protection(fixed.plans, "scrub"), "as many cycles"
    kept = sum(window.words * window.width for window in design.configuration.states if window.state.part == "y")
    assert design.memory_bits - fixed.memory_bits == kept, "the outputs, to be read and to be gone on from"
    assert design.images == fixed.images


def both_ways(scale):
    """A bidirectional layer with a Linear, as a model."""
    both = samples.bidirectional("gru", 5, 6, k=4, scale=scale)
    rng = np.random.default_rng(4)
    out = FloatLinear("out", 12, 3, rng.normal(0, scale, (1, 3, 4)), rng.normal(0, scale, 3))
    return float_model.Model.chain("both_ways", 5, True, (both, out))


def test_both_directions_take_new_weights_between_two_sequences():
    models = [both_ways(scale) for scale in (0.4, 0.3)]
    golden = quantize(models[0], samples.data(models[0]), **BITS)
    other = quantize_like(models[1], golden)
    plans = plan(golden, 120)
    top = Top(golden, plans, max_steps=4, reloadable=True)
    x = golden.input_format.quantize(np.random.default_rng(3).uniform(-1, 1, (3, 4, 5)))
    host = Host(golden, top, stall=0.2)
    host.play()
    config = top.config.map
    design = Design(golden, plans, "", {}, {"configuration": config.as_json()})
    last = np.arange(4) == 3
    host.vectors(x[0], 4, last)
    host.vectors(x[1, :2], 0, False)
    host.operations([Operation(WRITE, 0, HOLD), *[Operation(READ, STATUS)] * 40])
    host.vectors(x[1, 2:], 4, last[2:])
    host.operations([*config.hold(), *config.load(writes(design, other)), *config.release()])
    host.vectors(x[2], 4, last)
    host.operations([*config.hold(), Operation(READ, STATUS)])
    got = host.play()
    assert not any(got[2]), "the port stays closed until the sequence is whole"
    assert got[6] == [IDLE]
    mine, theirs = golden.run_integers(x), other.run_integers(x)
    assert [got[n].tolist() for n in (0, 3, 5)] == [mine[0].tolist(), mine[1].tolist(), theirs[2].tolist()]
    assert mine[2].tolist() != theirs[2].tolist()
    assert config.states == []
    with pytest.raises(Refusal, match=r"must have states to save and restore, but this one has a bidirectional layer"):
        config.restore(golden.initial(1))


def test_a_design_with_fixed_images_is_no_place_for_another_network(fixed, tmp_path):
    with pytest.raises(Refusal, match=r"manifest\.json must be of a reloadable design.*hardware\.reloadable=true$"):
        exchange(fixed.write(tmp_path / "fixed"), deep(3), deep(4), [], np.zeros((1, 2, 6), np.int64))


def test_the_network_must_be_that_of_the_design(written):
    _, folder = written
    with pytest.raises(Refusal, match=r"must be the one that .*manifest\.json was made from"):
        exchange(folder, deep(4), deep(5), [], np.zeros((1, 2, 6), np.int64))


def test_more_streams_than_a_word_has_bits_are_refused():
    with pytest.raises(Refusal, match=r"must have at most 32 streams, one for each bit of a word, not 33"):
        generate(deep(3), streams=33, reloadable=True)
