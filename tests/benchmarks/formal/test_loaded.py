"""Two circuits are the same where numbers are never so large, and not where one load further back they are."""
import pytest

from benchmarks.formal.loaded import same_when_loaded
from benchmarks.formal.tools import available

pytestmark = pytest.mark.skipif(not available(), reason="pyosys, which brings ABC, is not installed")

VERILOG = """\
module top(clk, rst, go, a, b, y);
  input clk;
  wire clk;
  input rst;
  wire rst;
  input go;
  input [3:0] a, b;
  output [5:0] y;
  wire other = {other};
  reg [5:0] sum;
  reg [3:0] kept;
  reg [5:0] stage_1, stage_2, stage_3, held;
  reg [5:0] words [0:3];
  reg [1:0] place;
  wire [5:0] next = {{1'b0, a}} + {{1'b0, kept}};
  wire loads = {loads};
  assign y = {y};
  always @(posedge clk) begin
    kept <= rst ? 4'd0 : go ? b : kept;
    sum <= loads ? next : sum;
    stage_1 <= {stage_1};
    stage_2 <= stage_1;
    stage_3 <= stage_2;
    held <= rst ? 6'd63 : go ? stage_3 : held;
    place <= place + 2'd1;
    if (go) words[place] <= sum;
  end
endmodule
"""

CASES = {
    "a bit that is never set": ({"y": "other ? {1'b0, sum[4:0]} : sum"}, True),
    "a bit that is": ({"y": "other ? {2'b0, sum[3:0]} : sum"}, False),
    "the same behind a memory": ({"y": "other ? {1'b0, words[~place][4:0]} : words[~place]"}, True),
    "a bit that is set behind a memory": ({"y": "other ? {2'b0, words[~place][3:0]} : words[~place]"}, False),
    "an end that only a reset sets": ({"y": "other ? {1'b0, held[4:0]} : held"}, False),
    "a load": ({"loads": "other ? 1'b1 : go"}, False),
    "the same before other registers": ({"stage_1": "other ? {1'b0, sum[4:0]} : sum"}, True),
    "another before other registers": ({"stage_1": "other ? {2'b0, sum[3:0]} : sum"}, False),
}


def same(changes):
    plain = {"y": "held", "loads": "go", "stage_1": "sum"}
    one, other = (VERILOG.format(other=f"1'b{bit}", **{**plain, **changes}) for bit in (0, 1))
    return same_when_loaded(one, other, "top")


@pytest.mark.parametrize("name", CASES)
def test_what_registers_can_be_loaded_with_decides(name):
    changes, expected = CASES[name]
    assert same(changes) is expected


AFTER_A_RESET = """\
module top(clk, rst, y);
  input clk;
  wire clk;
  input rst;
  wire rst;
  output y;
  reg kept, seen;
  assign y = {other} & seen & ~kept;
  always @(posedge clk) begin
    kept <= rst ? {kept} : kept;
    seen <= ~rst;
  end
endmodule
"""


@pytest.mark.parametrize(("kept", "expected"), [("1'b1", True), ("1'b0", False)])
def test_a_reset_comes_first(kept, expected):
    one, other = (AFTER_A_RESET.format(other=bit, kept=kept) for bit in ("1'b0", "1'b1"))
    assert same_when_loaded(one, other, "top") is expected
