// SPDX-License-Identifier: MIT OR Apache-2.0
// Twisted Edwards point adder, one operation a clock: -x^2 + y^2 = 1 + d x^2 y^2, k = 2 d.
//
// MIXED (madd-2008-hwcd-3) and FULL (add-2008-hwcd-3) additions are unified: identity, equal and opposite operands
// need no care. DOUBLE is dbl-2008-hwcd with E, F, G and H all negated, which changes no product of two of them.
//
// Nine multipliers: four for A, B, C and D, four for the results, and one that forms k T of a FULL addition's second
// operand. That one stands before the adder, so the accumulator is read MUL_LATENCY clocks after the second operand,
// and a chain of additions to one accumulator pays the adder's latency alone.
//
//   clock 0                  b (FULL only)
//   clock MUL_LATENCY        valid, kind, acc, entry (MIXED only), negate
//   clock 3 MUL_LATENCY + 2  sum
//
// Bounds (P's multiples): coordinates < 4; entries < 1; E, H < 8 and F, G < 12 in additions, E, F < 12 and 14 with a
// product below 144 in doublings, given that products of operands below 4 are below 3.2 (see field_mul).
module point_adder
  import field_pkg::*;
  import core_pkg::*;
#(
    parameter int MUL_KIND    = 0,
    parameter int MUL_LATENCY = 24
) (
    input  logic     clk,
    input  logic     rst,
    input  logic     b_valid,
    input  point_t   b,
    input  logic     valid,
    input  op_kind_t kind,
    input  point_t   acc,
    input  entry_t   entry,
    input  logic     negate,
    output point_t   sum
);
  function automatic fe_t wide(input coordinate_t c);
    return FE_BITS'(c);
  endfunction

  // Second operand of FULL additions, MUL_LATENCY clocks.
  fe_t b_k_t;
  coordinate_t b_x, b_y, b_z;
  field_mul #(.KIND(MUL_KIND), .LATENCY(MUL_LATENCY)) mul_k (
      .clk, .rst, .valid(b_valid), .a(wide(b.t)), .b(CURVE_K), .product(b_k_t));
  delay_line #(.WIDTH(3 * COORDINATE_BITS), .DEPTH(MUL_LATENCY)) delay_b (
      .clk, .rst, .d({b.x, b.y, b.z}), .q({b_x, b_y, b_z}));

  // Operands of the first four products.
  fe_t a1, b1, a2, b2, a3, b3, a4, b4;
  logic valid_1;
  op_kind_t kind_1;
  always_ff @(posedge clk) begin
    valid_1 <= valid && !rst;
    kind_1 <= kind;
    a1 <= wide(acc.y) - wide(acc.x) + P4;
    a2 <= wide(acc.y) + wide(acc.x);
    a3 <= wide(acc.t);
    a4 <= wide(acc.z);
    unique case (kind)
      OP_MIXED: begin
        b1 <= negate ? entry.y_plus_x : entry.y_minus_x;
        b2 <= negate ? entry.y_minus_x : entry.y_plus_x;
        b3 <= negate ? P - entry.k_t : entry.k_t;
        b4 <= ONE;
      end
      OP_DOUBLE: begin
        a1 <= wide(acc.x);
        b1 <= wide(acc.x);
        a2 <= wide(acc.y);
        b2 <= wide(acc.y);
        a3 <= wide(acc.x) + wide(acc.y);
        b3 <= wide(acc.x) + wide(acc.y);
        b4 <= wide(acc.z);
      end
      default: begin
        b1 <= wide(b_y) - wide(b_x) + P4;
        b2 <= wide(b_y) + wide(b_x);
        b3 <= b_k_t;
        b4 <= wide(b_z);
      end
    endcase
  end

  fe_t m_a, m_b, m_c, m_d;
  field_mul #(.KIND(MUL_KIND), .LATENCY(MUL_LATENCY)) mul_a (
      .clk, .rst, .valid(valid_1), .a(a1), .b(b1), .product(m_a));
  field_mul #(.KIND(MUL_KIND), .LATENCY(MUL_LATENCY)) mul_b (
      .clk, .rst, .valid(valid_1), .a(a2), .b(b2), .product(m_b));
  field_mul #(.KIND(MUL_KIND), .LATENCY(MUL_LATENCY)) mul_c (
      .clk, .rst, .valid(valid_1), .a(a3), .b(b3), .product(m_c));
  field_mul #(.KIND(MUL_KIND), .LATENCY(MUL_LATENCY)) mul_d (
      .clk, .rst, .valid(valid_1), .a(a4), .b(b4), .product(m_d));
  logic valid_2;
  op_kind_t kind_2;
  delay_line #(.WIDTH(3), .DEPTH(MUL_LATENCY)) delay_kind (
      .clk, .rst, .d({valid_1, kind_1}), .q({valid_2, kind_2}));

  fe_t e, f, g, h;
  logic valid_3;
  always_ff @(posedge clk) begin
    valid_3 <= valid_2 && !rst;
    h <= m_b + m_a;
    if (kind_2 == OP_DOUBLE) begin
      e <= m_a + m_b - m_c + P4;
      f <= m_a - m_b + (m_d << 1) + P4;
      g <= m_a - m_b + P4;
    end else begin
      e <= m_b - m_a + P4;
      f <= (m_d << 1) - m_c + P4;
      g <= (m_d << 1) + m_c;
    end
  end

  fe_t x, y, z, t;
  field_mul #(.KIND(MUL_KIND), .LATENCY(MUL_LATENCY)) mul_x (
      .clk, .rst, .valid(valid_3), .a(e), .b(f), .product(x));
  field_mul #(.KIND(MUL_KIND), .LATENCY(MUL_LATENCY)) mul_y (
      .clk, .rst, .valid(valid_3), .a(g), .b(h), .product(y));
  field_mul #(.KIND(MUL_KIND), .LATENCY(MUL_LATENCY)) mul_z (
      .clk, .rst, .valid(valid_3), .a(f), .b(g), .product(z));
  field_mul #(.KIND(MUL_KIND), .LATENCY(MUL_LATENCY)) mul_t (
      .clk, .rst, .valid(valid_3), .a(e), .b(h), .product(t));
  wire unused = &{1'b0, x[FE_BITS-1:COORDINATE_BITS], y[FE_BITS-1:COORDINATE_BITS], z[FE_BITS-1:COORDINATE_BITS],
                  t[FE_BITS-1:COORDINATE_BITS]};
  assign sum = '{
      x: x[COORDINATE_BITS-1:0], y: y[COORDINATE_BITS-1:0], z: z[COORDINATE_BITS-1:0], t: t[COORDINATE_BITS-1:0]};
endmodule
