// SPDX-License-Identifier: MIT OR Apache-2.0
// Makes a table of multiples from plain entries: for each point P_j and level l < `levels` the entry of 2^(doublings * l) P_j,
// in the order of msm_core's tables. `doublings` is window * passes. Entries that are read are those of a table of one level.
//
// A vector unit with one field multiplier: registers of BATCH field elements, one for each point of a batch. An instruction
// takes BATCH clocks, one element a clock, and its results are written LATENCY clocks later, which is less than BATCH: so an
// instruction may use the one before it, element by element, and there is no hazard to look for.
//
//  LOAD    reads Y - X and Y + X of the batch's points.
//  FIRST   X = (Y + X) - (Y - X), Y = (Y + X) + (Y - X), Z = 2, and 1 as the empty product of Z.
//  DOUBLE  `doublings` doublings for each further level, without T (dbl-2008-hwcd, all signs turned), then the product of Z.
//  INVERT  the inverse of the product of all Z of a point, by P - 2 as exponent: one inversion for all its levels.
//  AFFINE  from the last level down: 1 / Z, then x, y, y - x, y + x, 2 d x y.
//  STORE   reduces below P and writes, three words of 48 bytes an entry, in the order of addresses.
//
// Registers: 4 l + 0, 1, 2 are X, Y, Z of level l, 4 l + 3 the product of Z below level l; from 128 on temporaries.
// Bounds: products are below 4 P; E, G, H, C below 8 P, F below 16 P, so that every product is of less than 152 P^2.
// verilator lint_off SYMRSVDWORD
module precompute
  import field_pkg::*;
#(
    parameter int ADDERS   = 2,  // entries in a beat of the points' stream
    parameter int MUL_KIND = 0,
    parameter int BATCH    = 32
) (
    input  logic         clk,
    input  logic         rst,
    input  logic         start,
    input  logic         abort,      // ends the run when the memory has answered what was asked
    input  logic [39:0]  source_addr,
    input  logic [39:0]  table_addr,
    input  logic [31:0]  count,      // at least 1
    input  logic [4:0]   levels,     // at least 1
    input  logic [7:0]   doublings,  // at least 1
    output logic         busy,
    output logic         done,       // one clock
    output logic [63:0]  cycles,
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
  localparam int ELEMENT_BITS = $clog2(BATCH);
  localparam int REGISTERS = 136;
  localparam int WORDS = REGISTERS * BATCH;
  localparam int ADDRESS_BITS = $clog2(WORDS);
  localparam int READ = 2, MUL = 17;
  localparam int LATENCY = READ + MUL;  // from issue to the clock in which the result is written
  localparam logic [383:0] INVERSE_EXPONENT = P - 384'd2;
  localparam int INVERSE_TOP = 376;  // its highest bit
  localparam logic [383:0] P2 = P << 1, P8 = P << 3, TWO = ONE + ONE;  // TWO is below 2 P

  typedef enum logic [2:0] {MULTIPLY, MULTIPLY_K, ADD, SUBTRACT_4P, SUBTRACT_8P, CONSTANT_ONE, CONSTANT_TWO} kind_t;
  typedef logic [7:0] register_t;
  localparam register_t T0 = 8'd128, T1 = 8'd129, T2 = 8'd130, T3 = 8'd131, T4 = 8'd132, T5 = 8'd133, ACC = 8'd134;
  typedef struct packed {
    kind_t     kind;
    register_t to, a, b;
  } instruction_t;

  typedef enum logic [3:0] {IDLE, ASK, LOAD, FIRST, DOUBLE, INVERT, AFFINE, DRAIN, FETCH, REDUCE, STORE, FINISH} state_t;
  state_t state;
  logic stopping;
  logic [31:0] left;                     // points not yet stored
  logic [ELEMENT_BITS:0] batch;          // points of this batch
  logic [39:0] source, target;
  logic [ELEMENT_BITS-1:0] element;
  logic [3:0] step;
  logic [4:0] level;
  logic [7:0] round;
  logic [8:0] bit_at;
  logic half;                            // LOAD: 0 takes Y - X, 1 takes Y + X
  logic [1:0] lane_of_beat;
  logic [4:0] wait_count;
  logic [1:0] part;                      // STORE: word of the entry

  function automatic register_t of_level(input logic [4:0] l, input logic [1:0] which);
    return {1'b0, l, which};
  endfunction

  // The instruction of this clock.
  instruction_t now;
  logic running, last_element;
  assign running      = state == FIRST || state == DOUBLE || state == INVERT || state == AFFINE;
  assign last_element = element == ELEMENT_BITS'(BATCH - 1);
  logic [4:0] below;  // the level that a doubling starts from
  assign below = round == 8'd0 ? level - 5'd1 : level;
  always_comb begin
    now = '{kind: MULTIPLY, to: T0, a: T0, b: T0};
    unique case (state)
      FIRST:
        unique case (step)
          4'd0: now = '{SUBTRACT_4P, of_level(5'd0, 2'd0), T1, T0};
          4'd1: now = '{ADD, of_level(5'd0, 2'd1), T1, T0};
          4'd2: now = '{CONSTANT_TWO, of_level(5'd0, 2'd2), T0, T0};
          4'd3: now = '{CONSTANT_ONE, of_level(5'd0, 2'd3), T0, T0};
          default: now = '{MULTIPLY, of_level(5'd1, 2'd3), of_level(5'd0, 2'd3), of_level(5'd0, 2'd2)};
        endcase
      DOUBLE:
        unique case (step)
          4'd0: now = '{MULTIPLY, T0, of_level(below, 2'd0), of_level(below, 2'd0)};
          4'd1: now = '{MULTIPLY, T1, of_level(below, 2'd1), of_level(below, 2'd1)};
          4'd2: now = '{MULTIPLY, T2, of_level(below, 2'd2), of_level(below, 2'd2)};
          4'd3: now = '{MULTIPLY, T3, of_level(below, 2'd0), of_level(below, 2'd1)};
          4'd4: now = '{SUBTRACT_4P, T4, T1, T0};  // G = Y^2 - X^2
          4'd5: now = '{ADD, T5, T0, T1};          // H = X^2 + Y^2
          4'd6: now = '{ADD, T2, T2, T2};          // C = 2 Z^2
          4'd7: now = '{ADD, T3, T3, T3};          // E = 2 X Y
          4'd8: now = '{SUBTRACT_8P, T2, T2, T4};  // F = C - G
          4'd9: now = '{MULTIPLY, of_level(level, 2'd0), T3, T2};
          4'd10: now = '{MULTIPLY, of_level(level, 2'd1), T4, T5};
          4'd11: now = '{MULTIPLY, of_level(level, 2'd2), T2, T4};
          default: now = '{MULTIPLY, of_level(level + 5'd1, 2'd3), of_level(level, 2'd3), of_level(level, 2'd2)};
        endcase
      INVERT:
        if (step != 4'd0) now = '{MULTIPLY, ACC, ACC, of_level(levels, 2'd3)};
        else if (bit_at == 9'(INVERSE_TOP - 1)) now = '{MULTIPLY, ACC, of_level(levels, 2'd3), of_level(levels, 2'd3)};
        else now = '{MULTIPLY, ACC, ACC, ACC};
      default:
        unique case (step)
          4'd0: now = '{MULTIPLY, T0, ACC, of_level(level, 2'd3)};
          4'd1: now = '{MULTIPLY, ACC, ACC, of_level(level, 2'd2)};
          4'd2: now = '{MULTIPLY, T1, of_level(level, 2'd0), T0};
          4'd3: now = '{MULTIPLY, T2, of_level(level, 2'd1), T0};
          4'd4: now = '{MULTIPLY, T3, T1, T2};
          4'd5: now = '{SUBTRACT_4P, of_level(level, 2'd0), T2, T1};
          4'd6: now = '{ADD, of_level(level, 2'd1), T2, T1};
          default: now = '{MULTIPLY_K, of_level(level, 2'd2), T3, T3};
        endcase
    endcase
  end

  // Memory: two copies, for two reads a clock.
  fe_t copy_a[WORDS];
  fe_t copy_b[WORDS];
  fe_t word_a, word_b, a, b;
  logic read, write;
  logic [ADDRESS_BITS-1:0] read_a, read_b, write_at;
  fe_t write_word;
  function automatic logic [ADDRESS_BITS-1:0] address(input register_t r, input logic [ELEMENT_BITS-1:0] e);
    return ADDRESS_BITS'({r, e});
  endfunction
  assign read   = running || state == FETCH;
  assign read_a = state == FETCH ? address(of_level(level, part), element) : address(now.a, element);
  assign read_b = address(now.b, element);
  always_ff @(posedge clk) begin
    if (read) begin
      word_a <= copy_a[read_a];
      word_b <= copy_b[read_b];
    end
    a <= word_a;
    b <= word_b;
    if (write) begin
      copy_a[write_at] <= write_word;
      copy_b[write_at] <= write_word;
    end
  end

  // Instructions in flight, and their results; sums wait as long as products.
  logic [LATENCY-1:0] flight;
  logic [ADDRESS_BITS-1:0] flight_to[LATENCY];
  kind_t kinds[LATENCY];
  fe_t sums[MUL];
  fe_t product;
  kind_t kind_now;
  assign kind_now = kinds[READ-1];
  field_mul #(.KIND(MUL_KIND)) multiplier (
      .clk, .valid(flight[READ-1]), .a, .b(kind_now == MULTIPLY_K ? CURVE_K : b), .product);
  always_ff @(posedge clk) begin
    flight       <= rst ? '0 : {flight[LATENCY-2:0], running};
    flight_to[0] <= address(now.to, element);
    kinds[0]     <= now.kind;
    for (int i = 1; i < LATENCY; i++) begin
      flight_to[i] <= flight_to[i-1];
      kinds[i]     <= kinds[i-1];
    end
    unique case (kind_now)
      ADD: sums[0] <= a + b;
      SUBTRACT_4P: sums[0] <= a - b + P4;
      SUBTRACT_8P: sums[0] <= a - b + P8;
      CONSTANT_ONE: sums[0] <= ONE;
      default: sums[0] <= TWO;
    endcase
    for (int i = 1; i < MUL; i++) sums[i] <= sums[i-1];
  end

  // Loading writes at once; nothing is in flight then.
  logic load_word;
  logic [1151:0] entry;
  assign entry     = points_data[1152*((ADDERS == 1) ? 0 : int'(lane_of_beat[0]))+:1152];
  assign load_word = state == LOAD && points_data_valid;
  // A beat is taken with its last word; entries past the batch's last are dropped.
  logic last_of_beat, last_loaded;
  assign last_of_beat      = lane_of_beat == 2'(ADDERS - 1);
  assign last_loaded       = (ELEMENT_BITS + 1)'(element) + 1'b1 == batch;
  assign points_data_ready = load_word && half && (last_of_beat || last_loaded);
  always_comb begin
    write      = flight[LATENCY-1];
    write_at   = flight_to[LATENCY-1];
    write_word = kinds[LATENCY-1] == MULTIPLY || kinds[LATENCY-1] == MULTIPLY_K ? product : sums[MUL-1];
    if (load_word) begin
      write      = 1'b1;
      write_at   = address(half ? T1 : T0, element);
      write_word = half ? entry[767:384] : entry[383:0];
    end
  end

  assign busy             = state != IDLE;
  assign points_req_valid = state == ASK;
  assign points_req_addr  = source;
  assign points_req_beats = (32'(batch) + 32'(ADDERS - 1)) >> (ADDERS - 1);
  assign wr_valid         = state == STORE;
  assign wr_addr          = target;

  logic [1:0] reduce_step;
  always_ff @(posedge clk) begin
    done <= 1'b0;
    if (state != IDLE) cycles <= cycles + 64'd1;
    if (abort && state != IDLE) stopping <= 1'b1;
    unique case (state)
      IDLE: if (start) begin
        cycles   <= '0;
        stopping <= 1'b0;
        left     <= count;
        source   <= source_addr;
        target   <= table_addr;
        batch    <= count < 32'(BATCH) ? (ELEMENT_BITS + 1)'(count) : (ELEMENT_BITS + 1)'(BATCH);
        state    <= ASK;
      end
      ASK: if (points_req_ready) begin
        state        <= LOAD;
        element      <= '0;
        half         <= 1'b0;
        lane_of_beat <= '0;
      end
      LOAD: if (points_data_valid) begin
        half <= !half;
        if (half) begin
          element      <= element + 1'b1;
          lane_of_beat <= last_of_beat ? '0 : lane_of_beat + 2'd1;
          if (last_loaded) begin
            state   <= stopping ? FINISH : FIRST;
            source  <= source + 40'd144 * 40'(batch);
            element <= '0;
            step    <= '0;
          end
        end
      end
      FIRST, DOUBLE, INVERT, AFFINE: begin
        element <= last_element ? '0 : element + 1'b1;
        if (last_element) begin
          step <= step + 4'd1;
          unique case (state)
            FIRST: if (step == 4'd4) begin
              step   <= '0;
              level  <= 5'd1;
              round  <= '0;
              bit_at <= 9'(INVERSE_TOP - 1);
              state  <= levels == 5'd1 ? INVERT : DOUBLE;
            end
            DOUBLE: if (step == 4'd12) begin  // the product of Z: the level is complete
              step  <= '0;
              round <= '0;
              level <= level + 5'd1;
              if (level + 5'd1 == levels) state <= INVERT;
            end else if (step == 4'd11 && round + 8'd1 != doublings) begin
              step  <= '0;
              round <= round + 8'd1;
            end
            INVERT: if (step != 4'd0 || !INVERSE_EXPONENT[bit_at]) begin
              step   <= '0;
              bit_at <= bit_at - 9'd1;
              level  <= levels - 5'd1;
              if (bit_at == 9'd0) state <= AFFINE;
            end
            default: if (step == 4'd7) begin
              step       <= '0;
              level      <= level - 5'd1;
              wait_count <= '1;
              if (level == 5'd0) state <= DRAIN;
            end
          endcase
        end
        if (stopping) begin
          state      <= DRAIN;
          wait_count <= '1;
        end
      end
      DRAIN: begin
        wait_count <= wait_count - 5'd1;
        element    <= '0;
        level      <= '0;
        part       <= '0;
        if (wait_count == '0) state <= stopping ? FINISH : FETCH;
      end
      FETCH: begin
        // The word is in `a` two clocks after this one.
        reduce_step <= '0;
        state       <= REDUCE;
      end
      REDUCE: begin
        reduce_step <= reduce_step + 2'd1;
        unique case (reduce_step)
          2'd0: ;
          2'd1: wr_data <= a >= P4 ? a - P4 : a;
          2'd2: wr_data <= wr_data >= P2 ? wr_data - P2 : wr_data;
          default: begin
            wr_data <= wr_data >= P ? wr_data - P : wr_data;
            state   <= STORE;
          end
        endcase
      end
      STORE: if (wr_ready) begin
        target <= target + 40'd48;
        part   <= part == 2'd2 ? '0 : part + 2'd1;
        state  <= FETCH;
        if (part == 2'd2) begin
          level <= level + 5'd1 == levels ? '0 : level + 5'd1;
          if (level + 5'd1 == levels) begin
            element <= element + 1'b1;
            if ((ELEMENT_BITS + 1)'(element) + 1'b1 == batch) begin
              left  <= left - 32'(batch);
              batch <= left - 32'(batch) < 32'(BATCH) ? (ELEMENT_BITS + 1)'(left - 32'(batch)) : (ELEMENT_BITS + 1)'(BATCH);
              state <= left == 32'(batch) ? FINISH : ASK;
            end
          end
        end
        if (stopping) state <= FINISH;
      end
      FINISH: begin
        state <= IDLE;
        done  <= 1'b1;
      end
      default: state <= IDLE;
    endcase
    if (rst) state <= IDLE;
  end
  logic unused;
  assign unused = ^entry[1151:768];
endmodule
