from functools import cache

import pytest

from circulant.hw.stream.pipeline import block
from circulant.hw.stream.reverse import Limit, Reverse
from circulant.sim.arith.fixed import Format
from tests.hw.golden import blocks, numbers
from tests.hw.simulate import cycles, stream, trace

K, WIDTH, STEPS = 2, 5, 5
STALLS = [(0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.4, 0.4)]
LENGTHS = {
    "of all lengths": (3, 1, 5, 2, 4, 5, 1),
    "of the greatest length": (5, 5, 5, 5),
    "of one step": (1, 1, 1, 1, 1, 1),
    "too long": (6, 2, 13, 10, 1),
}


@cache
def unit(kind, size):
    """Compiled once for all tests."""
    return kind(block(K, WIDTH), blocks=-(-size // K), steps=STEPS)


def sequences(lengths, size):
    return [numbers(Format(WIDTH, 0), t, size, seed=n) for n, t in enumerate(lengths)]


def parts(xs):
    """Sequences of ``STEPS`` vectors at the most."""
    return [x[start:start + STEPS] for x in xs for start in range(0, len(x), STEPS)]


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("name", LENGTHS)
def test_vectors_in_the_opposite_order(name, size, stall_i, stall_o):
    xs = sequences(LENGTHS[name], size)
    expected = blocks([x[::-1] for x in parts(xs)], K)
    assert stream(unit(Reverse, size), blocks(xs, K), stall_i=stall_i, stall_o=stall_o, seed=size) == expected


@pytest.mark.parametrize("reset_at", [1, 7, 12, 22])
def test_nothing_is_left_after_a_reset(reset_at):
    xs = sequences((3, 4, 2), 5)
    assert stream(unit(Reverse, 5), blocks(xs, K), stall_o=0.3, reset_at=reset_at) == blocks([x[::-1] for x in xs], K)


def test_sequences_follow_each_other_without_a_pause():
    came, went = cycles(unit(Reverse, 5), blocks(sequences((4, 4, 4, 4), 5), K))
    assert came == list(range(48))
    assert went == list(range(13, 61)), "each block of a sequence leaves 13 cycles after one of it came"


def test_a_short_sequence_waits_for_the_one_before_only():
    came, went = cycles(unit(Reverse, 5), blocks(sequences((4, 1, 1), 5), K))
    assert came == [*range(15), *range(24, 27)], "both halves are taken until the first sequence has been read"
    assert went == [*range(13, 28), *range(28, 31)]


@pytest.mark.parametrize(("stall_i", "stall_o"), STALLS)
@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("name", LENGTHS)
def test_a_sequence_that_is_too_long_is_cut(name, size, stall_i, stall_o):
    xs = sequences(LENGTHS[name], size)
    assert stream(unit(Limit, size), blocks(xs, K), stall_i=stall_i, stall_o=stall_o) == blocks(parts(xs), K)


@pytest.mark.parametrize(("lengths", "first"), [((5, 5, 1), None), ((5, 6, 1), 10), ((13,), 5), ((1, 6), 6)])
def test_a_cut_is_told_until_reset(lengths, first):
    """From behind the vector that was marked and should not have been."""
    given = blocks(sequences(lengths, 2), K)
    shown = trace(unit(Limit, 2), {
        "i.valid": [1] * len(given) + [0, 0], "i.payload": [*given, given[0], given[0]],
        "o.ready": [1] * (len(given) + 2), "reset": [0] * len(given) + [1, 0]}, extra=0)
    told = len(given) + 1 if first is None else first
    assert shown["overflow"] == [0] * told + [1] * (len(given) + 1 - told) + [0]
