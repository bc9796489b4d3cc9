import gc

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Fragment, Module, Signal, _nir
from amaranth.hdl._ir import build_netlist
from amaranth.hdl._nir import CombinationalCycle

from circulant.hw.elaboration import brisk, may_cycle


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
    assert not may_cycle(build_netlist(Fragment.get(m, None), ports={"y": (y, None)}))


def test_the_text_is_that_of_amaranth_and_everything_is_as_before():
    m, a, b, y = Module(), Signal(4), Signal(4), Signal(6)
    with m.Switch(a):
        with m.Case("1--0"):
            m.d.comb += y.eq(a * b)
        with m.Default():
            m.d.comb += y.eq(Cat(b, a[:2]) - 1)
    before = {name: vars(place)[name] for place, name in (
        (_nir.Netlist, "check_comb_cycles"), (_nir.Netlist, "resolve_value"), (_nir.Value, "__new__"))}
    plain = text(m, a, b, y)
    with brisk():
        assert not gc.isenabled()
        assert text(m, a, b, y) == plain
    assert gc.isenabled()
    assert {name: vars(place)[name] for place, name in (
        (_nir.Netlist, "check_comb_cycles"), (_nir.Netlist, "resolve_value"), (_nir.Value, "__new__"))} == before
