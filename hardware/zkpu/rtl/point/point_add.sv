// SPDX-License-Identifier: MIT OR Apache-2.0
// Complete addition on the twisted Edwards curve with a = -1 (madd-2008-hwcd-3), and doubling, one operation a clock.
// First operand: extended (X : Y : Z : T), each below 4 P. Second: (Y - X, Y + X, 2 d T, Z), below 8 P, 8 P, 4 P, 4 P; an entry
// of a table has Z = 1. Output: extended, below 4 P. Latency: 36 clocks (one to add, 17 to multiply, twice).
//
// A doubling ignores the second operand and needs no 2 d T: on the curve 2 d T^2 = 2 (Y^2 - X^2 - Z^2), so with
// V = (Y - X) (Y + X) the formula's C is 2 V - 2 Z^2, hence G = D + C = 2 V and F = D - C = 4 Z^2 - 2 V.
module point_add
  import field_pkg::*;
#(
    parameter int KIND = 0  // The field multiplier; see field_mul.
) (
    input  logic clk,
    input  logic valid,
    input  logic doubling,
    input  fe_t  x1, y1, z1, t1,
    input  fe_t  y2_minus_x2, y2_plus_x2, kt2, z2,
    output fe_t  x3, y3, z3, t3
);
  localparam int MUL = 17;

  // Layer 1: sums and differences of the first operand.
  fe_t a_left, a_right, b_left, b_right, c_left, c_right, d_left, d_right;
  logic valid_1, double_1;
  fe_t minus, plus;
  assign minus = y1 - x1 + P4;
  assign plus  = y1 + x1;
  always_ff @(posedge clk) begin
    valid_1  <= valid;
    double_1 <= doubling;
    if (valid) begin
      a_left  <= minus;
      b_left  <= plus;
      d_left  <= z1;
      a_right <= doubling ? minus : y2_minus_x2;
      b_right <= doubling ? plus : y2_plus_x2;
      c_left  <= doubling ? minus : t1;
      c_right <= doubling ? plus : kt2;
      d_right <= doubling ? z1 : z2;
    end
  end

  fe_t a, b, c, d;
  field_mul #(.KIND(KIND)) mul_a (.clk, .valid(valid_1), .a(a_left), .b(a_right), .product(a));
  field_mul #(.KIND(KIND)) mul_b (.clk, .valid(valid_1), .a(b_left), .b(b_right), .product(b));
  field_mul #(.KIND(KIND)) mul_c (.clk, .valid(valid_1), .a(c_left), .b(c_right), .product(c));
  field_mul #(.KIND(KIND)) mul_d (.clk, .valid(valid_1), .a(d_left), .b(d_right), .product(d));

  logic [MUL-1:0] valid_wait, double_wait;
  always_ff @(posedge clk) begin
    valid_wait  <= {valid_wait[MUL-2:0], valid_1};
    double_wait <= {double_wait[MUL-2:0], double_1};
  end

  // Layer 2. With products below 3.5 P: e < 7.5 P, h < 7 P, g < 10.5 P, f < 11 P; doubling has f < 20.5 P, where e f < 152 P^2.
  fe_t e, f, g, h;
  logic valid_2;
  always_ff @(posedge clk) begin
    valid_2 <= valid_wait[MUL-1];
    if (valid_wait[MUL-1]) begin
      e <= b - a + P4;
      h <= b + a;
      f <= double_wait[MUL-1] ? ((d << 1) - c + P4) << 1 : (d << 1) - c + P4;
      g <= double_wait[MUL-1] ? c << 1 : (d << 1) + c;
    end
  end
  field_mul #(.KIND(KIND)) mul_x (.clk, .valid(valid_2), .a(e), .b(f), .product(x3));
  field_mul #(.KIND(KIND)) mul_y (.clk, .valid(valid_2), .a(g), .b(h), .product(y3));
  field_mul #(.KIND(KIND)) mul_z (.clk, .valid(valid_2), .a(f), .b(g), .product(z3));
  field_mul #(.KIND(KIND)) mul_t (.clk, .valid(valid_2), .a(e), .b(h), .product(t3));
endmodule
