"""The core behind AXI4-Lite: a wrapper around the design's top, which stays as it is."""
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from circulant.hw.bus.axi4_lite import Axi4LiteSlave, answer_layout, request_layout
from circulant.hw.bus.crossing import BUS, Crossing
from circulant.hw.bus.register_file import RegisterFile
from circulant.hw.emit.profile import PROFILES
from circulant.hw.emit.target import Platform, VerilogTarget
from circulant.hw.ports import port_list
from circulant.sim.registers import AXI4_LITE, RegisterMap

__all__ = ["FILE", "TOP", "BusTop", "bus_verilog"]

TOP = "circulant_axi4lite"
FILE = f"{TOP}.v"

STREAMS = tuple(f"{side}_axis_t{signal}" for side in "sm" for signal in ("data", "valid", "ready", "last"))


class BusTop(wiring.Component):
    """Slave, crossing, registers, and an instance of the core.

    Parameters:
        manifest: of the design.

    Members:
        s_axi_…: the bus, with ``s_axi_aclk`` and ``s_axi_aresetn``, active low and synchronous to it.
        s_axis_…, m_axis_…: the streams of the core. During a soft reset none of them moves.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._ports = {port["name"]: port for port in manifest["ports"]}
        self._core, self._clock, self._reset = manifest["top"], manifest["clock"], manifest["reset"]
        self._map = RegisterMap.from_manifest(manifest)
        self._slave = Axi4LiteSlave(self._map.address_bits)
        self._registers = RegisterFile(self._map, manifest["network"])
        self.slave = {f"s_{name}": member for name, member in self._slave.signature.members.items()
                      if name.startswith("axi_")}
        super().__init__({
            "s_axi_aclk": In(1), "s_axi_aresetn": In(1), **self.slave,
            **{name: (In if self._ports[name]["direction"] == "in" else Out)(self._ports[name]["bits"])
               for name in STREAMS}})

    def elaborate(self, platform: Platform) -> Module:
        m = Module()
        m.domains += (bus := ClockDomain(BUS))
        m.d.comb += [bus.clk.eq(self.s_axi_aclk), bus.rst.eq(~self.s_axi_aresetn)]
        m.submodules.slave, m.submodules.registers = slave, registers = self._slave, self._registers
        m.submodules.crossing = crossing = Crossing(request_layout(self._map.address_bits), answer_layout())

        # Bus, crossing, registers.
        for name, member in self.slave.items():
            mine, its = getattr(self, name), getattr(slave, name.removeprefix("s_"))
            m.d.comb += its.eq(mine) if member.flow is In else mine.eq(its)
        m.d.comb += [
            slave.ready.eq(crossing.ready), crossing.start.eq(slave.start), crossing.ask.eq(slave.ask),
            slave.done.eq(crossing.done), slave.answer.eq(crossing.answer),
            registers.execute.eq(crossing.execute), registers.asked.eq(crossing.asked),
            crossing.finished.eq(registers.finished), crossing.reply.eq(registers.reply)]

        # The core; in a reset that the bus asks for its streams stand still.
        runs = ~registers.reset
        inner = {name: Signal(port["bits"], name=f"core_{name}") for name, port in self._ports.items()
                 if name not in (self._clock, self._reset)}
        m.submodules.core = Instance(
            self._core, **{f"i_{self._clock}": ClockSignal(), f"i_{self._reset}": registers.reset | ResetSignal()},
            **{f"{self._ports[name]['direction'][0]}_{name}": signal for name, signal in inner.items()})
        for name in STREAMS:
            mine, its = getattr(self, name), inner[name]
            gated = (lambda value: value & runs) if name.endswith(("valid", "ready")) else (lambda value: value)
            m.d.comb += its.eq(gated(mine)) if self._ports[name]["direction"] == "in" else mine.eq(gated(its))
        m.d.comb += [
            registers.enters.eq(self.s_axis_tvalid & self.s_axis_tready), registers.last_in.eq(self.s_axis_tlast),
            registers.leaves.eq(self.m_axis_tvalid & self.m_axis_tready), registers.last_out.eq(self.m_axis_tlast),
            registers.offered.eq(self.m_axis_tvalid & ~self.m_axis_tready),
            *(getattr(registers, name).eq(inner[name]) for name in (
                "overflow", "malformed", "corrected", "uncorrected", "cfg_rdata", "cfg_rvalid") if name in inner),
            *(inner[name].eq(getattr(registers, name)) for name in ("cfg_addr", "cfg_wdata", "cfg_we", "cfg_re")
              if name in inner)]
        return m


def bus_verilog(manifest: Mapping[str, Any], profile: str = "generic") -> tuple[str, Mapping[str, Any]]:
    """Verilog of the module `TOP` around the design of a manifest, whose own is in its file; and what the manifest says
    of it."""
    top = BusTop(manifest)
    outputs = [port["name"] for port in manifest["ports"] if port["direction"] == "out"]
    target = VerilogTarget(PROFILES[profile], elsewhere={manifest["top"]: outputs, "circulant_rom": ("data",)})
    entry = {"kind": AXI4_LITE, "verilog": [FILE], "top": TOP, "clock": "s_axi_aclk", "reset": "s_axi_aresetn",
             "ports": port_list(top.signature), **RegisterMap.from_manifest(manifest).as_json()}
    return target.convert(top, TOP), entry
