// SPDX-License-Identifier: MIT OR Apache-2.0
// Montgomery product a b / 2^384 modulo P, one a clock, by two Karatsuba products and a sparse multiple of P.
// Inputs: a b < 152 P^2 (for example 8 P by 19 P), each below 2^384. Output: below 4 P, congruent. Latency: 17 clocks.
//
// BLS12-377's modulus is (x - 1)^2 (x^4 - x^2 + 1) / 3 + x with x = 2^46 V + 1, V = 0x21423 of weight 6. So with u = 2^46 V,
//   3 P = 3 + 3 u + u^2 + 2 u^3 + 5 u^4 + 4 u^5 + u^6,
// and the multiple m 3 P of the reduction, m = -t / (3 P) modulo 2^384, takes multiplications by V (six shifted
// operands) and no DSP. Every step leaves 46 more low bits zero, which are dropped.
module mul_karatsuba
  import field_pkg::*;
(
    input  logic clk,
    input  fe_t  a,
    input  fe_t  b,
    output fe_t  product
);
  /* verilator no_inline_module */  // The simulation compiles it once, not once for each multiplier.
  localparam int LATENCY_PRODUCT = 5;

  logic [767:0] full, quotient_full;
  karatsuba #(.WIDTH(384), .LEVELS(3)) operand_product (.clk, .a, .b, .product(full));
  karatsuba #(.WIDTH(384), .LEVELS(3)) quotient_product (
      .clk, .a(full[383:0]), .b(NEG_INV_3P), .product(quotient_full));

  // The product waits for its quotient.
  logic [767:0] wait_full[LATENCY_PRODUCT];
  always_ff @(posedge clk) begin
    wait_full[0] <= full;
    for (int i = 1; i < LATENCY_PRODUCT; i++) wait_full[i] <= wait_full[i-1];
  end

  // Multiple by V: 2^17 + 2^12 + 2^10 + 2^5 + 2 + 1.
  function automatic logic [491:0] times_v(input logic [491:0] n);
    return (n << 17) + (n << 12) + (n << 10) + (n << 5) + (n << 1) + n;
  endfunction

  logic [383:0] m;
  assign m = quotient_full[383:0];
  // power_k is m V^k; sum_k is what is left of t + m 3 P after 46 k low zero bits are dropped.
  logic [401:0] power_1;
  logic [419:0] power_2;
  logic [437:0] power_3;
  logic [455:0] power_4;
  logic [473:0] power_5;
  logic [491:0] power_6;
  logic [767:0] sum_0;
  logic [721:0] sum_1;
  logic [675:0] sum_2;
  logic [629:0] sum_3;
  logic [583:0] sum_4;
  logic [537:0] sum_5;
  logic [491:0] sum_6;
  always_ff @(posedge clk) begin
    power_1 <= 402'(times_v(492'(m)));
    power_2 <= 420'(times_v(492'(power_1)));
    power_3 <= 438'(times_v(492'(power_2)));
    power_4 <= 456'(times_v(492'(power_3)));
    power_5 <= 474'(times_v(492'(power_4)));
    power_6 <= times_v(492'(power_5));
    sum_0 <= wait_full[LATENCY_PRODUCT-1] + (768'(m) << 1) + 768'(m);
    sum_1 <= sum_0[767:46] + (722'(power_1) << 1) + 722'(power_1);
    sum_2 <= sum_1[721:46] + 676'(power_2);
    sum_3 <= sum_2[675:46] + (630'(power_3) << 1);
    sum_4 <= sum_3[629:46] + (584'(power_4) << 2) + 584'(power_4);
    sum_5 <= sum_4[583:46] + (538'(power_5) << 2);
    sum_6 <= sum_5[537:46] + power_6;
  end
  assign product = sum_6[491:108];

  // Bits that are zero, or above the result, by construction.
  logic unused;
  assign unused = ^{quotient_full[767:384], sum_0[45:0], sum_1[45:0], sum_2[45:0], sum_3[45:0], sum_4[45:0], sum_5[45:0],
                    sum_6[107:0]};
endmodule
