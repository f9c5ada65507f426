// SPDX-License-Identifier: MIT OR Apache-2.0
// Signed digits of scalars, LANES a clock, in the order of the table's entries: scalar by scalar, level by level.
// A scalar above (r - 1) / 2 is replaced by r - s with all signs flipped. The carries between digits are one addition:
// with half a digit added at every place but the top one, digit j is (bits of place j) - 2^(w-1) on its own, so a pass may
// begin at any digit and take every V-th. Digit numbers: pass + V * level; those past the top digit are zero.
module recode
  import field_pkg::*;
  import msm_pkg::*;
#(
    parameter int LANES = 2
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         start,      // one clock: begins a pass over `count` scalars
    input  logic [31:0]  count,
    input  logic [4:0]   window,
    input  logic [4:0]   levels,     // digits a scalar gives in this pass
    input  logic [5:0]   passes,     // V
    input  logic [5:0]   pass,
    output logic         out_of_range,  // one clock: a scalar was not below r
    input  logic         scalar_valid,
    output logic         scalar_ready,
    input  logic [255:0] scalar,
    output logic         digits_valid,
    input  logic         digits_ready,
    output digit_t       digits[LANES]
);
  logic [7:0] stride;
  logic [255:0] offset;
  logic [5:0] top;
  logic [KEY_BITS-1:0] mask, half;
  logic [7:0] first_shift;
  always_ff @(posedge clk) begin
    // Job registers are stable, so these settle before the first scalar comes.
    stride      <= 8'(window) * 8'(passes);
    first_shift <= 8'(window) * 8'(pass);
    offset      <= OFFSETS[window];
    top         <= DIGITS[window] - 6'd1;
    mask        <= KEY_BITS'((32'd1 << window) - 32'd1);
    half        <= KEY_BITS'(32'd1 << (window - 5'd1));
  end

  // Three steps to a prepared scalar, each of which holds while the next one is full.
  logic valid_1, valid_2, valid_3, sign_1, sign_2, sign_3, move_1, move_2, move_3;
  logic [255:0] value_1, value_2, value_3;
  assign move_2 = !valid_2 || move_3;
  assign move_1 = !valid_1 || move_2;
  assign scalar_ready = move_1;
  always_ff @(posedge clk) begin
    out_of_range <= 1'b0;
    if (rst || start) begin
      valid_1 <= 1'b0;
      valid_2 <= 1'b0;
      valid_3 <= 1'b0;
    end else begin
      if (move_1) begin
        valid_1 <= scalar_valid;
        out_of_range <= scalar_valid && scalar >= R_ORDER;
        sign_1  <= scalar > R_HALF;
        value_1 <= scalar > R_HALF ? R_ORDER - scalar : scalar;
      end
      if (move_2) begin
        valid_2 <= valid_1;
        sign_2  <= sign_1;
        value_2 <= value_1 + offset;
      end
      if (move_3) begin
        valid_3 <= valid_2;
        sign_3  <= sign_2;
        value_3 <= value_2 >> first_shift;
      end
    end
  end

  function automatic digit_t digit_of(input logic [KEY_BITS-1:0] value, input logic sign, input logic [10:0] number);
    digit_t d;
    logic [KEY_BITS-1:0] raw, magnitude;
    logic below;
    raw       = value & mask;
    below     = number < 11'(top) && raw < half;
    magnitude = number >= 11'(top) ? raw : below ? half - raw : raw - half;
    d.zero    = magnitude == '0 || number > 11'(top);
    d.negative = below ^ sign;
    d.key     = magnitude - 1'b1;
    return d;
  endfunction

  // The scalar whose digits are being given, and the one after it in value_3.
  logic current_valid, current_sign;
  logic [255:0] current;
  logic [4:0] level;
  logic [10:0] number;
  logic [31:0] left;  // scalars not yet begun
  logic give;

  if (LANES == 1) begin : gen_one
    assign digits_valid = current_valid;
    assign digits[0]    = digit_of(current[KEY_BITS-1:0], current_sign, number);
    assign give         = digits_valid && digits_ready;
    assign move_3       = !valid_3 || !current_valid || (give && level + 5'd1 == levels);
    always_ff @(posedge clk) begin
      if (rst || start) begin
        current_valid <= 1'b0;
      end else if (!current_valid || (give && level + 5'd1 == levels)) begin
        current_valid <= valid_3;
        current       <= value_3;
        current_sign  <= sign_3;
        level         <= '0;
        number        <= 11'(pass);
      end else if (give) begin
        current <= current >> stride;
        level   <= level + 5'd1;
        number  <= number + 11'(passes);
      end
    end
    logic unused;
    assign unused = ^{left, count};
    assign left = '0;
  end else begin : gen_two
    logic last_level, next_needed, take_next;
    logic [255:0] shifted;
    assign shifted     = current >> stride;
    assign last_level  = level + 5'd1 == levels;
    // The second lane is the first digit of the next scalar, if there is one.
    assign next_needed = last_level && left != 32'd0;
    assign digits_valid = current_valid && (!next_needed || valid_3);
    assign give         = digits_valid && digits_ready;
    always_comb begin
      digits[0] = digit_of(current[KEY_BITS-1:0], current_sign, number);
      if (!last_level) digits[1] = digit_of(shifted[KEY_BITS-1:0], current_sign, number + 11'(passes));
      else begin
        digits[1] = digit_of(value_3[KEY_BITS-1:0], sign_3, 11'(pass));
        if (!next_needed) digits[1].zero = 1'b1;
      end
    end
    assign take_next = !current_valid || (give && (last_level || level + 5'd2 == levels));
    assign move_3    = !valid_3 || (take_next && !(give && last_level && !next_needed));
    always_ff @(posedge clk) begin
      if (rst) begin
        current_valid <= 1'b0;
        left          <= '0;
      end else if (start) begin
        current_valid <= 1'b0;
        left          <= count;
      end else if (take_next) begin
        if (give && last_level && next_needed) begin
          // One digit of the next scalar is given; with one level a scalar that is all of it.
          current_valid <= levels != 5'd1;
          current       <= value_3 >> stride;
          current_sign  <= sign_3;
          level         <= 5'd1;
          number        <= 11'(pass) + 11'(passes);
          left          <= left - 32'd1;
        end else begin
          current_valid <= valid_3 && left != 32'd0;
          current       <= value_3;
          current_sign  <= sign_3;
          level         <= '0;
          number        <= 11'(pass);
          if (valid_3 && left != 32'd0) left <= left - 32'd1;
        end
      end else if (give) begin
        current <= shifted >> stride;
        level   <= level + 5'd2;
        number  <= number + (11'(passes) << 1);
      end
    end
  end
endmodule
