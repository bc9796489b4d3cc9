"""Streams that lose nothing, add nothing, keep the order, keep an offer until it is taken, and never stand still.

Each unit is proved with one word, or one element of a vector, that is picked at any moment and followed: where it must
be when it leaves, it is. Payloads are one bit wide where the unit only moves them.
"""
import numpy as np
import pytest
from amaranth.hdl import Cat

from circulant.hw.arith.fft import FftShape, ForwardFft, InverseFft
from circulant.hw.arith.fixed import round_shift, saturate
from circulant.hw.stream.pipeline import Queue
from circulant.hw.stream.storage import DeepQueue
from tests.hw.prove import Machine, Proof, explore
from tests.hw.simulate import decode, trace
from tests.hw.stream_properties import Pipeline, Words, elements, frames


def given(component, path):
    """The inputs of a path as the simulator takes them."""
    shapes = {port: member.shape for port, member in component.signature.members.items()}
    return [{port: decode(shapes[port], bits) for port, bits in ports.items()} for ports in path]


def butterfly(word):
    return word[0] + word[1], word[0] - word[1]


UNITS = {
    **{f"pipeline of {depth}": lambda depth=depth: Words(Pipeline(depth), holds=depth) for depth in (1, 2, 4)},
    **{f"gated pipeline of {depth}": lambda depth=depth: Words(Pipeline(depth, gated=True), holds=depth)
       for depth in (1, 2, 4)},
    "forward transform": lambda: Words(
        ForwardFft(FftShape(2, 1, 4), shift=1, spectrum_width=2), holds=2,
        becomes=lambda word: Cat(saturate(round_shift(value, 1), 2) for value in butterfly(word))),
    "inverse transform": lambda: Words(
        InverseFft(FftShape(2, 1, 4)), holds=1, becomes=lambda word: Cat(value[:2] for value in butterfly(word))),
    **{f"queue of {depth}": lambda depth=depth: Words(Queue(1, depth=depth), holds=max(3, depth), room=True)
       for depth in (1, 3, 4)},
    **{f"prompt queue of {depth}": lambda depth=depth: Words(
        Queue(1, depth=depth, prompt=True), holds=max(3, depth), room=True) for depth in (1, 4)},
    **{f"prompt deep queue of {depth}": lambda depth=depth: Words(
        DeepQueue(1, depth=depth, prompt=True), holds=1 + depth, room=True) for depth in (1, 3)},
    **{f"blocks of {k_in} to {k_out}, {size} values": lambda case=(size, k_in, k_out): elements(*case)
       for size, k_in, k_out in ((2, 2, 1), (3, 2, 1), (1, 2, 1), (2, 1, 2), (3, 1, 2), (1, 1, 2), (2, 1, 4))},
    **{f"frames of {vectors or 'any number of'} vectors of {size}": lambda case=(size, vectors): frames(*case)
       for size, vectors in ((3, None), (6, None), (2, 1), (5, 1), (3, 2), (1, 3))},
}

FAULTS = {
    "no stall": (lambda: Words(Pipeline(2, "no stall"), holds=2), "ok_kept"),
    "always ready": (lambda: Words(Pipeline(2, "always ready"), holds=2), "ok_count"),
    "off by one": (lambda: Words(Pipeline(2, "off by one"), holds=2), "ok_word"),
    "another result": (lambda: Words(Pipeline(2), holds=2, becomes=lambda word: ~word), "ok_word"),
    "a longer pipeline": (lambda: Words(Pipeline(3), holds=2), "ok_count"),
    "a slower pipeline": (lambda: Words(Pipeline(5), holds=3), "ok_count"),
    "less room": (lambda: Words(Queue(1, depth=4), holds=5, room=True), "ok_room"),
    "vectors that end too late": (lambda: elements(3, 2, 1, really=4), "ok_last"),
    "frames that end too late": (lambda: frames(4, 1, really=6), "ok_last"),
    "garbage behind a vector": (lambda: frames(3, None, really=4), "ok_data"),
    "vectors that end too early": (lambda: elements(3, 1, 2, really=2), "ok_element"),
}


@pytest.mark.parametrize("name", UNITS)
def test_the_properties_hold_in_every_state(name):
    proof = explore(UNITS[name]())
    assert proof == Proof(proof.states)
    assert proof.states > 40


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_its_path_shows_it_in_the_simulator(name):
    make, broken = FAULTS[name]
    proof = explore(make())
    assert proof.broken == broken
    dut = make()
    shown = trace(dut, {port: [ports[port] for ports in given(dut, proof.path)] for port in proof.path[0]})
    assert shown[broken] == [1] * (len(proof.path) - 1) + [0]


@pytest.mark.parametrize("name", [
    "forward transform", "queue of 4", "blocks of 2 to 1, 3 values", "blocks of 1 to 2, 3 values"])
def test_the_machine_of_a_proof_is_that_of_the_simulator(name):
    """On random inputs, assumptions broken or not: every output in every cycle."""
    component, rng = UNITS[name](), np.random.default_rng(1)
    machine = Machine(component)
    inputs = rng.integers(0, 1 << sum(map(len, machine.inputs.values())), 120)
    rows = given(component, [machine.named(int(bits)) for bits in inputs])
    shown = trace(component, {port: [row[port] for row in rows] for port in machine.inputs})
    state = np.array([machine.start])
    for t in range(120):
        outputs, state = machine(state, inputs[t:t + 1])
        assert {port: int(values[0]) for port, values in outputs.items()} == {port: shown[port][t] for port in outputs}
