// SPDX-License-Identifier: MIT OR Apache-2.0
// Properties of bank_scheduler. prove.py puts this text before the module's end, so that it can name the state.
//
// Assumptions are about the lanes' FIFOs and the dispatcher; assertions are the claims and the invariants that make them
// inductive. `watched` is any operation: its data are unlike any other's.
`ifdef FORMAL
  localparam int BOUND = `FORMAL_BOUND;

  // Reset in the first clock only.
  logic started;
  initial started = 1'b0;
  always_ff @(posedge clk) started <= 1'b1;
  always_comb begin
    assume (rst == !started);
    assume (!clear);
  end

  // Lanes: a head stays until it is taken.
  logic [1:0] last_valid, last_pop, last_reserved;
  logic [KEY_BITS-1:0] last_key[2];
  logic [DATA_BITS-1:0] last_data[2];
  initial last_valid = '0;
  always_ff @(posedge clk) begin
    last_valid <= rst ? 2'b00 : in_valid;
    last_pop   <= in_pop;
    last_key   <= in_key;
    last_data  <= in_data;
    last_reserved <= in_reserved;
  end
  for (genvar l = 0; l < 2; l++) begin : g_stable
    always_comb
      if (last_valid[l] && !last_pop[l])
        assume (in_valid[l] && in_key[l] == last_key[l] && in_data[l] == last_data[l] && in_reserved[l] == last_reserved[l]);
  end

  // The dispatcher: operations with a reservation are sent while there is credit, and come out of the lanes later. Others'
  // operations without one are sent where their bucket has a slot here, which stays.
  logic [COUNT_BITS+1:0] in_lanes;  // operations with a reservation in the lanes
  logic [1:0] reserved_head;
  assign reserved_head = in_valid & in_reserved;
  function automatic logic has_slot_here(input logic [KEY_BITS-1:0] key);
    logic found;
    found = 1'b0;
    for (int i = 0; i < SLOTS; i++) found |= COUNT_BITS'(i) < slots_used && slot_tag[i] == key;
    return found;
  endfunction
  always_ff @(posedge clk)
    in_lanes <= rst ? '0 : in_lanes + (COUNT_BITS + 2)'(reserve_push[0]) + (COUNT_BITS + 2)'(reserve_push[1])
        - (COUNT_BITS + 2)'(in_pop[0] && reserved_head[0]) - (COUNT_BITS + 2)'(in_pop[1] && reserved_head[1]);
  always_comb begin
    if (!credit) assume (reserve_push == 2'b00);
    assume ((COUNT_BITS + 2)'(reserved_head[0]) + (COUNT_BITS + 2)'(reserved_head[1]) <= in_lanes);
    for (int l = 0; l < 2; l++) if (in_valid[l] && !is_home(in_key[l]) && !in_reserved[l]) assume (has_slot_here(in_key[l]));
    if (rst) assume (reserve_push == 2'b00 && in_valid == 2'b00);
  end

`ifdef FORMAL_HINT
  // For mutants of the bound only: fewer inputs, so that a long trace is found sooner.
  always_comb begin
    assume (reserve_push == 2'b00);
    assume (rst || in_valid == 2'b11);
  end
`endif

  // The watched operation enters once.
  localparam logic [DATA_BITS-1:0] WATCHED = '1;
  // Any key: what the lane brings in the first clock, in which it is not valid. (The attribute `anyconst` does nothing in
  // yosys' slang: such a signal is 0.)
  logic [KEY_BITS-1:0] watched_key;
  always_ff @(posedge clk) if (!started) watched_key <= in_key[0];
`ifdef FORMAL_KEY_0
  // For the bound: with any key the solver takes too long.
  always_comb assume (watched_key == '0);
`endif
  logic entered;  // was taken out of a lane
  logic waits;    // ... and was not launched yet
  logic [7:0] age;
  logic [1:0] watched_head;
  assign watched_head = {in_valid[1] && in_data[1] == WATCHED, in_valid[0] && in_data[0] == WATCHED};
  wire watched_taken = (watched_head & in_pop) != 2'b00;
  wire watched_launched = launch && launch_data == WATCHED;
  always_comb begin
    assume (watched_head != 2'b11);
    if (entered) assume (watched_head == 2'b00);
    for (int l = 0; l < 2; l++) if (watched_head[l]) assume (in_key[l] == watched_key);
  end
  always_ff @(posedge clk) begin
    entered <= !rst && (entered || watched_taken);
    waits   <= !rst && (waits || watched_taken) && !watched_launched;
    age     <= rst || !waits ? '0 : age + 8'd1;
  end

  // Where the watched operation waits.
  logic [WAIT-1:0] live, watched_place, reserved_place, marked_place;
  logic [WAIT_BITS:0] watched_count;
  logic [WAIT_BITS:0] reserved_count;
  logic [WAIT_BITS:0] marked_count;
  always_comb begin
    watched_count = '0;
    reserved_count = '0;
    marked_count = '0;
    for (int i = 0; i < WAIT; i++) begin
      live[i] = (WAIT_BITS + 1)'(WAIT_BITS'(WAIT_BITS'(i) - wait_read)) < wait_count;
      watched_place[i] = live[i] && wait_words[i][DATA_BITS-1:0] == WATCHED;
      reserved_place[i] = live[i] && wait_words[i][KEY_BITS+DATA_BITS];
      marked_place[i] = live[i] && wait_words[i][PATIENCE_BITS+KEY_BITS+DATA_BITS+1];
      marked_count = marked_count + (WAIT_BITS + 1)'(marked_place[i]);
      watched_count = watched_count + (WAIT_BITS + 1)'(watched_place[i]);
      reserved_count = reserved_count + (WAIT_BITS + 1)'(reserved_place[i]);
    end
  end

  // Slots that have an operation in flight.
  logic [SLOTS-1:0] slot_flies;
  for (genvar s = 0; s < SLOTS; s++) begin : g_flies
    logic [LATENCY-1:0] here;
    for (genvar i = 0; i < LATENCY; i++) begin : g_age
      assign here[i] = flight_valid[i] && flight_slot[i] && flight_cell[i] == KEY_BITS'(s);
    end
    assign slot_flies[s] = |here;
  end

  always_comb if (started && !rst) begin
    // Claim: no two operations of one cell are in flight.
    for (int i = 0; i < LATENCY; i++) begin
      if (launch && flight_valid[i] && i < LATENCY - 1)
        assert (!(flight_slot[i] == launch_slot && flight_cell[i] == launch_cell));
      for (int j = 0; j < i; j++)
        if (flight_valid[i] && flight_valid[j])
          assert (!(flight_slot[i] == flight_slot[j] && flight_cell[i] == flight_cell[j]));
    end
    // Claim: a launch goes to the bucket of its key, or to a slot that has (or is now given) its key.
    if (launch && !launch_slot) assert (is_home(go_key) && launch_cell == go_key >> BANK_BITS);
    if (launch && launch_slot)
      assert (launch_cell < KEY_BITS'(SLOTS)
          && (target.fresh ? launch_cell == KEY_BITS'(slots_used) : slot_tag[SLOT_BITS'(launch_cell)] == go_key));
    if (watched_launched) assert (go_key == watched_key);
    // Claim: nothing is lost and nothing launched twice.
    assert (!watched_launched || waits || watched_taken);
    assert (watched_count == (WAIT_BITS + 1)'(waits));
    if (waits) assert (entered);
    for (int i = 0; i < WAIT; i++)
      if (watched_place[i]) assert (wait_words[i][DATA_BITS+:KEY_BITS] == watched_key);
    // Claim: the waiting FIFO does not overflow, and there is a slot for each operation that another bank sent: a free one
    // for each with a reservation, one of its bucket for each without.
    assert (wait_count <= (WAIT_BITS + 1)'(WAIT));
    assert (WAIT_BITS'(wait_read + WAIT_BITS'(wait_count)) == wait_write);
    assert (!(push_wait && wait_full) && !(push_wait && turn));
    assert ((COUNT_BITS + 2)'(slots_used) + (COUNT_BITS + 2)'(reserved_left) <= (COUNT_BITS + 2)'(SLOTS));
    for (int i = 0; i < WAIT; i++)
      if (live[i] && !reserved_place[i])
        assert (is_home(wait_words[i][DATA_BITS]) || has_slot_here(wait_words[i][DATA_BITS+:KEY_BITS]));
    if (launch && launch_fresh && !is_home(go_key[0])) assert (go_reserved || has_slot_here(go_key));
    assert (in_lanes <= (COUNT_BITS + 2)'(SLOTS));
    assert ((COUNT_BITS + 2)'(reserved_left) == in_lanes + (COUNT_BITS + 2)'(reserved_count));
    assert (strain < STRAIN_BITS'(STRAIN + STALL_WEIGHT));
    // The marked operation is one that waits.
    assert (marked_count == (WAIT_BITS + 1)'(marked_held));
    for (int i = 0; i < WAIT; i++) if (marked_place[i]) assert (wait_words[i][DATA_BITS+:KEY_BITS] == marked_key);
    // Invariants of the table of slots.
    assert (slot_busy == slot_flies);
    for (int i = 0; i < LATENCY; i++)
      if (flight_valid[i] && flight_slot[i]) assert (COUNT_BITS'(flight_cell[i]) < slots_used && flight_cell[i] < KEY_BITS'(SLOTS));
`ifdef FORMAL_LIVE
    // Claim: a waiting operation launches within BOUND clocks.
    assert (age <= 8'(BOUND));
`endif
  end
`endif
