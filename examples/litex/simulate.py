"""A SoC of LiteX with a generated core on its bus, simulated by Icarus Verilog.

    pip install litex migen pyosys
    circulant generate runs/digits-gru --set hardware.bus=axi4-lite
    python examples/litex/simulate.py runs/digits-gru/hardware

A host reads the core's identification and network hash over the SoC's bus; then the test bench's sequences pass the
core's streams, and every output beat is compared with the golden model's.
"""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from core import CirculantCore
from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim import SimPlatform
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import axi
from migen import ClockDomain
from pyosys import libyosys

BASE = 0x8000_0000


def pads(manifest):
    """Pins of the simulation: clock, reset, a host's bus, the streams."""
    bits = {port["name"]: port["bits"] for port in manifest["ports"]}
    return [
        ("clk", 0, Pins(1)), ("rst", 0, Pins(1)),
        ("host", 0, *(Subsignal(name, Pins(width)) for name, width in (
            ("araddr", 32), ("arvalid", 1), ("arready", 1), ("rdata", 32), ("rresp", 2), ("rvalid", 1)))),
        ("sink", 0, *(Subsignal(name, Pins(width)) for name, width in (
            ("data", bits["s_axis_tdata"]), ("valid", 1), ("ready", 1), ("last", 1)))),
        ("source", 0, *(Subsignal(name, Pins(width)) for name, width in (
            ("data", bits["m_axis_tdata"]), ("valid", 1), ("ready", 1), ("last", 1))))]


class Soc(SoCMini):
    """A SoC without a processor, whose bus a host outside drives."""

    def __init__(self, platform, folder):
        self.cd_sys = ClockDomain()
        self.comb += [self.cd_sys.clk.eq(platform.request("clk")), self.cd_sys.rst.eq(platform.request("rst"))]
        SoCMini.__init__(self, platform, clk_freq=int(100e6), bus_standard="wishbone", ident="", ident_version=False)
        self.core = core = CirculantCore(platform, folder)
        self.bus.add_slave("circulant", core.bus, SoCRegion(origin=BASE, size=max(0x1000, core.size), cached=False))
        host, outside = axi.AXILiteInterface(data_width=32, address_width=32), platform.request("host")
        self.bus.add_master("host", host)
        sink, source = platform.request("sink"), platform.request("source")
        self.comb += [
            host.ar.addr.eq(outside.araddr), host.ar.valid.eq(outside.arvalid), outside.arready.eq(host.ar.ready),
            outside.rdata.eq(host.r.data), outside.rresp.eq(host.r.resp), outside.rvalid.eq(host.r.valid),
            host.r.ready.eq(1), host.b.ready.eq(1),
            core.sink.data.eq(sink.data), core.sink.valid.eq(sink.valid), core.sink.last.eq(sink.last),
            sink.ready.eq(core.sink.ready), source.data.eq(core.source.data), source.valid.eq(core.source.valid),
            source.last.eq(core.source.last), core.source.ready.eq(source.ready)]


def assigned(file):
    """Assignments in place of the combinational blocks of a Verilog file. In such a block migen gives a signal its
    default first and then what it is to be, which for Icarus are two events, and two blocks that read each other never
    rest."""
    design = libyosys.Design()
    for command in (f"read_verilog {file}", "proc", "opt_clean", f"write_verilog -noattr {file}"):
        libyosys.run_pass(command, design)


def simulate(folder, work):
    """The last line of the simulation: PASS and what was compared, or what is wrong.

    Parameters:
        folder: of the core, with its kit.
        work: for files of the simulation.
    """
    folder, work = Path(folder).resolve(), Path(work)
    manifest = json.loads((folder / "manifest.json").read_text())
    if "bus" not in manifest:
        raise SystemExit(f"{folder} must hold a core behind AXI4-Lite, but it has no bus; generate it with --set "
                         "hardware.bus=axi4-lite")
    platform = SimPlatform("SIM", pads(manifest))
    soc = Soc(platform, folder)
    (work / "soc.v").write_text(str(platform.get_verilog(soc, name="soc")))
    assigned(work / "soc.v")
    given, expected = ((folder / f"tb_{name}.hex").read_text().split() for name in ("input", "expected"))
    (work / "bench.sv").write_text((Path(__file__).parent / "bench.sv").read_text())
    for file in folder.glob("*.hex"):
        shutil.copy(file, work)
    sources = [str(folder / name) for name in (*manifest["verilog"], *manifest["bus"]["verilog"])]
    bits = {port["name"]: port["bits"] for port in manifest["ports"]}
    parameters = {"IN": bits["s_axis_tdata"], "OUT": bits["m_axis_tdata"], "GIVEN": len(given),
                  "EXPECTED": len(expected), "NETWORK": f"32'h{manifest['network'][:8]}"}
    subprocess.run(["iverilog", "-g2012", "-o", "bench", *(f"-Pbench.{name}={value}" for name, value in
                                                          parameters.items()), "bench.sv", "soc.v", *sources],
                   cwd=work, check=True)
    return subprocess.run(["vvp", "-n", "bench"], cwd=work, check=True, capture_output=True,
                          text=True).stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        line = simulate(sys.argv[1], temporary)
    print(line)
    sys.exit(not line.startswith("PASS"))
