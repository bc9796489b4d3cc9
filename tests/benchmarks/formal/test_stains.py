"""Stains of a small array: words that nobody takes may differ, and nothing is proved that other proofs refute."""
import re

import pytest

from benchmarks.formal.aig import TRUE
from benchmarks.formal.induction import same
from benchmarks.formal.netlist import netlist
from benchmarks.formal.stains import Stains
from benchmarks.formal.twin import Machine
from benchmarks.mutation.mutants import planted, selected
from benchmarks.mutation.prover import available

pytestmark = pytest.mark.skipif(not available(), reason="pyosys, which brings ABC, is not installed")

VERILOG = """\
module row (
  input clk,  // clock
  input rst,  // reset
  input [16:0] x,  // a term
  input go,  // the term counts
  input first,  // it is the first one
  input last,  // the sum goes to the output in the next cycle
  output [16:0] y,  // a whole sum, zero between two
  output [16:0] queued,  // sums
  output odd  // the sum and 5 have an odd number of ones
);
  reg [16:0] term, held, sums;
  reg adds, begins, loads, given, at, parity;
  reg [16:0] words [0:1];
  wire [16:0] total, more;
  wire writes;
  assign writes = loads & adds;
  assign total = (begins ? 17'd0 : held) + term;
  assign more = total + 17'd5;
  assign odd = given & parity;
  assign y = given ? sums : 17'd0;
  assign queued = given ? words[at] : 17'd0;
  always @(posedge clk) begin
    term <= x;
    adds <= rst ? 1'b0 : go;
    begins <= first;
    loads <= rst ? 1'b0 : last;
    given <= rst ? 1'b0 : loads;
    if (adds) held <= total;
    if (loads) sums <= total;
    if (writes) words[at] <= total;
    parity <= ^more;
    at <= rst ? 1'b0 : at ^ given;
  end
endmodule

module top (
  input clk,  // clock
  input rst,  // reset
  input [16:0] x,  // a term
  input s_tvalid,  // a term comes
  output [16:0] y,  // sums of three terms
  output [16:0] queued,  // the same
  output odd  // that of them
);
  reg [1:0] count;
  wire go, last;
  assign go = s_tvalid | count != 2'd0;
  assign last = count == 2'd2;
  always @(posedge clk) count <= rst ? 2'd0 : last ? 2'd0 : count + go;
  row row (
    .clk(clk),
    .rst(rst),
    .x(x),
    .go(go),
    .first(count == 2'd0),
    .last(last),
    .y(y),
    .queued(queued),
    .odd(odd)
  );
endmodule
"""

def test_what_nobody_takes_may_be_stained_and_nothing_is_clean_that_another_proof_refutes():
    mutants, whole = planted(VERILOG, "top", 80, 0)
    machine = Machine(netlist(selected(whole), "top", boxes=True))
    stains, clean = Stains(machine), []
    for each in mutants:
        chosen = machine.circuit.choices.get(str(each.number))
        if chosen and stains.none(chosen, 10.0):
            clean.append(str(each))
            assert same(machine, dict.fromkeys(chosen, TRUE), seconds=10.0).proved, each
    assert any(re.fullmatch(r"const1 in row, \S+ EN\[0\]", each) for each in clean), "added while no term comes"
    assert len(clean) < len(mutants) / 2
