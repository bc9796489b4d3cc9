"""Cores around chips that carry the frames of their links: a wrapper with LiteEth's UDP core, or a project for Vivado
with Aurora 64B/66B, which no tool here has read or routed."""
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from pathlib import Path

from circulant.boards.device import Device, device, devices
from circulant.hw.chips.folders import ChipDesign, Designs
from circulant.hw.chips.words import UDP
from circulant.sim import child
from circulant.sim.files import temporaries
from circulant.sim.refusal import Refusal, ToolError

__all__ = ["PHYS", "Phy", "Udp", "aurora", "require", "udp"]

SECONDS = 600.0
"""Limit of LiteEth's generator, which takes seconds."""

SLOWEST = 40.0
"""MHz with which 32 bits in a cycle are more than a gigabit in a second."""


@dataclass(frozen=True)
class Phy:
    """A PHY of LiteEth.

    Parameters:
        name: of its class.
        vendor, package: of the device, for LiteEth.
        pads: how its ports begin.
    """

    name: str
    vendor: str
    package: str = ""
    pads: str = "rgmii"


PHYS = {"ecp5": Phy("LiteEthECP5PHYRGMII", "lattice", "-6BG381C"), "xc7": Phy("LiteEthS7PHYRGMII", "xilinx")}
"""The PHY of a family of devices: gigabit by RGMII."""


@dataclass(frozen=True)
class Udp:
    """Addresses of chips.

    Parameters:
        ips, macs: of the first chip, from which those of others count, or of each.
        port: UDP port of the first link.
    """

    ips: Sequence[str]
    macs: Sequence[str]
    port: int

    def ip(self, chip: int) -> int:
        """The IPv4 address of a chip."""
        return int(IPv4Address(self.ips[chip])) if len(self.ips) > 1 else int(IPv4Address(self.ips[0])) + chip

    def mac(self, chip: int) -> int:
        """The MAC address of a chip."""
        first, *more = (int(each.replace(":", ""), 16) for each in self.macs)
        return (first, *more)[chip] if more else first + chip

    def of_link(self, a: int, b: int, chips: int) -> int:
        """The port of the link between two of so many chips."""
        return self.port + min(a, b) * chips + max(a, b)


UDP_TOP = """\
// {name} with its links over UDP: a frame is a packet. LiteEth made {name}_liteeth.v of {name}_liteeth.yml.
// clk has {mhz:g} MHz; pins are the user's to assign{delays}. Neither routed nor tried on a board.
module {name}_udp (
{ports}
);
{wires}
  {top} chip (
{chip}
  );
  // LiteEth's half on the PHY's clock has no reset, so that the other half has one only until rst first falls.
  reg begun = 1'b0;
  always @(posedge clk) if (!rst) begun <= 1'b1;
  {name}_liteeth core (
    .sys_clock(clk), .sys_reset(!begun),
{core}
  );
endmodule
"""

UDP_LINK = """\
    .link{other}_sink_valid(link{other}_tx_tvalid), .link{other}_sink_ready(link{other}_tx_tready),
    .link{other}_sink_data(link{other}_tx_tdata), .link{other}_sink_last(link{other}_tx_tlast),
    .link{other}_sink_last_be({{link{other}_tx_tlast, 3'b0}}), .link{other}_sink_length(16'd{length}),
    .link{other}_sink_ip_address(32'h{ip:08x}), .link{other}_sink_src_port(16'd{port}),
    .link{other}_sink_dst_port(16'd{port}),
    .link{other}_source_valid(link{other}_comes), .link{other}_source_ready(1'b1),
    .link{other}_source_data(link{other}_rx_tdata), .link{other}_source_last(link{other}_rx_tlast),
    .link{other}_source_ip_address(link{other}_from), .link{other}_source_error(), .link{other}_source_length(),
    .link{other}_source_last_be(), .link{other}_source_src_port(), .link{other}_source_dst_port()"""

AURORA_TOP = """\
// {name} with its links over Aurora 64B/66B, each on a lane of 10.3125 Gb/s. NOT ROUTED: no Vivado has read it.
// init_clk has 100 MHz, each reference clock 156.25 MHz; clk has {mhz:g} MHz.
module {name}_aurora (
{ports}
);
{wires}
  // Transceivers start more than a second after the reset, Aurora a little later (PG074, reset sequence).
  reg [27:0] starting;
  initial starting = 0;
  always @(posedge init_clk) if (rst) starting <= 0; else if (!starting[27]) starting <= starting + 1'b1;
  wire pma_init = !starting[27];
  reg [7:0] later;
  initial later = 0;
  always @(posedge init_clk) if (pma_init) later <= 0; else if (!later[7]) later <= later + 1'b1;
  wire reset_pb = !later[7];
  {top} chip (
{chip}
  );
{links}
endmodule
"""

AURORA_LINK = """
  wire link{o}_user_clk, link{o}_user_rst, link{o}_out_tvalid, link{o}_out_tready, link{o}_out_tlast;
  wire link{o}_in_tvalid, link{o}_in_tlast;
  wire [63:0] link{o}_out_tdata, link{o}_in_tdata;
  xpm_fifo_axis #(
    .CLOCKING_MODE("independent_clock"), .FIFO_DEPTH(64), .PACKET_FIFO("true"), .TDATA_WIDTH(64)) out_{o} (
    .s_aclk(clk), .s_aresetn(!rst), .m_aclk(link{o}_user_clk),
    .s_axis_tvalid(link{o}_tx_tvalid), .s_axis_tready(link{o}_tx_tready), .s_axis_tdata(link{o}_tx_tdata),
    .s_axis_tlast(link{o}_tx_tlast), .m_axis_tvalid(link{o}_out_tvalid), .m_axis_tready(link{o}_out_tready),
    .m_axis_tdata(link{o}_out_tdata), .m_axis_tlast(link{o}_out_tlast));
  xpm_fifo_axis #(
    .CLOCKING_MODE("independent_clock"), .FIFO_DEPTH(64), .PACKET_FIFO("false"), .TDATA_WIDTH(64)) in_{o} (
    .s_aclk(link{o}_user_clk), .s_aresetn(!link{o}_user_rst), .m_aclk(clk),
    .s_axis_tvalid(link{o}_in_tvalid), .s_axis_tready(), .s_axis_tdata(link{o}_in_tdata),
    .s_axis_tlast(link{o}_in_tlast), .m_axis_tvalid(link{o}_rx_tvalid), .m_axis_tready(1'b1),
    .m_axis_tdata(link{o}_rx_tdata), .m_axis_tlast(link{o}_rx_tlast));
  {name}_link{o} aurora_{o} (
    .s_axi_tx_tdata(link{o}_out_tdata), .s_axi_tx_tkeep(8'hff), .s_axi_tx_tlast(link{o}_out_tlast),
    .s_axi_tx_tvalid(link{o}_out_tvalid), .s_axi_tx_tready(link{o}_out_tready),
    .m_axi_rx_tdata(link{o}_in_tdata), .m_axi_rx_tkeep(), .m_axi_rx_tlast(link{o}_in_tlast),
    .m_axi_rx_tvalid(link{o}_in_tvalid), .rxp(link{o}_rxp), .rxn(link{o}_rxn), .txp(link{o}_txp), .txn(link{o}_txn),
    .gt_refclk1_p(link{o}_refclk_p), .gt_refclk1_n(link{o}_refclk_n), .init_clk(init_clk), .reset_pb(reset_pb),
    .pma_init(pma_init), .power_down(1'b0), .loopback(3'b0), .gt_rxcdrovrden_in(1'b0),
    .user_clk_out(link{o}_user_clk), .sys_reset_out(link{o}_user_rst), .channel_up(link{o}_channel_up));"""

AURORA_IP = """\
create_ip -name aurora_64b66b -vendor xilinx.com -library ip -module_name {name}_link{o}
set_property -dict [list CONFIG.interface_mode {{Framing}} CONFIG.C_AURORA_LANES {{1}} CONFIG.C_LINE_RATE {{10.3125}} \\
  CONFIG.C_REFCLK_FREQUENCY {{156.25}} CONFIG.C_INIT_CLK {{100}} CONFIG.SINGLEEND_INITCLK {{true}} \\
  CONFIG.drp_mode {{Native}} CONFIG.SupportLevel {{1}} CONFIG.C_USE_BYTESWAP {{true}}] [get_ips {name}_link{o}]
# Its quad and lane are the board's, one quad for each link: CONFIG.C_START_QUAD, CONFIG.C_START_LANE.
"""

AURORA_TCL = """\
# vivado -mode batch -source {name}_aurora.tcl
# NOT ROUTED: no Vivado has read this project. Name quads, lanes and pins before you rely on it.
create_project -force {name}_aurora build -part {part}
set_property XPM_LIBRARIES {{XPM_CDC XPM_FIFO XPM_MEMORY}} [current_project]
add_files {{{files}}}
add_files -fileset constrs_1 {name}_aurora.xdc
{ips}
generate_target all [get_ips]
set_property top {name}_aurora [current_fileset]
launch_runs impl_1 -jobs 4
wait_on_run impl_1
open_run impl_1
report_utilization -hierarchical -file utilization.txt
report_timing_summary -file timing.txt
"""

AURORA_STUBS = """\
// Ports alone, for lint: the project of {name} does not read this file, its IP is made by Vivado.
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNDRIVEN */
module xpm_fifo_axis #(
  parameter CLOCKING_MODE = "", parameter FIFO_DEPTH = 0, parameter PACKET_FIFO = "", parameter TDATA_WIDTH = 32
) (
  input s_aclk, input s_aresetn, input m_aclk, input s_axis_tvalid, output s_axis_tready,
  input [TDATA_WIDTH-1:0] s_axis_tdata, input s_axis_tlast, output m_axis_tvalid, input m_axis_tready,
  output [TDATA_WIDTH-1:0] m_axis_tdata, output m_axis_tlast);
endmodule
"""

AURORA_STUB = """\
module {name}_link{o} (
  input [63:0] s_axi_tx_tdata, input [7:0] s_axi_tx_tkeep, input s_axi_tx_tlast, input s_axi_tx_tvalid,
  output s_axi_tx_tready, output [63:0] m_axi_rx_tdata, output [7:0] m_axi_rx_tkeep, output m_axi_rx_tlast,
  output m_axi_rx_tvalid, input rxp, input rxn, output txp, output txn, input gt_refclk1_p, input gt_refclk1_n,
  input init_clk, input reset_pb, input pma_init, input power_down, input [2:0] loopback, input gt_rxcdrovrden_in,
  output user_clk_out, output sys_reset_out, output channel_up);
endmodule
"""


def require(carrier: str, named: Sequence[str], mhz: float) -> None:
    """
    Parameters:
        named: the device of each chip; empty for any.

    Raises:
        Refusal: when a chip's device is not known, or cannot have this carrier, or its clock is too slow for it.
    """
    for chip, name in enumerate(named):
        if not name:
            raise Refusal(f"Carrier {carrier} must know each chip's device, but chip{chip} has none; name it "
                          "(--device)")
        found = device(name)
        if carrier == UDP.name and found.family not in PHYS:
            raise Refusal(f"Carrier udp must have a device for whose RGMII LiteEth has a PHY ({_those(_has_phy)}), but "
                          f"chip{chip} is {name}; take one of them, or carrier pins")
        if carrier != UDP.name and not _has_lane(found):
            raise Refusal(f"Carrier aurora must have GTX, GTH or GTY transceivers ({_those(_has_lane)}), but "
                          f"chip{chip} is {name} with {found.transceivers or 'none'}; take one of them, or "
                          "carrier udp or pins")
    if carrier == UDP.name and mhz < SLOWEST:
        raise Refusal(f"Carrier udp must have a clock of {SLOWEST:g} MHz or more, since 32 bits in a cycle must be "
                      f"more than a gigabit in a second, not {mhz:g}; raise hardware.clock_mhz, or take carrier pins")


def _has_phy(found: Device) -> bool:
    return found.family in PHYS


def _has_lane(found: Device) -> bool:
    return bool(found.vivado) and found.transceivers != "GTP"


def _those(fits: Callable[[Device], bool]) -> str:
    return ", ".join(name for name, each in devices().items() if fits(each))


def udp(designs: Designs, addresses: Udp, mhz: float, phys: Mapping[str, Phy] = PHYS) -> Designs:
    """The same designs with a wrapper for each chip that has links, and LiteEth's core.

    Parameters:
        phys: PHYs by family.

    Raises:
        ToolError: when LiteEth fails.
    """
    chips, made = designs.planned.cluster.chips, dict[int, ChipDesign]()
    for n, chip in designs.chips.items():
        others = _others(chip)
        if not others:
            made[n] = chip
            continue
        phy = phys[device(chips[n].device).family]
        lines = [f"phy: {phy.name}", f"vendor: {phy.vendor}", f"device: {chips[n].device}{phy.package}",
                 f"toolchain: {'trellis' if phy.vendor == 'lattice' else 'vivado'}", f"clk_freq: {mhz * 1e6:.0f}",
                 "core: udp", f"mac_address: 0x{addresses.mac(n):012x}", f"ip_address: 0x{addresses.ip(n):08x}",
                 "data_width: 32", "udp_ports:", *(f"  link{o}: {{data_width: 32, mode: raw}}" for o in others)]
        text = _liteeth(f"{chip.name}_liteeth", "\n".join(lines) + "\n")
        pads = re.findall(rf"(?m)^ *(input|output|inout) +(?:wire|reg) +((?:\[\d+:0\])?) *({phy.pads}\w*)", text)
        links = [UDP_LINK.format(other=o, length=4 * chip.record.links[f"chip{o}"].frame, ip=addresses.ip(o),
                                 port=addresses.of_link(n, o, len(chips))) for o in others]
        wires = [f"  wire link{o}_comes;\n  wire [31:0] link{o}_from;\n"
                 f"  assign link{o}_rx_tvalid = link{o}_comes & (link{o}_from == 32'h{addresses.ip(o):08x});"
                 for o in others]
        top = UDP_TOP.format(
            name=chip.name, mhz=mhz, top=chip.record.top, chip=_joined(chip), wires=_wires(chip, wires),
            delays=", and an IDELAYCTRL of 200 MHz to add" if phy.vendor == "xilinx" else "",
            ports=_ports(chip, [f"{way} {bits} {name}".replace("  ", " ") for way, bits, name in pads]),
            core=",\n".join([*links, *(f"    .{name}({name})" for _, _, name in pads)]))
        made[n] = replace(chip, around={f"{chip.name}_udp.v": top, f"{chip.name}_liteeth.v": text,
                                        f"{chip.name}_liteeth.yml": "\n".join(lines) + "\n"})
    return replace(designs, chips=made)


def _liteeth(name: str, settings: str) -> str:
    """The Verilog of a core, without the lines that say when and where it was made."""
    with temporaries.folder() as work:
        (work / "core.yml").write_text(settings)
        done = child.run([sys.executable, "-m", "liteeth.gen", "core.yml", "--name", name, "--output-dir", "made"],
                         folder=work, step=f"generating {name}.v", seconds=SECONDS)
        file = Path(work) / "made" / "gateware" / f"{name}.v"
        if done.returncode or not file.is_file():
            raise ToolError(f"LiteEth must generate {name}.v, but it fails: {' '.join(done.stderr.split()[-30:])}")
        text = re.sub(r"(?m)^//.*(Date|sha1|Auto-Generated).*\n", "", file.read_text())
    return re.sub(r"input( +wire +\w+_mdio\b)", r"inout\1", text)  # Its own buffer drives it.


def aurora(designs: Designs, mhz: float) -> Designs:
    """The same designs with a project for Vivado beside each chip that has links: neither run nor routed."""
    chips, made = designs.planned.cluster.chips, dict[int, ChipDesign]()
    for n, chip in designs.chips.items():
        others, name = _others(chip), chip.name
        each = [{"name": name, "o": o} for o in others]
        own = ["input init_clk", *(f"{way} link{o}_{pin}" for o in others for way, pin in (
            ("input", "refclk_p"), ("input", "refclk_n"), ("input", "rxp"), ("input", "rxn"), ("output", "txp"),
            ("output", "txn"), ("output", "channel_up")))]
        files = [*chip.record.verilog, *chip.record.images, f"{name}_aurora.v"]
        clocks = [("clk", mhz), ("init_clk", 100.0), *((f"link{o}_refclk_p", 156.25) for o in others)]
        made[n] = replace(chip, around={
            f"{name}_aurora.v": AURORA_TOP.format(
                name=name, mhz=mhz, top=chip.record.top, ports=_ports(chip, own), wires=_wires(chip, []),
                chip=_joined(chip), links="\n".join(AURORA_LINK.format(**one) for one in each)),
            f"{name}_aurora.tcl": AURORA_TCL.format(name=name, part=device(chips[n].device).vivado,
                                                    files=" ".join(files),
                                                    ips="".join(AURORA_IP.format(**one) for one in each)),
            f"{name}_aurora.xdc": "# NOT ROUTED. Pins are the board's: set_property PACKAGE_PIN … [get_ports …]\n"
            + "".join(f"create_clock -name {clock} -period {1000 / rate:.3f} [get_ports {clock}]\n"
                      for clock, rate in clocks)
            + "set_clock_groups -asynchronous -group [get_clocks clk] -group [get_clocks init_clk]\n",
            f"{name}_aurora_stubs.v": AURORA_STUBS.format(name=name) + "".join(
                AURORA_STUB.format(**one) for one in each)} if others else {})
    return replace(designs, chips=made)


def _others(chip: ChipDesign) -> list[int]:
    """The chips to which a chip has links."""
    return [int(found[1]) for port, *_ in chip.record.ports if (found := re.fullmatch(r"link(\d+)_tx_tdata", port))]


def _range(bits: int) -> str:
    return f"[{bits - 1}:0] " if bits > 1 else ""


def _ports(chip: ChipDesign, more: Sequence[str]) -> str:
    """The ports of a wrapper: the chip's but those of links, and others."""
    own = [f"{way}put {_range(bits)}{name}" for name, way, bits in chip.record.ports if not name.startswith("link")]
    return ",\n".join(f"  {each}" for each in (*own, *more))


def _wires(chip: ChipDesign, more: Sequence[str]) -> str:
    own = [f"  wire {_range(bits)}{name};" for name, _, bits in chip.record.ports if name.startswith("link")]
    return "\n".join([*own, *more])


def _joined(chip: ChipDesign) -> str:
    return ",\n".join(f"    .{name}({name})" for name, *_ in chip.record.ports)
