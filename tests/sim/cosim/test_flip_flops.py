from circulant.sim.cosim.flip_flops import FlipFlop, flip_flops

VERILOG = """\
module top (
  input clk,  // clock
  output reg [1:0] said,  // what is said
  output [3:0] q
);
  reg a, b_1,
      c;
  (* ram_style = "block" *) reg [7:0] words [0:3];
  reg signed [4:0] wide;
  reg comb;
  always @* begin
    comb = a;
  end
  always @(posedge clk) begin
    said <= a ? 2'd1 : said;
    a <= comb;
    words[q] <= 8'd0;
    if (a) wide <= 5'd3;
    b_1 <= a;
  end
  inner row_0 (
    .clk(clk)
  );
  inner #(.WIDTH(3)) row_1 (
    .clk(clk)
  );
endmodule
module inner (
  input clk
);
  reg [2:0] sum;
  always @(posedge clk) begin
    sum <= 3'd1;
  end
endmodule
"""


def test_registers_are_found_in_each_instance_and_memories_are_none(tmp_path):
    (tmp_path / "top.v").write_text(VERILOG)
    found = flip_flops(tmp_path / "top.v", "top")
    assert found == [FlipFlop("top.said", 2), FlipFlop("top.a", 1), FlipFlop("top.wide", 5), FlipFlop("top.b_1", 1),
                     FlipFlop("top.row_0.sum", 3), FlipFlop("top.row_1.sum", 3)]
    assert [each.unit for each in found[-2:]] == ["row", "row"]


def test_control_is_all_that_is_not_known_to_hold_numbers():
    def control(path):
        return FlipFlop(path, 1).control

    assert not any(map(control, (
        "top.gru.engine.array.row_0.sum_3", "top.gru.cell_0.h_late_12", "top.queue.o__payload", "top.sigmoid_r.base")))
    assert all(map(control, ("top.fft_x.valid_3", "top.chain_0.address_1", "top.queue.write__addr", "top.new.unheard",
                             "top.gru.engine.sequencer.base", "top.gru.engine.sequencer.word", "top.pointwise.soon_2")))
