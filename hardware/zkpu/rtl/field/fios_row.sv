// SPDX-License-Identifier: MIT OR Apache-2.0
// One row of mul_fios: the product of a field element and a limb of 48 bits. Latency: one clock if REGISTERED, else none.
//
// 44 DSP48E2, whose multiplier takes 26 by 17 bits without sign: fourteen columns of 26 bits of `a`, each by 17 + 17 + 14
// bits of the limb, and one of 17 bits of `a` by 26 + 22 of the limb. Each product of a column is added to the high part of
// the one below it, which is the addition inside the same DSP48E2. The three highest bits of `a` take LUTs.
module fios_row
  import field_pkg::*;
#(
    parameter bit REGISTERED = 1
) (
    input  logic         clk,
    input  fe_t          a,
    input  logic [47:0]  limb,
    output logic [431:0] row
);
  localparam int COLUMNS = 14;
  localparam int LAST_AT = 26 * COLUMNS, TOP_AT = LAST_AT + 17;
  typedef logic [42:0] part_t;

  part_t parts[COLUMNS][3], parts_now[COLUMNS][3];
  part_t last_parts[2], last_parts_now[2];
  logic [50:0] top, top_now;
  always_comb begin
    for (int k = 0; k < COLUMNS; k++)
      for (int j = 0; j < 3; j++) parts_now[k][j] = 43'(a[26*k+:26]) * 43'(17'(limb >> 17 * j));
    for (int j = 0; j < 2; j++) last_parts_now[j] = 43'(a[LAST_AT+:17]) * 43'(26'(limb >> 26 * j));
    top_now = 51'(a[TOP_AT] ? limb : 0) + 51'({a[TOP_AT+1] ? limb : 48'd0, 1'b0}) + 51'({a[TOP_AT+2] ? limb : 48'd0, 2'b0});
  end
  if (REGISTERED) begin : gen_registers
    always_ff @(posedge clk) begin
      parts      <= parts_now;
      last_parts <= last_parts_now;
      top        <= top_now;
    end
  end else begin : gen_wires
    assign parts      = parts_now;
    assign last_parts = last_parts_now;
    assign top        = top_now;
    logic unused;
    assign unused = clk;
  end

  // Columns of 74 bits at every 26th: three words hold them without overlap.
  logic [431:0] words[3];
  for (genvar k = 0; k < COLUMNS; k++) begin : gen_column
    part_t middle, high;
    assign middle = parts[k][1] + part_t'(parts[k][0][42:17]);
    assign high   = parts[k][2] + part_t'(middle[42:17]);
    assign words[k%3][26*k+:74] = {high[39:0], middle[16:0], parts[k][0][16:0]};
    logic unused_column;
    assign unused_column = ^high[42:40];
  end
  part_t last_high;
  assign last_high = last_parts[1] + part_t'(last_parts[0][42:26]);
  assign words[2][LAST_AT+:65] = {last_high[38:0], last_parts[0][25:0]};
  // What no column fills.
  for (genvar k = 0; k < COLUMNS - 3; k++) begin : gen_gap
    assign words[k%3][26*k+74+:4] = '0;
  end
  assign words[0][431:26*12+74] = '0;
  assign words[1][25:0]         = '0;
  assign words[1][431:26*13+74] = '0;
  assign words[2][51:0]         = '0;
  assign words[2][431:LAST_AT+65] = '0;
  assign words[2][26*11+74+:4]  = '0;

  // Bits below an addend's first are passed by, which also keeps each sum an addition of two for synthesis.
  logic [431:0] sum_01, sum_012;
  assign sum_01  = {words[0][431:26] + words[1][431:26], words[0][25:0]};
  assign sum_012 = {sum_01[431:52] + words[2][431:52], sum_01[51:0]};
  assign row     = {sum_012[431:TOP_AT] + top, sum_012[TOP_AT-1:0]};
  logic unused_last;
  assign unused_last = ^last_high[42:39];
endmodule
