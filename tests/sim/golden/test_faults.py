import numpy as np
import pytest

from circulant.sim.golden.faults import Fault
from circulant.sim.golden.network_file import arrays_of
from circulant.sim.quantize.quantize import quantize
from tests.refused import refused
from tests.sim import samples

MODEL = samples.model(5, 6, 3, k=(4, 4, 2))
NETWORK = quantize(MODEL, samples.data(MODEL), weight_bits=8)
WEIGHTS = "gru.recurrent_product.weights"


def test_the_memories_are_the_spectra_and_the_biases_that_a_circuit_has():
    found = {name: (each.words, each.numbers, each.width) for name, each in NETWORK.memories.items()}
    assert found == {
        "gru.input_product.weights": (8, 4, 8), "gru.input_product.bias": (4, 4, 16),
        "gru.recurrent_product.weights": (8, 4, 8), "gru.candidate_input.weights": (4, 4, 8),
        "gru.candidate_input.bias": (2, 4, 16), "gru.candidate_recurrent.weights": (4, 4, 8),
        "gru.candidate_recurrent.bias": (2, 4, 16), "last.product.weights": (6, 2, 8), "last.product.bias": (2, 2, 16)}
    before = quantize(again := samples.model(reset="before"), samples.data(again))
    assert "gru.candidate_input.bias" in before.memories and "gru.candidate_recurrent.bias" not in before.memories


def word_of(network, name, word):
    """A word as a circuit has it: numbers side by side, the first in the low bits."""
    memory = network.memories[name]
    numbers = arrays_of(network)[name].reshape(memory.words, memory.numbers)[word].tolist()
    return sum((number % (1 << memory.width)) << n * memory.width for n, number in enumerate(numbers))


@pytest.mark.parametrize("name", [WEIGHTS, "gru.candidate_recurrent.bias", "last.product.weights"])
@pytest.mark.parametrize(("kind", "meant"), [
    ("flip", lambda word, mask: word ^ mask), ("stuck-at-0", lambda word, mask: word & ~mask),
    ("stuck-at-1", lambda word, mask: word | mask)])
def test_each_bit_of_a_word_is_wrong_as_its_fault_says(name, kind, meant):
    for bit in range(NETWORK.memories[name].word_bits):
        other = NETWORK.with_faults([Fault(name, 1, bit, kind)])
        for each, memory in NETWORK.memories.items():
            for word in range(memory.words):
                was = word_of(NETWORK, each, word)
                due = meant(was, 1 << bit) if (each, word) == (name, 1) else was
                assert word_of(other, each, word) == due, (each, word, bit)


def test_faults_of_several_memories_come_together():
    faults = [Fault(WEIGHTS, 0, 3), Fault(WEIGHTS, 0, 31, "stuck-at-1"), Fault("last.product.bias", 1, 0)]
    other = NETWORK.with_faults(faults)
    one_by_one = NETWORK
    for fault in faults:
        one_by_one = one_by_one.with_faults([fault])
    assert other.hash == one_by_one.hash != NETWORK.hash
    assert NETWORK.with_faults([]).hash == NETWORK.hash
    flipped = [fault for fault in faults if fault.kind == "flip"]
    assert NETWORK.with_faults(flipped).with_faults(flipped).hash == NETWORK.hash, "two flips are none"


def test_what_golden_computes_is_the_network_of_the_wrong_words():
    x = NETWORK.integers(samples.data(MODEL))
    other = NETWORK.with_faults([Fault("last.product.bias", 0, 15)])
    assert (other.run_integers(x)[:, 0] != NETWORK.run_integers(x)[:, 0]).all()
    assert (other.run_integers(x)[:, 1:] == NETWORK.run_integers(x)[:, 1:]).all(), "a bias is of one output"


def test_a_rate_is_that_of_the_bits():
    bits = sum(each.bits for name, each in NETWORK.memories.items() if name.endswith("weights"))
    counts = [len(NETWORK.draw_faults(rate=0.1, seed=seed)) for seed in range(400)]
    assert abs(np.mean(counts) - 0.1 * bits) < 5 * np.sqrt(0.09 * bits / 400)
    assert abs(np.var(counts) / (0.09 * bits) - 1) < 0.4, "the bits are independent"
    hit = {fault for seed in range(400) for fault in NETWORK.draw_faults(rate=0.1, seed=seed)}
    assert len(hit) == bits, "each bit is hit some time"
    assert len(NETWORK.draw_faults(rate=1.0)) == bits and NETWORK.draw_faults(rate=0) == ()


def test_a_draw_is_that_of_its_seed():
    assert NETWORK.draw_faults(rate=0.05, seed=3) == NETWORK.draw_faults(rate=0.05, seed=3)
    assert NETWORK.draw_faults(rate=0.05, seed=3) != NETWORK.draw_faults(rate=0.05, seed=4)
    three = NETWORK.draw_faults(count=3, memories=["gru.candidate_input"], kind="stuck-at-0")
    assert len(three) == 3
    assert all(fault.memory.startswith("gru.candidate_input.") and fault.kind == "stuck-at-0" for fault in three)
    assert {fault.memory for fault in NETWORK.draw_faults(rate=1, memories=["bias"])} == {
        name for name in NETWORK.memories if name.endswith(".bias")}


@pytest.mark.parametrize(("fault", "words"), [
    (Fault("gru.input_product.weight", 0, 0), "A memory with faults must be one of gru.input_product.weights, gru.input"
     "_product.bias, gru.recurrent_product.weights, gru.candidate_input.weights, gru.candidate_input.bias, gru."
     "candidate_recurrent.weights, gru.candidate_recurrent.bias, last.product.weights, last.product.bias, not "
     "'gru.input_product.weight'; did you mean 'gru.input_product.weights'?"),
    (Fault(WEIGHTS, 8, 0), f"A fault in {WEIGHTS} must be in one of its words 0 to 7 and bits 0 to 31, not in bit 0 of "
     "word 8"),
    (Fault(WEIGHTS, -1, 0), "not in bit 0 of word -1"),
    (Fault(WEIGHTS, 0, 32), "not in bit 32 of word 0"),
    (Fault(WEIGHTS, 0, 0, "flop"), "A fault must be one of flip, stuck-at-0, stuck-at-1, not 'flop'; did you mean "
     "'flip'?"),
])
def test_a_fault_that_cannot_be(fault, words):
    assert words in refused(NETWORK.with_faults, [fault])


def test_a_bit_has_one_fault():
    assert refused(NETWORK.with_faults, [Fault(WEIGHTS, 2, 5), Fault(WEIGHTS, 2, 5, "stuck-at-0")]) == (
        f"A bit must have one fault, but bit 5 of word 2 of {WEIGHTS} has two; name it once")


@pytest.mark.parametrize(("options", "words"), [
    ({"rate": 1.5}, "A bit error rate must be a number from 0 to 1, not 1.5; 0.001 is one bit of a thousand"),
    ({"rate": float("nan")}, "not nan"), ({"rate": -0.1}, "not -0.1"),
    ({}, "Faults must be drawn at a rate or by their count, not with rate None and count None; give one of them"),
    ({"rate": 0.1, "count": 2}, "not with rate 0.1 and count 2"),
    ({"count": 865}, "The faults to draw must be from 0 to 864, the bits of gru.input_product.weights, "),
    ({"count": 1, "memories": ["weight"]}, "or a part of such a name, not 'weight'"),
    ({"rate": 0.1, "kind": "flips"}, "did you mean 'flip'?"),
])
def test_a_draw_that_cannot_be(options, words):
    assert words in refused(NETWORK.draw_faults, **options)


def test_of_protected_memories_what_the_decoder_leaves_is_drawn():
    from circulant.sim.arith.codes import Code

    memory = NETWORK.memories[WEIGHTS]
    code = Code(memory.word_bits, "secded")
    everything = NETWORK.draw_faults(rate=1, memories=[WEIGHTS], protection="parity")
    assert len(everything) == memory.bits, "parity puts nothing right"
    for seed in range(30):
        assert not NETWORK.draw_faults(count=1, seed=seed, memories=[WEIGHTS], protection="secded")
    left = [NETWORK.draw_faults(count=2, seed=seed, memories=[WEIGHTS], protection="secded") for seed in range(200)]
    twice = [faults for faults in left if faults]
    assert 0 < len(twice) < 100, "two flips are rarely in one word"
    assert all(len({fault.word for fault in faults}) == 1 and len(faults) <= 2 for faults in twice)
    assert {len(faults) for faults in twice} == {1, 2}, "one of the two can be a check bit"
    assert max(fault.bit for faults in twice for fault in faults) < memory.word_bits < code.bits
    assert refused(NETWORK.draw_faults, rate=0.1, kind="stuck-at-0", protection="secded") == (
        "Faults of protected memories must be flips, not 'stuck-at-0': whether a stuck bit is wrong depends on its "
        "word; give kind 'flip'")
