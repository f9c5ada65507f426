// SPDX-License-Identifier: MIT OR Apache-2.0
// What the parts of the MSM core share: the digits of each window, and the records of operations.
package msm_pkg;
  import field_pkg::*;

  localparam int WINDOW_MIN = 4;
  localparam int WINDOW_MAX = 18;
  // Bits of a folded scalar: below r / 2 < 2^252.
  localparam int SCALAR_BITS = 252;
  // A table entry: 2 d X Y, Y + X, Y - X from the highest bits down; Y - X comes first in memory.
  localparam int ENTRY_BITS = 3 * FE_BITS;
  // Index of a bucket: magnitude - 1.
  localparam int KEY_BITS = 18;
  localparam int POINT_BITS = 4 * FE_BITS;

  typedef struct packed {
    logic                zero;
    logic                negative;
    logic [KEY_BITS-1:0] key;
  } digit_t;

  typedef struct packed {
    fe_t x, y, z, t;
  } point_t;
  localparam point_t IDENTITY = '{x: '0, y: ONE, z: ONE, t: '0};

  // Where a bucket lies: bit 0 is its bank, the rest its address there. With two banks the bank is the parity of the key; at each
  // address the two keys 2 i and 2 i + 1 still lie in different banks.
  function automatic logic [KEY_BITS-1:0] placed_key(input logic [KEY_BITS-1:0] key, input int banks);
    return banks == 1 ? key : {key[KEY_BITS-1:1], ^key};
  endfunction

  // Number of digits of a window of w bits.
  function automatic int digits_of(input int w);
    return (SCALAR_BITS + w - 1) / w;
  endfunction

  // Number of buckets of a window of w bits. Where the digits are exactly 252 bits, the top one is not halved.
  function automatic int buckets_of(input int w);
    if (w * digits_of(w) == SCALAR_BITS) return int'(R_HALF >> (SCALAR_BITS - w)) + 1;
    return 1 << (w - 1);
  endfunction

  // Offset that makes the digits independent: half a digit at every place but the top one.
  function automatic logic [255:0] offset_of(input int w);
    logic [255:0] h;
    h = '0;
    for (int j = 0; j < digits_of(w) - 1; j++) h[w*j+w-1] = 1'b1;
    return h;
  endfunction

  typedef logic [31:0][5:0] digits_table_t;
  typedef logic [31:0][KEY_BITS-1:0] buckets_table_t;
  typedef logic [31:0][255:0] offset_table_t;
  function automatic digits_table_t digits_table();
    digits_table_t t;
    t = '0;
    for (int w = WINDOW_MIN; w <= WINDOW_MAX; w++) t[w] = 6'(digits_of(w));
    return t;
  endfunction
  function automatic buckets_table_t buckets_table();
    buckets_table_t t;
    t = '0;
    for (int w = WINDOW_MIN; w <= WINDOW_MAX; w++) t[w] = KEY_BITS'(buckets_of(w));
    return t;
  endfunction
  function automatic offset_table_t offset_table();
    offset_table_t t;
    t = '0;
    for (int w = WINDOW_MIN; w <= WINDOW_MAX; w++) t[w] = offset_of(w);
    return t;
  endfunction
  localparam digits_table_t DIGITS = digits_table();
  localparam buckets_table_t BUCKETS = buckets_table();
  localparam offset_table_t OFFSETS = offset_table();

  // Latencies in clocks. An accumulation reads its bucket (2), adds (36) and writes (1).
  localparam int READ = 2;
  localparam int CONVERT = 17;
  localparam int ADD = 36;
  // From launch to the clock in which the result is written.
  localparam int ACCUMULATE = READ + ADD;
  localparam int FULL = READ + CONVERT + ADD;

  // Addresses of the reduction's memory: running sums, weighted sums, the product of the passes so far.
  localparam int CHAINS = 64;
  localparam int TEMP_BITS = 8;
  localparam logic [TEMP_BITS-1:0] TEMP_WEIGHTED = 8'd64;
  localparam logic [TEMP_BITS-1:0] TEMP_RESULT = 8'd128;

  // An operation of the reduction, the same for every adder unless `only` excludes it.
  typedef struct packed {
    logic                 from_bucket;  // first operand: bucket `bucket`, which becomes empty, instead of `first`
    logic                 other;        // second operand comes from the other adder's memory
    logic                 doubling;     // the first operand doubled
    logic [KEY_BITS-1:0]  bucket;
    logic [TEMP_BITS-1:0] first;        // also where the result goes
    logic [TEMP_BITS-1:0] second;
  } reduce_op_t;
endpackage
