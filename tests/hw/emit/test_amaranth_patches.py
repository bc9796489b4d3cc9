import gc
import os
import weakref
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Fragment, Module, Signal
from amaranth.hdl._ir import build_netlist
from amaranth.hdl._nir import CombinationalCycle

from circulant.hw import generate
from circulant.hw.arith.fft import FftShape, InverseFft
from circulant.hw.array.mac_row import MacRow, MacRowShape
from circulant.hw.emit import amaranth_patches
from circulant.hw.emit.amaranth_patches import drivers, fast_elaboration, may_cycle, replacements
from circulant.hw.stream.pipeline import Queue, block
from circulant.sim.kinds.linear import FloatLinear
from circulant.sim.quantize.quantize import quantize
from circulant.sim.real import float_model


def text(m, *ports):
    return rtlil.convert(m, ports=ports, emit_src=False)


def through_a_sum(m, a, b):
    """b, behind which a lies."""
    m.d.comb += [b.eq(a + 1), a.eq(b - 1)]


def through_a_choice(m, a, b):
    with m.If(a[0]):
        m.d.comb += b.eq(1)
    m.d.comb += a.eq(b)


def of_signals(m, a, b):
    m.d.comb += [a.eq(b), b.eq(a)]


@pytest.mark.parametrize("loop", [through_a_sum, through_a_choice, of_signals])
def test_a_cycle_of_logic_is_found(loop):
    m, a, b, y = Module(), Signal(4), Signal(4), Signal(4)
    loop(m, a, b)
    m.d.comb += y.eq(a)
    with fast_elaboration(), pytest.raises(CombinationalCycle, match=r"^Combinational cycle detected"):
        text(m, y)


def test_a_cycle_of_a_cell_but_of_no_bit_is_none():
    m, a = Module(), Signal(4)
    m.d.comb += a.eq(Cat(1, ~a[:3]))
    y = Signal(4)
    m.d.comb += y.eq(a)
    with fast_elaboration():
        assert "module \\top" in text(m, y)


def test_a_register_ends_a_way():
    m, a, y = Module(), Signal(4), Signal(4)
    m.domains.sync = ClockDomain()
    m.d.sync += a.eq(a + y)
    m.d.comb += y.eq(a ^ 3)
    netlist = build_netlist(Fragment.get(m, None), ports={"y": (y, None)})
    assert not may_cycle(netlist, drivers(netlist))


REPLACED = tuple(replacements())


def replaced():
    return [vars(place)[name] for place, name in REPLACED]


@pytest.mark.parametrize("make", [
    lambda: MacRow(MacRowShape(k=8, columns=3, data_width=9, weight_width=7, terms=5, slots=2, fold=2)),
    lambda: InverseFft(FftShape(8, 12, 10)), lambda: Queue(block(4, 7), depth=9)])
def test_the_text_of_a_unit_is_that_of_amaranth(make):
    plain = rtlil.convert(make(), name="unit", emit_src=False)
    with fast_elaboration():
        assert rtlil.convert(make(), name="unit", emit_src=False) == plain


def test_what_drives_each_net_is_found_through_signals():
    m, a, b, y = Module(), Signal(3), Signal(3), Signal(3)
    m.d.comb += [b.eq(a), y.eq(b)]
    netlist = build_netlist(Fragment.get(m, None), ports={"a": (a, None), "y": (y, None)})
    assert netlist.connections
    assert min(drivers(netlist).values()) >= 0


class Ring:
    def __init__(self):
        self.itself = self


def test_garbage_is_found_among_what_is_new_and_what_outlived_that_by_the_next_elaboration():
    with fast_elaboration():
        ring, new = Ring(), weakref.ref(Ring())
        kept = weakref.ref(ring)
        gc.collect(0)
        assert new() is None and kept() is ring
    del ring
    with fast_elaboration():
        assert kept() is None


def megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="memory is read from /proc")
def test_a_process_that_generates_often_does_not_grow():
    """By 25 MB in 10 calls at the most."""
    rng = np.random.default_rng(0)
    layer = FloatLinear("out", 4, 4, rng.normal(0, 1, (2, 2, 2)), rng.normal(0, 1, 4))
    small = quantize(float_model.Model.chain("small", 4, False, (layer,)), rng.normal(0, 1, (8, 4)), activation_bits=8)
    generate(small, objective="throughput")
    before = megabytes()
    for _ in range(10):
        generate(small, objective="throughput")
    assert megabytes() < before + 25


@pytest.mark.parametrize("version", ["0.5.9", "0.5.11"])
def test_another_amaranth_is_left_as_it_is(monkeypatch, version):
    before = replaced()
    monkeypatch.setattr(amaranth_patches.importlib.metadata, "version", lambda name: version)
    with fast_elaboration():
        assert replaced() == before
        assert not gc.isenabled()


def test_the_amaranth_that_was_read_is_made_faster():
    """The one that constraints.txt installs."""
    before = replaced()
    with fast_elaboration():
        assert all(now is not then for now, then in zip(replaced(), before, strict=True))


def test_a_cell_of_more_bits_than_a_net_can_name_is_refused():
    m, wide = Module(), Signal(65_600)
    m.d.sync += wide.eq(~wide)
    limit = "^A cell must have at most 65,536 bits, but one has a bit"
    for elaboration, sentence in ((nullcontext, None), (fast_elaboration, limit)):
        with elaboration(), pytest.raises(AssertionError, match=sentence):
            text(m, wide)


def test_the_text_is_that_of_amaranth_and_everything_is_as_before():
    m, a, b, y = Module(), Signal(4), Signal(4), Signal(6)
    with m.Switch(a):
        with m.Case("1--0"):
            m.d.comb += y.eq(a * b)
        with m.Default():
            m.d.comb += y.eq(Cat(b, a[:2]) - 1)
    before = replaced()
    plain = text(m, a, b, y)
    with fast_elaboration():
        assert not gc.isenabled()
        assert text(m, a, b, y) == plain
    assert gc.isenabled()
    assert replaced() == before
