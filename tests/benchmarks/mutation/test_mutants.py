"""Mutants are drawn where the Verilog has something to change, and stand in one text."""
import re
from collections import Counter

from benchmarks.mutation.mutants import mutants, schemata, statements

VERILOG = """\
module unit (
  input clk,  // clock
  input rst,  // reset
  input en,  // enable
  input [3:0] x,  // what comes
  output reg [3:0] y  // what goes
);
  wire [4:0] sum;
  reg [3:0] memory [0:7];
  reg valid;
  assign sum = x + 4'd3;
  always @(posedge clk) begin
    if (en) memory[x[2:0]] <= sum[4:1];
    valid <= rst ? 1'b0 : en & ~valid;
    y <= valid ? sum[3:0] : 4'd9;
  end
endmodule
"""


def test_statements_have_targets_conditions_and_widths():
    found = [(each.target, each.value, each.condition, each.clocked, each.width) for each in statements(VERILOG)]
    assert found == [
        ("sum", "x + 4'd3", "", False, 5), ("memory[x[2:0]]", "sum[4:1]", "en", True, 4),
        ("valid", "rst ? 1'b0 : en & ~valid", "", True, 1), ("y", "valid ? sum[3:0] : 4'd9", "", True, 4)]


def test_mutants_are_of_every_kind_and_each_changes_its_statement():
    found = mutants(VERILOG, 100, 0)
    assert {each.kind for each in found} == {"operator", "constant", "index", "choice", "register", "reset", "enable"}
    assert all(each.was != each.now for each in found)
    assert [each.number for each in found] == list(range(1, len(found) + 1))
    changes = {(each.kind, each.was, each.now) for each in found}
    assert ("operator", "x + 4'd3", "x - 4'd3") in changes
    assert ("index", "sum[4:1]", "sum[3:0]") in changes
    assert ("reset", "rst ? 1'b0 : en & ~valid", "en & ~valid") in changes
    assert ("register", "valid ? sum[3:0] : 4'd9", "y") in changes
    assert ("choice", "valid ? sum[3:0] : 4'd9", "valid == 0 ? sum[3:0] : 4'd9") in changes


def test_a_choice_is_seeded():
    assert mutants(VERILOG, 5, 1) == mutants(VERILOG, 5, 1) != mutants(VERILOG, 5, 2)


def test_all_of_them_stand_in_one_text_and_a_number_chooses():
    planted = mutants(VERILOG, 100, 0)
    text = schemata(VERILOG, planted, "unit")
    assert Counter(re.findall(r"::chosen == (\d+)", text)) == Counter(str(each.number) for each in planted)
    assert text.count("endmodule") == 1 and "$value$plusargs" in text
    assert re.search(r"wire \[4:0\] choice_\d+_v_0 = x \+ 4'd3;", text), "the circuit as it is, at its own width"
    assert re.search(r"if \(choice_\d+_c\) memory\[x\[2:0\]\] <= choice_\d+_v;", text)
