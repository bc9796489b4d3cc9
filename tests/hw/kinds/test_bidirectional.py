from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from circulant.hw.array.layer_programs import layer_program, spacings
from circulant.hw.array.program import ArrayShape
from circulant.hw.kinds.bidirectional import BidirectionalLayer
from circulant.hw.kinds.recurrent import RecurrentLayer
from circulant.sim.golden.bidirectional import Bidirectional
from circulant.sim.golden.network import Network
from tests.hw.drawn_layers import gru, lstm
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles, stream

STEPS = 4
STALLS = [(0.5, 0.1), pytest.param(0.1, 0.9, marks=pytest.mark.soak)]
SMALL = {"k": 4, "inputs": 6, "hidden": 8}
CASES = {  # forward, and what is different of backward
    "a GRU": ({"cell": gru, **SMALL}, {}),
    "a GRU that resets before, ragged": ({"cell": gru, "k": 4, "inputs": 3, "hidden": 6, "reset": "before"}, {}),
    "an LSTM": ({"cell": lstm, **SMALL}, {}),
    "an LSTM, ragged": ({"cell": lstm, "k": 4, "inputs": 5, "hidden": 7}, {}),
    "an LSTM with a projection": ({"cell": lstm, "k": 4, "inputs": 6, "hidden": 12, "projection": 5}, {}),
    "a dense one": ({"cell": gru, "k": 1, "inputs": 2, "hidden": 3}, {}),
    "a smaller one backward": ({"cell": gru, "k": 4, "inputs": 6, "hidden": 7}, {"hidden": 2}),
    "smaller blocks backward": ({"cell": gru, "k": 4, "inputs": 6, "hidden": 7}, {"k": 2}),
    "smaller blocks forward": ({"cell": gru, "k": 2, "inputs": 6, "hidden": 7}, {"k": 4, "hidden": 6}),
}

LAST = ("a GRU that resets before, ragged", "an LSTM with a projection", "smaller blocks backward")


def direction(name, seed, *, cell, **options):
    return replace(cell(seed, **options), name=f"both.{name}")


def unit(layer, elements=1):
    shape = ArrayShape(2, 1, 1) if layer.gates.block_size > 1 else ArrayShape(4, 2, 1)
    program = layer_program(layer, shape, next(spacings(shape)))
    return RecurrentLayer(layer, program=program, elements=elements)


@cache
def made(name, returns):
    """A golden layer and its hardware, compiled once for all tests."""
    forward, other = CASES[name]
    layer = Bidirectional("both", *(direction(way, seed, returns=returns, **options) for way, seed, options in (
        ("forward", 3, forward), ("backward", 4, forward | other))))
    return layer, BidirectionalLayer(layer, forward=unit(layer.forward), backward=unit(layer.backward), steps=STEPS)


def vectors(layer, lengths):
    """What goes in, and what golden gives."""
    k = max(each.gates.block_size for each in layer.directions.values())
    xs = [numbers(layer.input_format, t, layer.inputs, seed=n) for n, t in enumerate(lengths)]
    network = Network.chain("pair", layer.inputs, True, (layer,))
    return blocks(xs, k), blocks([np.atleast_2d(network.run_integers(x[None])[0]) for x in xs], k)


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize(("name", "returns"), [*((name, "sequence") for name in CASES),
                                               *((name, "last") for name in LAST)])
def test_equals_golden(name, returns, stall_i, stall_o):
    layer, dut = made(name, returns)
    given, expected = vectors(layer, (3, 1, 4, 2, 1, 1))
    assert stream(dut, given, stall_i=stall_i, stall_o=stall_o, quiet=600, count=len(expected)) == expected


@pytest.mark.parametrize("reset_at", [pytest.param(30, marks=pytest.mark.soak), 200,
                                      pytest.param(700, marks=pytest.mark.soak)])
def test_right_answers_after_a_reset_in_the_middle(reset_at):
    layer, dut = made("an LSTM, ragged", "sequence")
    given, expected = vectors(layer, (4, 2))
    assert stream(dut, given, stall_o=0.3, reset_at=reset_at, quiet=600, count=len(expected)) == expected


@pytest.mark.parametrize(("name", "returns"), [
    pytest.param("a GRU", "sequence", marks=pytest.mark.soak), ("a GRU", "last"), ("an LSTM, ragged", "sequence"),
    pytest.param("an LSTM, ragged", "last", marks=pytest.mark.soak)])
def test_sequences_of_the_greatest_length_follow_each_other_as_fast_as_one_direction_takes_them(name, returns):
    layer, dut = made(name, returns)
    given, expected = vectors(layer, (STEPS,) * 8)
    alone, _ = cycles(unit(layer.forward), given, quiet=600, count=len(expected))
    came, went = cycles(dut, given, quiet=600, count=len(expected))
    each = len(given) // 8
    assert len(went) == len(expected)
    assert np.diff(came[each - 1::each])[2:].tolist() == np.diff(alone[each - 1::each])[2:].tolist()
    ends = np.diff(went[len(went) // 8 - 1::len(went) // 8])[2:-2]
    assert set(ends) == set(np.diff(alone[each - 1::each])[2:])
