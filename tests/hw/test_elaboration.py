import gc
import weakref

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Fragment, Module, Signal, _nir
from amaranth.hdl._ir import build_netlist
from amaranth.hdl._nir import CombinationalCycle

from circulant.hw.array.row import LaneRow, RowShape
from circulant.hw.elaboration import brisk, drivers, may_cycle
from circulant.hw.fft import FftShape, InverseFft
from circulant.hw.pipeline import Queue, block


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
    with brisk(), pytest.raises(CombinationalCycle, match=r"^Combinational cycle detected"):
        text(m, y)


def test_a_cycle_of_a_cell_but_of_no_bit_is_none():
    m, a = Module(), Signal(4)
    m.d.comb += a.eq(Cat(1, ~a[:3]))
    y = Signal(4)
    m.d.comb += y.eq(a)
    with brisk():
        assert "module \\top" in text(m, y)


def test_a_register_ends_a_way():
    m, a, y = Module(), Signal(4), Signal(4)
    m.domains.sync = ClockDomain()
    m.d.sync += a.eq(a + y)
    m.d.comb += y.eq(a ^ 3)
    netlist = build_netlist(Fragment.get(m, None), ports={"y": (y, None)})
    assert not may_cycle(netlist, drivers(netlist))


def replaced():
    return [vars(place)[name] for place, name in (
        (_nir.Netlist, "check_comb_cycles"), (_nir.Netlist, "resolve_value"), (_nir.Net, "from_cell"),
        (_nir.Value, "__new__"), (rtlil.ModuleEmitter, "sigspec"))]


@pytest.mark.parametrize("make", [
    lambda: LaneRow(RowShape(k=8, columns=3, data_width=9, weight_width=7, terms=5, slots=2, fold=2)),
    lambda: InverseFft(FftShape(8, 12, 10)), lambda: Queue(block(4, 7), depth=9)])
def test_the_text_of_a_unit_is_that_of_amaranth(make):
    plain = rtlil.convert(make(), name="unit", emit_src=False)
    with brisk():
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


def test_garbage_is_found_by_the_next_search_of_all():
    with brisk():
        mark = weakref.ref(Ring())
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert mark() is None


def test_the_text_is_that_of_amaranth_and_everything_is_as_before():
    m, a, b, y = Module(), Signal(4), Signal(4), Signal(6)
    with m.Switch(a):
        with m.Case("1--0"):
            m.d.comb += y.eq(a * b)
        with m.Default():
            m.d.comb += y.eq(Cat(b, a[:2]) - 1)
    before = replaced()
    plain = text(m, a, b, y)
    with brisk():
        assert not gc.isenabled()
        assert text(m, a, b, y) == plain
    assert gc.isenabled()
    assert replaced() == before
