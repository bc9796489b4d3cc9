"""A generated core with `hardware.bus = "axi4-lite"` as a module of LiteX: a slave on the bus of a SoC, two streams.

    self.core = CirculantCore(platform, "runs/digits-gru/hardware")
    self.bus.add_slave("circulant", self.core.bus, SoCRegion(size=self.core.size, cached=False))
    self.comb += [dma_reader.source.connect(self.core.sink), self.core.source.connect(dma_writer.sink)]
"""
import json
from pathlib import Path

from litex.gen import LiteXModule
from litex.soc.interconnect import axi, stream
from migen import ClockSignal, Constant, Instance, ResetSignal

__all__ = ["CirculantCore"]


class CirculantCore(LiteXModule):
    """The core and its registers, both on the system's clock.

    Parameters:
        platform: gets the Verilog; the memory images must lie where its tools read them.
        folder: that `circulant generate --set hardware.bus=axi4-lite` wrote.

    Members:
        bus: AXI4-Lite, of ``size`` bytes.
        sink, source: streams of beats; ``last`` ends a sequence or image.
    """

    def __init__(self, platform, folder):
        folder = Path(folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        entry, ports = manifest["bus"], {port["name"]: port for port in manifest["ports"]}
        bits = entry["address_bits"]
        self.size = 1 << bits
        self.bus = bus = axi.AXILiteInterface(data_width=32, address_width=32)
        self.sink = stream.Endpoint([("data", ports["s_axis_tdata"]["bits"])])
        self.source = stream.Endpoint([("data", ports["m_axis_tdata"]["bits"])])
        self.specials += Instance(
            entry["top"],
            i_clk=ClockSignal(), i_rst=ResetSignal(), i_s_axi_aclk=ClockSignal(), i_s_axi_aresetn=~ResetSignal(),
            i_s_axi_awaddr=bus.aw.addr[:bits], i_s_axi_awvalid=bus.aw.valid, o_s_axi_awready=bus.aw.ready,
            i_s_axi_awprot=Constant(0, 3), i_s_axi_arprot=Constant(0, 3),
            i_s_axi_wdata=bus.w.data, i_s_axi_wstrb=bus.w.strb, i_s_axi_wvalid=bus.w.valid, o_s_axi_wready=bus.w.ready,
            o_s_axi_bresp=bus.b.resp, o_s_axi_bvalid=bus.b.valid, i_s_axi_bready=bus.b.ready,
            i_s_axi_araddr=bus.ar.addr[:bits], i_s_axi_arvalid=bus.ar.valid, o_s_axi_arready=bus.ar.ready,
            o_s_axi_rdata=bus.r.data, o_s_axi_rresp=bus.r.resp, o_s_axi_rvalid=bus.r.valid, i_s_axi_rready=bus.r.ready,
            i_s_axis_tdata=self.sink.data, i_s_axis_tvalid=self.sink.valid, o_s_axis_tready=self.sink.ready,
            i_s_axis_tlast=self.sink.last,
            o_m_axis_tdata=self.source.data, o_m_axis_tvalid=self.source.valid, i_m_axis_tready=self.source.ready,
            o_m_axis_tlast=self.source.last)
        for name in (*manifest["verilog"], *entry["verilog"]):
            platform.add_source(str(folder / name))
