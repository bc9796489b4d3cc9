from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from circulant.hw.array.layer_programs import layer_program, spacings
from circulant.hw.array.program import ArrayShape
from circulant.hw.kinds.recurrent import RecurrentLayer
from tests.hw.drawn_layers import blocks, gru, lstm
from tests.hw.played import sequence_cycles, step_cycles
from tests.hw.simulate import transfers

QUIET = 400
"""Cycles, longer than any of these layers thinks."""


def best_program(layer, shape, elements, streams=1):
    programs = [layer_program(layer, shape, spacing) for spacing in spacings(shape)]
    return min(programs, key=lambda program: step_cycles(layer, program, elements, streams=streams))


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
                given += [{"data": part, "last": int(last and n == len(parts) - 1)} for n, part in enumerate(parts)]
                if layer.returns == "sequence" or last:
                    parts = blocks(y[sequence, t] if layer.returns == "sequence" else y[sequence], k)
                    wanted += [{"data": part, "last": int(last and n == len(parts) - 1)}
                               for n, part in enumerate(parts)]
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
    "three streams of long and short steps": ({"k": 4, "inputs": 16, "hidden": 32, "projection": 16}, (4, 2, 4), 1, 3),
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


@dataclass(frozen=True)
class Unit:
    """A layer and its hardware, which is simulated several times and compiled once."""

    layer: Any
    program: Any
    elements: int
    turns: int
    dut: RecurrentLayer

    def run(self, given, wanted, *, stall=0.0):
        """The cycles in which the output came, which has to be right."""
        _, went = transfers(self.dut, given, stall_i=stall, stall_o=stall, quiet=QUIET, count=len(wanted))
        assert went.payloads == wanted
        return went.cycles


@pytest.fixture(scope="module", params=CASES)
def unit(request):
    options, shape, elements, turns = CASES[request.param]
    layer = build(**options)
    program = best_program(layer, ArrayShape(*shape), elements, streams=turns)
    return Unit(layer, program, elements, turns, RecurrentLayer(layer, program=program, elements=elements,
                                                                streams=turns))


@pytest.mark.parametrize("stall", [pytest.param(0.0, marks=pytest.mark.soak), 0.4])
def test_equals_golden(unit, stall):
    unit.run(*streams(unit.layer, 2, 3, unit.turns), stall=stall)


def test_equals_golden_at_the_period_of_the_cost_model(unit):
    steps = 6 if unit.turns == 1 else 8
    cycles = unit.run(*streams(unit.layer, 1, steps, unit.turns))
    if unit.layer.returns == "last":
        return
    ends = np.array(cycles).reshape(steps, unit.turns, -1)[:-1, 0, -1]  # No input's share is summed behind the last.
    if unit.turns == 1:
        assert np.diff(ends)[1:].tolist() == [step_cycles(unit.layer, unit.program, unit.elements)] * 3
    else:  # Turns may differ by a cycle.
        period = step_cycles(unit.layer, unit.program, unit.elements, streams=unit.turns)
        assert ends[-1] - ends[-5] == round(4 * unit.turns * period)


@pytest.mark.parametrize("unit", ["dense", "a GRU, ragged", "three streams", "three streams of it"], indirect=True)
def test_short_sequences_follow_each_other_as_the_cost_model_says(unit):
    cycles = unit.run(*streams(unit.layer, 7, 3, unit.turns))
    ends = np.array(cycles).reshape(7, -1)[:, -1]  # Turns of streams may be long and short by turns.
    predicted = sequence_cycles(unit.layer, unit.program, unit.elements, steps=3, streams=unit.turns)
    assert [ends[3] - ends[1], ends[5] - ends[3]] == [2 * predicted] * 2
