// A host that reads two registers over the SoC's bus, then plays the sequences of the kit's test bench.
module bench #(
  parameter IN = 1, parameter OUT = 1, parameter GIVEN = 1, parameter EXPECTED = 1, parameter [31:0] NETWORK = 0
);
  reg clk = 0, rst = 1;
  always #5 clk = ~clk;

  reg [31:0] araddr; reg arvalid = 0; wire arready; wire [31:0] rdata; wire [1:0] rresp; wire rvalid;
  reg [IN-1:0] s_data; reg s_valid = 0, s_last = 0; wire s_ready;
  wire [OUT-1:0] m_data; wire m_valid, m_last; reg m_ready = 0;
  reg [IN+3:0] given [0:GIVEN-1];
  reg [OUT+3:0] expected [0:EXPECTED-1];
  reg [31:0] word;
  integer i, n;

  soc soc (.clk(clk), .rst(rst),
    .host_araddr(araddr), .host_arvalid(arvalid), .host_arready(arready), .host_rdata(rdata), .host_rresp(rresp),
    .host_rvalid(rvalid), .sink_data(s_data), .sink_valid(s_valid), .sink_ready(s_ready), .sink_last(s_last),
    .source_data(m_data), .source_valid(m_valid), .source_ready(m_ready), .source_last(m_last));

  task read(input [31:0] address);
    begin
      @(negedge clk) araddr = address; arvalid = 1;
      #1 while (!arready) begin @(negedge clk); #1; end
      @(negedge clk) arvalid = 0;
      while (!rvalid) @(negedge clk);
      word = rdata;
      if (rresp != 0) begin $display("the read of %h is refused", address); $finish; end
    end
  endtask

  initial begin
    $readmemh("tb_input.hex", given);
    $readmemh("tb_expected.hex", expected);
    repeat (20) @(negedge clk);
    rst = 0;
    repeat (8) @(negedge clk);
    read(32'h80000000);
    if (word != 32'h43495243) begin $display("the identification is %h", word); $finish; end
    read(32'h80000008);
    if (word != NETWORK) begin $display("the hash begins with %h", word); $finish; end
    @(negedge clk) m_ready = 1;
    for (i = 0; i < GIVEN; i = i + 1) begin
      s_data = given[i][IN-1:0]; s_last = given[i][IN]; s_valid = 1;
      #1 while (!s_ready) begin @(negedge clk); #1; end
      @(negedge clk) s_valid = 0;
    end
  end

  initial begin
    n = 0;
    while (n < EXPECTED) begin
      @(negedge clk); #1;
      if (m_valid && m_ready) begin
        if ({m_last, m_data} !== expected[n][OUT:0]) begin
          $display("beat %0d is %h, the golden model says %h", n, {m_last, m_data}, expected[n][OUT:0]);
          $finish;
        end
        n = n + 1;
      end
    end
    $display("PASS: identification and hash read over the bus, %0d beats equal the golden model's", EXPECTED);
    $finish;
  end

  initial begin
    repeat (20000) @(negedge clk);
    $display("nothing came for too long");
    $finish;
  end
endmodule
