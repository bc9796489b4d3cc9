from functools import cache

import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.planner import plan
from circulant.hw.top import Top, container_bits
from tests.hw.golden import blocks, network, numbers
from tests.hw.simulate import stream as streamed
from tests.hw.simulate import trace

BITS = {"activation_bits": 9, "weight_bits": 7, "twiddle_bits": 8, "segments": 16}
NETWORKS = {  # block sizes, hidden, inputs, outputs, what the GRU returns, multipliers
    "one layer": (4, 0, 8, 4, 0, "last", 20),
    "a classifier": (4, 4, 8, 3, 6, "last", 40),
    "narrower blocks behind": (8, 2, 9, 5, 3, "sequence", 50),
    "wider blocks behind": (2, 8, 7, 3, 9, "sequence", 80),
    "no blocks at all": (1, 1, 3, 2, 2, "last", 20),
}


class Beats(wiring.Component):
    """A top whose ports are streams of beats; value j of a beat lies in the j-th container."""

    def __init__(self, network, multipliers, plans=None, **options):
        self.top = top = Top(network, plans or plan(network, multipliers), **options)
        self.bits = tuple(container_bits(form.width) for form in (network.input_format, network.output_format))
        counts = (top.input_block, top.output_block)
        beat = [data.StructLayout({"data": data.ArrayLayout(signed(width), count), "last": 1})
                for width, count in zip(self.bits, counts, strict=True)]
        super().__init__({"i": In(stream.Signature(beat[0])), "o": Out(stream.Signature(beat[1])),
                          "overflow": Out(1), "malformed": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.top = top = self.top
        m.d.comb += [
            top.s_axis_tdata.eq(self.i.payload.data.as_value()), top.s_axis_tlast.eq(self.i.payload.last),
            top.s_axis_tvalid.eq(self.i.valid), self.i.ready.eq(top.s_axis_tready),
            self.o.payload.data.as_value().eq(top.m_axis_tdata), self.o.payload.last.eq(top.m_axis_tlast),
            self.o.valid.eq(top.m_axis_tvalid), top.m_axis_tready.eq(self.o.ready),
            self.overflow.eq(getattr(top, "overflow", 0)), self.malformed.eq(getattr(top, "malformed", 0))]
        return m


@cache
def made(name):
    """A network and its hardware, compiled once for all tests."""
    k, k_out, hidden, inputs, outputs, returns, multipliers = NETWORKS[name]
    chain = network(k, hidden, inputs, outputs=outputs, k_out=k_out, returns=returns, **BITS)
    return chain, Beats(chain, multipliers)


def sequences(chain, lengths):
    return [numbers(chain.input_format, t, chain.flow.size, seed=n) for n, t in enumerate(lengths)]


def beats(chain, dut, xs):
    """What goes in and what the golden network gives."""
    ys = [np.atleast_2d(chain.run_integers(x[None])[0]) for x in xs]
    return blocks(xs, dut.top.input_block), blocks(ys, dut.top.output_block)


@pytest.mark.parametrize(("width", "bits"), [(1, 8), (8, 8), (9, 16), (16, 16), (17, 24), (24, 24)])
def test_a_container_is_whole_bytes(width, bits):
    assert container_bits(width) == bits


@pytest.mark.parametrize(("stall_i", "stall_o"), [(0.0, 0.0), (0.4, 0.4)])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_accelerator_equals_golden(name, stall_i, stall_o):
    chain, dut = made(name)
    sent, expected = beats(chain, dut, sequences(chain, (2, 1, 3)))
    assert streamed(dut, sent, stall_i=stall_i, stall_o=stall_o, quiet=300, count=len(expected)) == expected


@pytest.mark.parametrize("reset_at", [20, 90, 150])
def test_right_answers_after_a_reset_in_the_middle_of_a_sequence(reset_at):
    chain, dut = made("narrower blocks behind")
    sent, expected = beats(chain, dut, sequences(chain, (3, 1)))
    assert streamed(dut, sent, stall_i=0.2, stall_o=0.5, reset_at=reset_at, quiet=300, count=len(expected)) == expected


def test_values_are_sign_extended_and_only_their_own_bits_are_read():
    """A container of 16 bits around a value of 9."""
    chain, dut = made("one layer")
    sent, expected = beats(chain, dut, sequences(chain, (2, 2)))
    assert dut.bits == (16, 16)
    assert min(min(beat["data"]) for beat in expected) < 0

    def with_junk(value):
        """Other bits above the value's own nine."""
        container = (value & 0x1ff) | (0b0110100 ^ value & 0x7f) << 9
        return container - (container >> 15 << 16)

    junk = [{**beat, "data": list(map(with_junk, beat["data"]))} for beat in sent]
    assert junk != sent
    assert streamed(dut, junk, quiet=300, count=len(expected)) == expected


def test_ports_are_named_as_the_bus_names_them():
    _, dut = made("a classifier")
    trace(dut, {"i.valid": [0]})
    assert {name: member.shape for name, member in dut.top.signature.members.items()} == {
        "s_axis_tdata": 4 * 16, "s_axis_tvalid": 1, "s_axis_tready": 1, "s_axis_tlast": 1,
        "m_axis_tdata": 4 * 16, "m_axis_tvalid": 1, "m_axis_tready": 1, "m_axis_tlast": 1}
    flows = {name: member.flow for name, member in dut.top.signature.members.items()}
    assert {name for name, flow in flows.items() if flow is In} == {
        "s_axis_tdata", "s_axis_tvalid", "s_axis_tlast", "m_axis_tready"}
