// SPDX-License-Identifier: MIT OR Apache-2.0
// Prepares extended + extended for point_add: the second operand (X : Y : Z : T) becomes (Y - X, Y + X, 2 d T, Z), the first waits.
// One a clock; latency 17 clocks. Only the reduction and the merging of replicas pass here.
module point_convert
  import field_pkg::*;
#(
    parameter int KIND = 0  // The field multiplier; see field_mul.
) (
    input  logic clk,
    input  logic rst,
    input  logic valid,
    input  fe_t  x1, y1, z1, t1,
    input  fe_t  x2, y2, z2, t2,
    output logic valid_out,
    output fe_t  x1_out, y1_out, z1_out, t1_out,
    output fe_t  y2_minus_x2, y2_plus_x2, kt2, z2_out
);
  localparam int MUL = 17;
  localparam int WIDTH = 7 * FE_BITS;
  // The operands wait in a ring of memory, one word written and one read a clock.
  logic [WIDTH-1:0] ring[MUL-1];
  logic [WIDTH-1:0] oldest;
  logic [3:0] at;
  logic [MUL-1:0] valid_wait;
  always_ff @(posedge clk) begin
    at         <= rst || at == 4'(MUL - 2) ? '0 : at + 4'd1;
    valid_wait <= rst ? '0 : {valid_wait[MUL-2:0], valid};
    if (valid_wait[MUL-2]) oldest <= ring[at];
    if (valid) ring[at] <= {x1, y1, z1, t1, y2 - x2 + P4, y2 + x2, z2};
  end
  assign valid_out = valid_wait[MUL-1];
  assign {x1_out, y1_out, z1_out, t1_out, y2_minus_x2, y2_plus_x2, z2_out} = oldest;
  field_mul #(.KIND(KIND)) mul_kt (.clk, .valid, .a(t2), .b(CURVE_K), .product(kt2));
endmodule
