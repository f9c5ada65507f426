// SPDX-License-Identifier: MIT OR Apache-2.0
// One adder with its scheduler, its bank of buckets and slots, and its part of the reduction's memory.
module msm_lane
  import field_pkg::*;
  import msm_pkg::*;
#(
    parameter int MUL_KIND = 0,
    parameter int BANKS    = 2,
    parameter int BANK     = 0,
    parameter int BANK_BUCKETS  = 1024,  // buckets of this bank
    parameter int SLOTS    = 64,
    parameter int FIFO     = 256,
    parameter int FILL_BITS = 10
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic                       clear,  // before each pass, and after merging
    output logic                       ready,
    // Operations from the dispatcher.
    input  logic [1:0]                 push,
    input  logic [1:0]                 push_reserved,
    input  logic [KEY_BITS-1:0]        push_key[2],
    input  logic [ENTRY_BITS-1:0]      push_entry[2],
    output logic [FILL_BITS-1:0]       fill[2],
    output logic [1:0]                 full,
    input  logic [KEY_BITS-1:0]        query_key[2],
    output logic [1:0]                 query_hit,
    output logic                       credit,
    output logic                       idle,
    output logic                       relief,
    output logic [$clog2(SLOTS+1)-1:0] slots_used,
    output logic [KEY_BITS-1:0]        slot_tag[SLOTS],
    // Merging: a slot of this bank is read, then a cell of this bank, to which `merge_point` is added.
    input  logic                       merge_slot,
    input  logic [$clog2(SLOTS)-1:0]   merge_slot_at,
    input  logic                       merge_cell,
    input  logic                       merge_cell_slot,
    input  logic [KEY_BITS-1:0]        merge_cell_at,
    input  point_t                     merge_point,
    output point_t                     bank_point,
    input  logic                       merge_write,
    input  logic                       merge_write_slot,
    input  logic [KEY_BITS-1:0]        merge_write_at,
    // Reduction.
    input  logic                       temp_clear_sums,
    input  logic                       temp_clear_all,
    input  logic                       reduce_issue,   // for this adder
    input  logic                       reduce_read,    // for some adder
    input  reduce_op_t                 reduce_op,
    input  point_t                     other_bank_point,
    input  point_t                     cross_point,
    output point_t                     second_point,
    input  logic                       reduce_write,
    input  logic [TEMP_BITS-1:0]       reduce_write_at,
    input  logic                       result_read,
    input  logic [TEMP_BITS-1:0]       result_at,
    output point_t                     result_point,
    // Events.
    output logic                       event_launch,
    output logic                       event_conflict,
    output logic                       event_replica,
    output logic                       event_stall,
    output logic                       event_wait_full
);
  localparam int CELLS = BANK_BUCKETS + SLOTS;
  localparam int CELL_BITS = $clog2(CELLS);
  localparam int SLOT_BITS = $clog2(SLOTS);

  // Input lanes.
  logic [1:0] head_valid, head_pop, head_reserved;
  logic [KEY_BITS-1:0] head_key[2];
  logic [ENTRY_BITS-1:0] head_entry[2];
  for (genvar l = 0; l < 2; l++) begin : gen_fifo
    lane_fifo #(.WIDTH(1 + KEY_BITS + ENTRY_BITS), .DEPTH(FIFO)) fifo (
        .clk, .rst(rst || clear), .push(push[l]), .in({push_reserved[l], push_key[l], push_entry[l]}), .full(full[l]),
        .fill(fill[l]), .valid(head_valid[l]), .head({head_reserved[l], head_key[l], head_entry[l]}), .pop(head_pop[l]));
  end

  logic launch, launch_slot, launch_fresh, retire, retire_slot, scheduler_idle;
  logic [KEY_BITS-1:0] launch_cell, retire_cell;
  logic [ENTRY_BITS-1:0] launch_entry;
  bank_scheduler #(
      .KEY_BITS(KEY_BITS), .DATA_BITS(ENTRY_BITS), .SLOTS(SLOTS), .LATENCY(ACCUMULATE), .BANKS(BANKS), .BANK(BANK)
  ) scheduler (
      .clk, .rst, .clear, .in_valid(head_valid), .in_key(head_key), .in_data(head_entry), .in_reserved(head_reserved),
      .prefer(fill[1] > fill[0]), .in_pop(head_pop), .reserve_push(push_reserved), .credit, .query_key, .query_hit, .launch,
      .launch_slot, .launch_fresh, .relief,
      .launch_cell, .launch_data(launch_entry), .retire, .retire_slot, .retire_cell, .idle(scheduler_idle), .slots_used,
      .slot_tag, .event_conflict, .event_replica, .event_stall, .wait_full(event_wait_full));
  assign idle = scheduler_idle && fill[0] == '0 && fill[1] == '0;
  assign event_launch = launch;

  // Bank: the phases (accumulate, merge, reduce) never use it in the same clock.
  logic bank_read, bank_write, reduce_bucket;
  logic [CELL_BITS-1:0] bank_read_at, bank_write_at;
  point_t sum;
  assign reduce_bucket = reduce_issue && reduce_op.from_bucket;
  assign bank_read     = launch || merge_slot || merge_cell || reduce_bucket;
  function automatic logic [CELL_BITS-1:0] slot_cell(input logic [SLOT_BITS-1:0] n);
    return CELL_BITS'(BANK_BUCKETS) + CELL_BITS'(n);
  endfunction
  always_comb begin
    if (launch) bank_read_at = launch_slot ? slot_cell(SLOT_BITS'(launch_cell)) : CELL_BITS'(launch_cell);
    else if (merge_slot) bank_read_at = slot_cell(merge_slot_at);
    else if (merge_cell) bank_read_at = merge_cell_slot ? slot_cell(SLOT_BITS'(merge_cell_at)) : CELL_BITS'(merge_cell_at);
    else bank_read_at = CELL_BITS'(reduce_op.bucket);
    bank_write = retire || merge_write;
    if (retire) bank_write_at = retire_slot ? slot_cell(SLOT_BITS'(retire_cell)) : CELL_BITS'(retire_cell);
    else bank_write_at = merge_write_slot ? slot_cell(SLOT_BITS'(merge_write_at)) : CELL_BITS'(merge_write_at);
  end
  bucket_bank #(.CELLS(CELLS)) bank (
      .clk, .rst, .ready, .read(bank_read), .take(reduce_bucket), .empty(launch && launch_fresh), .read_at(bank_read_at),
      .read_point(bank_point), .write(bank_write), .write_at(bank_write_at), .write_point(sum));

  point_t temp_first;
  temp_memory temp (
      .clk, .clear_sums(temp_clear_sums), .clear_all(temp_clear_all),
      .read_first((reduce_issue && !reduce_op.from_bucket) || result_read), .read_second(reduce_read),
      .first_at(result_read ? result_at : reduce_op.first), .second_at(reduce_op.second),
      .first(temp_first), .second(second_point),
      .write(reduce_write), .write_at(reduce_write_at), .write_point(sum));
  assign result_point = temp_first;

  // What the reads of two clocks ago are for.
  // At half of the addresses the buckets 2 i and 2 i + 1 lie in the other order (placed_key), and the adders exchange them.
  logic [READ-1:0] is_launch, is_merge, is_reduce, is_bucket, is_exchanged, is_cross, is_double;
  logic [ENTRY_BITS-1:0] entry_1, entry_2;
  always_ff @(posedge clk) begin
    is_bucket <= {is_bucket[0], reduce_op.from_bucket || merge_cell};
    is_exchanged <= {is_exchanged[0], BANKS == 2 && !merge_cell && ^reduce_op.bucket};
    is_cross  <= {is_cross[0], reduce_op.other};
    is_double <= {is_double[0], reduce_op.doubling};
    if (launch) entry_1 <= launch_entry;
    if (is_launch[0]) entry_2 <= entry_1;
    if (rst) begin
      is_launch <= '0;
      is_merge  <= '0;
      is_reduce <= '0;
    end else begin
      is_launch <= {is_launch[0], launch};
      is_merge  <= {is_merge[0], merge_cell};
      is_reduce <= {is_reduce[0], reduce_issue};
    end
  end
  // The merged slot was read a clock before the cell to which it is added.
  point_t merge_held;
  always_ff @(posedge clk) merge_held <= merge_point;

  point_t first, second, convert_first;
  logic convert_valid, convert_in;
  fe_t convert_minus, convert_plus, convert_kt, convert_z;
  assign convert_in = is_merge[1] || (is_reduce[1] && !is_double[1]);
  assign first      = is_bucket[1] ? (is_exchanged[1] ? other_bank_point : bank_point) : temp_first;
  assign second     = is_merge[1] ? merge_held : is_cross[1] ? cross_point : second_point;
  point_convert #(.KIND(MUL_KIND)) convert (
      .clk, .rst, .valid(convert_in), .x1(first.x), .y1(first.y), .z1(first.z), .t1(first.t),
      .x2(second.x), .y2(second.y), .z2(second.z), .t2(second.t), .valid_out(convert_valid),
      .x1_out(convert_first.x), .y1_out(convert_first.y), .z1_out(convert_first.z), .t1_out(convert_first.t),
      .y2_minus_x2(convert_minus), .y2_plus_x2(convert_plus), .kt2(convert_kt), .z2_out(convert_z));

  point_t add_first;
  logic add_double;
  fe_t entry_kt, entry_plus, entry_minus;
  assign {entry_kt, entry_plus, entry_minus} = entry_2;
  assign add_double = is_reduce[1] && is_double[1];
  assign add_first  = is_launch[1] ? bank_point : add_double ? temp_first : convert_first;
  point_add #(.KIND(MUL_KIND)) adder (
      .clk, .valid(is_launch[1] || add_double || convert_valid), .doubling(add_double),
      .x1(add_first.x), .y1(add_first.y), .z1(add_first.z), .t1(add_first.t),
      .y2_minus_x2(is_launch[1] ? entry_minus : convert_minus), .y2_plus_x2(is_launch[1] ? entry_plus : convert_plus),
      .kt2(is_launch[1] ? entry_kt : convert_kt), .z2(is_launch[1] ? ONE : convert_z),
      .x3(sum.x), .y3(sum.y), .z3(sum.z), .t3(sum.t));
  // Keys have room for the widest window; this bank's addresses may be narrower.
  logic unused;
  assign unused = ^{merge_cell_at, merge_write_at, launch_cell, retire_cell};
endmodule
