import numpy as np
import pytest
from amaranth.sim import Simulator

from circulant.hw.array.layer_programs import layer_program, spacings
from circulant.hw.array.program import ArrayShape
from circulant.hw.layers.recurrent import RecurrentLayer
from circulant.hw.plan.cost import sequence_cycles, step_timeline
from tests.hw.drawn_layers import blocks, gru, lstm

DEADLINE = 20_000


def best_program(layer, shape, elements, streams=1):
    programs = [layer_program(layer, shape, spacing) for spacing in spacings(shape)]
    return min(programs, key=lambda program: step_timeline(layer, program, elements, streams=streams).period)


def run(dut, x, *, stall=0.0, seed=0, reset_at=None):
    """Blocks of the output and the cycles in which they came, for a list of (block, last) of the input."""
    rng = np.random.default_rng(seed)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    taken, cycles = [], []

    async def bench(ctx):
        at, offered = 0, False
        for cycle in range(DEADLINE):
            if not offered and at < len(x) and rng.random() >= stall:
                offered = True
                ctx.set(dut.i.payload, {"data": x[at][0], "last": x[at][1]})
            ctx.set(dut.i.valid, offered)
            ctx.set(dut.o.ready, rng.random() >= stall)
            _, _, accepted, valid, ready, payload = await ctx.tick().sample(
                dut.i.ready, dut.o.valid, dut.o.ready, dut.o.payload
            )
            if offered and accepted:
                at, offered = at + 1, False
            if valid and ready:
                taken.append((list(payload.data), payload.last))
                cycles.append(cycle)
            if at == len(x) and cycles and cycle - max(cycles[-1], 0) > 400:
                return

    simulator.add_testbench(bench)
    simulator.run()
    return taken, cycles


def streams(layer, count: int, steps: int, turns: int):
    """Input blocks of ``count`` times ``turns`` interleaved sequences, and the output blocks that golden expects."""
    k = layer.gates.block_size
    x = np.random.default_rng(1).integers(-25000, 25000, (count * turns, steps, layer.inputs))
    y = layer(x)
    given, wanted = [], []
    for group in range(count):
        for t in range(steps):
            for sequence in range(group * turns, (group + 1) * turns):
                last = t == steps - 1
                parts = blocks(x[sequence, t], k)
                given += [(part, int(last and n == len(parts) - 1)) for n, part in enumerate(parts)]
                if layer.returns == "sequence" or last:
                    parts = blocks(y[sequence, t] if layer.returns == "sequence" else y[sequence], k)
                    wanted += [(part, int(last and n == len(parts) - 1)) for n, part in enumerate(parts)]
    return given, wanted


CASES = {
    "torch's LSTM, one lane": ({"k": 4, "inputs": 10, "hidden": 12, "peephole": False}, (1, 1, 1), 1, 1),
    "peepholes, two columns": ({"k": 4, "inputs": 10, "hidden": 20}, (4, 2, 1), 2, 1),
    "four chains": ({"k": 4, "inputs": 10, "hidden": 20}, (4, 2, 4), 4, 1),
    "two chains, ragged": ({"k": 4, "inputs": 7, "hidden": 18}, (6, 3, 2), 1, 1),
    "projection": ({"k": 4, "inputs": 10, "hidden": 20, "projection": 12}, (4, 3, 4), 4, 1),
    "projection, ragged": ({"k": 4, "inputs": 9, "hidden": 18, "projection": 10}, (2, 2, 1), 1, 1),
    "dense": ({"k": 1, "inputs": 3, "hidden": 5, "projection": 4}, (4, 3, 4), 1, 1),
    "blocks of 2": ({"k": 2, "inputs": 5, "hidden": 9}, (4, 2, 2), 2, 1),
    "blocks of 8": ({"k": 8, "inputs": 16, "hidden": 24, "projection": 16}, (8, 2, 4), 8, 1),
    "blocks of 16": ({"k": 16, "inputs": 20, "hidden": 32}, (4, 2, 4), 16, 1),
    "three streams": ({"k": 4, "inputs": 10, "hidden": 20, "projection": 12}, (4, 3, 4), 4, 3),
    "two streams": ({"k": 4, "inputs": 10, "hidden": 20}, (4, 3, 4), 4, 2),
    "the last state only": ({"k": 4, "inputs": 10, "hidden": 20, "projection": 12, "returns": "last"}, (4, 3, 4), 4, 1),
    "the last states of three streams": ({"k": 4, "inputs": 6, "hidden": 12, "returns": "last"}, (4, 2, 2), 4, 3),
    "folded": ({"k": 8, "inputs": 10, "hidden": 20, "projection": 12}, (1, 1, 1, 3), 1, 1),
    "a folded GRU": ({"cell": gru, "k": 4, "inputs": 10, "hidden": 20}, (2, 2, 2, 5), 1, 1),
    "a GRU, one lane": ({"cell": gru, "k": 4, "inputs": 10, "hidden": 12}, (1, 1, 1), 1, 1),
    "a GRU, four chains": ({"cell": gru, "k": 4, "inputs": 10, "hidden": 20}, (4, 3, 4), 4, 1),
    "a GRU, ragged": ({"cell": gru, "k": 4, "inputs": 9, "hidden": 18}, (6, 2, 2), 2, 1),
    "a GRU of wide rows": ({"cell": gru, "k": 8, "inputs": 6, "hidden": 20}, (3, 4, 1), 4, 1),
    "a GRU, two streams": ({"cell": gru, "k": 4, "inputs": 10, "hidden": 20}, (4, 2, 4), 4, 2),
    "a dense GRU": ({"cell": gru, "k": 1, "inputs": 3, "hidden": 5}, (4, 2, 2), 1, 1),
    "a GRU that resets before": ({"cell": gru, "k": 4, "inputs": 10, "hidden": 20, "reset": "before"}, (4, 3, 4), 4, 1),
    "a ragged one": ({"cell": gru, "k": 4, "inputs": 9, "hidden": 18, "reset": "before"}, (2, 2, 1), 2, 1),
    "three streams of it": ({"cell": gru, "k": 4, "inputs": 9, "hidden": 18, "reset": "before"}, (4, 2, 2), 4, 3),
    "the last state of a GRU": ({"cell": gru, "k": 4, "inputs": 10, "hidden": 12, "returns": "last"}, (4, 2, 2), 4, 1),
}


def build(cell=lstm, **options):
    return cell(3, **options)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_equals_golden(name, stall):
    options, shape, elements, turns = CASES[name]
    layer = build(**options)
    program = best_program(layer, ArrayShape(*shape), elements, streams=turns)
    dut = RecurrentLayer(layer, program=program, elements=elements, streams=turns)
    given, wanted = streams(layer, 2, 3, turns)
    assert run(dut, given, stall=stall)[0] == wanted


@pytest.mark.parametrize("name", [name for name in CASES if "last" not in name])
def test_period_is_that_of_the_cost_model(name):
    options, shape, elements, turns = CASES[name]
    layer, shape = build(**options), ArrayShape(*shape)
    program = best_program(layer, shape, elements, streams=turns)
    dut = RecurrentLayer(layer, program=program, elements=elements, streams=turns)
    steps = 6 if turns == 1 else 8
    given, wanted = streams(layer, 1, steps, turns)
    taken, cycles = run(dut, given)
    assert taken == wanted
    ends = np.array(cycles).reshape(steps, turns, -1)[:-1, 0, -1]  # Behind the last step no input's share is summed up.
    if turns == 1:
        assert np.diff(ends)[1:].tolist() == [step_timeline(layer, program, elements).period] * 3
    else:  # Turns may differ by a cycle.
        period = step_timeline(layer, program, elements, streams=turns, turns=4).period
        assert ends[-1] - ends[-5] == round(4 * turns * period)


@pytest.mark.parametrize("name", ["dense", "a GRU, ragged", "three streams", "three streams of it"])
def test_short_sequences_follow_each_other_as_the_cost_model_says(name):
    options, shape, elements, turns = CASES[name]
    layer, shape = build(**options), ArrayShape(*shape)
    program = best_program(layer, shape, elements, streams=turns)
    dut = RecurrentLayer(layer, program=program, elements=elements, streams=turns)
    given, wanted = streams(layer, 7, 3, turns)
    taken, cycles = run(dut, given)
    assert taken == wanted
    ends = np.array(cycles).reshape(7, -1)[:, -1]  # Turns of streams may be long and short by turns.
    predicted = sequence_cycles(layer, program, elements, steps=3, streams=turns)
    assert [ends[3] - ends[1], ends[5] - ends[3]] == [2 * predicted] * 2
