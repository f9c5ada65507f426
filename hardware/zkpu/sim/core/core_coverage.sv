// SPDX-License-Identifier: MIT OR Apache-2.0
// Functional coverage of the core, bound to it in simulation; sim/core/core_test.cpp reads and judges the bins.
module core_coverage #(
    parameter int BINS = 33
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
bind msm_core core_coverage coverage (
    .clk,
    .hit({
      // Lane 0's scheduler: where operations launch from and go to, and what fills.
      gen_lane[0].lane.scheduler.wait_go,
      gen_lane[0].lane.scheduler.first_go,
      gen_lane[0].lane.scheduler.second_go,
      gen_lane[0].lane.scheduler.turn,
      gen_lane[0].lane.scheduler.push_wait,
      gen_lane[0].lane.scheduler.push_wait && gen_lane[0].lane.scheduler.second_go,
      gen_lane[0].lane.scheduler.push_wait && gen_lane[0].lane.scheduler.wait_go,
      gen_lane[0].lane.scheduler.wait_full,
      gen_lane[0].lane.launch_slot && gen_lane[0].lane.launch && !gen_lane[0].lane.scheduler.target.fresh,
      gen_lane[0].lane.scheduler.event_replica,
      !gen_lane[0].lane.scheduler.slot_free,
      event_spill || ADDERS == 1,
      // A bucket that has a slot in the other bank needs no reservation there; one that has none does.
      (event_spill && push_reserved[0] == '0 && push_reserved[ADDERS-1] == '0) || ADDERS == 1,
      |push_reserved[0] || ADDERS == 1,
      gen_lane[0].lane.scheduler.second_go && gen_lane[0].lane.launch_slot,
      state == RELIEVED,
      // Input: FIFOs full, streams that pause, streams that are made to wait.
      |full[0],
      state == STREAM && !points_valid && digits_valid,
      state == STREAM && points_valid && !digits_valid,
      points_valid && !points_ready,
      scalar_valid && !scalar_ready,
      wr_valid && !wr_ready,
      // Digits.
      digits_valid && digits_ready && digits[0].zero,
      digits_valid && digits_ready && digits[0].negative && !digits[0].zero,
      digits_valid && digits_ready && 32'(digits[0].key) >= (32'd1 << (window - 1)),
      recoder.valid_1 && recoder.sign_1,
      // Points: the identity among the entries; reading an empty bucket.
      points_valid && points_ready && points_data[1151:768] == '0,
      gen_lane[0].lane.is_launch[0] && !gen_lane[0].lane.bank.word[POINT_BITS],
      // Reduction: merging waits for a bucket in flight, or adds to another slot; the scoreboard holds; Horner's doublings.
      merger.again,
      merger.read_cell && merger.cell_slot,
      sequencer.have && sequencer.blocked,
      sequencer.state == sequencer.HORNER_DOUBLE && reduce_issue,
      out_of_range || state == STOP
    }));
