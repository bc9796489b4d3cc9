"""Proofs that a mutant is the circuit in other words: with what is around it, and never of one that is not."""
from types import SimpleNamespace

import pytest

from benchmarks.formal import induction
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
  wire come, go;
  wire [1:0] moved, from, to;
  assign come = s_tvalid & (ends != (begins ^ 3'd4));
  assign m_tvalid = begins != ends;
  assign m_tdata = words[begins[1:0]];
  assign go = m_tvalid & m_tready;
  assign from = phase == 2'd1 ? 2'd1 : 2'd2;
  assign to = phase + 2'd1;
  assign moved = phase == 2'd0 ? s_tdata : places[from];
  assign copied_tvalid = phase == 2'd2;
  assign copied_tdata = places[from];
  always @(posedge clk) begin
    if (come) words[ends[1:0]] <= s_tdata;
    if (phase < 2'd2) places[to] <= moved;
    phase <= rst ? 2'd0 : phase + 2'd1;
    ends <= rst ? 3'd0 : ends + come;
    begins <= rst ? 3'd0 : begins + go;
  end
endmodule
"""

WORDS = {
    "a free word": ("words[ends[1:0]]", "come", "(ends != (begins ^ 3'd4))", True),
    "a word that waits": ("words[ends[1:0]]", "come", "1'b1", False),
    "a word that comes": ("words[ends[1:0]]", "come", "1'b0", False),
    "a place that is not read": ("places[to]", "phase < 2'd2", "phase < 2'd3", True),
    "a place that is written again": ("places[to]", "phase < 2'd2", "phase != 2'd2", True),
    "a place that is read once it is copied": ("moved", "? s_tdata", "? ~s_tdata", False),
    "a place that is not written": ("places[to]", "phase < 2'd2", "phase < 2'd1", False),
}


def planted_in(verilog, cases):
    by_target, planted = {each.target: each for each in statements(verilog)}, []
    for number, (target, was, now, _) in enumerate(cases.values(), 1):
        at = by_target[target]
        kind, value = ("enable", at.condition) if was in at.condition else ("operator", at.value)
        assert was in value
        planted.append(Mutant(number, kind, at, value, value.replace(was, now)))
    return planted


def prover_of(verilog, cases, images=()):
    planted = planted_in(verilog, cases)
    return Prover(SimpleNamespace(top="top", images=images, reset="rst"), verilog, planted), planted


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
    made, planted = prover
    answer = made.mutant(planted[list(CASES).index(name)])
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
    made, planted = prover_of_memories
    answer = made.mutant(planted[list(WORDS).index(name)])
    assert bool(answer["proved"]) is WORDS[name][-1], answer
