// SPDX-License-Identifier: MIT OR Apache-2.0
// Montgomery product a b / 2^384 modulo P, one a clock, by the paper's FIOS: 8 limbs of 48 bits, one row a limb.
// Inputs as for mul_karatsuba (a b < 152 P^2, each below 2^384); output below 2 P, congruent. Latency: 17 clocks.
//
// A row takes two clocks. In the first, the quotient of the lowest limb and its odd multiples are formed, and the next row is
// added; in the second, the multiple of P is added, which clears the lowest limb. P is 1 modulo 2^46, so the quotient -t / P
// modulo 2^48 is -(t + 2^46 t): no product. Nor has the multiple of P one: the rows' 352 DSP48E2 are all there are.
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

  // Row i is multiplied 2 (i - 1) clocks after the operands come; rows 0 and 1 at once.
  localparam int WAIT = 2 * (LIMBS - 2);
  fe_t a_wait[WAIT+1], b_wait[WAIT+1];
  always_comb begin
    a_wait[0] = a;
    b_wait[0] = b;
  end
  for (genvar i = 1; i <= WAIT; i++) begin : gen_wait
    always_ff @(posedge clk) begin
      a_wait[i] <= a_wait[i-1];
      b_wait[i] <= b_wait[i-1];
    end
  end

  // sum[i] is the rows 0 to i, reduced i times; the last is reduced once more than there are rows to add.
  logic [431:0] first_row;
  logic [432:0] sum[LIMBS+1];
  fios_row #(.REGISTERED(0)) row_0 (.clk, .a, .limb(b[47:0]), .row(first_row));
  always_ff @(posedge clk) sum[0] <= 433'(first_row);

  for (genvar i = 0; i < LIMBS; i++) begin : gen_row
    logic [47:0] quotient;
    logic [7:0][51:0] odd_now, odd;
    logic [480:0] added_now, added, cleared;
    logic [424:0] multiple;
    assign quotient = -{sum[i][47:46] + sum[i][1:0], sum[i][45:0]};
    assign odd_now = odd_multiples(quotient);
    if (i < LIMBS - 1) begin : gen_product
      logic [431:0] row;
      fios_row #(.REGISTERED(1)) row_product (.clk, .a(a_wait[2*i]), .limb(b_wait[2*i][48*(i+1)+:48]), .row);
      assign added_now = {433'(sum[i][432:48]) + 433'(row), sum[i][47:0]};
    end else begin : gen_last
      assign added_now = 481'(sum[i]);
    end
    fios_multiple multiple_of_p (.odd, .multiple);
    assign cleared = added + 481'(multiple);
    always_ff @(posedge clk) begin
      odd      <= odd_now;
      added    <= added_now;
      sum[i+1] <= cleared[480:48];
    end
    logic unused_low;
    assign unused_low = ^cleared[47:0];
  end
  assign product = sum[LIMBS][383:0];

  // The quotient times 1, 3 .. 15, each by at most two additions.
  function automatic logic [7:0][51:0] odd_multiples(input logic [47:0] quotient);
    logic [51:0] n, three, five;
    n     = 52'(quotient);
    three = (n << 1) + n;
    five  = (n << 2) + n;
    return {(n << 4) - n, (n << 3) + five, (n << 3) + three, (n << 3) + n, (n << 3) - n, five, three, n};
  endfunction
  logic unused;
  assign unused = ^sum[LIMBS][432:384];
endmodule
