// SPDX-License-Identifier: MIT OR Apache-2.0
// Joins digits with table entries and sends each operation to the bank of its bucket: lane l of a beat to FIFO l of the bank.
// Zero digits are dropped. A negative digit swaps Y - X and Y + X and negates 2 d X Y. The bank of a bucket is the parity of its
// key, not the key's lowest bit, so that scalars with even digits only still use both. An operation goes to the other bank when
// its own bank's FIFO is fuller by SPILL, the bucket is hot (it has a slot at home already), and a slot there can hold it: the
// bucket has one there, or one is reserved for the operation.
module dispatch
  import field_pkg::*;
  import msm_pkg::*;
#(
    parameter int BANKS     = 2,
    parameter int SPILL     = 16,
    parameter int FILL_BITS = 10
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic                  hold,  // take no more beats
    input  logic                  digits_valid,
    output logic                  digits_ready,
    input  digit_t                digits[BANKS],
    input  logic                  points_valid,
    output logic                  points_ready,
    input  logic [BANKS*ENTRY_BITS-1:0] points,
    // FIFOs of each bank, two lanes.
    input  logic [FILL_BITS-1:0]  fill[BANKS][2],
    input  logic [1:0]            full[BANKS],
    output logic [1:0]            push[BANKS],
    output logic [1:0]            push_reserved[BANKS],
    output logic [KEY_BITS-1:0]   push_key[2],
    output logic [ENTRY_BITS-1:0] push_entry[2],
    // Hot buckets.
    output logic [KEY_BITS-1:0]   query_key[2],
    input  logic [1:0]            query_hit[BANKS],
    input  logic                  credit[BANKS],
    output logic                  idle,
    output logic                  event_spill
);
  function automatic logic [ENTRY_BITS-1:0] signed_entry(input logic [ENTRY_BITS-1:0] entry, input logic negative);
    fe_t kt, plus, minus;
    {kt, plus, minus} = entry;
    return negative ? {P4 - kt, minus, plus} : entry;
  endfunction

  // One beat in registers.
  logic beat_valid, beat_taken, open;
  digit_t beat_digits[BANKS];
  logic [ENTRY_BITS-1:0] beat_entry[BANKS];
  assign open         = !hold && (!beat_valid || beat_taken);
  assign digits_ready = points_valid && open;
  assign points_ready = digits_valid && open;
  always_ff @(posedge clk) begin
    if (rst) beat_valid <= 1'b0;
    else if (digits_valid && points_valid && open) beat_valid <= 1'b1;
    else if (beat_taken) beat_valid <= 1'b0;
    if (digits_valid && points_valid && open) begin
      for (int l = 0; l < BANKS; l++) begin
        beat_digits[l]     <= digits[l];
        beat_digits[l].key <= placed_key(digits[l].key, BANKS);
        beat_entry[l]  <= signed_entry(points[ENTRY_BITS*l+:ENTRY_BITS], digits[l].negative);
      end
    end
  end
  assign idle = !beat_valid;

  if (BANKS == 1) begin : gen_one
    // The one lane alternates between the two FIFOs, which leaves the scheduler two heads to choose from.
    logic side;
    always_ff @(posedge clk)
      if (rst) side <= 1'b0;
      else if (push[0] != '0) side <= !side;
    always_comb begin
      beat_taken = beat_valid && (beat_digits[0].zero || !full[0][side]);
      push[0] = '0;
      push[0][side] = beat_taken && !beat_digits[0].zero;
      push_reserved[0] = '0;
      for (int l = 0; l < 2; l++) begin
        push_key[l]   = beat_digits[0].key;
        push_entry[l] = beat_entry[0];
        query_key[l]  = '0;
      end
    end
    assign event_spill = 1'b0;
    logic unused;
    assign unused = ^{fill[0][0], fill[0][1], query_hit[0], credit[0]};
  end else begin : gen_two
    logic [FILL_BITS:0] total[2];
    logic ahead[2];  // this bank is fuller than the other by SPILL
    always_ff @(posedge clk) begin
      for (int b = 0; b < 2; b++) begin
        total[b] <= (FILL_BITS + 1)'(fill[b][0]) + (FILL_BITS + 1)'(fill[b][1]);
        ahead[b] <= total[b] > total[1-b] + (FILL_BITS + 1)'(SPILL);
      end
    end
    logic [1:0] room, there, spill, bank;
    always_comb begin
      for (int l = 0; l < 2; l++) begin
        push_key[l]   = beat_digits[l].key;
        push_entry[l] = beat_entry[l];
        query_key[l]  = beat_digits[l].key;
        there[l] = query_hit[!beat_digits[l].key[0]][l];
        spill[l] = ahead[beat_digits[l].key[0]] && query_hit[beat_digits[l].key[0]][l]
            && (there[l] || credit[!beat_digits[l].key[0]]);
        bank[l]  = beat_digits[l].key[0] ^ spill[l];
        room[l]  = beat_digits[l].zero || !full[bank[l]][l];
      end
      beat_taken = beat_valid && room == '1;
      event_spill = 1'b0;
      for (int b = 0; b < 2; b++) begin
        for (int l = 0; l < 2; l++) begin
          push[b][l] = beat_taken && !beat_digits[l].zero && bank[l] == 1'(b);
          push_reserved[b][l] = push[b][l] && spill[l] && !there[l];
          event_spill |= push[b][l] && spill[l];
        end
      end
    end
  end
endmodule
