from itertools import combinations

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.words import CHECK, POLYNOMIAL, Channel, LinkShape, check_of
from tests.hw.simulate import trace

BITS = 40


def remainder(word):
    """The definition: of word · x^8 by the polynomial, bit by bit."""
    word <<= CHECK
    for place in reversed(range(BITS)):
        if word >> place + CHECK & 1:
            word ^= (POLYNOMIAL | 1 << CHECK) << place
    return word


class Check(wiring.Component):
    def __init__(self):
        super().__init__({"i": In(BITS), "o": Out(CHECK)})

    def elaborate(self, platform):
        m = Module()
        given = Signal(BITS)
        m.d.comb += [given.eq(self.i), self.o.eq(check_of(given))]
        return m


def test_the_check_is_the_remainder_of_its_polynomial():
    words = [int(each) for each in np.random.default_rng(0).integers(0, 1 << BITS, 60)] + [1 << n for n in range(BITS)]
    assert trace(Check(), {"i": words})["o"] == [remainder(each) for each in words]


def test_up_to_three_wrong_bits_are_seen():
    single = [remainder(1 << n) for n in range(BITS)] + [1 << n for n in range(CHECK)]
    assert all(single) and all(a ^ b for a, b in combinations(single, 2))
    assert all(a ^ b ^ c for a, b, c in combinations(single, 3))


def test_a_window_holds_what_is_under_way():
    shape = LinkShape(64, 50, (Channel(8, 16, 48), Channel(4, 9, 2)))
    assert (shape.words(0), shape.words(1)) == (2, 1)
    assert shape.window >= 2 * 50 + 8 and 1 << shape.seq_bits == 2 * shape.window
    assert shape.depth(0) * shape.words(0) >= 2 * 50 + 10 and shape.depth(1) >= 2 * 50 + 10
    assert LinkShape(64, 0, (Channel(8, 16, 96),)).depth(0) == 96, "a whole vector, so that no graph stands still"
