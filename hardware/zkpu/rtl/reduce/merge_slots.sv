// SPDX-License-Identifier: MIT OR Apache-2.0
// Adds every slot to its bucket, one operation in two clocks: a slot is read first, the cell to which it is added in the next
// clock. That cell is the slot's bucket or, while the bucket is in flight, another slot of it, whose own turn comes later. So the
// slots of a hot bucket join as a tree does, and not one after the other.
//
// Slots are tried in turn, the banks alternating; one that is in flight itself or has no idle partner goes to a queue and is
// tried again after the others. A slot is tried until it was read, which happens once.
module merge_slots
  import msm_pkg::*;
#(
    parameter int BANKS = 2,
    parameter int SLOTS = 64  // a power of two
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic                       start,
    output logic                       done,        // one clock
    input  logic [$clog2(SLOTS+1)-1:0] slots_used[BANKS],
    input  logic [KEY_BITS-1:0]        slot_tag[BANKS][SLOTS],
    output logic                       read_slot,   // of bank `slot_bank`
    output logic                       slot_bank,
    output logic [$clog2(SLOTS)-1:0]   slot_at,
    output logic                       read_cell,   // of bank `cell_bank`, the clock after
    output logic                       cell_bank,
    output logic                       cell_slot,   // a slot, not a bucket
    output logic [KEY_BITS-1:0]        cell_at,
    // The operation whose result adder `write_bank` gives in this clock.
    output logic                       write,
    output logic                       write_bank,
    output logic                       write_slot,
    output logic [KEY_BITS-1:0]        write_at
);
  localparam int SLOT_BITS = $clog2(SLOTS);
  localparam int BANK_BITS = BANKS == 1 ? 0 : 1;
  localparam int QUEUE_BITS = SLOT_BITS + BANK_BITS;
  typedef struct packed {
    logic                bank;
    logic                slot;
    logic [KEY_BITS-1:0] cell_at;
  } place_t;
  typedef struct packed {
    logic                 bank;
    logic [SLOT_BITS-1:0] at;
  } slot_t;

  // Slots not yet read, and those among them that are in flight as a partner.
  logic [SLOTS-1:0] live[BANKS], busy[BANKS];
  place_t partner, flight_place[FULL];
  logic [FULL-1:0] flight;

  // Slots to be tried: first all of them by counting, then those of the queue.
  logic scanning, scan_bank, scan_there, scan_more;
  logic [SLOT_BITS:0] scan_at;
  slot_t queue[1<<QUEUE_BITS];
  logic [QUEUE_BITS-1:0] queue_read, queue_write;
  logic [QUEUE_BITS:0] queue_count;
  slot_t next, tried;
  logic [KEY_BITS-1:0] tried_tag;
  logic next_there, tried_there, fetch, again;
  assign scan_there = scan_at < (SLOT_BITS + 1)'(slots_used[scan_bank]);
  always_comb begin
    scan_more = 1'b0;
    for (int b = 0; b < BANKS; b++) scan_more |= scan_at + 1'b1 < (SLOT_BITS + 1)'(slots_used[b]);
  end
  assign next       = scanning ? '{scan_bank, scan_at[SLOT_BITS-1:0]} : queue[queue_read];
  assign next_there = scanning ? scan_there : queue_count != '0;

  // The slot that is tried, and its partner.
  logic bucket_busy, found, joins;
  slot_t other;
  always_comb begin
    bucket_busy = read_cell && !partner.slot && partner.bank == home_of(tried_tag[0]) && partner.cell_at == tried_tag >> BANK_BITS;
    for (int i = 0; i < FULL; i++)
      bucket_busy |= flight[i] && !flight_place[i].slot && flight_place[i].bank == home_of(tried_tag[0])
          && flight_place[i].cell_at == tried_tag >> BANK_BITS;
    found = 1'b0;
    other = '0;
    for (int b = 0; b < BANKS; b++) begin
      for (int i = 0; i < SLOTS; i++) begin
        if (live[b][i] && !busy[b][i] && slot_tag[b][i] == tried_tag && !(tried.bank == 1'(b) && tried.at == SLOT_BITS'(i))) begin
          found = 1'b1;
          other = '{1'(b), SLOT_BITS'(i)};
        end
      end
    end
  end
  function automatic logic home_of(input logic low);
    return BANKS == 2 && low;
  endfunction
  assign joins     = tried_there && !busy[tried.bank][tried.at] && (!bucket_busy || found);
  assign read_slot = joins && !read_cell;
  assign again     = tried_there && !joins;
  assign fetch     = !tried_there || read_slot || again;
  assign slot_bank = tried.bank;
  assign slot_at   = tried.at;
  assign {cell_bank, cell_slot, cell_at} = partner;
  assign write = flight[FULL-1];
  assign {write_bank, write_slot, write_at} = flight_place[FULL-1];

  logic running, finished;
  assign finished = !scanning && queue_count == '0 && !tried_there && !read_cell && flight == '0;
  always_ff @(posedge clk) begin
    done <= 1'b0;
    if (read_slot) begin
      partner <= bucket_busy ? '{other.bank, 1'b1, KEY_BITS'(other.at)}
          : '{home_of(tried_tag[0]), 1'b0, tried_tag >> BANK_BITS};
    end
    flight_place[0] <= partner;
    for (int i = 1; i < FULL; i++) flight_place[i] <= flight_place[i-1];
    if (fetch) begin
      tried     <= next;
      tried_tag <= slot_tag[next.bank][next.at];
    end
    if (again) queue[queue_write] <= tried;
    if (rst) begin
      running     <= 1'b0;
      scanning    <= 1'b0;
      tried_there <= 1'b0;
      read_cell   <= 1'b0;
      flight      <= '0;
      queue_read  <= '0;
      queue_write <= '0;
      queue_count <= '0;
    end else begin
      flight    <= {flight[FULL-2:0], read_cell};
      read_cell <= read_slot;
      if (start) begin
        running   <= 1'b1;
        scanning  <= 1'b1;
        scan_bank <= 1'b0;
        scan_at   <= '0;
        for (int b = 0; b < BANKS; b++) begin
          busy[b] <= '0;
          for (int i = 0; i < SLOTS; i++) live[b][i] <= (SLOT_BITS + 1)'(i) < (SLOT_BITS + 1)'(slots_used[b]);
        end
      end else if (running) begin
        if (write && write_slot) busy[write_bank][SLOT_BITS'(write_at)] <= 1'b0;
        if (read_slot) begin
          live[tried.bank][tried.at] <= 1'b0;
          if (bucket_busy) busy[other.bank][other.at] <= 1'b1;
        end
        if (fetch) begin
          tried_there <= next_there;
          if (scanning) begin
            if (BANKS == 1 || scan_bank) scan_at <= scan_at + 1'b1;
            if (BANKS == 2) scan_bank <= !scan_bank;
            if ((BANKS == 1 || scan_bank) && !scan_more) scanning <= 1'b0;
          end
        end
        if (fetch && !scanning && next_there) queue_read <= queue_read + 1'b1;
        if (again) queue_write <= queue_write + 1'b1;
        queue_count <= queue_count + (QUEUE_BITS + 1)'(again) - (QUEUE_BITS + 1)'(fetch && !scanning && next_there);
        if (finished) begin
          running <= 1'b0;
          done    <= 1'b1;
        end
      end
    end
  end
endmodule
