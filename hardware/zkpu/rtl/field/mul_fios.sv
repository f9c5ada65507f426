// SPDX-License-Identifier: MIT OR Apache-2.0
// Montgomery product a b / 2^384 modulo P, one a clock, by the paper's FIOS: 8 limbs of 48 bits.
// Inputs and output as for mul_karatsuba (the output is below 2 P). Latency: 17 clocks.
// Each limb of b takes two clocks: the row of products is added, then the multiple of P that clears the lowest limb.
// P is 1 modulo 2^46, so the quotient -t / P modulo 2^48 is -(t + 2^46 t): no product.
module mul_fios
  import field_pkg::*;
(
    input  logic clk,
    input  fe_t  a,
    input  fe_t  b,
    output fe_t  product
);
  /* verilator no_inline_module */  // The simulation compiles it once, not once for each multiplier.
  localparam int LIMBS = 8;
  // Operands, and the sum before each row; index 2 i and 2 i + 1 are the two clocks of row i.
  fe_t a_q[2*LIMBS+1];
  fe_t b_q[2*LIMBS+1];
  logic [384:0] sum[LIMBS+1];
  logic [432:0] added[LIMBS];
  logic [431:0] row[LIMBS];

  always_ff @(posedge clk) begin
    a_q[0] <= a;
    b_q[0] <= b;
    for (int i = 1; i <= 2 * LIMBS; i++) begin
      a_q[i] <= a_q[i-1];
      b_q[i] <= b_q[i-1];
    end
  end
  // The first row is formed in the clock that registers the operands.
  assign sum[0] = '0;
  always_ff @(posedge clk) row[0] <= 432'(a) * 432'(b[47:0]);

  for (genvar i = 0; i < LIMBS; i++) begin : gen_row
    logic [47:0]  quotient;
    logic [433:0] cleared;
    if (i > 0) begin : gen_product
      always_ff @(posedge clk) row[i] <= 432'(a_q[2*i-1]) * 432'(b_q[2*i-1][48*i+:48]);
    end
    assign quotient = -(added[i][47:0] + (added[i][47:0] << 46));
    assign cleared  = 434'(added[i]) + 434'(P) * 434'(quotient);
    always_ff @(posedge clk) begin
      added[i] <= 433'(sum[i]) + 433'(row[i]);
      sum[i+1] <= cleared[432:48];
    end
    logic unused_row;
    assign unused_row = ^{cleared[433], cleared[47:0]};
  end
  assign product = sum[LIMBS][383:0];
  logic unused;
  assign unused = ^{sum[LIMBS][384], a_q[2*LIMBS], b_q[2*LIMBS], a_q[2*LIMBS-1], b_q[2*LIMBS-1]};
endmodule
