"""An AXI4-Lite slave that makes one request of each transaction and answers with what comes back."""
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.bus.crossing import BUS
from circulant.hw.emit.target import Platform
from circulant.sim.configuration import WORD

__all__ = ["Axi4LiteSlave", "answer_layout", "request_layout"]

OKAY, SLVERR = 0, 2
"""Responses."""


def request_layout(address_bits: int) -> data.StructLayout:
    """A request: a byte address, and for a write the word; ``whole`` unless some of its bytes are to stay."""
    return data.StructLayout({"write": 1, "whole": 1, "address": address_bits, "word": WORD})


def answer_layout() -> data.StructLayout:
    """An answer: the word that was read, and whether the access was refused."""
    return data.StructLayout({"refused": 1, "word": WORD})


class Axi4LiteSlave(wiring.Component):
    """A transaction at a time; reads and writes that wait at once take turns. All registers are in the domain "bus".

    Parameters:
        address_bits: of the bus.

    Members:
        axi_…: the ports of AXI4-Lite (ARM IHI 0022), without ``axi_``'s clock and reset; awprot and arprot are not
            looked at.
        ready, start, ask, done, answer: see `circulant.hw.bus.crossing.Crossing`.
    """

    def __init__(self, address_bits: int) -> None:
        super().__init__({
            **{f"axi_{name}": In(bits) for name, bits in {
                "awaddr": address_bits, "awprot": 3, "awvalid": 1, "wdata": WORD, "wstrb": WORD // 8, "wvalid": 1,
                "bready": 1, "araddr": address_bits, "arprot": 3, "arvalid": 1, "rready": 1}.items()},
            **{f"axi_{name}": Out(bits) for name, bits in {
                "awready": 1, "wready": 1, "bresp": 2, "bvalid": 1, "arready": 1, "rdata": WORD, "rresp": 2,
                "rvalid": 1}.items()},
            "ready": In(1), "start": Out(1), "ask": Out(request_layout(address_bits)), "done": In(1),
            "answer": In(answer_layout())})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        wrote = Signal()
        writes = Signal()
        reads = Signal()

        # Who is next: a write needs its address and its word.
        free = self.ready & ~self.axi_bvalid & ~self.axi_rvalid
        may_write, may_read = self.axi_awvalid & self.axi_wvalid, self.axi_arvalid
        m.d.comb += [
            writes.eq(free & may_write & ~(may_read & wrote)), reads.eq(free & may_read & ~writes),
            self.axi_awready.eq(writes), self.axi_wready.eq(writes), self.axi_arready.eq(reads),
            self.start.eq(writes | reads),
            self.ask.write.eq(writes), self.ask.whole.eq(self.axi_wstrb.all()), self.ask.word.eq(self.axi_wdata),
            self.ask.address.eq(Mux(writes, self.axi_awaddr, self.axi_araddr))]
        with m.If(self.start):
            m.d[BUS] += wrote.eq(writes)

        # Its answer stays until it is taken.
        with m.If(self.done):
            m.d[BUS] += [self.axi_bvalid.eq(wrote), self.axi_rvalid.eq(~wrote), self.axi_rdata.eq(self.answer.word),
                         self.axi_bresp.eq(Mux(self.answer.refused, SLVERR, OKAY)),
                         self.axi_rresp.eq(Mux(self.answer.refused, SLVERR, OKAY))]
        with m.If(self.axi_bready):
            m.d[BUS] += self.axi_bvalid.eq(Mux(self.done, wrote, 0))
        with m.If(self.axi_rready):
            m.d[BUS] += self.axi_rvalid.eq(Mux(self.done, ~wrote, 0))
        return m
