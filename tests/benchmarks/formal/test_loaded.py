"""Two circuits are the same where numbers are never so large, and not where one load further back they are."""
import pytest

from benchmarks.formal.loaded import same_when_loaded
from benchmarks.formal.netlist import CHOICE, netlist
from benchmarks.mutation.prover import available

pytestmark = pytest.mark.skipif(not available(), reason="pyosys, which brings ABC, is not installed")

STAGES = 4

VERILOG = """\
(* blackbox *)
module {choice}1 (output y);
endmodule
module top (
  input clk,
  input rst,
  input go,
  input [3:0] a,
  input [3:0] b,
  output [5:0] y
);
  wire other;
  {choice}1 choose (.y(other));
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


def part(**changes):
    plain = {"y": "held", "loads": "go", "stage_1": "sum"}
    return netlist(VERILOG.format(choice=CHOICE, **{**plain, **changes}), "top")


SOON = ("a bit that is never set", "a bit that is set behind a memory", "a load")
"""Those that are not only in the soak."""


@pytest.mark.parametrize("name", [
    name if name in SOON else pytest.param(name, marks=pytest.mark.soak) for name in CASES])
def test_what_registers_can_be_loaded_with_decides(name):
    changes, same = CASES[name]
    circuit = part(**changes)
    assert same_when_loaded(circuit, dict.fromkeys(circuit.choices["1"], 1)) is same


@pytest.mark.parametrize("depth", [1, *(pytest.param(depth, marks=pytest.mark.soak) for depth in range(2, STAGES + 2))])
def test_what_is_further_back_than_loads_are_followed_is_not_taken_for_the_same(depth):
    circuit = part(stage_1="other ? {2'b0, sum[3:0]} : sum")
    assert not same_when_loaded(circuit, dict.fromkeys(circuit.choices["1"], 1), depth=depth)
