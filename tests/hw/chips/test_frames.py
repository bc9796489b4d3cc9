"""Ends of a link over a carrier that loses, doubles, reorders and spoils frames: every block comes, once, in order."""
import numpy as np
import pytest
from amaranth.hdl import Module, ResetInserter
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.chips.channel import Frames
from circulant.hw.chips.frames import FRAME_CHECK, FRAME_POLYNOMIAL, FrameEnd, checked
from circulant.hw.chips.words import AURORA, NUMBER, UDP, LinkShape
from tests.hw.chips.exchange import BACK, OUT, exchanged
from tests.hw.simulate import trace

LATENCY = 20


def shapes(carrier=UDP, bits=16, links=1):
    there = LinkShape(bits, LATENCY, OUT, BACK).over_carrier(carrier, links)
    return there, there.reverse


class Between(wiring.Component):
    """Two ends.

    Members:
        quiet: nothing comes to ``a``.
        again: ``a``, ``b`` is reset.
    """

    def __init__(self, carrier=UDP, faults=0, names=(0xAB, 0xAB)):
        self._faults, (there, back) = faults, shapes(carrier)
        self._frames = Frames(carrier.beat, there.frame, LATENCY), Frames(carrier.beat, back.frame, LATENCY)
        self.a, self.b = FrameEnd(there, back, named=names[0]), FrameEnd(back, there, named=names[1])
        super().__init__({
            **{f"{end}_{name}": member for end, unit in (("a", self.a), ("b", self.b))
               for name, member in unit.signature.members.items() if name.startswith(("i_", "o_"))},
            "quiet": In(1), "again": In(2), "up": Out(2), "fault": Out(2)})

    def elaborate(self, platform):
        m = Module()
        for n, (end, name) in enumerate(((self.a, "a"), (self.b, "b"))):
            m.submodules[name] = ResetInserter(self.again[n])(end)
            m.d.comb += [self.up[n].eq(end.up), self.fault[n].eq(end.fault)]
            for each in end.signature.members:
                if each.startswith(("i_", "o_")):
                    mine, its = getattr(self, f"{name}_{each}"), getattr(end, each)
                    wiring.connect(m, *((wiring.flipped(mine), its) if each[0] == "i" else (its, wiring.flipped(mine))))
        for way, start, end, n in zip(self._frames, (self.a, self.b), (self.b, self.a), range(2), strict=True):
            m.submodules += way
            m.d.comb += [way.i_tdata.eq(start.tx_tdata), way.i_tvalid.eq(start.tx_tvalid),
                         way.i_tlast.eq(start.tx_tlast), start.tx_tready.eq(way.i_tready),
                         end.rx_tdata.eq(way.o_tdata), end.rx_tlast.eq(way.o_tlast),
                         end.rx_tvalid.eq(way.o_tvalid & ~(self.quiet & n)),
                         way.latency.eq(LATENCY), way.seed.eq(self._faults and self._faults + 40_503 * n)]
        return m


def played(dut, count, stalls, quiet=5000):
    return exchanged(dut, (("a_i_0", "b_o_0"), ("a_i_1", "b_o_1"), ("b_i_0", "a_o_0")), count, stalls, quiet=quiet)


@pytest.mark.parametrize("carrier", [UDP, AURORA], ids=lambda each: each.name)
def test_blocks_come_in_order(carrier):
    sent, went, last = played(Between(carrier), 20, (0.2, 0.5))
    assert went == sent
    there, _ = shapes(carrier)
    assert last < 90 * there.beats + there.quiet + 6 * there.latency, "a word goes at each turn"


@pytest.mark.parametrize(("carrier", "seed"), [(UDP, 3), (AURORA, 5)])
def test_lost_doubled_late_cut_and_spoilt_frames_change_nothing(carrier, seed):
    sent, went, last = played(Between(carrier, faults=seed), 30, (0.1, 0.1))
    assert went == sent
    assert last > shapes(carrier)[0].quiet + shapes(carrier)[0].patience, "some words went again"


def test_ends_of_different_networks_say_so_and_take_nothing():
    shown = trace(Between(names=(0xAB, 0xAC)), {"a_i_0.valid": [1] * 4000, "b_o_0.ready": [1] * 4000})
    assert shown["fault"][-1] == 3 and shown["up"][-1] == 0 and not any(shown["b_o_0.valid"])


@pytest.mark.parametrize("first", [0, 1])
def test_an_end_that_is_reset_alone_is_seen_and_both_recover_one_after_the_other(first):
    """Its frames have the numbers of old ones."""
    quiet = shapes()[0].quiet
    begins, second, ends = 2 * quiet, 4 * quiet, 6 * quiet
    again = [0] * ends
    again[begins], again[second] = 1 << first, 2 >> first
    shown = trace(Between(), {"again": again})
    assert shown["up"][begins - 1] == 3 and shown["fault"][begins - 1] == 0
    assert shown["fault"][second - 1] & 2 >> first, "the other end sees it"
    assert shown["up"][-1] == 3 and shown["fault"][-1] == 0, "both are well again"


def test_an_end_whose_neighbour_falls_silent_says_so():
    begins, silent = 2 * shapes()[0].quiet, 4 * shapes()[0].patience
    shown = trace(Between(), {"quiet": [0] * begins + [1] * silent})
    assert shown["up"][begins - 1] == 3 and shown["fault"][begins - 1] == 0
    assert shown["fault"][-1] == 3, "the other end is told"


class Check(wiring.Component):
    def __init__(self, beat):
        super().__init__({"check": In(FRAME_CHECK), "i": In(beat), "o": Out(FRAME_CHECK)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(checked(self.check, self.i))
        return m


@pytest.mark.parametrize("beat", [32, 64])
def test_the_check_of_a_frame_is_the_remainder_of_its_polynomial(beat):
    beats = [int(each) for each in np.random.default_rng(beat).integers(0, 1 << min(beat, 62), 6)]
    checks = [0]
    for each in beats:
        checks += trace(Check(beat), {"check": [checks[-1]], "i": [each]})["o"]
    value = 0
    for each in beats:
        value = value << beat | each
    value <<= FRAME_CHECK
    for place in reversed(range(beat * len(beats))):
        if value >> place + FRAME_CHECK & 1:
            value ^= (FRAME_POLYNOMIAL | 1 << FRAME_CHECK) << place
    assert checks[-1] == value


@pytest.mark.parametrize("carrier", [UDP, AURORA], ids=lambda each: each.name)
@pytest.mark.parametrize("links", [1, 3])
def test_a_frame_leaves_no_sooner_than_the_wire_takes_it(carrier, links):
    there, back = shapes(carrier, bits=64, links=links)
    turn = carrier.words * there.beats
    wire = (carrier.added + carrier.beat * there.frame) * carrier.mhz / carrier.rate
    assert turn >= wire * (links if carrier.shared else 1) and turn > there.frame
    assert turn - 2 * carrier.words <= 1.02 * max(wire * links, there.frame + 2), "and little later"
    held = (there.frame - 1) * carrier.beat
    assert held >= NUMBER + back.answer.size + carrier.words * there.word.size > held - carrier.beat
    assert there.window * there.beats >= 2 * there.latency, "words go while the first one is under way"
