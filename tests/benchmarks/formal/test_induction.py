"""Two circuits that differ in every cycle, whatever comes."""
import pytest

from benchmarks.formal.aig import TRUE
from benchmarks.formal.induction import same
from benchmarks.formal.netlist import CHOICE, netlist
from benchmarks.formal.twin import Machine
from benchmarks.mutation.prover import available

pytestmark = pytest.mark.skipif(not available(), reason="pyosys, which brings ABC, is not installed")

VERILOG = f"""\
(* blackbox *)
module {CHOICE}1 (output y);
endmodule
module top (
  input clk,
  input rst,
  input a,
  output y
);
  wire other;
  {CHOICE}1 choose (.y(other));
  reg kept;
  assign y = other ? ~kept : kept;
  always @(posedge clk) kept <= rst ? 1'b0 : a;
endmodule
"""


def test_what_always_differs_is_never_proved_the_same():
    circuit = netlist(VERILOG, "top")
    answer = same(Machine(circuit, inner=True), dict.fromkeys(circuit.choices["1"], TRUE), seconds=5.0)
    assert not answer.proved and answer.why == "output y may differ"
