// SPDX-License-Identifier: MIT OR Apache-2.0
// Reads `beats` consecutive beats in requests of at most 64, at most four of them unanswered. `stop` ends the requests; what was
// asked for is still taken and dropped, and `idle` says when nothing more will come.
module stream_reader #(
    parameter int BEAT_BYTES = 32
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        start,
    input  logic        stop,
    input  logic [39:0] addr,
    input  logic [39:0] beats,
    output logic        idle,
    output logic        req_valid,
    input  logic        req_ready,
    output logic [39:0] req_addr,
    output logic [31:0] req_beats,
    input  logic        data_valid,
    output logic        data_ready,
    output logic        out_valid,
    input  logic        out_ready
);
  localparam int BURST = 64;
  logic [39:0] left;
  logic [9:0] pending;
  logic stopped;
  assign req_beats  = left < 40'(BURST) ? 32'(left) : 32'(BURST);
  assign data_ready = stopped || out_ready;
  assign out_valid  = data_valid && !stopped;
  assign idle       = pending == '0 && !req_valid && (left == '0 || stopped);
  logic asked, taken;
  assign asked = req_valid && req_ready;
  assign taken = data_valid && data_ready;
  always_ff @(posedge clk) begin
    if (rst) begin
      left      <= '0;
      pending   <= '0;
      stopped   <= 1'b0;
      req_valid <= 1'b0;
    end else begin
      pending <= pending + (asked ? 10'(req_beats) : 10'd0) - 10'(taken);
      if (start) begin
        left      <= beats;
        req_addr  <= addr;
        stopped   <= 1'b0;
        req_valid <= 1'b0;
      end else begin
        if (stop) stopped <= 1'b1;
        if (asked) begin
          left      <= left - 40'(req_beats);
          req_addr  <= req_addr + 40'(req_beats) * 40'(BEAT_BYTES);
          req_valid <= 1'b0;
        end else if (!req_valid) req_valid <= left != '0 && !stopped && !stop && pending < 10'(4 * BURST);
      end
    end
  end
endmodule
