"""Mutants are drawn by Yosys, stand in one text, and leave clocks and memories with images alone."""
import re

import pytest

from benchmarks.formal.netlist import CHOICE
from benchmarks.mutation.mutants import fixed, planted, schemata, selected
from benchmarks.mutation.prover import available

pytestmark = pytest.mark.skipif(not available(), reason="pyosys, which brings Yosys, is not installed")

ROM = """\
module rom #(
  parameter IMAGE = ""
) (
  input clk,  // clock
  input [2:0] addr,  // place
  output reg [4:0] data  // word
);
  reg [4:0] mem [0:7];
  generate if (IMAGE != "") initial $readmemh(IMAGE, mem); endgenerate
  always @(posedge clk) data <= mem[addr];
endmodule
"""

VERILOG = """\
module unit (
  input clk,  // clock
  input rst,  // reset
  input en,  // enable
  input [3:0] x,  // what comes
  output reg [4:0] y  // what goes
);
  reg [3:0] memory [0:7];
  always @(posedge clk) begin
    if (en) memory[x[2:0]] <= x + 4'd3;
    y <= rst ? 5'd0 : memory[x[2:0]];
  end
endmodule

module top (
  input clk,  // clock
  input rst,  // reset
  input en,  // enable
  input [3:0] x,  // what comes
  output [4:0] y  // what goes
);
  wire [4:0] word, sum;
  assign y = sum ^ word;
  rom #(.IMAGE("rom.hex")) rom (.clk(clk), .addr(x[2:0]), .data(word));
  unit unit (.clk(clk), .rst(rst), .en(en), .x(x), .y(sum));
endmodule

""" + ROM


@pytest.fixture(scope="module")
def every():
    return planted(VERILOG, "top", 2000, 0)


def test_mutants_are_bits_of_operators_conditions_registers_memories_and_instances(every):
    found, _ = every
    assert {each.kind for each in found} == {"inv", "const0", "const1", "cnot0", "cnot1"}
    assert [each.number for each in found] == list(range(1, len(found) + 1))
    assert len({str(each) for each in found}) == len(found)
    for module, place in (("unit", r"\$add\$10\$\d+ B\[0\]"), ("unit", r"\$slice\$\d+ SRST\[0\] at rst\[0\]"),
                          ("unit", r"\$slice\$\d+ Q\[3\] at y\[3\]"), ("unit", r"\$memwr\$\d+ EN\[2\]"),
                          ("top", r"rom addr\[1\]"), ("top", r"unit en\[0\] at en\[0\]")):
        assert [each for each in found if (each.kind, each.module) == ("inv", module)
                and re.fullmatch(place, each.place)], place
    assert not [each for each in found if re.search(" (clk|CLK)|memrd.* EN", each.place) or each.module == "rom"]


def test_a_choice_is_seeded():
    assert planted(VERILOG, "top", 5, 1) == planted(VERILOG, "top", 5, 1) != planted(VERILOG, "top", 5, 2)


def test_all_of_them_stand_in_one_text_and_a_number_chooses(every):
    found, text = every
    numbers = {int(number, 16) for number in re.findall(r"circulant_chosen == 16'h(\w+);", text)}
    assert numbers == {each.number for each in found}
    assert ROM in text and text.count("endmodule") == 3
    assert schemata(text).count("$value$plusargs") == 1
    for way in (fixed(text, 3), selected(text)):
        assert "circulant_chosen ==" not in way and ROM in way
    assert fixed(text, 3).count("= 1'b1;") == 1 and "= 1'b1;" not in fixed(text, 0)
    assert {int(number) for number in re.findall(rf"^  {CHOICE}(\d+) ", selected(text), re.MULTILINE)} == numbers
