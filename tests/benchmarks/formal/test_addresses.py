"""No memory is written beyond its last word, as its module by itself or what is around it makes sure."""
from types import SimpleNamespace

import pytest

from benchmarks.formal.addresses import written
from benchmarks.formal.tools import available
from circulant.hw import generate
from circulant.sim.cosim.manifest import Manifest
from circulant.sim.quantize.quantize import quantize
from tests.sim import samples

pytestmark = pytest.mark.skipif(not available(), reason="pyosys, which brings ABC, is not installed")

VERILOG = """\
module places (
  input clk,  // clock
  input rst,  // reset
  input come,  // a word comes
  input [2:0] place,  // for the second memory
  input [3:0] x,  // the word
  output [3:0] y  // words
);
  reg [2:0] turn;
  reg [3:0] ring [0:4];
  reg [3:0] table_words [0:5];
  assign y = ring[turn] ^ table_words[place];
  always @(posedge clk) begin
    if (come) ring[turn] <= x;
    if (come) table_words[place] <= x;
    turn <= rst ? 3'd0 : come ? ((turn == 3'd4) ? 3'd0 : turn + 3'd1) : turn;
  end
endmodule

module top (
  input clk,  // clock
  input rst,  // reset
  input come,  // a word comes
  input [3:0] x,  // the word
  output [3:0] y  // words
);
  reg [2:0] count;
  always @(posedge clk) begin
    count <= rst ? 3'd0 : (count == 3'd6) ? 3'd0 : count + 3'd1;
  end
  places places (
    .clk(clk),
    .rst(rst),
    .come(come & (count != 3'd6)),
    .place(count),
    .x(x),
    .y(y)
  );
endmodule
"""


@pytest.mark.parametrize(("old", "new", "proved"), [
    ("4'd0", "4'd0", (True, True)), ("turn == 3'd4", "turn == 3'd5", (False, True)),
    pytest.param("count != 3'd6", "count != 3'd5", (True, False), marks=pytest.mark.soak)],
    ids=["right", "a place too many", "enabled too late"])
def test_an_address_is_proved_in_its_module_or_by_what_is_around_it(tmp_path, old, new, proved):
    (tmp_path / "top.v").write_text(VERILOG.replace(old, new))
    found = written(SimpleNamespace(verilog=(tmp_path / "top.v",), images=(), top="top", reset="rst"), seconds=5)
    assert found == dict(zip(("places.ring", "places.table_words"), proved, strict=True))


LATE = """module top (
  input clk,  // clock
  input rst,  // reset
  input come,  // a word comes
  input [3:0] x,  // the word
  output [3:0] y  // words
);
  reg [2:0] turn;
  reg [2:0] late;
  reg write;
  reg [3:0] ring [0:4];
  assign y = ring[late];
  always @(posedge clk) begin
    if (write) ring[late] <= x;
    write <= come; late <= turn;
    turn <= rst ? 3'd0 : come ? ((turn == 3'd4) ? 3'd0 : turn + 3'd1) : turn;
  end
endmodule
"""


@pytest.mark.parametrize(("loads", "proved"), [
    ("write <= come; late <= turn", True), ("write <= come; late <= come ? turn : late", True),
    ("write <= 1'd1; late <= come ? turn : late", False)],
    ids=["loaded in each cycle", "loaded before it writes", "perhaps never loaded"])
def test_what_a_register_without_a_reset_holds_at_first_does_not_count(tmp_path, loads, proved):
    (tmp_path / "top.v").write_text(LATE.replace("write <= come; late <= turn", loads))
    found = written(SimpleNamespace(verilog=(tmp_path / "top.v",), images=(), top="top", reset="rst"), seconds=5)
    assert found == {"top.ring": proved}


@pytest.mark.soak
def test_every_memory_of_a_design_is_written_within_its_words(tmp_path):
    model = samples.model()
    design = generate(quantize(model, samples.data(model)), multipliers=12, objective="throughput")
    found = written(Manifest.load(design.write(tmp_path / "design")))
    assert len(found) > 10 and all(found.values()), found
