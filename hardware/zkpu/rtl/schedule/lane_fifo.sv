// SPDX-License-Identifier: MIT OR Apache-2.0
// FIFO in a block memory with its head in a register. A word is readable two clocks after it was written.
module lane_fifo #(
    parameter int WIDTH = 32,
    parameter int DEPTH = 256  // a power of two
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic                     push,
    input  logic [WIDTH-1:0]         in,
    output logic                     full,
    output logic [$clog2(DEPTH+2):0] fill,
    output logic                     valid,
    output logic [WIDTH-1:0]         head,
    input  logic                     pop
);
  localparam int BITS = $clog2(DEPTH);
  logic [WIDTH-1:0] words[DEPTH];
  logic [BITS:0] write_at, read_at, count;
  logic load;
  // On its own line: within a cast to more bits Verilator subtracts in those bits, which is wrong once `write_at` wraps.
  assign count = write_at - read_at;
  assign full = count == (BITS + 1)'(DEPTH);
  assign load = write_at != read_at && (!valid || pop);
  assign fill = $bits(fill)'(count) + $bits(fill)'(valid);
  always_ff @(posedge clk) begin
    if (push && !full) words[write_at[BITS-1:0]] <= in;
    if (load) head <= words[read_at[BITS-1:0]];
    if (rst) begin
      write_at <= '0;
      read_at  <= '0;
      valid    <= 1'b0;
    end else begin
      if (push && !full) write_at <= write_at + 1'b1;
      if (load) read_at <= read_at + 1'b1;
      if (load) valid <= 1'b1;
      else if (pop) valid <= 1'b0;
    end
  end
endmodule
