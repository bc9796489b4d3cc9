from functools import cache

import pytest

from circulant.hw.emit.target import VerilogTarget
from circulant.hw.stream.pipeline import PROMPT, QUEUE, block
from circulant.hw.stream.storage import DeepQueue, Ram
from circulant.sim.arith.fixed import Format
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles, stream, trace

STALLS = [(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.4, 0.4)]
PAYLOADS = blocks([numbers(Format(5, 0), t, 2, seed=t) for t in (4, 9, 1, 12)], 2)


@cache
def queue(depth, prompt=False):
    """Compiled once for all tests."""
    return DeepQueue(block(2, 5), depth=depth, prompt=prompt)


def test_a_word_is_there_a_cycle_after_it_was_asked_for_and_stays():
    shown = trace(Ram(width=8, depth=3, old=True), {
        "w_en": [1, 1, 1, 0, 0, 0], "w_addr": [0, 2, 0, 0, 0, 0], "w_data": [7, 9, 5, 0, 0, 0],
        "r_en": [0, 0, 1, 0, 1, 1], "r_addr": [0, 0, 0, 2, 2, 0]}, extra=1)
    assert shown["r_data"][3:] == [7, 7, 9, 5], "what is read while it is written is old"


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize(("depth", "prompt"), [(1, False), (2, False), (5, False), (8, False), (40, False), (1, True),
                                               (5, True)])
def test_the_same_payloads_in_the_same_order(depth, prompt, stall_i, stall_o):
    assert stream(queue(depth, prompt), PAYLOADS, stall_i=stall_i, stall_o=stall_o, seed=depth) == PAYLOADS


@pytest.mark.parametrize("reset_at", [1, 6, 15])
def test_a_reset_empties_it(reset_at):
    assert stream(queue(5), PAYLOADS, stall_o=0.5, reset_at=reset_at) == PAYLOADS


@pytest.mark.parametrize(("prompt", "late"), [(False, QUEUE), (True, PROMPT)])
def test_a_payload_passes_in_each_cycle(prompt, late):
    came, went = cycles(queue(2, prompt), PAYLOADS)
    assert came == list(range(len(PAYLOADS)))
    assert went == [cycle + late for cycle in came]


@pytest.mark.parametrize("depth", [3, 8])
@pytest.mark.parametrize("prompt", [False, True])
def test_it_holds_as_many_as_it_says_and_one_at_the_output(depth, prompt):
    shown = trace(queue(depth, prompt), {"i.valid": [1] * 20, "o.ready": [0] * 20})
    assert sum(shown["i.ready"]) == depth + 1


def test_in_verilog_a_word_of_it_takes_no_line():
    target = VerilogTarget()
    text = target.convert(DeepQueue(block(2, 5), depth=5000), "top")
    assert text.count("module circulant_ram ") == 1
    assert len(text.splitlines()) < 300
    assert target.inventories.of("top").memory_bits == 5000 * 11
