// SPDX-License-Identifier: MIT OR Apache-2.0
// Properties of merge_slots, put before its end by prove.py, with a small msm_pkg before it. The numbers and tags of slots are any,
// and stay; there is one start, after which nothing comes from outside. So a run of MERGE_CLOCKS clocks is all there is.
`ifdef FORMAL
  logic started;
  logic [7:0] age;
  initial started = 1'b0;
  always_ff @(posedge clk) begin
    started <= 1'b1;
    age     <= !started ? 8'd0 : age + 8'd1;
  end
  localparam int USED_BITS = $clog2(SLOTS + 1);
  logic [USED_BITS-1:0] last_used[BANKS];
  logic [KEY_BITS-1:0] last_tag[BANKS][SLOTS];
  always_ff @(posedge clk) begin
    last_used <= slots_used;
    last_tag  <= slot_tag;
  end
  always_comb begin
    assume (rst == !started);
    assume (start == (started && age == 8'd0));
    for (int b = 0; b < BANKS; b++) begin
      assume (slots_used[b] <= USED_BITS'(SLOTS) && (!started || slots_used[b] == last_used[b]));
      for (int i = 0; i < SLOTS; i++) assume (!started || slot_tag[b][i] == last_tag[b][i]);
    end
  end

  // What was read, and the tag of the slot whose partner is read in this clock.
  logic [SLOTS-1:0] was_read[BANKS];
  logic [KEY_BITS-1:0] source_tag;
  logic ended;
  always_ff @(posedge clk) begin
    if (read_slot) source_tag <= slot_tag[slot_bank][slot_at];
    ended <= started && (ended || done);
    for (int b = 0; b < BANKS; b++)
      for (int i = 0; i < SLOTS; i++)
        was_read[b][i] <= started && (was_read[b][i] || (read_slot && slot_bank == 1'(b) && slot_at == SLOT_BITS'(i)));
  end

  function automatic logic flies(input logic bank, input logic slot, input logic [KEY_BITS-1:0] at);
    logic found;
    found = 1'b0;
    for (int i = 0; i < FULL; i++) found |= flight[i] && flight_place[i] == {bank, slot, at};
    return found;
  endfunction

  always_comb if (started) begin
    // Claim: a slot is read once, while nothing is on its way to it.
    if (read_slot) begin
      assert (USED_BITS'(slot_at) < slots_used[slot_bank] && !was_read[slot_bank][slot_at]);
      assert (!read_cell && !flies(slot_bank, 1'b1, KEY_BITS'(slot_at)));
    end
    // Claim: it is added to the bucket of its tag, or to a slot with its tag that will be read later; nothing else is on its way there.
    if (read_cell) begin
      assert (!flies(cell_bank, cell_slot, cell_at));
      if (cell_slot)
        assert (cell_at < SLOTS && cell_at < slots_used[cell_bank] && !was_read[cell_bank][SLOT_BITS'(cell_at)]
            && slot_tag[cell_bank][SLOT_BITS'(cell_at)] == source_tag);
      else assert (cell_bank == (BANKS == 2 && source_tag[0]) && cell_at == source_tag >> BANK_BITS);
    end
    // Claim: it ends, after every slot was read and every result written.
    if (done || ended) begin
      assert (!read_slot && !read_cell && flight == '0);
      for (int b = 0; b < BANKS; b++)
        for (int i = 0; i < SLOTS; i++) if (i < slots_used[b]) assert (was_read[b][i]);
    end
    assert (age < 8'(`MERGE_CLOCKS) || ended);
  end
`endif
