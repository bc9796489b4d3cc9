// The test bench of icarus.py, which puts the design's names and numbers in: plays beats, records what comes, and judges
// nothing but what ends a run. It drives unknown data while it offers nothing, as nobody may read them.
`timescale 1ns / 1ps
module circulant_bench;
  integer file, cycle, idle, pause, sent, came, limit, quiet, left, start, busy, done;
  reg moved, waiting, offering;
  reg [@OUTPUT_BITS@:0] held;
  reg [@INPUT_BITS@ + 16:0] beats [0:@SENT@];  // Cycles without it before, tlast, tdata.
  reg [15:0] pauses [0:@DUE@];  // Cycles without m_tready before each beat.

  reg clk, rst, s_valid, s_last, m_ready;
  reg [@INPUT_BITS@ - 1:0] s_data;
  wire s_ready, m_valid, m_last;
  wire [@OUTPUT_BITS@ - 1:0] m_data;
  @TOP@ dut(
    .@CLOCK@(clk), .@RESET@(rst), @IDLE@
    .@S@_tdata(s_data), .@S@_tvalid(s_valid), .@S@_tready(s_ready), .@S@_tlast(s_last),
    .@M@_tdata(m_data), .@M@_tvalid(m_valid), .@M@_tready(m_ready), .@M@_tlast(m_last)
  );

  task fault(input [8 * 16 - 1:0] kind);
    begin
      $fdisplay(file, "fault %0s %0d", kind, cycle);
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
      if (s_ready !== 1'b0 && s_ready !== 1'b1) fault("ready");
      if (m_valid !== 1'b0 && m_valid !== 1'b1) fault("valid");
      if (m_valid) begin
        if (^{m_last, m_data} === 1'bx) fault("beat");
        if (waiting && {m_last, m_data} !== held) fault("changed");
        held = {m_last, m_data};
        waiting = !m_ready;
        if (m_ready) begin
          $fdisplay(file, "o %0d %b %h", cycle, m_last, m_data);
          came = came + 1;
          pause = came < @DUE@ ? pauses[came] : 0;
          moved = 1;
        end
      end else if (waiting) fault("withdrawn");
      if (!(m_valid && m_ready) && pause > 0 && !m_ready) pause = pause - 1;
      m_ready <= pause == 0;
      if (offering && s_ready) begin
        $fdisplay(file, "i %0d", cycle);
        sent = sent + 1;
        idle = sent < limit ? beats[sent] >> (@INPUT_BITS@ + 1) : 0;
        moved = 1;
        offering = 0;
      end
      if (!offering) begin
        offering = sent < limit && idle == 0;
        if (idle > 0) idle = idle - 1;
        s_valid <= offering;
        {s_last, s_data} <= offering ? beats[sent] : {(@INPUT_BITS@ + 1){1'bx}};
      end
      quiet = moved ? 0 : quiet + 1;
      if (quiet > @PATIENCE@) fault("stuck");
    end
  endtask

  // Reset for one edge after which all must be known, and for one more in which nothing may be offered.
  task reset(input integer edges);
    begin
      rst <= 1;
      m_ready <= 0;
      s_valid <= 0;
      {s_last, s_data} <= {(@INPUT_BITS@ + 1){1'bx}};
      for (left = 0; left < edges; left = left + 1) begin
        @(posedge clk);
        cycle = cycle + 1;
        if (left > 0 && m_valid !== 1'b0) fault("reset");
      end
      rst <= 0;
      waiting = 0;
      offering = 0;
      quiet = 0;
    end
  endtask

  // Beats from ``first`` to before ``last``, until output beat ``due``.
  task play(input integer first, input integer last, input integer from, input integer due);
    begin
      $fdisplay(file, "run");
      sent = first;
      limit = last;
      came = from;
      idle = first < last ? beats[first] >> (@INPUT_BITS@ + 1) : 0;
      pause = from < due ? pauses[from] : 0;
      start = cycle;
      while (sent < last || came < due) begin
        step;
        if (came > due) fault("surplus");
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
  task cut(input integer first, input integer last, input integer cycles);
    begin
      $fdisplay(file, "cut");
      sent = first;
      limit = last;
      came = 0;
      idle = 0;
      pause = 0;
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
