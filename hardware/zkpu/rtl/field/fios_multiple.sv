// SPDX-License-Identifier: MIT OR Apache-2.0
// The multiple of P that mul_fios adds to a row, from the quotient's odd multiples. No product and no clock.
//
// P is written with the digits 1, 3 .. 15, whose first bit is set, and zeros between them. The quotient times a digit takes
// MULTIPLE_BITS from the digit's place on; it is put into the first of WORDS words that is free there, so that the many
// multiples take few additions.
module fios_multiple
  import field_pkg::*;
(
    input  logic [7:0][51:0] odd,      // the quotient, below 2^48, times 1, 3 .. 15
    output logic [424:0]     multiple  // the quotient times P
);
  localparam int P_BITS = 377;
  localparam int MULTIPLE_BITS = 52;
  localparam int DIGITS = 60;
  localparam int WORDS = 12;
  typedef struct packed {
    logic [8:0] at;    // place of the lowest bit in P
    logic [3:0] word;
    logic [2:0] half;  // the digit is 2 half + 1
  } digit_t;
  typedef digit_t [DIGITS-1:0] digits_t;

  function automatic digits_t digits_of_p();
    digits_t digits;
    int count, at;
    int free[16];
    digits = '0;
    for (int w = 0; w < 16; w++) free[w] = 0;
    count = 0;
    at = 0;
    while (at < P_BITS) begin
      if (P[at]) begin
        digits[count].at   = 9'(at);
        digits[count].half = 3'(P >> (at + 1));
        digits[count].word = 4'd15;
        for (int w = 15; w >= 0; w--) if (free[w] <= at) digits[count].word = 4'(w);
        free[digits[count].word] = at + MULTIPLE_BITS;
        count += 1;
        at += 4;
      end else begin
        at += 1;
      end
    end
    return digits;
  endfunction
  localparam digits_t DIGIT = digits_of_p();

  // Place of the first digit of a word.
  function automatic int start_of(input int word);
    for (int n = 0; n < DIGITS; n++) if (int'(DIGIT[n].word) == word) return int'(DIGIT[n].at);
    return -1;
  endfunction
  function automatic logic [383:0] value_of_digits();
    logic [383:0] value;
    value = '0;
    for (int n = 0; n < DIGITS; n++) value += (384'(DIGIT[n].half) * 2 + 1) << DIGIT[n].at;
    return value;
  endfunction
  if (value_of_digits() != P || start_of(WORDS - 1) < 0 || start_of(WORDS) >= 0) begin : gen_wrong
    $fatal(1, "DIGITS or WORDS is not that of P");
  end

  logic [WORDS-1:0][424:0] words;
  always_comb begin
    words = '0;
    for (int n = 0; n < DIGITS; n++) words[DIGIT[n].word][DIGIT[n].at+:MULTIPLE_BITS] = odd[DIGIT[n].half];
  end
  // Bits below a word's first are passed by, which also keeps each sum an addition of two for synthesis.
  for (genvar w = 0; w < WORDS; w++) begin : gen_sum
    localparam int START = start_of(w);
    logic [424:0] sum;
    if (w == 0) begin : gen_first
      assign sum = words[0];
    end else begin : gen_next
      assign sum = {gen_sum[w-1].sum[424:START] + words[w][424:START], gen_sum[w-1].sum[START-1:0]};
    end
  end
  assign multiple = gen_sum[WORDS-1].sum;
endmodule
