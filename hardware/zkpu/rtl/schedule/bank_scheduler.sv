// SPDX-License-Identifier: MIT OR Apache-2.0
// Hazard-aware scheduler of one adder (the paper's Algorithm 1, improved). It launches at most one operation a clock and never
// one whose cell is in flight. A cell is a bucket of this bank or a slot: a replica of any bucket, found by its tag.
//
// Candidates, first come first launched: the head of the waiting FIFO, then the heads of the two input lanes, the fuller first.
//  - A candidate goes to its bucket, if that is of this bank and not in flight, or to an idle slot with its tag, or to a slot
//    that is given to its bucket.
//  - An input head that has no cell moves to the waiting FIFO in the same clock in which the other lane's head launches, so a
//    conflict costs no bubble while there is other work. The head of the waiting FIFO turns to its tail while it has no cell.
//  - A slot is given to a candidate without a cell under pressure: when PRESSURE operations wait, or when more than one clock in
//    STALL_WEIGHT has lately launched nothing while both lanes had a head. (With equal scalars an operation often finds its cells busy
//    and launches a few clocks later, so that many clocks are lost though few operations wait.)
//  - A slot is given to an operation of another bank's bucket that has no slot here. The dispatcher sends those only while
//    `credit`, and marks them `reserved`: a free slot is kept for each until it launches. Where the bucket has a slot here
//    already, its operations need no reservation, since slots keep their tags.
//  - A waiting operation that turned 2^PATIENCE_BITS - 1 times is marked, one at a time: until it launches, nothing else goes to
//    a cell of its bucket. So a stream of younger operations of the same bucket cannot keep it waiting.
// Slots keep their tags until `clear`, before which they are merged into their buckets. `relief` asks for that in the middle of a
// pass: all slots are given, and still more than one clock in RELIEF_WEIGHT + 1 launches nothing, for long.
module bank_scheduler #(
    parameter int KEY_BITS  = 18,
    parameter int DATA_BITS = 1152,
    parameter int SLOTS     = 64,
    parameter int WAIT      = 32,  // a power of two
    parameter int PRESSURE  = 8,
    parameter int STALL_WEIGHT = 32,
    parameter int STRAIN    = 256,
    parameter int RELIEF_WEIGHT = 4,
    parameter int RELIEF    = 1024,
    parameter int PATIENCE_BITS = 6,
    parameter int LATENCY   = 38,  // clocks from launch to retirement
    parameter int BANKS     = 2,
    parameter int BANK      = 0
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic                       clear,
    // Input lanes: heads of FIFOs.
    input  logic [1:0]                 in_valid,
    input  logic [KEY_BITS-1:0]        in_key [2],
    input  logic [DATA_BITS-1:0]       in_data[2],
    input  logic [1:0]                 in_reserved, // a slot is kept for the head
    input  logic                       prefer,      // the fuller lane
    output logic [1:0]                 in_pop,
    // An operation for which a slot is kept enters a lane.
    input  logic [1:0]                 reserve_push,
    output logic                       credit,
    // Whether a bucket has a slot here.
    input  logic [KEY_BITS-1:0]        query_key[2],
    output logic [1:0]                 query_hit,
    // Launch to the adder.
    output logic                       launch,
    output logic                       launch_slot,
    output logic                       launch_fresh, // the slot is newly given: what it holds is of an earlier pass
    output logic [KEY_BITS-1:0]        launch_cell,  // a slot's number, or a bucket's address in this bank
    output logic [DATA_BITS-1:0]       launch_data,
    // The operation launched LATENCY clocks ago writes its cell in this clock.
    output logic                       retire,
    output logic                       retire_slot,
    output logic [KEY_BITS-1:0]        retire_cell,
    output logic                       idle,
    output logic                       relief,
    // Slots in use, for merging, and events for the counters.
    output logic [$clog2(SLOTS+1)-1:0] slots_used,
    output logic [KEY_BITS-1:0]        slot_tag[SLOTS],
    output logic                       event_conflict,
    output logic                       event_replica,
    output logic                       event_stall,
    output logic                       wait_full
);
  localparam int BANK_BITS = BANKS == 1 ? 0 : 1;
  localparam int SLOT_BITS = $clog2(SLOTS);
  localparam int COUNT_BITS = $clog2(SLOTS + 1);
  localparam int WAIT_BITS = $clog2(WAIT);

  typedef struct packed {
    logic                ok;
    logic                slot;
    logic                fresh;  // the slot is newly given
    logic [KEY_BITS-1:0] cell_at;
  } target_t;

  // In flight: cells by age.
  logic [LATENCY-1:0] flight_valid, flight_slot;
  logic [KEY_BITS-1:0] flight_cell[LATENCY];
  logic [SLOTS-1:0] slot_busy;

  // Waiting FIFO.
  localparam logic [PATIENCE_BITS-1:0] PATIENCE = '1;
  logic [PATIENCE_BITS+KEY_BITS+DATA_BITS+1:0] wait_words[WAIT];
  logic wait_marked, wait_reserved, mark, marked_held;
  logic [PATIENCE_BITS-1:0] wait_turns;
  logic [KEY_BITS-1:0] marked_key;
  logic [WAIT_BITS-1:0] wait_read, wait_write;
  logic [WAIT_BITS:0] wait_count;
  logic [KEY_BITS-1:0] wait_key;
  logic [DATA_BITS-1:0] wait_data;
  assign {wait_marked, wait_turns, wait_reserved, wait_key, wait_data} = wait_words[wait_read];
  assign wait_full = wait_count == (WAIT_BITS + 1)'(WAIT);

  logic [COUNT_BITS-1:0] reserved_left;  // operations in the lanes and in waiting for which a slot is kept
  localparam int STRAIN_BITS = $clog2(STRAIN + STALL_WEIGHT + 1);
  localparam int RELIEF_BITS = $clog2(RELIEF + RELIEF_WEIGHT + 1);
  logic [STRAIN_BITS-1:0] strain;       // clocks that launched nothing, weighed against those that launched
  logic [RELIEF_BITS-1:0] relief_count; // the same while all slots are given
  logic slot_free, slot_spare, pressed;
  assign slot_free  = slots_used != COUNT_BITS'(SLOTS);
  assign slot_spare = (COUNT_BITS + 1)'(slots_used) + (COUNT_BITS + 1)'(reserved_left) < (COUNT_BITS + 1)'(SLOTS);
  // Two may be sent in a clock.
  assign credit = (COUNT_BITS + 1)'(slots_used) + (COUNT_BITS + 1)'(reserved_left) + (COUNT_BITS + 1)'(3) < (COUNT_BITS + 1)'(SLOTS);
  assign pressed = wait_count >= (WAIT_BITS + 1)'(PRESSURE) || strain >= STRAIN_BITS'(STRAIN);
  assign relief  = relief_count >= RELIEF_BITS'(RELIEF);

  function automatic logic is_home(input logic low);
    return BANKS == 1 || low == 1'(BANK);
  endfunction

  function automatic logic bucket_busy(input logic [KEY_BITS-1:0] key);
    logic found;
    found = 1'b0;
    for (int i = 0; i < LATENCY; i++)
      found |= flight_valid[i] && !flight_slot[i] && flight_cell[i] == key >> BANK_BITS;
    return found;
  endfunction

  function automatic logic reserved(input logic [KEY_BITS-1:0] key);
    return marked_held && key == marked_key;
  endfunction

  function automatic target_t find(input logic [KEY_BITS-1:0] key);
    target_t t;
    logic home, has_slot;
    logic [SLOT_BITS-1:0] at;
    t    = '0;
    home = is_home(key[0]);
    if (home && !bucket_busy(key)) begin
      t.ok      = 1'b1;
      t.cell_at = key >> BANK_BITS;
    end else begin
      has_slot = 1'b0;
      at     = '0;
      for (int i = 0; i < SLOTS; i++) begin
        if (COUNT_BITS'(i) < slots_used && slot_tag[i] == key) begin
          has_slot = 1'b1;
          if (!slot_busy[i]) begin
            t.ok = 1'b1;
            at   = SLOT_BITS'(i);
          end
        end
      end
      if (t.ok) begin
        t.slot    = 1'b1;
        t.cell_at = KEY_BITS'(at);
      end else if ((!home && !has_slot && slot_free) || (pressed && slot_spare)) begin
        t.ok      = 1'b1;
        t.slot    = 1'b1;
        t.fresh   = 1'b1;
        t.cell_at = KEY_BITS'(slots_used);
      end
    end
    return t;
  endfunction

  target_t wait_target, first_target, second_target, target;
  logic first, second;  // lane numbers
  logic wait_go, first_go, second_go, turn, push_wait, push_lane;
  logic [KEY_BITS-1:0] go_key;
  logic go_reserved;
  assign first  = in_valid[prefer] ? prefer : !prefer;
  assign second = !first;

  always_comb begin
    wait_target   = wait_count != '0 && (wait_marked || !reserved(wait_key)) ? find(wait_key) : '0;
    first_target  = in_valid[first] && !reserved(in_key[first]) ? find(in_key[first]) : '0;
    second_target = in_valid[second] && in_key[first] != in_key[second] && !reserved(in_key[second])
        ? find(in_key[second]) : '0;
    wait_go   = wait_target.ok;
    first_go  = !wait_go && first_target.ok;
    second_go = !wait_go && !first_go && second_target.ok;
    launch    = wait_go || first_go || second_go;
    target    = wait_go ? wait_target : first_go ? first_target : second_target;
    go_key    = wait_go ? wait_key : first_go ? in_key[first] : in_key[second];
    go_reserved = wait_go ? wait_reserved : first_go ? in_reserved[first] : in_reserved[second];
    launch_data = wait_go ? wait_data : first_go ? in_data[first] : in_data[second];
    launch_slot = target.slot;
    launch_fresh = target.fresh;
    launch_cell = target.cell_at;
    // An input head that found no cell waits. A place freed in this clock is not used: the tail may be the head's place.
    push_wait = in_valid[first] && !first_target.ok && !wait_full;
    push_lane = first;
    // Otherwise the head of the waiting FIFO turns to the tail.
    turn      = wait_count != '0 && !wait_go && !push_wait;
    mark      = turn && wait_turns == PATIENCE && !marked_held;
    in_pop    = '0;
    if (first_go || push_wait) in_pop[first] = 1'b1;
    if (second_go) in_pop[second] = 1'b1;
    event_conflict = push_wait;
    event_replica  = launch && target.fresh;
    event_stall    = !launch && (in_valid != '0 || wait_count != '0);
    for (int l = 0; l < 2; l++) begin
      query_hit[l] = 1'b0;
      for (int i = 0; i < SLOTS; i++)
        query_hit[l] |= COUNT_BITS'(i) < slots_used && slot_tag[i] == query_key[l];
    end
  end

  logic unused;
  assign unused = target.ok;
  assign retire      = flight_valid[LATENCY-1];
  assign retire_slot = flight_slot[LATENCY-1];
  assign retire_cell = flight_cell[LATENCY-1];
  assign idle        = in_valid == '0 && wait_count == '0 && flight_valid == '0;

  always_ff @(posedge clk) begin
    // The cell is free in the clock in which its result is written: a read in the next clock finds it.
    flight_cell[0] <= launch_cell;
    for (int i = 1; i < LATENCY; i++) flight_cell[i] <= flight_cell[i-1];
    if (turn)
      wait_words[wait_write] <= {wait_marked || mark, wait_turns == PATIENCE ? PATIENCE : wait_turns + 1'b1, wait_reserved, wait_key, wait_data};
    else if (push_wait) wait_words[wait_write] <= {1'b0, PATIENCE_BITS'(0), in_reserved[push_lane], in_key[push_lane], in_data[push_lane]};
    if (launch && target.fresh) slot_tag[SLOT_BITS'(slots_used)] <= go_key;
    if (mark) marked_key <= wait_key;
    if (rst || clear) begin
      marked_held  <= 1'b0;
      flight_valid <= '0;
      flight_slot  <= '0;
      slot_busy    <= '0;
      slots_used   <= '0;
      reserved_left <= '0;
      strain       <= '0;
      relief_count <= '0;
      wait_read    <= '0;
      wait_write   <= '0;
      wait_count   <= '0;
    end else begin
      flight_valid <= {flight_valid[LATENCY-2:0], launch};
      flight_slot  <= {flight_slot[LATENCY-2:0], launch_slot};
      if (retire && retire_slot) slot_busy[SLOT_BITS'(retire_cell)] <= 1'b0;
      if (launch && launch_slot) slot_busy[SLOT_BITS'(launch_cell)] <= 1'b1;
      if (launch && target.fresh) slots_used <= slots_used + 1'b1;
      reserved_left <= reserved_left + COUNT_BITS'(reserve_push[0]) + COUNT_BITS'(reserve_push[1])
          - COUNT_BITS'(launch && go_reserved);
      if (event_stall && in_valid == '1) strain <= strain >= STRAIN_BITS'(STRAIN) ? strain : strain + STRAIN_BITS'(STALL_WEIGHT);
      else if (event_replica) strain <= strain >= STRAIN_BITS'(STALL_WEIGHT) ? strain - STRAIN_BITS'(STALL_WEIGHT) : '0;
      else if (launch && strain != '0) strain <= strain - 1'b1;
      if (!slot_free) begin
        if (event_stall) relief_count <= relief ? relief_count : relief_count + RELIEF_BITS'(RELIEF_WEIGHT);
        else if (launch && relief_count != '0) relief_count <= relief_count - 1'b1;
      end
      if (mark) marked_held <= 1'b1;
      else if (wait_go && wait_marked) marked_held <= 1'b0;
      if (turn || push_wait) wait_write <= wait_write + 1'b1;
      if (turn || wait_go) wait_read <= wait_read + 1'b1;
      wait_count <= wait_count + (WAIT_BITS + 1)'(push_wait) - (WAIT_BITS + 1)'(wait_go);
    end
  end
endmodule
