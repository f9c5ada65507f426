// SPDX-License-Identifier: MIT OR Apache-2.0
// Stand-in for the MSM core with the same ports: it streams scalars and points as the core does, gives them to the C++
// oracle, and writes the oracle's result. For tests of the system on chip only; cycle counts mean nothing.
`default_nettype none
// verilator lint_off DECLFILENAME
module msm_core #(
    parameter int ADDERS = 1,
    // verilator lint_off UNUSEDPARAM
    parameter int MUL_KIND = 0,
    parameter int WINDOW_TOP = 13
    // verilator lint_on UNUSEDPARAM
) (
    input  wire          clk,
    input  wire          rst,
    input  wire          start,
    input  wire          abort,
    input  wire  [39:0]  scalars_addr,
    input  wire  [39:0]  points_addr,
    input  wire  [39:0]  result_addr,
    input  wire  [31:0]  count,
    input  wire  [4:0]   window,
    input  wire  [4:0]   levels,
    output logic         busy,
    output logic         done,
    output logic [3:0]   error,
    output logic [63:0]  cycles,
    output logic [63:0]  operations,
    output logic [63:0]  conflicts,
    output logic [63:0]  replicas,
    output logic [63:0]  stalls,
    output logic         scalars_req_valid,
    input  wire          scalars_req_ready,
    output logic [39:0]  scalars_req_addr,
    output logic [31:0]  scalars_req_beats,
    input  wire          scalars_data_valid,
    output logic         scalars_data_ready,
    input  wire  [255:0] scalars_data,
    output logic         points_req_valid,
    input  wire          points_req_ready,
    output logic [39:0]  points_req_addr,
    output logic [31:0]  points_req_beats,
    input  wire          points_data_valid,
    output logic         points_data_ready,
    input  wire  [ADDERS*1152-1:0] points_data,
    output logic         wr_valid,
    input  wire          wr_ready,
    output logic [39:0]  wr_addr,
    output logic [383:0] wr_data
);
  import "DPI-C" function void standin_start(input int count, input int window, input int levels);
  import "DPI-C" function void standin_scalar(input int word, input longint value);
  import "DPI-C" function void standin_entry(input int word, input longint value);
  import "DPI-C" function void standin_finish();
  import "DPI-C" function longint standin_result(input int coordinate, input int word);
  import "DPI-C" function int standin_behaviour();  // 0 work, 1 error, 2 never end, 3 never end and ignore abort

  typedef enum logic [2:0] {IDLE, ASK, STREAM, COMPUTE, WRITE, HANG} state_t;
  state_t state;
  logic [31:0] scalars_left, beats_left;
  logic [63:0] entries_left;
  logic scalars_asked, points_asked;
  logic [1:0] coordinate;
  logic deaf;

  wire [63:0] entries = 64'(count) * 64'(levels);
  always_comb begin
    scalars_req_valid = state == ASK && !scalars_asked;
    scalars_req_addr = scalars_addr;
    scalars_req_beats = count;
    points_req_valid = state == ASK && !points_asked;
    points_req_addr = points_addr;
    points_req_beats = 32'((entries + 64'(ADDERS - 1)) / 64'(ADDERS));
    scalars_data_ready = state == STREAM;
    points_data_ready = state == STREAM;
    wr_valid = state == WRITE;
    wr_addr = result_addr + 40'd48 * 40'(coordinate);
    for (int i = 0; i < 6; i++) wr_data[64*i+:64] = wr_valid ? standin_result(32'(coordinate), i) : 64'b0;
    busy = state != IDLE;
    operations = cycles;
    conflicts = 64'd1;
    replicas = 64'd2;
    stalls = 64'd3;
  end
  always_ff @(posedge clk) begin
    done <= 1'b0;
    if (rst) begin
      state <= IDLE;
      cycles <= 64'b0;
      error <= 4'd0;
      deaf <= 1'b0;
    end else begin
      if (busy) cycles <= cycles + 64'd1;
      unique case (state)
        IDLE: if (start) begin
          cycles <= 64'b0;
          error <= 4'd0;
          scalars_left <= count;
          entries_left <= entries;
          scalars_asked <= 1'b0;
          points_asked <= 1'b0;
          standin_start(count, 32'(window), 32'(levels));
          deaf <= standin_behaviour() == 32'd3;
          beats_left <= points_req_beats;
          state <= ASK;
          if (standin_behaviour() == 32'd1) begin
            error <= 4'd5;
            done <= 1'b1;
            state <= IDLE;
          end else if (standin_behaviour() >= 32'd2) state <= HANG;
        end
        ASK: begin
          if (scalars_req_ready) scalars_asked <= 1'b1;
          if (points_req_ready) points_asked <= 1'b1;
          if ((scalars_asked || scalars_req_ready) && (points_asked || points_req_ready)) state <= STREAM;
        end
        STREAM: begin
          if (scalars_data_valid) begin
            for (int i = 0; i < 4; i++) standin_scalar(i, scalars_data[64*i+:64]);
            scalars_left <= scalars_left - 32'd1;
          end
          if (points_data_valid) begin
            for (int k = 0; k < ADDERS; k++)
              if (64'(k) < entries_left) for (int i = 0; i < 18; i++) standin_entry(i, points_data[1152*k+64*i+:64]);
            entries_left <= entries_left > 64'(ADDERS) ? entries_left - 64'(ADDERS) : 64'd0;
            beats_left <= beats_left - 32'd1;
          end
          if (scalars_left == 32'd0 && beats_left == 32'd0) state <= COMPUTE;
        end
        COMPUTE: begin
          standin_finish();
          coordinate <= 2'd0;
          state <= WRITE;
        end
        WRITE: if (wr_ready) begin
          coordinate <= coordinate + 2'd1;
          if (coordinate == 2'd3) begin
            state <= IDLE;
            done <= 1'b1;
          end
        end
        default: ;
      endcase
      // An aborted core forgets what it asked for; the memory drops the rest of its streams while `rst` is high.
      if (abort && busy && !deaf) state <= IDLE;
    end
  end
endmodule
`default_nettype wire
