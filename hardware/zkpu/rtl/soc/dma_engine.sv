// SPDX-License-Identifier: MIT OR Apache-2.0
// Copies bytes between firmware memory, device memory and host memory, at any alignment.
//
// A transfer is split into beats that cross no 32-byte boundary at the source or at the destination. Up to 16 beats are
// in flight: read requests go out in order, their data are rotated to the destination's offset and written with byte
// strobes. Every request, read or write, gets a response; the engine is idle when the last write's has come. A response
// with an error stops new reads; what is in flight drains, so the engine never stays busy. The source and the
// destination must be different spaces; `zero` is a source of zeros.
`default_nettype none
module dma_engine (
    input  wire          clk,
    input  wire          rst,
    // Job: sampled at `start` when not busy.
    input  wire          start,
    input  wire  [1:0]   src_space,  // 0 firmware memory, 1 device memory, 2 host, 3 zero
    input  wire  [1:0]   dst_space,
    input  wire  [63:0]  src,
    input  wire  [63:0]  dst,
    input  wire  [31:0]  length,
    output logic         busy,
    output logic         error,      // of the last transfer; valid when not busy
    // Ports of the three spaces, indexed by space. Responses come in the order of requests.
    output logic [2:0]   req_valid,
    output logic         req_write,
    output logic [63:0]  req_addr,   // 32-byte aligned
    output logic [255:0] req_wdata,
    output logic [31:0]  req_wstrb,
    input  wire  [2:0]   req_ready,
    input  wire  [2:0]   rsp_valid,
    input  wire  [2:0]   rsp_error,
    input  wire  [255:0] rsp_data[3]
);
  localparam int DEPTH = 16;

  logic [1:0] from, to;
  logic [63:0] read_src, read_dst;
  logic [31:0] left;
  logic [4:0] in_flight;       // beats read or waiting to be written
  logic [5:0] writes_pending;  // writes without response

  // Shape of each beat that is in flight.
  typedef struct packed {
    logic [63:0] dst;
    logic [4:0]  src_offset;
    logic [5:0]  bytes;
  } beat_t;
  beat_t beats[DEPTH];
  logic [255:0] data[DEPTH];
  logic [3:0] beat_head, beat_tail, data_tail;  // write, issue and arrival positions
  logic [4:0] arrived;

  wire [5:0] src_room = 6'd32 - {1'b0, read_src[4:0]};
  wire [5:0] dst_room = 6'd32 - {1'b0, read_dst[4:0]};
  logic [5:0] bytes;
  always_comb begin
    bytes = src_room < dst_room ? src_room : dst_room;
    if (left < {26'b0, bytes}) bytes = left[5:0];
  end

  beat_t head;
  always_comb head = beats[beat_head];
  wire want_write = arrived != 5'd0;
  wire want_read = busy && !error && left != 32'd0 && in_flight < 5'(DEPTH);
  wire from_zero = from == 2'd3;

  // A write goes first: it frees a place. Reads and writes go to different spaces but share the address wires.
  wire [255:0] rotated = (data[beat_head] >> {head.src_offset, 3'b0}) << {head.dst[4:0], 3'b0};
  always_comb begin
    req_valid = 3'b0;
    req_write = want_write;
    req_wdata = rotated;
    req_wstrb = (head.bytes == 6'd32 ? 32'hffff_ffff : (32'd1 << head.bytes[4:0]) - 32'd1) << head.dst[4:0];
    req_addr = want_write ? {head.dst[63:5], 5'b0} : {read_src[63:5], 5'b0};
    if (want_write) req_valid[to] = 1'b1;
    else if (want_read && !from_zero) req_valid[from] = 1'b1;
  end
  wire wrote = want_write && req_ready[to];
  wire issued = !want_write && want_read && (from_zero || req_ready[from]);
  wire read_back = from_zero ? issued : busy && rsp_valid[from];
  wire write_back = busy && rsp_valid[to];
  wire failed = busy && ((!from_zero && rsp_valid[from] && rsp_error[from]) || (rsp_valid[to] && rsp_error[to]));

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= 1'b0;
      error <= 1'b0;
      in_flight <= 5'd0;
      arrived <= 5'd0;
      writes_pending <= 6'd0;
      left <= 32'd0;
      beat_head <= 4'd0;
      beat_tail <= 4'd0;
      data_tail <= 4'd0;
      from <= 2'd0;
      to <= 2'd1;
    end else if (!busy) begin
      if (start) begin
        from <= src_space;
        to <= dst_space;
        read_src <= src;
        read_dst <= dst;
        left <= length;
        busy <= 1'b1;
        error <= src_space == dst_space || dst_space == 2'd3;
      end
    end else begin
      if (issued) begin
        beats[beat_tail] <= '{dst: read_dst, src_offset: read_src[4:0], bytes: bytes};
        beat_tail <= beat_tail + 4'd1;
        read_src <= read_src + 64'(bytes);
        read_dst <= read_dst + 64'(bytes);
        left <= left - 32'(bytes);
      end
      if (read_back) begin
        data[data_tail] <= from_zero ? 256'b0 : rsp_data[from];
        data_tail <= data_tail + 4'd1;
      end
      if (wrote) beat_head <= beat_head + 4'd1;
      arrived <= arrived + 5'(read_back) - 5'(wrote);
      in_flight <= in_flight + 5'(issued) - 5'(wrote);
      writes_pending <= writes_pending + 6'(wrote) - 6'(write_back);
      if (failed) error <= 1'b1;
      if ((left == 32'd0 || error) && in_flight == 5'd0 && writes_pending == 6'd0) busy <= 1'b0;
    end
  end
endmodule
`default_nettype wire
