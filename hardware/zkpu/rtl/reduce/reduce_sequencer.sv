// SPDX-License-Identifier: MIT OR Apache-2.0
// Order of the reduction's operations: the sum of k B_k over buckets k = 1, 2, ..., on the accumulating adders.
// Adder a of ADDERS holds the buckets k = ADDERS * i + a + 1. Their addresses i are cut into at most 64 chains of 2^e; chain c keeps
// a running sum S_c (memory word c) and a weighted sum W_c (word 64 + c).
//  RUN    from the top address of each chain down: W_c += S_c, then S_c += B. All chains turn by turn, so that the adder is full.
//  TREE   neighbours at distance h = 2^l join: W_b += W_(b+h), S_b += S_(b+h). What stood at b + h stays and is Q_l, the sum of those S_c
//         whose bit l is set; Q_j of earlier levels join too. At the end word 2^l is Q_l, word 0 is the sum of all.
//  CROSS  two adders: adder 0 adds what adder 1 has; S twice, as its k are one higher.
//  DOUBLE Q_l by 2^(e + l), W by 1, all by ADDERS; S is left. One bit a round, all in parallel.
//  SUM    a tree over them, into word 0.
//  HORNER with more than one pass: result = 2^window result + sum, in word 128.
// Operations are issued in order, each when the words it needs are not in flight; every adder does the same at the same time.
module reduce_sequencer
  import msm_pkg::*;
#(
    parameter int ADDERS = 2
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                start,
    output logic                done,       // one clock
    output logic                clear_sums, // one clock: words 0 .. 127 are empty
    input  logic [KEY_BITS-1:0] addresses,  // buckets of adder 0
    input  logic [4:0]          window,
    input  logic                horner,     // more than one pass
    input  logic                horner_first,
    output logic                issue,
    output logic                only_first, // adder 0 alone
    output reduce_op_t          op,
    // The operation whose result the adders give in this clock.
    output logic                write,
    output logic                write_only_first,
    output logic [TEMP_BITS-1:0] write_at,
    output logic [TEMP_BITS-1:0] result_at
);
  localparam int ADDER_SHIFT = ADDERS == 1 ? 0 : 1;
  typedef enum logic [3:0] {IDLE, SIZE, RUN, TREE, CROSS, DOUBLE, SUM, HORNER_DOUBLE, HORNER_ADD, DRAIN} state_t;
  state_t state;

  logic [4:0] log_length;         // e
  logic [2:0] log_chains;         // chains <= 2^log_chains
  logic [6:0] chains;
  logic [KEY_BITS-1:0] step;      // RUN: addresses left in each chain
  logic [6:0] chain;              // RUN: the chain; TREE: the group's base b
  logic half;                     // RUN: 0 weighted, 1 running
  logic first_round;
  logic [2:0] level;              // TREE, CROSS, SUM
  logic [3:0] part;               // TREE, CROSS, DOUBLE, SUM: which word
  logic [4:0] round;              // DOUBLE, HORNER_DOUBLE

  // Words in flight, by a shift register of destinations.
  logic [FULL-1:0] flight, flight_only;
  logic [TEMP_BITS-1:0] flight_at[FULL];
  logic [255:0] busy;

  // Next operation of the state; `have` is low on steps that have none.
  reduce_op_t next;
  logic have, needs_second, blocked;
  logic [6:0] h, q;
  assign h = 7'd1 << level;
  assign q = 7'd1 << part[2:0];
  // DOUBLE and SUM number the words 0: S, 1: W, 2 + l: Q_l.
  function automatic logic [TEMP_BITS-1:0] word_of(input logic [3:0] n);
    if (n == 4'd0) return '0;
    if (n == 4'd1) return TEMP_WEIGHTED;
    return 8'd1 << (n - 4'd2);
  endfunction
  logic [3:0] words, partner;
  logic [4:0] doublings;
  assign words     = 4'(log_chains) + 4'd2;
  assign partner   = part + (4'd1 << level[1:0]);
  assign doublings = part == 4'd0 ? 5'd0 : part == 4'd1 ? 5'(ADDER_SHIFT) : log_length + 5'(part) - 5'd2 + 5'(ADDER_SHIFT);

  always_comb begin
    next = '0;
    have = 1'b0;
    only_first = 1'b0;
    needs_second = 1'b1;
    case (state)
      RUN: begin
        have = half || !first_round;
        next.second = TEMP_BITS'(chain);
        if (half) begin
          next.first = TEMP_BITS'(chain);
          next.from_bucket = 1'b1;
          next.bucket = (KEY_BITS'(chain) << log_length) + step;
          have = next.bucket < addresses;
        end else next.first = TEMP_WEIGHTED + TEMP_BITS'(chain);
      end
      TREE: begin
        have = chain + h < chains;
        // part 0 .. level - 1: Q; level: S; level + 1: W.
        if (part < 4'(level)) begin
          next.first  = TEMP_BITS'(chain + q);
          next.second = TEMP_BITS'(chain + q + h);
        end else begin
          next.first  = TEMP_BITS'(chain) + (part == 4'(level) ? '0 : TEMP_WEIGHTED);
          next.second = TEMP_BITS'(chain) + TEMP_BITS'(h) + (part == 4'(level) ? '0 : TEMP_WEIGHTED);
        end
      end
      CROSS: begin
        // The last part repeats word 0.
        have = 1'b1;
        only_first = 1'b1;
        next.other = 1'b1;
        next.first = part == words ? '0 : word_of(part);
        next.second = next.first;
      end
      DOUBLE: begin
        have = round < doublings;
        only_first = 1'b1;
        needs_second = 1'b0;
        next.doubling = 1'b1;
        next.first = word_of(part);
      end
      SUM: begin
        have = partner < words;
        only_first = 1'b1;
        next.first = word_of(part);
        next.second = word_of(partner);
      end
      HORNER_DOUBLE: begin
        have = 1'b1;
        only_first = 1'b1;
        needs_second = 1'b0;
        next.doubling = 1'b1;
        next.first = TEMP_RESULT;
      end
      HORNER_ADD: begin
        have = 1'b1;
        only_first = 1'b1;
        next.first = TEMP_RESULT;
        next.second = '0;
      end
      default: ;
    endcase
    // A doubling enters the adder CONVERT clocks earlier than an addition: none may be on its way.
    blocked = busy[next.first] || (needs_second && busy[next.second]) || (next.doubling && flight[CONVERT-1:0] != '0);
    issue = have && !blocked;
    op = next;
  end

  logic advance;
  assign advance = !have || issue;
  assign result_at = horner ? TEMP_RESULT : '0;
  assign write = flight[FULL-1];
  assign write_only_first = flight_only[FULL-1];
  assign write_at = flight_at[FULL-1];
  assign clear_sums = state == SIZE;

  always_ff @(posedge clk) begin
    done <= 1'b0;
    flight_at[0] <= next.first;
    for (int i = 1; i < FULL; i++) flight_at[i] <= i == CONVERT && issue && next.doubling ? next.first : flight_at[i-1];
    if (rst) begin
      state  <= IDLE;
      flight <= '0;
      busy   <= '0;
    end else begin
      flight      <= {flight[FULL-2:0], issue && !next.doubling};
      flight_only <= {flight_only[FULL-2:0], only_first};
      if (issue && next.doubling) begin
        flight[CONVERT]      <= 1'b1;
        flight_only[CONVERT] <= 1'b1;
      end
      if (write) busy[write_at] <= 1'b0;
      if (issue) busy[next.first] <= 1'b1;
      case (state)
        IDLE: if (start) begin
          state      <= SIZE;
          log_length <= '0;
        end
        SIZE: begin
          // The shortest chains of which there are at most 64.
          if (((addresses - 1'b1) >> log_length) >= KEY_BITS'(CHAINS)) log_length <= log_length + 5'd1;
          else begin
            state  <= RUN;
            chains <= 7'((addresses - 1'b1) >> log_length) + 7'd1;
            step   <= (KEY_BITS'(1) << log_length) - 1'b1;
            chain  <= '0;
            half   <= 1'b1;
            first_round <= 1'b1;
          end
          log_chains <= '0;
        end
        RUN: begin
          if (7'd1 << log_chains < chains) log_chains <= log_chains + 3'd1;
          if (advance) begin
            half <= !half || first_round;
            if (half) begin
              if (chain + 7'd1 != chains) chain <= chain + 7'd1;
              else begin
                chain <= '0;
                first_round <= 1'b0;
                half <= 1'b0;
                step <= step - 1'b1;
                // At least 8 clocks have passed where there is more than one chain, so log_chains is right.
                if (step == '0) begin
                  state <= chains == 7'd1 ? (ADDERS == 1 ? DOUBLE : CROSS) : TREE;
                  level <= '0;
                  // DOUBLE begins at the last word; with one chain there are two words.
                  part  <= chains == 7'd1 && ADDERS == 1 ? 4'd1 : 4'd0;
                  round <= '0;
                end
              end
            end
          end
        end
        TREE: if (advance) begin
          if (part != 4'(level) + 4'd1) part <= part + 4'd1;
          else begin
            part <= '0;
            if (8'(chain) + (8'(h) << 1) < 8'(chains)) chain <= chain + (h << 1);
            else begin
              chain <= '0;
              level <= level + 3'd1;
              if (level + 3'd1 == log_chains) begin
                state <= ADDERS == 1 ? DOUBLE : CROSS;
                level <= '0;
                if (ADDERS == 1) part <= words - 4'd1;
              end
            end
          end
        end
        CROSS: if (advance) begin
          part <= part + 4'd1;
          if (part == words) begin
            state <= DOUBLE;
            part  <= words - 4'd1;
            round <= '0;
          end
        end
        DOUBLE: if (advance) begin
          // From the word with most doublings down; a round ends at the first that needs no more.
          if (part != 4'd0 && have) part <= part - 4'd1;
          else begin
            part  <= words - 4'd1;
            round <= round + 5'd1;
            if (part == words - 4'd1) begin
              state <= SUM;
              part  <= '0;
              level <= '0;
            end
          end
        end
        SUM: if (advance) begin
          if (5'(part) + (5'd2 << level[1:0]) < 5'(words)) part <= part + (4'd2 << level[1:0]);
          else begin
            part  <= '0;
            level <= level + 3'd1;
            if ((5'd2 << level[1:0]) >= 5'(words)) begin
              state <= !horner ? DRAIN : horner_first ? HORNER_ADD : HORNER_DOUBLE;
              round <= '0;
            end
          end
        end
        HORNER_DOUBLE: if (advance) begin
          round <= round + 5'd1;
          if (round + 5'd1 == window) state <= HORNER_ADD;
        end
        HORNER_ADD: if (advance) state <= DRAIN;
        DRAIN: if (flight == '0) begin
          state <= IDLE;
          done  <= 1'b1;
        end
        default: state <= IDLE;
      endcase
    end
  end
endmodule
