// SPDX-License-Identifier: MIT OR Apache-2.0
// Simulation only: the product of mul_karatsuba by a C function, delayed by the same number of clocks.
// A ring replaces the shift register, so that a clock writes one element and reads one.
module mul_model
  import field_pkg::*;
#(
    parameter int LATENCY = 17
) (
    input  logic clk,
    input  logic valid,
    input  fe_t  a,
    input  fe_t  b,
    output fe_t  product
);
  import "DPI-C" function void field_mul_model(input bit [383:0] a, input bit [383:0] b, output bit [383:0] product);
  fe_t ring[LATENCY];
  logic [4:0] at;
  initial at = '0;
  always_ff @(posedge clk) begin
    bit [383:0] r;
    at <= at == 5'(LATENCY - 1) ? '0 : at + 5'd1;
    if (valid) begin
      field_mul_model(a, b, r);
      ring[at] <= r;
    end
  end
  assign product = ring[at];
endmodule
