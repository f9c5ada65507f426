// SPDX-License-Identifier: MIT OR Apache-2.0
// Multi-scalar multiplication over BLS12-377 G1: the sum of s_i P_i, from tables of multiples of P_i in twisted Edwards form.
//
// A job: `count` scalars of 32 bytes, and for each of them `levels` table entries of 144 bytes (Y - X, Y + X, 2 d X Y in
// Montgomery form, R = 2^384), entry i the point 2^(window * V * i) P with V = ceil(digits / levels) passes and
// digits = ceil(252 / window). The result is X, Y, Z, T, 48 bytes each, Montgomery form, below P.
// `start` takes the job registers, which stay as they are while `busy`. `done` is high for one clock, with `error`. `abort` ends
// the job with ERROR_ABORTED when the memory has answered what was asked. Errors write no result.
// `abort` is also a word of C, which does not matter here.
// verilator lint_off SYMRSVDWORD
module msm_core
  import field_pkg::*;
  import msm_pkg::*;
#(
    parameter int ADDERS     = 2,
    parameter int MUL_KIND   = 0,   // field_mul's KIND
    parameter int WINDOW_TOP = 18,  // the widest window, which sets the bucket memory
    parameter int SLOTS      = 64,  // replicas for each adder
    parameter int FIFO       = 256
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        start,
    input  logic        abort,
    input  logic [39:0] scalars_addr,
    input  logic [39:0] points_addr,
    input  logic [39:0] result_addr,
    input  logic [31:0] count,
    input  logic [4:0]  window,
    input  logic [4:0]  levels,
    output logic        busy,
    output logic        done,
    output logic [3:0]  error,
    output logic [63:0] cycles,
    output logic [63:0] operations,
    output logic [63:0] conflicts,
    output logic [63:0] replicas,
    output logic [63:0] stalls,
    output logic         scalars_req_valid,
    input  logic         scalars_req_ready,
    output logic [39:0]  scalars_req_addr,
    output logic [31:0]  scalars_req_beats,
    input  logic         scalars_data_valid,
    output logic         scalars_data_ready,
    input  logic [255:0] scalars_data,
    output logic         points_req_valid,
    input  logic         points_req_ready,
    output logic [39:0]  points_req_addr,
    output logic [31:0]  points_req_beats,
    input  logic         points_data_valid,
    output logic         points_data_ready,
    input  logic [ADDERS*1152-1:0] points_data,
    output logic         wr_valid,
    input  logic         wr_ready,
    output logic [39:0]  wr_addr,
    output logic [383:0] wr_data
);
  localparam int FILL_BITS = $clog2(FIFO + 2) + 1;
  localparam int BUCKETS_BANK = (buckets_of(WINDOW_TOP) + ADDERS - 1) / ADDERS;
  localparam int USED_BITS = $clog2(SLOTS + 1);
  localparam logic [3:0] ERROR_NONE = 4'd0, ERROR_WINDOW = 4'd1, ERROR_LEVELS = 4'd2, ERROR_SCALAR = 4'd4,
      ERROR_ABORTED = 4'd5;

  typedef enum logic [3:0] {IDLE, CHECK, PASSES, WAIT, BEGIN, STREAM, MERGE, RELIEVED, REDUCE, READ_RESULT, CANONICAL, WRITE,
                            STOP, FINISH} state_t;
  state_t state;
  logic core_rst, begin_pass, merge_start, reduce_start, merge_done, reduce_done;
  logic [5:0] passes, pass, covered;
  logic [39:0] beats_left, point_beats;
  logic [3:0] waited;

  // Sources.
  logic stop, scalars_idle, points_idle, scalar_valid, scalar_ready, points_valid, points_ready;
  logic digits_valid, digits_ready, out_of_range;
  digit_t digits[ADDERS];
  assign point_beats = (40'(count) * 40'(levels) + 40'(ADDERS - 1)) >> (ADDERS - 1);
  stream_reader #(.BEAT_BYTES(32)) scalars_reader (
      .clk, .rst, .start(begin_pass), .stop, .addr(scalars_addr), .beats(40'(count)), .idle(scalars_idle),
      .req_valid(scalars_req_valid), .req_ready(scalars_req_ready), .req_addr(scalars_req_addr),
      .req_beats(scalars_req_beats), .data_valid(scalars_data_valid), .data_ready(scalars_data_ready),
      .out_valid(scalar_valid), .out_ready(scalar_ready));
  stream_reader #(.BEAT_BYTES(144 * ADDERS)) points_reader (
      .clk, .rst, .start(begin_pass), .stop, .addr(points_addr), .beats(point_beats), .idle(points_idle),
      .req_valid(points_req_valid), .req_ready(points_req_ready), .req_addr(points_req_addr),
      .req_beats(points_req_beats), .data_valid(points_data_valid), .data_ready(points_data_ready),
      .out_valid(points_valid), .out_ready(points_ready));
  recode #(.LANES(ADDERS)) recoder (
      .clk, .rst(core_rst), .start(begin_pass), .count, .window, .levels, .passes, .pass, .out_of_range,
      .scalar_valid, .scalar_ready, .scalar(scalars_data), .digits_valid, .digits_ready, .digits);

  // Lanes.
  logic [FILL_BITS-1:0] fill[ADDERS][2];
  logic [1:0] full[ADDERS], push[ADDERS], push_reserved[ADDERS], query_hit[ADDERS];
  logic credit[ADDERS];
  logic [KEY_BITS-1:0] push_key[2], query_key[2];
  logic [ENTRY_BITS-1:0] push_entry[2];
  logic dispatch_idle, event_spill, relieving;
  dispatch #(.BANKS(ADDERS), .FILL_BITS(FILL_BITS)) dispatcher (
      .clk, .rst(core_rst), .hold(relieving), .digits_valid, .digits_ready, .digits, .points_valid, .points_ready,
      .points(points_data), .fill, .full, .push, .push_reserved, .push_key, .push_entry, .query_key, .query_hit, .credit,
      .idle(dispatch_idle), .event_spill);

  logic [ADDERS-1:0] lane_ready, lane_idle, relief, launched, conflicted, replicated, stalled, wait_full;
  logic [USED_BITS-1:0] slots_used[ADDERS];
  logic [KEY_BITS-1:0] slot_tag[ADDERS][SLOTS];

  logic merge_slot, merge_slot_bank, merge_cell, merge_cell_bank, merge_cell_slot;
  logic merge_write, merge_write_bank, merge_write_slot;
  logic [$clog2(SLOTS)-1:0] merge_slot_at;
  logic [KEY_BITS-1:0] merge_cell_at, merge_write_at;
  merge_slots #(.BANKS(ADDERS), .SLOTS(SLOTS)) merger (
      .clk, .rst(core_rst), .start(merge_start), .done(merge_done), .slots_used, .slot_tag, .read_slot(merge_slot),
      .slot_bank(merge_slot_bank), .slot_at(merge_slot_at), .read_cell(merge_cell), .cell_bank(merge_cell_bank),
      .cell_slot(merge_cell_slot), .cell_at(merge_cell_at), .write(merge_write), .write_bank(merge_write_bank),
      .write_slot(merge_write_slot), .write_at(merge_write_at));

  logic reduce_issue, reduce_only, reduce_write, reduce_write_only, temp_clear_sums;
  reduce_op_t reduce_op;
  logic [TEMP_BITS-1:0] reduce_write_at, result_at;
  logic [KEY_BITS-1:0] addresses;
  assign addresses = (BUCKETS[window] + KEY_BITS'(ADDERS - 1)) >> (ADDERS - 1);
  reduce_sequencer #(.ADDERS(ADDERS)) sequencer (
      .clk, .rst(core_rst), .start(reduce_start), .done(reduce_done), .clear_sums(temp_clear_sums), .addresses,
      .window, .horner(passes != 6'd1), .horner_first(pass + 6'd1 == passes), .issue(reduce_issue),
      .only_first(reduce_only), .op(reduce_op), .write(reduce_write), .write_only_first(reduce_write_only),
      .write_at(reduce_write_at), .result_at);

  point_t bank_point[ADDERS], second_point[ADDERS], result_point[ADDERS];
  logic [1:0] merge_bank_wait;
  always_ff @(posedge clk) merge_bank_wait <= {merge_bank_wait[0], merge_slot_bank};
  point_t merge_point;
  assign merge_point = bank_point[ADDERS == 1 ? 0 : int'(merge_bank_wait[1])];

  for (genvar a = 0; a < ADDERS; a++) begin : gen_lane
    msm_lane #(
        .MUL_KIND(MUL_KIND), .BANKS(ADDERS), .BANK(a), .BANK_BUCKETS(BUCKETS_BANK), .SLOTS(SLOTS), .FIFO(FIFO),
        .FILL_BITS(FILL_BITS)
    ) lane (
        .clk, .rst(core_rst), .clear(begin_pass || state == RELIEVED), .ready(lane_ready[a]),
        .push(push[a]), .push_reserved(push_reserved[a]), .push_key, .push_entry, .fill(fill[a]), .full(full[a]),
        .query_key, .query_hit(query_hit[a]), .credit(credit[a]), .idle(lane_idle[a]), .relief(relief[a]),
        .slots_used(slots_used[a]), .slot_tag(slot_tag[a]),
        .merge_slot(merge_slot && merge_slot_bank == 1'(a)), .merge_slot_at,
        .merge_cell(merge_cell && merge_cell_bank == 1'(a)), .merge_cell_slot, .merge_cell_at, .merge_point,
        .bank_point(bank_point[a]), .merge_write(merge_write && merge_write_bank == 1'(a)), .merge_write_slot, .merge_write_at,
        .temp_clear_sums, .temp_clear_all(state == CHECK), .reduce_issue(reduce_issue && (a == 0 || !reduce_only)),
        .reduce_read(reduce_issue), .reduce_op, .other_bank_point(bank_point[ADDERS-1-a]), .cross_point(second_point[ADDERS-1-a]), .second_point(second_point[a]),
        .reduce_write(reduce_write && (a == 0 || !reduce_write_only)), .reduce_write_at,
        .result_read(state == READ_RESULT), .result_at, .result_point(result_point[a]),
        .event_launch(launched[a]), .event_conflict(conflicted[a]), .event_replica(replicated[a]),
        .event_stall(stalled[a]), .event_wait_full(wait_full[a]));
  end

  // Result: coordinates below 4 P become those below P, by two conditional subtractions; one coordinate at a time.
  point_t result;
  fe_t coordinate, halved;
  logic [1:0] beat;
  assign coordinate = result.x;
  assign halved     = coordinate >= (P << 1) ? coordinate - (P << 1) : coordinate;
  assign wr_valid   = state == WRITE;

  assign begin_pass   = state == BEGIN;
  assign stop         = state == STOP;
  assign busy         = state != IDLE;
  logic drained, streamed, any_slot;
  always_comb begin
    any_slot = 1'b0;
    for (int a = 0; a < ADDERS; a++) any_slot |= slots_used[a] != '0;
  end
  // The dispatcher's register and the FIFOs' fill follow each other without a gap.
  assign drained  = dispatch_idle && lane_idle == '1;
  assign streamed = beats_left == '0 && drained;

  always_ff @(posedge clk) begin
    done         <= 1'b0;
    merge_start  <= 1'b0;
    reduce_start <= 1'b0;
    core_rst     <= rst;
    if (state != IDLE) begin
      cycles     <= cycles + 64'd1;
      operations <= operations + 64'($countones(launched)) + 64'(merge_write)
          + (reduce_issue ? (reduce_only ? 64'd1 : 64'(ADDERS)) : 64'd0);
      conflicts  <= conflicts + 64'($countones(conflicted));
      replicas   <= replicas + 64'($countones(replicated));
      stalls     <= stalls + 64'($countones(stalled));
    end
    if (digits_valid && digits_ready) beats_left <= beats_left - 40'd1;
    case (state)
      IDLE: if (start) begin
        state      <= CHECK;
        cycles     <= '0;
        operations <= '0;
        conflicts  <= '0;
        replicas   <= '0;
        stalls     <= '0;
        error      <= ERROR_NONE;
      end
      CHECK: begin
        state   <= PASSES;
        passes  <= 6'd0;
        covered <= '0;
        if (window < 5'(WINDOW_MIN) || window > 5'(WINDOW_TOP)) begin
          error <= ERROR_WINDOW;
          state <= FINISH;
        end else if (levels == '0 || 6'(levels) > DIGITS[window]) begin
          error <= ERROR_LEVELS;
          state <= FINISH;
        end
      end
      PASSES: begin
        passes  <= passes + 6'd1;
        covered <= covered + 6'(levels);
        if (7'(covered) + 7'(levels) >= 7'(DIGITS[window])) begin
          state <= WAIT;
          pass  <= passes;
        end
      end
      WAIT: if (lane_ready == '1) state <= BEGIN;
      BEGIN: begin
        state      <= STREAM;
        relieving  <= 1'b0;
        beats_left <= point_beats;
      end
      // All slots given and too many clocks without a launch: the stream is held, what it brought is launched, the slots are
      // merged and free again. They stay with buckets that are hot no more otherwise, and later ones get none.
      STREAM: if (streamed || (relieving && drained)) begin
        state        <= any_slot ? MERGE : REDUCE;
        merge_start  <= any_slot;
        reduce_start <= !any_slot;
      end else if (relief != '0 && beats_left != '0) relieving <= 1'b1;
      MERGE: if (merge_done) begin
        state        <= relieving ? RELIEVED : REDUCE;
        reduce_start <= !relieving;
      end
      RELIEVED: begin
        state     <= STREAM;
        relieving <= 1'b0;
      end
      REDUCE: if (reduce_done) begin
        pass  <= pass - 6'd1;
        state <= pass == '0 ? READ_RESULT : BEGIN;
        waited <= '0;
      end
      READ_RESULT: begin
        waited <= waited + 4'd1;
        if (waited == 4'(READ)) begin
          result <= result_point[0];
          state  <= CANONICAL;
          beat   <= '0;
          wr_addr <= result_addr;
        end
      end
      CANONICAL: begin
        wr_data <= halved >= P ? halved - P : halved;
        result  <= {result.y, result.z, result.t, result.x};
        state   <= WRITE;
      end
      WRITE: if (wr_ready) begin
        wr_addr <= wr_addr + 40'd48;
        beat    <= beat + 2'd1;
        state   <= beat == 2'd3 ? FINISH : CANONICAL;
      end
      STOP: if (scalars_idle && points_idle && !wr_valid) begin
        // Empties every bucket, slot and FIFO.
        core_rst <= 1'b1;
        state    <= FINISH;
      end
      FINISH: begin
        state <= IDLE;
        done  <= 1'b1;
      end
      default: state <= IDLE;
    endcase
    if (abort && state != IDLE && state != STOP && state != FINISH && !(wr_valid && !wr_ready)) begin
      state <= STOP;
      error <= ERROR_ABORTED;
    end else if (out_of_range && (state == STREAM || state == MERGE || state == RELIEVED)) begin
      state <= STOP;
      error <= ERROR_SCALAR;
    end
    if (rst) begin
      state <= IDLE;
      error <= ERROR_NONE;
    end
  end

  logic unused;
  assign unused = event_spill ^ (^wait_full);
endmodule
