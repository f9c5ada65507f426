// SPDX-License-Identifier: MIT OR Apache-2.0
// Functional coverage of the unit that makes tables, bound to it in simulation; precompute_test.cpp reads and judges the bins.
module precompute_coverage #(
    parameter int BINS = 24
) (
    input logic clk,
    input logic [BINS-1:0] hit
);
  longint unsigned counts[BINS];
  export "DPI-C" function coverage_bin;
  function longint unsigned coverage_bin(input int n);
    return counts[n];
  endfunction
  always_ff @(posedge clk) for (int i = 0; i < BINS; i++) if (hit[i]) counts[i] <= counts[i] + 1;
endmodule
bind precompute precompute_coverage coverage (
    .clk,
    .hit({
      // Memory that makes the unit wait.
      points_req_valid && !points_req_ready,
      state == LOAD && !points_data_valid,
      wr_valid && !wr_ready,
      // Batches: whole, partial, not the first; an entry of a beat that is past the batch.
      state == ASK && 32'(batch) == BATCH,
      state == ASK && 32'(batch) < BATCH,
      state == ASK && left != count,
      points_data_ready && (ADDERS == 1 || !last_of_beat),
      // Shapes.
      state == STORE && levels == 5'd1,
      state == STORE && levels == 5'd31,
      state == DOUBLE && round[7],
      // Reduction below P: each of its three subtractions, none of them.
      state == REDUCE && reduce_step == 2'd1 && a >= P4,
      state == REDUCE && reduce_step == 2'd2 && wr_data >= P2,
      state == REDUCE && reduce_step == 2'd3 && wr_data >= P,
      state == REDUCE && reduce_step == 2'd1 && a < P,
      // The product of an identity's coordinates.
      state == STORE && part == 2'd2 && wr_data == '0,
      // An abort in each state.
      abort && state == ASK,
      abort && state == LOAD,
      abort && state == FIRST,
      abort && state == DOUBLE,
      abort && state == INVERT,
      abort && state == AFFINE,
      abort && state == DRAIN,
      abort && (state == FETCH || state == REDUCE),
      abort && state == STORE
    }));
