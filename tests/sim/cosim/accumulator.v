// Running sums of the vectors of a sequence, plus constants: a small circuit with state, latency and all three stalls,
// and with faults to order. Vectors of 5 elements of 12 bits come in beats of two and leave in beats of four, 16 bits each.
module accumulator (
  input clk,
  input rst,
  input [31:0] s_axis_tdata,
  input s_axis_tvalid,
  output s_axis_tready,
  input s_axis_tlast,
  output [63:0] m_axis_tdata,
  output m_axis_tvalid,
  input m_axis_tready,
  output m_axis_tlast
);
  localparam TAKE = 0, WORK = 1, GIVE = 2;
  localparam DROP = 1, WITHDRAW = 2, CHANGE = 3, CORRUPT = 4, UNENDED = 5, EARLY = 6, EXTRA = 7, HANG = 8, PADDING = 9,
             STATEFUL = 10, LOUD = 11, SHY = 12, UNSIGNED = 13, GREEDY = 14, DEAF = 15, ENDLESS = 16, IMPATIENT = 17;

  reg signed [15:0] constants [0:4];
  reg [15:0] options [0:2];  // an output for every step, the fault, the sequence since reset that has it
  initial $readmemh("constants.hex", constants);
  initial $readmemh("options.hex", options);
  wire [15:0] fault = options[1];
  wire here = sequence_number == options[2];

  reg [1:0] state;
  reg [1:0] beat;
  reg [2:0] delay;
  reg last;
  reg stalled;
  reg corrupted;
  reg impatient;
  reg [15:0] sequence_number;
  reg [7:0] idle;
  reg signed [15:0] sums [0:4];
  integer i;
  initial begin
    state = fault == DEAF ? 3 : TAKE;
    for (i = 0; i < 5; i = i + 1) sums[i] = 0;
  end

  function [15:0] element(input integer index);
    element = index < 5 ? sums[index] + constants[index] + (fault == CORRUPT && corrupted)
                                + (fault == IMPATIENT && impatient) : fault == PADDING && here;
  endfunction
  function [15:0] extended(input [15:0] value);
    extended = fault == UNSIGNED ? {4'b0, value[11:0]} : value;
  endfunction

  assign s_axis_tready = state == TAKE && !(fault == HANG && here);
  assign m_axis_tvalid = state == GIVE && !(fault == WITHDRAW && stalled) && !(fault == SHY && !m_axis_tready);
  assign m_axis_tlast = (last && beat == 1 && !(fault == UNENDED && here)) || (fault == EARLY && here && beat == 0);
  assign m_axis_tdata = {extended(element(4 * beat + 3)), extended(element(4 * beat + 2)),
                         extended(element(4 * beat + 1)), extended(element(4 * beat) + (fault == CHANGE && stalled))};

  always @(posedge clk) begin
    stalled <= m_axis_tvalid && !m_axis_tready;
    idle <= state == TAKE && !s_axis_tvalid ? idle + (idle != 255) : 0;
    case (state)
      TAKE: begin
        if (s_axis_tready && (s_axis_tvalid || fault == GREEDY)) begin
          sums[2 * beat] <= sums[2 * beat] + $signed(s_axis_tdata[15:0]);
          if (beat != 2) sums[2 * beat + 1] <= sums[2 * beat + 1] + $signed(s_axis_tdata[31:16]);
          beat <= beat == 2 ? 0 : beat + 1;
          last <= s_axis_tlast;
          delay <= 5;
          if (beat == 2) state <= WORK;
        end else if (fault == EXTRA && idle == 40) begin
          beat <= 1;
          last <= 1;
          state <= GIVE;
        end
      end
      WORK: begin
        delay <= delay - 1;
        if (delay == 0) begin
          state <= options[0] || last ? GIVE : TAKE;
          beat <= fault == DROP && here && last ? 1 : 0;
        end
      end
      GIVE: if (m_axis_tvalid && m_axis_tready) begin
        beat <= beat == 1 ? 0 : 1;
        if (stalled) corrupted <= 1;
        if (beat == 1 && fault != ENDLESS) begin
          state <= TAKE;
          corrupted <= 0;
          if (last) begin
            impatient <= 0;
            sequence_number <= sequence_number + 1;
            for (i = 0; i < 5; i = i + 1) sums[i] <= 0;
          end
        end
      end
    endcase
    if (rst && fault != DEAF) begin
      if (fault != LOUD || state != GIVE) state <= TAKE;
      beat <= 0;
      stalled <= 0;
      corrupted <= 0;
      sequence_number <= 0;
      idle <= 0;
      impatient <= state == TAKE && beat != 0 && idle != 0;
      if (fault != STATEFUL) for (i = 0; i < 5; i = i + 1) sums[i] <= 0;
    end
  end
endmodule
