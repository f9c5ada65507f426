// SPDX-License-Identifier: MIT OR Apache-2.0
// Montgomery product, one a clock, 17 clocks later: the multiplier that the parameter KIND names.
// `valid` only spares the simulation's model work; the circuits multiply on every clock.
module field_mul
  import field_pkg::*;
#(
    parameter int KIND = 0  // 0 Karatsuba, 1 FIOS, 2 the simulation's C model.
) (
    input  logic clk,
    input  logic valid,
    input  fe_t  a,
    input  fe_t  b,
    output fe_t  product
);
  if (KIND == 0) begin : gen_karatsuba
    mul_karatsuba multiplier (.clk, .a, .b, .product);
  end else if (KIND == 1) begin : gen_fios
    mul_fios multiplier (.clk, .a, .b, .product);
  end
`ifdef VERILATOR
  else begin : gen_model
    mul_model multiplier (.clk, .valid, .a, .b, .product);
  end
`endif
  logic unused;
  assign unused = valid ^ (^NEG_INV_P_48);
endmodule
