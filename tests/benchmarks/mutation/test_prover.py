"""Proofs that a mutant is the circuit in other words: with what is around it, and never of one that is not."""
import re
from types import SimpleNamespace

import pytest

from benchmarks.formal import induction
from benchmarks.mutation.mutants import planted
from benchmarks.mutation.prover import Prover, available

pytestmark = pytest.mark.skipif(not available(), reason="pyosys, which brings ABC, is not installed")

VERILOG = """\
module step (
  input clk,  // clock
  input rst,  // reset
  input [1:0] mode,  // one of three
  input go,  // a word comes
  input [3:0] x,  // the word
  output reg [3:0] y  // the word, or anything
);
  wire [3:0] sum, next;
  wire more;
  assign more = mode == 2'd3;
  assign sum = x + 4'd1;
  assign next = go ? (more ? sum : x) : y;
  always @(posedge clk) begin
    y <= rst ? 4'd0 : next;
  end
endmodule

module flag (
  input clk,  // clock
  input rst,  // reset
  input go,  // a word comes
  output reg valid  // there is a word
);
  always @(posedge clk) begin
    valid <= rst ? 1'b0 : go;
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
  rom #(.IMAGE("rom.hex")) rom (.addr(count), .data(table_word));
  wire ends;
  assign ends = count == 2'd2;
  always @(posedge clk) begin
    count <= rst ? 2'd0 : ends ? 2'd0 : count + 2'd1;
  end
  step step (
    .clk(clk),
    .rst(rst),
    .mode(count),
    .go(s_tvalid),
    .x(s_tdata ^ table_word),
    .y(m_tdata)
  );
  flag flag (
    .clk(clk),
    .rst(rst),
    .go(s_tvalid),
    .valid(m_tvalid)
  );
endmodule

module rom #(
  parameter IMAGE = ""
) (
  input [1:0] addr,  // place
  output [3:0] data  // word
);
  reg [3:0] mem [0:3];
  generate if (IMAGE != "") initial $readmemh(IMAGE, mem); endgenerate
  assign data = mem[addr];
endmodule
"""

IMAGE = "1\n2\n3\n4\n"

CASES = {
    "a mode that never comes": (r"inv in step, \$add\S+ B\[0\]", True),
    "a mode that comes": (r"inv in step, \$eq\S+ B\[0\]", False),
    "a word behind its valid bit": (r"const0 in step, \S+ SRST\[0\] at rst\[0\]", True),
    "a word that is not the one": (r"inv in step, \S+ S\[0\] at go\[0\]", False),
    "a valid bit after a reset": (r"const0 in flag, \S+ SRST\[0\] at rst\[0\]", False),
    "a count that is never reached": (r"const0 in top, \$eq\S+ A\[0\]", True),
    "a count that is reached": (r"inv in top, \$eq\S+ B\[1\]", False),
}


MEMORIES = """\
module top (
  input clk,  // clock
  input rst,  // reset
  input s_tvalid,  // words of a queue
  input [1:0] s_tdata,  // words of a queue
  input m_tready,  // words of a queue
  output m_tvalid,  // words of a queue
  output [1:0] m_tdata,  // words of a queue
  output copied_tvalid,  // the same from a place that they are copied to
  output [1:0] copied_tdata  // the same from a place that they are copied to
);
  reg [2:0] begins, ends;
  reg [1:0] words [0:3];
  reg [1:0] places [0:3];
  reg [1:0] phase;
  wire come, go, room, writes, copies;
  wire [1:0] moved, from, to;
  assign room = ends != (begins ^ 3'd4);
  assign come = s_tvalid & room;
  assign writes = s_tvalid & room;
  assign copies = phase < 2'd2;
  assign m_tvalid = begins != ends;
  assign m_tdata = words[begins[1:0]];
  assign go = m_tvalid & m_tready;
  assign from = phase == 2'd1 ? 2'd1 : 2'd2;
  assign to = phase + 2'd1;
  assign moved = phase == 2'd0 ? s_tdata : places[from];
  assign copied_tvalid = phase == 2'd2;
  assign copied_tdata = places[from];
  always @(posedge clk) begin
    if (writes) words[ends[1:0]] <= s_tdata;
    if (copies) places[to] <= moved;
    phase <= rst ? 2'd0 : phase + 2'd1;
    ends <= rst ? 3'd0 : ends + come;
    begins <= rst ? 3'd0 : begins + go;
  end
endmodule
"""

WORDS = {
    "a free word": (r"const1 in top, \$and\$20\$\d+ A\[0\]", True),
    "a word that waits": (r"const1 in top, \$and\$20\$\d+ B\[0\]", False),
    "a word that comes": (r"const0 in top, \$and\$20\$\d+ A\[0\]", False),
    "a place that is not read": (r"inv in top, \$lt\$21\$\d+ B\[0\]", True),
    "a place that is never read": (r"const1 in top, \$lt\$21\$\d+ Y\[0\] at .*", True),
    "a place that is read once it is copied": (r"inv in top, \$ternary\$27\$\d+ B\[0\]", False),
    "a place that is not written": (r"inv in top, \$lt\$21\$\d+ B\[1\]", False),
}


def prover_of(verilog, cases, images=()):
    found, whole = planted(verilog, "top", 2000, 0)
    chosen = [[each for each in found if re.fullmatch(pattern, str(each))] for pattern, _ in cases.values()]
    assert all(len(each) == 1 for each in chosen), chosen
    return Prover(SimpleNamespace(top="top", images=images, reset="rst"), verilog, whole), [each for each, in chosen]


@pytest.fixture(scope="module")
def prover(tmp_path_factory):
    image = tmp_path_factory.mktemp("images") / "rom.hex"
    image.write_text(IMAGE)
    return prover_of(VERILOG, CASES, (image,))


@pytest.fixture(scope="module")
def prover_of_memories():
    return prover_of(MEMORIES, WORDS)


@pytest.fixture(params=induction.WAYS, ids=["first", "second"])
def one_way(request, monkeypatch):
    monkeypatch.setattr(induction, "WAYS", (request.param,))


@pytest.mark.usefixtures("one_way")
@pytest.mark.parametrize("name", CASES)
def test_a_mutant_is_proved_where_the_circuit_is_the_same_and_nowhere_else(prover, name):
    made, mutants = prover
    answer = made.mutant(mutants[list(CASES).index(name)])
    assert bool(answer["proved"]) is CASES[name][-1], answer
    assert answer["proved"] or answer["why"] == "output m_tdata may differ" or "valid" in answer["why"]


@pytest.mark.parametrize(("image", "same"), [("1\n2\n3\n5\n", True), ("1\n2\n7\n4\n", False)])
def test_a_bit_of_an_image_counts_where_it_is_read(prover, image, same):
    made, _ = prover
    assert bool(made.image("rom.hex", IMAGE, image)["proved"]) is same
    assert made.image("rom.hex", "1\n", "2\n") == {"proved": "", "why": "no memory has the image as a whole"}


@pytest.mark.usefixtures("one_way")
@pytest.mark.parametrize("name", [
    name if name in ("a free word", "a word that waits") else pytest.param(name, marks=pytest.mark.soak)
    for name in WORDS])
def test_a_word_of_a_memory_counts_where_it_is_read_or_copied(prover_of_memories, name):
    made, mutants = prover_of_memories
    answer = made.mutant(mutants[list(WORDS).index(name)])
    assert bool(answer["proved"]) is WORDS[name][-1], answer
