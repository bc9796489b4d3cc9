// The test bench of icarus.py, which puts the design's names and numbers in: plays beats, records what comes, and judges
// nothing but what ends a run. It drives unknown data while it offers nothing, as nobody may read them.
`timescale 1ns / 1ps
module circulant_bench;
  localparam SOURCES = @SOURCES@, SINKS = @SINKS@, IN = @INPUT_BITS@, OUT = @OUTPUT_BITS@;  // Of the widest ports.
  integer file, cycle, quiet, left, start, busy, done, p;
  integer idle [0:SOURCES - 1], sent [0:SOURCES - 1], limit [0:SOURCES - 1];
  integer pause [0:SINKS - 1], came [0:SINKS - 1], due [0:SINKS - 1];
  reg moved;
  reg [SINKS - 1:0] waiting;
  reg [SOURCES - 1:0] offering;
  reg [OUT:0] held [0:SINKS - 1];
  reg [OUT:0] seen;
  reg [IN + 16:0] beats [0:@SENT@];  // Of all sources: cycles without it before, tlast, tdata.
  reg [15:0] pauses [0:@DUE@];  // Of all sinks: cycles without tready before each beat.

  reg clk, rst;
  reg [SOURCES - 1:0] s_valid, s_last;
  reg [SOURCES * IN - 1:0] s_data;
  reg [SINKS - 1:0] m_ready;
  wire [SOURCES - 1:0] s_ready;
  wire [SINKS - 1:0] m_valid, m_last;
  wire [SINKS * OUT - 1:0] m_data;
  @TOP@ dut(
    .@CLOCK@(clk), .@RESET@(rst), @IDLE@
@PORTS@
  );
@UNUSED@
  task fault(input [8 * 16 - 1:0] kind, input integer port);
    begin
      $fdisplay(file, "fault %0s %0d %0d", kind, cycle, port);
      $fclose(file);
      $finish;
      #1000;
    end
  endtask

  // One rising edge: what is seen before it is recorded, what is driven after it is seen at the next one.
  task step;
    begin
      @(posedge clk);
      cycle = cycle + 1;
      moved = 0;
      for (p = 0; p < SOURCES; p = p + 1) if (s_ready[p] !== 1'b0 && s_ready[p] !== 1'b1) fault("ready", p);
      for (p = 0; p < SINKS; p = p + 1) begin
        if (m_valid[p] !== 1'b0 && m_valid[p] !== 1'b1) fault("valid", p);
        if (m_valid[p]) begin
          seen = {m_last[p], m_data[p * OUT +: OUT]};
          if (^seen === 1'bx) fault("beat", p);
          if (waiting[p] && seen !== held[p]) fault("changed", p);
          held[p] = seen;
          waiting[p] = !m_ready[p];
          if (m_ready[p]) begin
            $fdisplay(file, "o %0d %b %h %0d", cycle, m_last[p], m_data[p * OUT +: OUT], p);
            came[p] = came[p] + 1;
            pause[p] = came[p] < @DUE@ ? pauses[came[p]] : 0;
            moved = 1;
          end
        end else if (waiting[p]) fault("withdrawn", p);
        if (!(m_valid[p] && m_ready[p]) && pause[p] > 0 && !m_ready[p]) pause[p] = pause[p] - 1;
        m_ready[p] <= pause[p] == 0;
      end
      for (p = 0; p < SOURCES; p = p + 1) begin
        if (offering[p] && s_ready[p]) begin
          $fdisplay(file, "i %0d %0d", cycle, p);
          sent[p] = sent[p] + 1;
          idle[p] = sent[p] < limit[p] ? beats[sent[p]] >> (IN + 1) : 0;
          moved = 1;
          offering[p] = 0;
        end
        if (!offering[p]) begin
          offering[p] = sent[p] < limit[p] && idle[p] == 0;
          if (idle[p] > 0) idle[p] = idle[p] - 1;
          s_valid[p] <= offering[p];
          s_last[p] <= offering[p] ? beats[sent[p]] >> IN : 1'bx;
          s_data[p * IN +: IN] <= offering[p] ? beats[sent[p]] : {IN{1'bx}};
        end
      end
      quiet = moved ? 0 : quiet + 1;
      if (quiet > @PATIENCE@) fault("stuck", 0);
    end
  endtask

  // Reset for one edge after which all must be known, and for one more in which nothing may be offered.
  task reset(input integer edges);
    begin
      rst <= 1;
      m_ready <= 0;
      s_valid <= 0;
      s_last <= {SOURCES{1'bx}};
      s_data <= {SOURCES * IN{1'bx}};
      for (left = 0; left < edges; left = left + 1) begin
        @(posedge clk);
        cycle = cycle + 1;
        for (p = 0; p < SINKS; p = p + 1) if (left > 0 && m_valid[p] !== 1'b0) fault("reset", p);
      end
      rst <= 0;
      waiting = 0;
      offering = 0;
      quiet = 0;
    end
  endtask

  // The beats from ``first`` to before ``last`` of a source.
  task send(input integer source, input integer first, input integer last, input integer waits);
    begin
      sent[source] = first;
      limit[source] = last;
      idle[source] = waits && first < last ? beats[first] >> (IN + 1) : 0;
    end
  endtask

  // The pauses from ``first`` to before ``last`` of a sink, a beat each.
  task await(input integer sink, input integer first, input integer last, input integer waits);
    begin
      came[sink] = first;
      due[sink] = last;
      pause[sink] = waits && first < last ? pauses[first] : 0;
    end
  endtask

  function integer open(input integer _);
    begin
      open = 0;
      for (p = 0; p < SOURCES; p = p + 1) if (sent[p] < limit[p]) open = 1;
      for (p = 0; p < SINKS; p = p + 1) if (came[p] < due[p]) open = 1;
    end
  endfunction

  // What was given to `send` and `await`.
  task play;
    begin
      $fdisplay(file, "run");
      start = cycle;
      while (open(0)) begin
        step;
        for (p = 0; p < SINKS; p = p + 1) if (came[p] > due[p]) fault("surplus", p);
      end
      busy = cycle - start;
      left = @SHORTEST@ + busy / 2;
      for (left = left < @LONGEST@ ? left : @LONGEST@; left > 0; left = left - 1) begin
        quiet = 0;
        step;
      end
    end
  endtask

  // The same, which a reset cuts off after some cycles.
  task cut(input integer cycles);
    begin
      $fdisplay(file, "cut");
      for (left = cycles; left > 0; left = left - 1) step;
    end
  endtask

  always begin
    #5 clk = 1;
    #5 clk = 0;
  end

  initial begin
    clk = 0;
    cycle = 0;
    @WAVES@
    $readmemh("beats.mem", beats);
    $readmemh("pauses.mem", pauses);
    file = $fopen("recorded.txt", "w");
    reset(1);
@RUNS@
    $fdisplay(file, "end %0d", cycle);
    $fclose(file);
    $finish;
  end
endmodule
