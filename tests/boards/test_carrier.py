"""Wrappers around chips: what they are made of, that they elaborate and carry words, and who cannot have them."""
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.formal.tools import available
from circulant.boards import carrier
from circulant.boards.carrier import Udp, require
from circulant.hw.chips.cluster import Chip, Cluster, Link
from circulant.hw.chips.cut import Place
from circulant.hw.chips.folders import generate_chips
from circulant.hw.chips.plans import planned
from circulant.hw.chips.words import AURORA, UDP
from circulant.sim.chips import SYSTEM
from circulant.sim.cosim import verify
from circulant.sim.refusal import Refusal
from tests.hw.chips.networks import data, pair

LITEETH = pytest.mark.skipif(find_spec("liteeth") is None, reason="LiteEth comes with circulant[udp]")
YOSYS = pytest.mark.skipif(not available(), reason="Yosys comes with pyosys")
ADDRESSES = Udp(("192.168.1.50",), ("02:00:00:00:00:50",), 4000)

PAIRS = """\
module circulant_out (input c, input a, input b, output q);
  reg high, low, next;  // q changes at both edges, so that none who samples at an edge sees what comes then.
  assign q = high ^ low;
  always @(posedge c) begin high <= a ^ low; next <= b; end
  always @(negedge c) low <= next ^ high;
endmodule
module circulant_in (input c, input d, output reg a, output reg b);
  reg first, second;
  always @(negedge c) second <= d;
  always @(posedge c) begin first <= d; a <= first; b <= second; end
endmodule
"""
"""Two bits of a cycle over a pin, as both families have them: ODDR with SAME_EDGE, IDDR with SAME_EDGE_PIPELINED."""

CELLS = {"LFE5U-85F": """\
module ODDRX1F (input SCLK, input RST, input D0, input D1, output Q);
  circulant_out pair (SCLK, D0, D1, Q);
endmodule
module IDDRX1F (input SCLK, input RST, input D, output Q0, output Q1);
  circulant_in pair (SCLK, D, Q0, Q1);
endmodule
module DELAYG #(parameter DEL_MODE = "", parameter DEL_VALUE = 0) (input A, output Z);
  assign Z = A;
endmodule
module FD1S3BX (input CK, input D, input PD, output reg Q);
  always @(posedge CK or posedge PD) if (PD) Q <= 1'b1; else Q <= D;
endmodule
module TRELLIS_IO #(parameter DIR = "") (inout B, input I, input T, output O);
  assign O = 1'b0;
endmodule
""", "XC7A100T": """\
module ODDR #(parameter DDR_CLK_EDGE = "") (input C, input CE, input D1, input D2, input R, input S, output Q);
  circulant_out pair (C, D1, D2, Q);
endmodule
module IDDR #(parameter DDR_CLK_EDGE = "") (input C, input CE, input D, input R, input S, output Q1, output Q2);
  circulant_in pair (C, D, Q1, Q2);
endmodule
module IDELAYE2 #(parameter IDELAY_TYPE = "", parameter IDELAY_VALUE = 0, parameter real REFCLK_FREQUENCY = 0) (
  input C, input CE, input IDATAIN, input INC, input LD, input LDPIPEEN, output DATAOUT);
  assign DATAOUT = IDATAIN;
endmodule
module IBUF (input I, output O);
  assign O = I;
endmodule
module OBUF (input I, output O);
  assign O = I;
endmodule
module BUFG (input I, output O);
  assign O = I;
endmodule
module FDPE #(parameter INIT = 1) (input C, input CE, input D, input PRE, output reg Q);
  always @(posedge C or posedge PRE) if (PRE) Q <= 1'b1; else if (CE) Q <= D;
endmodule
module FDCE (input C, input CE, input CLR, input D, output reg Q);
  always @(posedge C or posedge CLR) if (CLR) Q <= 1'b0; else if (CE) Q <= D;
endmodule
module PLLE2_ADV #(
  parameter CLKFBOUT_MULT = 0, parameter real CLKIN1_PERIOD = 0, parameter CLKOUT0_DIVIDE = 0,
  parameter real CLKOUT0_PHASE = 0, parameter CLKOUT1_DIVIDE = 0, parameter real CLKOUT1_PHASE = 0,
  parameter DIVCLK_DIVIDE = 0, parameter real REF_JITTER1 = 0, parameter STARTUP_WAIT = ""
) (input CLKFBIN, input CLKIN1, input PWRDWN, input RST,
  output CLKFBOUT, output CLKOUT0, output CLKOUT1, output LOCKED);
  assign CLKFBOUT = 1'b0;
  assign CLKOUT0 = CLKIN1;
  assign CLKOUT1 = CLKIN1;
  assign LOCKED = 1'b1;
endmodule
"""}
"""Cells that LiteEth's PHY of a family has, as far as its function needs them: no delays, no MDIO."""

JOINED = """\
module half (input clk, input [4:0] i, output [4:0] o);
  reg [4:0] high, low;
  assign o = high ^ low;
  always @(posedge clk) high <= i ^ low;
  always @(negedge clk) low <= i ^ high;
endmodule
module circulant_top (
  input clk, input rst, input [63:0] s_axis_tdata, input s_axis_tvalid, output s_axis_tready, input s_axis_tlast,
  output [63:0] m_axis_tdata, output m_axis_tvalid, input m_axis_tready, output m_axis_tlast,
  output malformed, output fault
);
  wire [4:0] tx0, tx1, rx0, rx1;
  wire malformed0, malformed1, fault0, fault1;
  assign malformed = malformed0 | malformed1;
  assign fault = fault0 | fault1;
  half to1 (clk, tx0, rx1);
  half to0 (clk, tx1, rx0);
  chip0_udp chip0 (
    .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready),
    .s_axis_tlast(s_axis_tlast), .malformed(malformed0), .fault(fault0), .rgmii_clocks_rx(clk),
    .rgmii_tx_ctl(tx0[4]), .rgmii_tx_data(tx0[3:0]), .rgmii_rx_ctl(rx0[4]), .rgmii_rx_data(rx0[3:0]));
  chip1_udp chip1 (
    .clk(clk), .rst(rst), .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready),
    .m_axis_tlast(m_axis_tlast), .malformed(malformed1), .fault(fault1), .rgmii_clocks_rx(clk),
    .rgmii_tx_ctl(tx1[4]), .rgmii_tx_data(tx1[3:0]), .rgmii_rx_ctl(rx1[4]), .rgmii_rx_data(rx1[3:0]));
endmodule
"""
"""Two chips whose RGMII is crossed, half a cycle late as a PHY's delay puts it."""


@pytest.fixture(scope="module")
def designs():
    """Designs of two chips over a carrier."""
    made = {}

    def of(over, device):
        if (over, device) not in made:
            chips = Cluster(tuple(Chip(f"chip{n}", 120, device=device) for n in range(2)), Link(64, 60, carrier=over))
            made[over, device] = generate_chips(planned(pair(), chips, {"lstm1": Place((0,)), "lstm2": Place((1,))}))
        return made[over, device]
    return of


def elaborated(folder, top, library, files):
    """What Yosys says of the files of a folder and black boxes: nothing is missing, and no wire has two drivers."""
    from pyosys import libyosys

    design = libyosys.Design()
    for command in (f"read_verilog {' '.join(str(folder / each) for each in files)}", f"read_verilog -lib {library}",
                    f"hierarchy -check -top {top}", "proc", "check -assert"):
        libyosys.run_pass(command, design)


@LITEETH
@YOSYS
@pytest.mark.parametrize(("device", "cells"), [
    ("LFE5U-85F", "+/ecp5/cells_sim.v +/ecp5/cells_bb.v"),
    ("XC7A100T", "+/xilinx/cells_sim.v +/xilinx/cells_xtra.v")])
def test_a_chip_and_its_core_of_liteeth_elaborate(designs, tmp_path, device, cells):
    plain = designs(UDP, device)
    made = carrier.udp(plain, ADDRESSES, 100.0)
    folder = made.write(tmp_path / "chips")
    for n in (0, 1):
        chip, text = made.chips[n], made.chips[n].around[f"chip{n}_udp.v"]
        elaborated(folder / f"chip{n}", f"chip{n}_udp", cells, [
            f"chip{n}_udp.v", f"chip{n}_liteeth.v", *chip.record.verilog])
        other, port = f"32'hc0a8013{3 - n}", "16'd4001"
        assert f"sink_ip_address({other})" in text and f"_from == {other}" in text
        assert text.count(port) == 2, "one port for both ways"
        assert f"sink_length(16'd{4 * plain.planned.links[n, 1 - n].frame})" in text
        assert "inout" in text and "rgmii_tx_data" in text and "sys_reset(!begun)" in text
        assert f"mac_address: 0x02000000005{n}" in chip.around[f"chip{n}_liteeth.yml"]
        assert "Date" not in chip.around[f"chip{n}_liteeth.v"], "the same text each time"
    assert not [each for each in (folder / "system").iterdir() if "liteeth" in each.name]


@LITEETH
@pytest.mark.soak
@pytest.mark.parametrize("device", CELLS)
def test_chips_joined_by_their_cores_of_liteeth_equal_golden(device, designs, tmp_path):
    """At 125 MHz, which RGMII has, too, and with resets while frames are under way."""
    made = carrier.udp(designs(replace(UDP, mhz=125.0), device), ADDRESSES, 125.0)
    around = {name: text for chip in made.chips.values() for name, text in chip.around.items() if name.endswith(".v")}
    played = {**made.system, **around, "cells.v": PAIRS + CELLS[device], "top.v": JOINED}
    joined = replace(made, system=played, manifest={
        **made.manifest, "verilog": [name for name in played if name.endswith(".v")], "links": {},
        "estimates": ["cycles"], "latency_spaced": None, "latency_contiguous": None})
    found = verify(joined.write(tmp_path / "chips") / SYSTEM, pair().vectors(data(pair(), 2, 4)), stalls=False,
                   patience=20_000)
    assert found.mismatches == 0 and found.words_compared > 2 * 4 * 16


@YOSYS
def test_a_project_for_aurora_elaborates_with_stubs_and_says_that_it_is_not_routed(designs, tmp_path):
    made = carrier.aurora(designs(AURORA, "XCKU060"), 200.0)
    folder = made.write(tmp_path / "chips") / "chip0"
    elaborated(folder, "chip0_aurora", folder / "chip0_aurora_stubs.v", [
        "chip0_aurora.v", *made.chips[0].record.verilog])
    for name in ("chip0_aurora.v", "chip0_aurora.tcl", "chip0_aurora.xdc"):
        assert "NOT ROUTED" in (folder / name).read_text().splitlines()[0 if "xdc" in name or name.endswith("v") else 1]
    script = (folder / "chip0_aurora.tcl").read_text()
    assert "create_ip -name aurora_64b66b" in script and "-part xcku060-ffva1156-2-e" in script
    named = re.search(r"add_files \{(.*)\}", script)[1].split()
    assert all((folder / each).is_file() for each in named) and not any("stubs" in each for each in named)
    assert {Path(each).suffix for each in named} == {".v", ".hex"}
    assert "create_clock -name clk -period 5.000" in (folder / "chip0_aurora.xdc").read_text()


def test_a_chip_that_has_no_link_needs_no_core():
    alone = Cluster((Chip("chip0", 120, device="LFE5U-85F"),), Link(64, 60, carrier=UDP))
    made = generate_chips(planned(pair(), alone, dict.fromkeys(("lstm1", "lstm2"), Place((0,)))))
    assert carrier.udp(made, ADDRESSES, 100.0).chips[0].around == {}


def test_addresses_count_from_the_first_chip_or_are_each_given():
    assert [hex(ADDRESSES.ip(n)) for n in (0, 1)] == ["0xc0a80132", "0xc0a80133"]
    assert [hex(ADDRESSES.mac(n)) for n in (0, 1)] == ["0x20000000050", "0x20000000051"]
    each = Udp(("10.0.0.9", "10.0.0.2"), ("02:00:00:00:00:09", "02:00:00:00:00:02"), 4000)
    assert (each.ip(1) & 255, each.mac(1) & 255) == (2, 2)
    ports = {each.of_link(a, b, 5) for a in range(5) for b in range(a)}
    assert len(ports) == 10 and each.of_link(1, 3, 5) == each.of_link(3, 1, 5)


@pytest.mark.parametrize(("over", "named", "mhz", "said"), [
    ("udp", ["LFE5U-25F", ""], 100.0, r"must know each chip's device, but chip1 has none; name it \(--device\)"),
    ("udp", ["iCE40UP5K"], 100.0, "whose RGMII LiteEth has a PHY .* but chip0 is iCE40UP5K; take one of them, or"),
    ("udp", ["XCKU060"], 100.0, "LiteEth has a PHY .* but chip0 is XCKU060"),
    ("udp", ["LFE5U-25F"], 25.0, "must have a clock of 40 MHz or more, since .*, not 25; raise hardware.clock_mhz"),
    ("aurora", ["XCKU060", "LFE5U-25F"], 100.0, r"GTX, GTH or GTY transceivers \(XCKU060, XC7VX690T, XCZU7EV\), but "
     "chip1 is LFE5U-25F with none; take one of them, or carrier udp or pins"),
    ("aurora", ["XC7A100T"], 100.0, "but chip0 is XC7A100T with GTP")])
def test_what_a_device_cannot_have_is_refused(over, named, mhz, said):
    with pytest.raises(Refusal, match=said):
        require(over, named, mhz)
