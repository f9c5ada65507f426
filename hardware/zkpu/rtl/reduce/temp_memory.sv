// SPDX-License-Identifier: MIT OR Apache-2.0
// Extended points of the reduction: 256 words, two reads and one write a clock (two copies of a block memory).
// A read takes two clocks and gives the identity for a word that was not written since it was cleared.
module temp_memory
  import msm_pkg::*;
(
    input  logic                 clk,
    input  logic                 clear_sums,  // words 0 .. 127 become empty
    input  logic                 clear_all,
    input  logic                 read_first,
    input  logic                 read_second,
    input  logic [TEMP_BITS-1:0] first_at,
    input  logic [TEMP_BITS-1:0] second_at,
    output point_t               first,
    output point_t               second,
    input  logic                 write,
    input  logic [TEMP_BITS-1:0] write_at,
    input  point_t               write_point
);
  localparam int WORDS = 1 << TEMP_BITS;
  point_t copy_first[WORDS];
  point_t copy_second[WORDS];
  logic [WORDS-1:0] present;
  point_t word_first, word_second;
  logic has_first, has_second;
  always_ff @(posedge clk) begin
    if (write) begin
      copy_first[write_at]  <= write_point;
      copy_second[write_at] <= write_point;
    end
    if (read_first) begin
      word_first <= copy_first[first_at];
      has_first  <= present[first_at];
    end
    if (read_second) begin
      word_second <= copy_second[second_at];
      has_second  <= present[second_at];
    end
    first  <= has_first ? word_first : IDENTITY;
    second <= has_second ? word_second : IDENTITY;
    if (clear_all) present <= '0;
    else if (clear_sums) present[127:0] <= '0;
    else if (write) present[write_at] <= 1'b1;
  end
endmodule
