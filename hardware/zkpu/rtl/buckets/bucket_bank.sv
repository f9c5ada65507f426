// SPDX-License-Identifier: MIT OR Apache-2.0
// Buckets and slots of one adder: extended points with a bit that says whether there is one. One read and one write a clock;
// a read takes two clocks, and gives the identity where there is no point, or with `empty`, which the first use of a slot
// asks for, since merging does not clear the slots. A clock that reads with `take` leaves the cell
// empty, so that the reduction clears the buckets while it reads them and no pass over the memory is needed between jobs.
// Only after `rst` (which also ends an aborted job) a pass clears it: `ready` is low for as long.
module bucket_bank
  import field_pkg::*;
  import msm_pkg::*;
#(
    parameter int CELLS = 1024
) (
    input  logic                      clk,
    input  logic                      rst,
    output logic                      ready,
    input  logic                      read,
    input  logic                      take,
    input  logic                      empty,
    input  logic [$clog2(CELLS)-1:0]  read_at,
    output point_t                    read_point,
    input  logic                      write,
    input  logic [$clog2(CELLS)-1:0]  write_at,
    input  point_t                    write_point
);
  localparam int BITS = $clog2(CELLS);
  logic [POINT_BITS:0] cells[CELLS];
  logic [POINT_BITS:0] word;
  logic [BITS-1:0] sweep, taken_at;
  logic taken, read_q, empty_q;
  always_ff @(posedge clk) begin
    if (read) word <= cells[read_at];
    read_q  <= read;
    empty_q <= empty;
    if (read_q) read_point <= word[POINT_BITS] && !empty_q ? word[POINT_BITS-1:0] : IDENTITY;
    taken    <= read && take && !rst;
    taken_at <= read_at;
    // One write port. The reduction's results go elsewhere, so a bucket is never taken in a clock that writes one.
    if (write || taken || !ready)
      cells[!ready ? sweep : write ? write_at : taken_at] <= {ready && write, write_point};
    if (rst) begin
      ready <= 1'b0;
      sweep <= '0;
    end else if (!ready) begin
      sweep <= sweep + 1'b1;
      ready <= sweep == BITS'(CELLS - 1);
    end
  end
endmodule
