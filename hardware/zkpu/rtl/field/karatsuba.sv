// SPDX-License-Identifier: MIT OR Apache-2.0
// Unsigned product of two WIDTH-bit numbers by Karatsuba's method, LEVELS deep, one product a clock.
// Latency: LEVELS + 2 clocks. The sums of halves of every level share the first clock with the register of the operands;
// each level then takes one clock to put three products together. Three levels over 384 bits leave 27 products of at
// most 51 bits, each of which takes 6 DSP48E2.
module karatsuba #(
    parameter int WIDTH  = 384,
    parameter int LEVELS = 3
) (
    input  logic               clk,
    input  logic [WIDTH-1:0]   a,
    input  logic [WIDTH-1:0]   b,
    output logic [2*WIDTH-1:0] product
);
  /* verilator no_inline_module */  // The simulation compiles each width once.
  if (LEVELS == 0) begin : gen_leaf
    // Six products of 26 by 17 bits, the widths of a DSP48E2 without sign, written out: synthesis left to itself takes
    // more blocks for the same product.
    logic [51:0] a_q;
    logic [50:0] b_q;
    logic [42:0] part[2][3];
    always_comb
      for (int i = 0; i < 2; i++) for (int j = 0; j < 3; j++) part[i][j] = 43'(a_q[26*i+:26]) * 43'(b_q[17*j+:17]);
    always_ff @(posedge clk) begin
      a_q     <= 52'(a);
      b_q     <= 51'(b);
      product <= (2 * WIDTH)'(part[0][0]) + ((2 * WIDTH)'(part[0][1]) << 17) + ((2 * WIDTH)'(part[0][2]) << 34)
          + ((2 * WIDTH)'(part[1][0]) << 26) + ((2 * WIDTH)'(part[1][1]) << 43) + ((2 * WIDTH)'(part[1][2]) << 60);
    end
  end else begin : gen_split
    localparam int HALF = (WIDTH + 1) / 2;
    localparam int SUM = HALF + 1;
    logic [HALF-1:0] a_low, a_high, b_low, b_high;
    assign a_low  = a[HALF-1:0];
    assign b_low  = b[HALF-1:0];
    assign a_high = HALF'(a[WIDTH-1:HALF]);
    assign b_high = HALF'(b[WIDTH-1:HALF]);

    logic [2*HALF-1:0] low, high;
    logic [2*SUM-1:0] sums;
    karatsuba #(.WIDTH(HALF), .LEVELS(LEVELS - 1)) product_low (.clk, .a(a_low), .b(b_low), .product(low));
    karatsuba #(.WIDTH(HALF), .LEVELS(LEVELS - 1)) product_high (.clk, .a(a_high), .b(b_high), .product(high));
    karatsuba #(.WIDTH(SUM), .LEVELS(LEVELS - 1)) product_sums (
        .clk, .a(SUM'(a_low) + SUM'(a_high)), .b(SUM'(b_low) + SUM'(b_high)), .product(sums));

    logic [2*SUM-1:0] middle;
    assign middle = sums - (2 * SUM)'(low) - (2 * SUM)'(high);
    // The product fits 2 WIDTH bits, so what the padding of an odd width adds above them is zero.
    always_ff @(posedge clk)
      product <= (2 * WIDTH)'(low) + ((2 * WIDTH)'(high) << (2 * HALF)) + ((2 * WIDTH)'(middle) << HALF);
  end
endmodule
