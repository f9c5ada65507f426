// SPDX-License-Identifier: MIT OR Apache-2.0
// Adds every slot to its bucket before the reduction, one slot in two clocks: the slot is read first, its bucket in the
// next clock. Slots of the banks alternate, in the order in which they were given, so that those of one bucket lie apart;
// a slot waits while its bucket is in flight.
module merge_slots
  import msm_pkg::*;
#(
    parameter int BANKS = 2,
    parameter int SLOTS = 64
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
    output logic                       read_bucket, // of bank `home`, the clock after
    output logic                       home,
    output logic [KEY_BITS-1:0]        bucket_at,
    // The operation whose result adder `write_home` gives in this clock.
    output logic                       write,
    output logic                       write_home,
    output logic [KEY_BITS-1:0]        write_at
);
  localparam int SLOT_BITS = $clog2(SLOTS);
  localparam int BANK_BITS = BANKS == 1 ? 0 : 1;
  logic running, bank;
  logic [SLOT_BITS:0] at;
  logic [FULL-1:0] flight;
  logic [KEY_BITS-1:0] flight_key[FULL];
  logic [KEY_BITS-1:0] tag, tag_q;
  logic present, clash, last, finished;
  assign tag     = slot_tag[bank][at[SLOT_BITS-1:0]];
  assign present = (SLOT_BITS + 1)'(at) < (SLOT_BITS + 1)'(slots_used[bank]);
  always_comb begin
    clash = read_bucket && tag_q == tag;
    for (int i = 0; i < FULL; i++) clash |= flight[i] && flight_key[i] == tag;
    finished = 1'b1;
    for (int b = 0; b < BANKS; b++) finished &= (SLOT_BITS + 1)'(at) >= (SLOT_BITS + 1)'(slots_used[b]);
  end
  assign last      = BANKS == 1 || bank;
  assign read_slot = running && present && !clash && !read_bucket;
  assign slot_bank = bank;
  assign slot_at   = at[SLOT_BITS-1:0];
  assign home      = BANKS == 1 ? 1'b0 : tag_q[0];
  assign bucket_at = tag_q >> BANK_BITS;
  assign write      = flight[FULL-1];
  assign write_home = BANKS == 1 ? 1'b0 : flight_key[FULL-1][0];
  assign write_at   = flight_key[FULL-1] >> BANK_BITS;
  always_ff @(posedge clk) begin
    done <= 1'b0;
    tag_q <= tag;
    flight_key[0] <= tag_q;
    for (int i = 1; i < FULL; i++) flight_key[i] <= flight_key[i-1];
    if (rst) begin
      running     <= 1'b0;
      read_bucket <= 1'b0;
      flight      <= '0;
    end else begin
      flight      <= {flight[FULL-2:0], read_bucket};
      read_bucket <= read_slot;
      if (start) begin
        running <= 1'b1;
        bank    <= 1'b0;
        at      <= '0;
      end else if (running) begin
        if (finished && !read_bucket && flight == '0) begin
          running <= 1'b0;
          done    <= 1'b1;
        end else if (!finished && (read_slot || !present)) begin
          bank <= last ? 1'b0 : 1'b1;
          if (last) at <= at + 1'b1;
        end
      end
    end
  end
endmodule
