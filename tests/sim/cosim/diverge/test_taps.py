"""Vectors of a module are found with their widths."""
from circulant.sim.cosim.diverge.taps import signals

VERILOG = """\
module a (
  input clk,  // clock
  input [3:0] x,  // what comes
  output reg [7:0] y  // what goes
);
  (* src = "there.py:1" *) wire [11:0] one, two,
      three;
  reg one_bit;
endmodule
module b (
  output [1:0] z
);
endmodule
"""


def test_vectors_of_each_module():
    assert signals(VERILOG) == {"a": {"x": 4, "y": 8, "one": 12, "two": 12, "three": 12}, "b": {"z": 2}}
