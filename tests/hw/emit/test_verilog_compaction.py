"""What is put where it is used means the same: widths and signs decide."""
import re

import pytest

from circulant.hw.emit.verilog_compaction import compacted

HEAD = """\
module top(a, b, c, clk, y);
  input [3:0] a;
  wire [3:0] a;
  input [3:0] b;
  wire [3:0] b;
  input c;
  wire c;
  input clk;
  wire clk;
  output [3:0] y;
  reg [3:0] y = 4'h0;
"""


def module(*lines, wires=""):
    return HEAD + wires + "\n".join(lines) + "\nendmodule\n"


def wire(*names, width=1):
    return "".join(f"  wire {f'[{width - 1}:0] ' if width > 1 else ''}\\${name} ;\n" for name in names)


@pytest.mark.parametrize(("value", "width", "taken"), [
    ("a == b", 1, True), ("! a", 1, True), ("c & c", 1, True), ("$signed(a) < $signed(b)", 1, True),
    ("a & b", 4, False), ("~ c", 1, False), ("a + b", 4, False), ("c ? c : c", 1, False), ("a & c", 1, False)])
def test_only_single_bits_go_into_an_expression(value, width, taken):
    """A sum would be made in the width of its surroundings, and ~ would turn bits that are not there."""
    text = compacted(module(f"  assign \\$1  = {value};", "  always @(posedge clk)", "    y <= \\$1  ? a : b;",
                            wires=wire(1, width=width)))
    assert (f"y <= ({value}) ? a : b;" in text) is taken
    assert ("assign \\$1" in text) is not taken


def test_a_whole_right_side_goes_in_where_the_widths_agree():
    lines = ("  assign \\$1  = a + b;", "  always @(posedge clk)", "    y <= \\$1 ;")
    assert "y <= a + b;" in compacted(module(*lines, wires=wire(1, width=4)))
    assert "y <= \\$1 ;" in compacted(module(*lines, wires=wire(1, width=5))), "the carry is cut off behind the sum"


def test_what_is_used_twice_or_multiplies_stays():
    twice = module("  assign \\$1  = a == b;", "  always @(posedge clk)", "    y <= \\$1  ? a : { \\$1 , 3'h0 };",
                   wires=wire(1))
    assert "assign \\$1 = a == b;" in compacted(twice)
    product = module("  assign \\$1  = a * b;", "  always @(posedge clk)", "    y <= \\$1 ;", wires=wire(1, width=4))
    assert "assign \\$1 = a * b;" in compacted(product), "multiplications are counted where they stand"


def test_escaped_names_keep_the_space_that_ends_them():
    text = compacted(module("  assign \\$1  = c & \\$2 ;", "  assign \\$2  = a == b;", "  always @(posedge clk)",
                            "    y <= \\$1  ? a : b;", wires=wire(1, 2)))
    assert "y <= (c & (a == b)) ? a : b;" in text
    assert not re.search(r"\\\$\d+[);,]", text)


def test_declarations_stand_side_by_side_and_unused_ones_go():
    text = compacted(module("  assign \\$1  = a + b;", "  always @(posedge clk)", "    y <= \\$1 ;",
                            wires=wire(1, 7, 8, width=5)))
    assert "input [3:0] a , b ;" in text
    assert "\\$7" not in text
