"""Registers that are watched: which ones there are, which of them count, and what several runs have shown together."""
import subprocess

import pytest

from benchmarks.toggles import FILE, Toggles, counters, instrumented
from circulant.sim.cosim.toolchain import find

VERILOG = """\
module inner (
  input clk,
  input rst,
  input go,
  output reg [1:0] count
);
  wire [1:0] next;
  wire carry;
  reg [2:0] data;
  reg [3:0] total;
  reg [1:0] held;
  reg [7:0] mem [0:3];
  assign carry = count == 2'd2;
  assign next = rst ? 2'd0 : carry ? 2'd0 : count + go;
  always @(posedge clk) begin
    if (go) mem[count] <= 8'd1;
    count <= next;
    data <= {carry, count};
    total <= rst ? 4'd0 : total + 4'd2;
    held <= rst ? 2'd0 : held ? held - 2'd1 : held;
  end
endmodule

module circuit (
  input clk,
  input rst
);
  inner part (
    .clk(clk),
    .rst(rst),
    .go(1'b1)
  );
endmodule
"""

BENCH = """\
module bench;
  bit clk, rst = 1;
  circuit it (.clk(clk), .rst(rst));
  initial begin
    repeat (64) begin
      #1 clk = 1;
      #1 clk = 0;
      rst = $time < 6 || $time == 60;
    end
    $finish;
  end
endmodule
"""


def test_a_counter_adds_one_or_a_bit_to_itself_or_takes_it_off():
    assert counters(VERILOG[:VERILOG.index("module circuit")]) == {"count", "held"}


def test_what_runs_have_seen_is_put_together():
    found = Toggles()
    found.add("top.part.told count 2 1 3 2 5 2\ntop.part.told data 3 0 7 7 1 7\n")
    assert str(found) == "4 of 5 bits of registers rose and fell; 1 of 1 counters came back, at least 5 times"
    found.add("top.part.told count 2 1 0 1 2 3\ntop.other.told held 2 1 0 0 0 1\n")
    assert found.figures() == {
        "bits": 7, "toggled": 5, "still": {"top.other.held": "11"}, "counters": 2, "came_back": 1, "widest_counter": 2,
        "fewest": 7, "never_came_back": {"top.other.held": 1}}


@pytest.mark.soak
def test_a_simulator_writes_what_registers_do_without_a_reset(tmp_path):
    (tmp_path / "noting.sv").write_text(instrumented(VERILOG, "circuit", "rst") + BENCH)
    subprocess.run(["verilator", "--binary", "-CFLAGS", "-std=c++20 -fcoroutines", "-Wno-fatal", "--top", "bench",
                    "noting.sv"], cwd=tmp_path, check=True,
                   env=find().environment(), capture_output=True)
    subprocess.run([tmp_path / "obj_dir" / "Vbench"], cwd=tmp_path, check=True, capture_output=True)
    found = Toggles()
    found.add((tmp_path / FILE).read_text())
    figures = found.figures()
    assert {name.rpartition(".")[2]: bits for name, bits in figures["still"].items()} == {"total": "0001", "held": "11"}
    assert (figures["counters"], figures["came_back"]) == (2, 1)
    assert figures["fewest"] == 9 + 10, "up to the second reset, and behind it"
    assert list(figures["never_came_back"].values()) == [0]
