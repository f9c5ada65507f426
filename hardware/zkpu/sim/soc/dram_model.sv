// SPDX-License-Identifier: MIT OR Apache-2.0
// Model of device memory: contents in C++ behind DPI, latency and bandwidth as parameters.
//
// One line port (processor and DMA, every request answered once, in order), two read streams and the result's writes.
// All share BYTES_PER_CLOCK; a request waits LATENCY clocks before its first data. Streams are dropped while `drop`.
`default_nettype none
// verilator lint_off DECLFILENAME
module dram_stream #(
    parameter int WIDTH = 256,
    parameter int LATENCY = 40
) (
    input  wire              clk,
    input  wire              rst,
    input  wire              req_valid,
    output logic             req_ready,
    input  wire  [39:0]      req_addr,
    input  wire  [31:0]      req_beats,
    output logic             data_valid,
    input  wire              data_ready,
    output logic [WIDTH-1:0] data,
    output logic             wants,   // has a beat to read
    input  wire              granted  // bandwidth for one beat
);
  import "DPI-C" function longint dram_read(input longint address);
  localparam int DEPTH = 8;
  typedef struct packed {
    logic [39:0] addr;
    logic [31:0] beats;
    logic [63:0] ready_at;
  } request_t;
  request_t queue[DEPTH];
  logic [3:0] queued;
  logic [2:0] head, tail;
  logic [31:0] sent;
  logic [63:0] now;
  request_t front;
  always_comb begin
    front = queue[head];
    req_ready = queued < 4'(DEPTH);
    wants = queued != 4'd0 && now >= front.ready_at && (!data_valid || data_ready);
  end
  wire last = sent + 32'd1 >= front.beats;
  always_ff @(posedge clk) begin
    now <= now + 64'd1;
    if (rst) begin
      queued <= 4'd0;
      head <= 3'd0;
      tail <= 3'd0;
      sent <= 32'd0;
      data_valid <= 1'b0;
      now <= 64'd0;
    end else begin
      if (data_ready) data_valid <= 1'b0;
      if (wants && granted) begin
        for (int i = 0; i < WIDTH / 64; i++)
          data[64*i+:64] <= dram_read(64'(front.addr) + 64'(sent) * 64'(WIDTH / 8) + 64'(8 * i));
        data_valid <= front.beats != 32'd0;
        sent <= last ? 32'd0 : sent + 32'd1;
        if (last) head <= head + 3'd1;
      end
      if (req_valid && req_ready) begin
        queue[tail] <= '{addr: req_addr, beats: req_beats, ready_at: now + 64'(LATENCY)};
        tail <= tail + 3'd1;
      end
      queued <= queued + 4'(req_valid && req_ready) - 4'(wants && granted && last);
    end
  end
endmodule

module dram_model #(
    parameter int ADDERS = 1,
    parameter int LATENCY = 40,
    parameter int BYTES_PER_CLOCK = 512
) (
    input  wire          clk,
    input  wire          rst,
    input  wire          drop,
    input  wire  [31:0]  memory_pages,
    input  wire          line_req_valid,
    input  wire          line_req_write,
    input  wire  [39:0]  line_req_addr,
    input  wire  [255:0] line_req_wdata,
    input  wire  [31:0]  line_req_wstrb,
    output logic         line_req_ready,
    output logic         line_rsp_valid,
    output logic         line_rsp_error,
    output logic [255:0] line_rsp_data,
    input  wire          scalars_req_valid,
    output logic         scalars_req_ready,
    input  wire  [39:0]  scalars_req_addr,
    input  wire  [31:0]  scalars_req_beats,
    output logic         scalars_data_valid,
    input  wire          scalars_data_ready,
    output logic [255:0] scalars_data,
    input  wire          points_req_valid,
    output logic         points_req_ready,
    input  wire  [39:0]  points_req_addr,
    input  wire  [31:0]  points_req_beats,
    output logic         points_data_valid,
    input  wire          points_data_ready,
    output logic [ADDERS*1152-1:0] points_data,
    input  wire          wr_valid,
    output logic         wr_ready,
    input  wire  [39:0]  wr_addr,
    input  wire  [383:0] wr_data
);
  import "DPI-C" function longint dram_read(input longint address);
  import "DPI-C" function void dram_write(input longint address, input longint value, input int strobe);

  // Bandwidth: a bucket of bytes, refilled every clock. Order of service: lines, results, scalars, points.
  localparam int BUCKET = 4 * BYTES_PER_CLOCK > 4 * ADDERS * 144 ? 4 * BYTES_PER_CLOCK : 4 * ADDERS * 144;
  int tokens;
  logic scalars_want, points_want, scalars_grant, points_grant;
  logic line_taken, wr_taken;
  int after_line, after_wr, after_scalars;
  always_comb begin
    line_req_ready = tokens >= 32;
    line_taken = line_req_valid && line_req_ready;
    after_line = tokens - (line_taken ? 32 : 0);
    wr_ready = after_line >= 48;
    wr_taken = wr_valid && wr_ready;
    after_wr = after_line - (wr_taken ? 48 : 0);
    scalars_grant = after_wr >= 32;
    after_scalars = after_wr - (scalars_want && scalars_grant ? 32 : 0);
    points_grant = after_scalars >= ADDERS * 144;
  end

  // Lines: answers leave LATENCY clocks after their requests.
  logic [LATENCY-1:0] line_valid, line_error;
  logic [255:0] line_data[LATENCY];
  int slot;
  wire outside = {24'b0, line_req_addr} >= {20'b0, memory_pages, 12'b0};
  always_ff @(posedge clk) begin
    if (rst) begin
      tokens <= BUCKET;
      line_valid <= '0;
      line_rsp_valid <= 1'b0;
      slot <= 0;
    end else begin
      int left;
      left = after_scalars - (points_want && points_grant ? ADDERS * 144 : 0) + BYTES_PER_CLOCK;
      tokens <= left > BUCKET ? BUCKET : left;
      slot <= slot == LATENCY - 1 ? 0 : slot + 1;
      line_rsp_valid <= line_valid[slot];
      line_rsp_error <= line_error[slot];
      line_rsp_data <= line_data[slot];
      line_valid[slot] <= line_taken;
      line_error[slot] <= outside;
      if (line_taken && !outside) begin
        for (int i = 0; i < 4; i++) begin
          if (line_req_write)
            dram_write(64'(line_req_addr) + 64'(8 * i), line_req_wdata[64*i+:64], {24'b0, line_req_wstrb[8*i+:8]});
          else line_data[slot][64*i+:64] <= dram_read(64'(line_req_addr) + 64'(8 * i));
        end
      end
      if (wr_taken) for (int i = 0; i < 6; i++) dram_write(64'(wr_addr) + 64'(8 * i), wr_data[64*i+:64], 32'hff);
    end
  end

  dram_stream #(.WIDTH(256), .LATENCY(LATENCY)) scalars (
      .clk, .rst(rst || drop), .req_valid(scalars_req_valid), .req_ready(scalars_req_ready),
      .req_addr(scalars_req_addr), .req_beats(scalars_req_beats), .data_valid(scalars_data_valid),
      .data_ready(scalars_data_ready), .data(scalars_data), .wants(scalars_want), .granted(scalars_grant));
  dram_stream #(.WIDTH(ADDERS * 1152), .LATENCY(LATENCY)) points (
      .clk, .rst(rst || drop), .req_valid(points_req_valid), .req_ready(points_req_ready),
      .req_addr(points_req_addr), .req_beats(points_req_beats), .data_valid(points_data_valid),
      .data_ready(points_data_ready), .data(points_data), .wants(points_want), .granted(points_grant));
endmodule
`default_nettype wire
