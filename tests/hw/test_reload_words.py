from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from circulant.hw.design import Design
from circulant.hw.planner import plan
from circulant.hw.reload_words import writes
from circulant.hw.top import Top
from circulant.sim.arith.segments import fit_pwl
from circulant.sim.configuration import (
    CONTROL,
    HOLD,
    IDLE,
    READ,
    REFUSED,
    RESUME,
    STATUS,
    WRITE,
    Configuration,
    Operation,
)
from circulant.sim.golden.network import Network
from circulant.sim.refusal import Refusal
from tests.hw import drawn_layers as layers
from tests.hw.session import Host
from tests.hw.simulate import trace

LAYERS = {
    "an LSTM": lambda seed: layers.lstm(seed, k=4, inputs=6, hidden=10),
    "with a projection": lambda seed: layers.lstm(seed, k=4, inputs=6, hidden=14, projection=9),
    "without peepholes": lambda seed: layers.lstm(seed, k=2, inputs=3, hidden=5, peephole=False),
    "a GRU": lambda seed: layers.gru(seed, k=4, inputs=6, hidden=10),
    "that resets before": lambda seed: layers.gru(seed, k=4, inputs=6, hidden=10, reset="before"),
    "dense": lambda seed: layers.gru(seed, k=1, inputs=2, hidden=3),
}


def network(name, seed=3):
    layer = LAYERS[name](seed)
    return Network.chain(f"network {seed}", layer.inputs, True, (layer,))


@cache
def made(name, streams):
    golden = network(name)
    plans = plan(golden, 60, streams=streams)
    top = Top(golden, plans, reloadable=True)
    warm(golden, top)
    return golden, plans, top


def warm(golden, top):
    """Elaborate the top, so that the map is there."""
    Host(golden, top).play()


def turns(x):
    """Sequences (streams, T, n) as vectors in turn."""
    return x.swapaxes(0, 1).reshape(-1, x.shape[2])


def random(golden, streams, steps, seed):
    return np.random.default_rng(seed).integers(-25000, 25000, (streams, steps, golden.flow.size))


def ends(streams, steps):
    return np.arange(streams * steps) >= streams * (steps - 1)


CASES = [("an LSTM", 1, 0.4), ("with a projection", 2, 0.4), ("without peepholes", 3, 0.0), ("a GRU", 1, 0.4),
         ("that resets before", 2, 0.4), ("dense", 3, 0.0)]


@pytest.mark.parametrize(("name", "streams", "stall"), CASES)
def test_a_sequence_goes_on_where_its_state_was_saved(name, streams, stall):
    golden, _, top = made(name, streams)
    config = top.config.map
    x, other = random(golden, streams, 5, 1), random(golden, streams, 2, 2)
    first, saved = golden.resume(x[:, :3], golden.initial(streams))
    whole = golden.run_integers(x)
    host = Host(golden, top, stall=stall)
    host.vectors(turns(x[:, :3]), 3 * streams, False)
    host.operations([*config.hold(), *config.save(), *config.restart(0), *config.release()])
    host.vectors(turns(other), 2 * streams, ends(streams, 2))
    host.operations([*config.hold(), *config.restore(saved), *config.save(), *config.release()])
    host.vectors(turns(x[:, 3:]), 2 * streams, ends(streams, 2))
    host.operations([*config.hold(), *config.save()])
    got = host.play()
    assert np.array_equal(got[0], turns(first))
    same(config.saved(got[1], saved), saved)
    assert np.array_equal(got[2], turns(golden.run_integers(other)))
    same(config.saved(got[3], saved), saved)
    assert np.array_equal(got[4], turns(whole[:, 3:]))
    same(config.saved(got[5], saved), golden.resume(x, golden.initial(streams))[1])


def same(got, expected):
    for mine, theirs in zip(got, expected, strict=True):
        if isinstance(theirs, tuple):
            same(mine, theirs)
        else:
            assert np.array_equal(mine, theirs)


def design(golden, plans, top):
    """Without its Verilog, which the simulator does not need."""
    return Design(golden, plans, "", {}, {"configuration": top.config.map.as_json()})


@pytest.mark.parametrize(("name", "streams", "stall"), CASES)
def test_another_network_is_loaded_between_two_sequences(name, streams, stall):
    golden, plans, top = made(name, streams)
    config, other = top.config.map, network(name, 4)
    x = random(golden, streams, 3, 1)
    host = Host(golden, top, stall=stall)
    host.vectors(turns(x), 3 * streams, ends(streams, 3))
    host.operations([*config.hold(), *config.load(writes(design(golden, plans, top), other)), *config.release()])
    host.vectors(turns(x), 3 * streams, ends(streams, 3))
    played = host.play()[::2]
    assert [y.tolist() for y in played] == [turns(each.run_integers(x)).tolist() for each in (golden, other)]
    assert played[0].tolist() != played[1].tolist()


@pytest.mark.parametrize("objective", ["throughput", "area"])
def test_a_chain_of_layers_keeps_its_states_and_takes_new_weights(objective):
    golden, other = (chain(layers.gru(seed, k=2, inputs=3, hidden=5),
                           layers.gru(seed + 1, k=2, inputs=5, hidden=3)) for seed in (3, 5))
    plans = plan(golden, 30, objective=objective, reloadable=True)
    top = Top(golden, plans, reloadable=True)
    assert len(top.shared) == (objective == "area")
    warm(golden, top)
    config = top.config.map
    x = random(golden, 1, 4, 1)
    begun, saved = golden.resume(x[:, :2], golden.initial(1))
    ended, _ = other.resume(x[:, 2:], saved)
    host = Host(golden, top)
    host.vectors(x[0, :2], 2, False)
    host.operations([*config.hold(), *config.save(), *config.load(writes(design(golden, plans, top), other)),
                     *config.release()])
    host.vectors(x[0, 2:], 2, ends(1, 2))
    got = host.play()
    assert [got[0].tolist(), got[2].tolist()] == [begun[0].tolist(), ended[0].tolist()]
    same(config.saved(got[1], saved), saved)


def chain(first, second):
    return Network.chain("chain", first.inputs, True, (first, replace(second, name="second")))


def test_the_port_is_open_only_when_it_is_held_and_all_is_done():
    golden, _, top = made("a GRU", 1)
    config, x = top.config.map, random(golden, 1, 2, 1)
    window = config.windows[0]
    state = [Operation(READ, STATUS), Operation(READ, CONTROL), Operation(READ, RESUME)]
    host = Host(golden, top)
    host.operations(state)
    host.operations([Operation(WRITE, window.first, 5), *state])  # It is not held, so that nothing is stored.
    host.operations([Operation(WRITE, CONTROL, HOLD), *state])  # It is, but not long enough.
    host.operations([*config.hold(), *state])
    host.operations([*config.release(), *state])
    host.vectors(x[0], 2, False)
    host.operations([*config.hold(), *state, *config.restart(0), *state, *config.restart(1), *state, *config.release()])
    host.vectors(x[0], 2, ends(1, 2))
    host.operations([*config.hold(), *state])
    got = host.play()
    assert got[:5] == [[0, 0, 0], [REFUSED, 0, 0], [0, HOLD, 0], [IDLE, HOLD, 0], [0, 0, 0]]
    assert got[6] == [IDLE, HOLD, 1, IDLE, HOLD, 0, IDLE, HOLD, 1]
    both = golden.run_integers(np.concatenate([x, x], axis=1))
    assert [got[5].tolist(), got[7].tolist()] == [both[0, :2].tolist(), both[0, 2:].tolist()]
    assert got[8] == [IDLE, HOLD, 0]


def test_the_port_stays_closed_while_a_vector_that_was_cut_short_is_filled_up():
    """For longer than a pipeline takes to be empty: of 90 beats one comes."""
    layer, cycles = layers.gru(3, k=1, inputs=90, hidden=1), 480
    golden = Network.chain("long vectors", 90, True, (layer,))
    top = Top(golden, plan(golden, 20), reloadable=True)
    shown = trace(top, {
        "s_axis_tvalid": [1] + [0] * (cycles - 1), "s_axis_tlast": [1] * cycles, "m_axis_tready": [1] * cycles,
        "cfg_we": [1] + [0] * (cycles - 1), "cfg_addr": [CONTROL] + [STATUS] * (cycles - 1),
        "cfg_wdata": [HOLD] * cycles, "cfg_re": [0] + [1] * (cycles - 1)})
    idle = [n for n in range(10, cycles) if shown["cfg_rdata"][n] == IDLE]
    assert shown["malformed"][-1] == 1 and sum(shown["m_axis_tvalid"]) == 1
    assert idle and idle[0] > shown["m_axis_tvalid"].index(1)


def test_windows_do_not_overlap_and_are_aligned():
    _, _, top = made("with a projection", 2)
    windows = sorted(top.config.map.windows, key=lambda window: window.first)
    assert all(window.first % window.size == 0 for window in windows)
    assert all(before.first + before.size <= after.first for before, after in pairwise(windows))
    assert windows[0].first >= 16
    assert Configuration.from_json(top.config.map.as_json()) == top.config.map
    assert {window.name for window in windows} >= {"lstm_y", "lstm_c", "lstm_peephole", "lstm_tanh_cell", "lstm_chain0"}


@pytest.mark.parametrize(("other", "rule"), [
    (layers.lstm(4, k=4, inputs=6, hidden=11), r"Layer 'lstm' .* must have hidden 10 as the design has, not 11"),
    (layers.lstm(4, k=4, inputs=6, hidden=10, peephole=False), "must have the arrays"),
    (layers.lstm(4, k=2, inputs=6, hidden=10), "must have input_product.block_size 4 as the design has, not 2"),
    (layers.lstm(4, k=4, inputs=6, hidden=10, projection=8), "must have the parts"),
    (layers.lstm(4, k=4, inputs=6, hidden=10, returns="last"), "must have returns sequence"),
    (layers.gru(4, k=4, inputs=6, hidden=10), "must have the kind lstm as the design has, not gru"),
    (replace(layers.lstm(4, k=4, inputs=6, hidden=10), sigmoid=fit_pwl("sigmoid", layers.PRE, layers.STATE, 32)),
     r"must have sigmoid.segments \d+ as the design has, not \d+"),
    (layers.lstm(4, k=4, inputs=7, hidden=10), "the structure of the design's, 1 layers for sequences of vectors of "
                                               "6 values, but 'n' has 1 layers for sequences of vectors of 7 values;"),
])
def test_a_network_of_another_structure_is_refused(other, rule):
    golden, plans, top = made("an LSTM", 1)
    with pytest.raises(Refusal, match=rule):
        writes(design(golden, plans, top), Network.chain("n", other.inputs, True, (other,)))


def test_a_design_with_fixed_images_is_refused():
    golden = network("dense")
    with pytest.raises(Refusal, match=r"must be reloadable .* of 'network 3' .*hardware\.reloadable"):
        writes(Design(golden, [], "", {}, {}), golden)


def test_states_of_another_shape_are_refused():
    golden, _, top = made("an LSTM", 2)
    config = top.config.map
    with pytest.raises(Refusal, match=r"must have 2 parts, not 1"):
        config.restore([np.zeros((2, 10), np.int64)])
    with pytest.raises(Refusal, match=r"state y of layer 'lstm' must have the shape \(2, 10\).*not \(1, 10\)"):
        config.restore(golden.initial(1))
