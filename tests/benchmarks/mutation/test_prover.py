"""Proofs that a mutant is the circuit in other words: with what is around it, and never of one that is not."""
from types import SimpleNamespace

import pytest

from benchmarks.mutation.mutants import Mutant, statements
from benchmarks.mutation.prover import Prover, available

pytestmark = pytest.mark.skipif(not available(), reason="pyosys, which brings ABC, is not installed")

VERILOG = """\
module step (
  input clk,  // clock
  input rst,  // reset
  input [1:0] mode,  // one of three
  input go,  // a word comes
  input [3:0] x,  // the word
  output reg valid,  // there is a word
  output reg [3:0] y  // the word, or anything
);
  wire [3:0] sum;
  assign sum = mode == 2'd3 ? x + 4'd1 : x;
  always @(posedge clk) begin
    valid <= rst ? 1'b0 : go;
    y <= rst ? 4'd0 : go ? sum : y;
  end
endmodule

module top (
  input clk,  // clock
  input rst,  // reset
  input s_tvalid,  // input
  input [3:0] s_tdata,  // input
  output m_tvalid,  // output
  output [3:0] m_tdata  // output
);
  reg [1:0] count;
  reg [3:0] word;
  wire [3:0] table_word;
  reg [3:0] rom [0:3];
  initial $readmemh("rom.hex", rom);
  assign table_word = rom[count];
  always @(posedge clk) begin
    count <= rst ? 2'd0 : (count == 2'd2) ? 2'd0 : count + 2'd1;
  end
  step step (
    .clk(clk),
    .rst(rst),
    .mode(count),
    .go(s_tvalid),
    .x(s_tdata ^ table_word),
    .valid(m_tvalid),
    .y(m_tdata)
  );
endmodule
"""

IMAGE = "1\n2\n3\n4\n"

CASES = {
    "a mode that never comes": ("sum", "x + 4'd1", "x + 4'd2", True),
    "a mode that comes": ("sum", "2'd3", "2'd2", False),
    "a word behind its valid bit": ("y", "rst ? 4'd0 : go ? sum : y", "go ? sum : y", True),
    "a word that is not the one": ("y", "go ? sum : y", "go ? y : sum", False),
    "a valid bit after a reset": ("valid", "rst ? 1'b0 : go", "go", False),
    "a count that is never reached": ("count", "count == 2'd2", "count >= 2'd2", True),
    "a count that is reached": ("count", "count == 2'd2", "count == 2'd1", False),
}


@pytest.fixture(scope="module")
def prover(tmp_path_factory):
    image = tmp_path_factory.mktemp("images") / "rom.hex"
    image.write_text(IMAGE)
    by_target = {each.target: each for each in statements(VERILOG)}
    planted = []
    for number, (target, was, now, _) in enumerate(CASES.values(), 1):
        value = by_target[target].value
        assert was in value
        planted.append(Mutant(number, "operator", by_target[target], value, value.replace(was, now)))
    manifest = SimpleNamespace(top="top", images=(image,), reset="rst")
    return Prover(manifest, VERILOG, planted), planted


@pytest.mark.parametrize("name", CASES)
def test_a_mutant_is_proved_where_the_circuit_is_the_same_and_nowhere_else(prover, name):
    made, planted = prover
    answer = made.mutant(planted[list(CASES).index(name)])
    assert bool(answer["proved"]) is CASES[name][-1], answer
    assert answer["proved"] or answer["why"] == "output m_tdata may differ" or "valid" in answer["why"]


@pytest.mark.parametrize(("image", "same"), [("1\n2\n3\n5\n", True), ("1\n2\n7\n4\n", False)])
def test_a_bit_of_an_image_counts_where_it_is_read(prover, image, same):
    made, _ = prover
    assert bool(made.image(IMAGE, image)["proved"]) is same
    assert made.image("1\n", "2\n") == {"proved": "", "why": "no memory has the image as a whole"}
