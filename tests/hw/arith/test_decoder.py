from types import SimpleNamespace

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from benchmarks.formal import check
from circulant.hw.arith.decoder import Decoder, Watch, tell, watched, watches
from circulant.hw.emit.target import Rom
from circulant.hw.unit import unelaborated
from circulant.sim.arith.codes import Code
from tests.hw import simulate


def decoded(code, words):
    """What the circuit makes of (words, bits)."""
    numbers = [sum(1 << int(bit) for bit in np.flatnonzero(word)) for word in words]
    out = simulate.trace(Decoder(code.width, code.kind), {"i": numbers})
    return list(zip(out["o"], out["corrected"], out["uncorrected"], strict=True))


@pytest.mark.parametrize(("width", "kind"), [
    (8, "secded"), (16, "scrub"), (64, "secded"), (130, "secded"), (16, "parity"), (65, "parity")])
def test_the_circuit_equals_the_code(width, kind):
    code, rng = Code(width, kind), np.random.default_rng(0)
    sets = [(), *((bit,) for bit in range(code.bits)), *map(tuple, rng.integers(0, code.bits, (60, 2))),
            *map(tuple, rng.integers(0, code.bits, (30, 3)))]
    word = int.from_bytes(rng.bytes(width), "little") & (1 << width) - 1
    words = np.array([[code.encode(word) >> bit & 1 for bit in range(code.bits)]] * len(sets), bool)
    for n, each in enumerate(sets):
        for bit in each:
            words[n, bit] ^= True
    found = code.decode(words)
    assert decoded(code, words) == [
        (sum(1 << int(bit) for bit in np.flatnonzero(data)), int(right), int(wrong))
        for data, right, wrong in zip(found.data, found.corrected, found.uncorrected, strict=True)]


class Flips(wiring.Component):
    """Any word, with its check bits, and up to two of all these bits flipped, in front of a decoder.

    Parameters:
        faulty: whether a column of the decoder is another one.
    """

    def __init__(self, width, faulty=False):
        self.code, self.faulty = Code(width, "scrub"), faulty
        place = range(self.code.bits)
        super().__init__({"word": In(width), "first": In(place), "second": In(place), "flips": In(range(3)),
                          **{f"ok_{name}": Out(1) for name in ("none", "one", "two", "right")}})

    def elaborate(self, platform):
        m = Module()
        code = self.code
        m.submodules.decoder = decoder = Decoder(code.width, "scrub")
        if self.faulty:
            data, checks, columns = code.parts[0]
            assert decoder._code.rows  # Of the syndrome, which stay.
            decoder._code.__dict__["parts"] = ((data, checks, (columns[1], columns[0], *columns[2:])),)
        coded = Signal(code.bits)
        m.d.comb += coded.eq(Cat(self.word, *(Cat(self.word[bit] for bit in row[:-1]).xor() for row in code.rows)))
        m.d.comb += decoder.i.eq(coded ^ Cat(
            ((self.flips > 0) & (self.first == bit)) ^ ((self.flips > 1) & (self.second == bit))
            for bit in range(code.bits)))
        right, here = decoder.o == self.word, self.first < code.bits
        m.d.comb += [
            self.ok_none.eq((self.flips != 0) | right & ~decoder.corrected & ~decoder.uncorrected),
            self.ok_one.eq((self.flips != 1) | ~here | right & decoder.corrected & ~decoder.uncorrected),
            self.ok_two.eq((self.flips != 2) | ~here | (self.second >= code.bits) | (self.first == self.second)
                           | decoder.uncorrected & ~decoder.corrected),
            self.ok_right.eq((self.flips > 1) | (decoder.right == coded))]
        return m


@pytest.mark.skipif(not check.available(), reason="needs ABC: pip install pyosys")
@pytest.mark.parametrize("width", [8, *(pytest.param(width, marks=pytest.mark.soak) for width in (16, 64))])
def test_every_word_and_every_one_or_two_flips_are_proved(width):
    assert check.prove(Flips(width)) == check.Proof("induction")
    assert check.prove(Flips(width, faulty=True)).broken == "ok_one"


class Reader(wiring.Component):
    """A unit with two protected memories."""

    def __init__(self, protection):
        self.protection = protection
        super().__init__({"first": In(39), "second": In(39), "when": In(1), "data": Out(32), "other": Out(32),
                          **watched(protection)})

    def elaborate(self, platform):
        m = Module()
        watch = Watch(m, platform, self.protection)
        for word, data in ((self.first, self.data), (self.second, self.other)):
            rom = SimpleNamespace(data=word, scrubbed=False)
            m.d.comb += data.eq(watch.read(rom, 32, when=self.when, name=f"memory_{data.name}"))
        watch.tell(self)
        return m


def test_what_is_read_counts_when_it_does():
    code = Code(32, "secded")
    right, one, two = code.encode(77), code.encode(77) ^ 4, code.encode(77) ^ 12
    out = simulate.trace(Reader("secded"), {
        "first": [right, right, two, two, right, right], "second": [right, one, one, two, right, right],
        "when": [1, 1, 1, 0, 1, 1]})
    assert out["data"][:3] == [77, 77, 77 ^ 12]
    assert out["faults"] == [0, 0, 0, 1, 3, 0]


class Scrubbed(wiring.Component):
    """A protected memory whose second word has a wrong bit, and third word two."""

    def __init__(self):
        self.code = Code(8, "scrub")
        super().__init__({"addr": In(2), "when": In(1), "data": Out(8), "raw": Out(self.code.bits), **watched("scrub")})

    def elaborate(self, platform):
        m = Module()
        words = [self.code.encode(number) for number in (7, 77, 177)]
        m.submodules.rom = rom = Rom(words=[words[0], words[1] ^ 4, words[2] ^ 9], width=self.code.bits, image="words",
                                     scrubbed=True)
        watch = Watch(m, platform, "scrub")
        m.d.comb += [rom.en.eq(1), rom.addr.eq(self.addr), self.raw.eq(rom.data),
                     self.data.eq(watch.read(rom, 8, when=self.when, name="words"))]
        watch.tell(self)
        return m


def test_a_wrong_bit_is_written_right_where_its_word_counts():
    out = simulate.trace(Scrubbed(), {
        "addr": [1, 0, 1, 1, 0, 1, 2, 2, 0, 0], "when": [0, 0, 0, 1, 0, 0, 1, 1, 1, 1]})
    code = Code(8, "scrub")
    right, two = code.encode(77), code.encode(177) ^ 9
    assert out["raw"][1:] == [right ^ 4, code.encode(7), right ^ 4, right ^ 4, code.encode(7), right, two, two,
                              code.encode(7)]
    assert out["data"][1:7] == [77, 7, 77, 77, 7, 77]
    assert out["faults"] == [0, 0, 0, 0, 0, 1, 0, 0, 0, 2], "it counts once, and is written when it is not read again"


def test_without_protection_nothing_is_said():
    out = simulate.trace(Reader("none"), {"first": [5], "second": [6], "when": [1]})
    assert out["data"] == [5] and "faults" not in out
    with unelaborated():
        tell(Module(), Reader("none"))
        assert watches([Reader("none"), Reader("parity")]) and not watches([Reader("none")])
