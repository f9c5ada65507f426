// SPDX-License-Identifier: MIT OR Apache-2.0
// Simulation top: the system on chip with the model of device memory. The host's side is driven by C++.
`default_nettype none
module zkpu_board #(
    parameter int ADDERS = 1,
    parameter int WINDOW_MIN = 4,
    parameter int WINDOW_MAX = 13,
    parameter int LEVELS_MAX = 8,
    parameter int MUL_KIND = 0,
    parameter int WATCHDOG_BITS = 24,
    parameter int LATENCY = 40,
    parameter int BYTES_PER_CLOCK = 512
) (
    input  wire          clk,
    input  wire          rst,
    input  wire  [31:0]  memory_pages,
    input  wire  [63:0]  power_on_id,
    input  wire  [63:0]  serial,
    input  wire          host_valid,
    input  wire          host_write,
    input  wire  [13:0]  host_addr,
    input  wire  [31:0]  host_wdata,
    output logic [31:0]  host_rdata,
    output logic         msi_valid,
    output logic [4:0]   msi_vector,
    output logic         interrupt_pin,
    output logic         hmem_req_valid,
    output logic         hmem_req_write,
    output logic [63:0]  hmem_req_addr,
    output logic [255:0] hmem_req_wdata,
    output logic [31:0]  hmem_req_wstrb,
    input  wire          hmem_req_ready,
    input  wire          hmem_rsp_valid,
    input  wire          hmem_rsp_error,
    input  wire  [255:0] hmem_rsp_data,
    output logic         core_busy,
    output logic         debug_valid,
    output logic [7:0]   debug_byte
);
  logic dmem_req_valid, dmem_req_write, dmem_req_ready, dmem_rsp_valid, dmem_rsp_error;
  logic [39:0] dmem_req_addr;
  logic [255:0] dmem_req_wdata, dmem_rsp_data;
  logic [31:0] dmem_req_wstrb;
  logic scalars_req_valid, scalars_req_ready, scalars_data_valid, scalars_data_ready;
  logic points_req_valid, points_req_ready, points_data_valid, points_data_ready;
  logic [39:0] scalars_req_addr, points_req_addr, wr_addr;
  logic [31:0] scalars_req_beats, points_req_beats;
  logic [255:0] scalars_data;
  logic [ADDERS*1152-1:0] points_data;
  logic wr_valid, wr_ready, core_rst;
  logic [383:0] wr_data;

  zkpu_soc #(
      .ADDERS(ADDERS), .WINDOW_MIN(WINDOW_MIN), .WINDOW_MAX(WINDOW_MAX), .LEVELS_MAX(LEVELS_MAX), .MUL_KIND(MUL_KIND),
      .WATCHDOG_BITS(WATCHDOG_BITS)) soc (.*);
  assign core_busy = soc.msm_busy || soc.precompute_busy;

  dram_model #(.ADDERS(ADDERS), .LATENCY(LATENCY), .BYTES_PER_CLOCK(BYTES_PER_CLOCK)) dram (
      .clk, .rst, .drop(core_rst), .memory_pages,
      .line_req_valid(dmem_req_valid), .line_req_write(dmem_req_write), .line_req_addr(dmem_req_addr),
      .line_req_wdata(dmem_req_wdata), .line_req_wstrb(dmem_req_wstrb), .line_req_ready(dmem_req_ready),
      .line_rsp_valid(dmem_rsp_valid), .line_rsp_error(dmem_rsp_error), .line_rsp_data(dmem_rsp_data),
      .scalars_req_valid, .scalars_req_ready, .scalars_req_addr, .scalars_req_beats,
      .scalars_data_valid, .scalars_data_ready, .scalars_data,
      .points_req_valid, .points_req_ready, .points_req_addr, .points_req_beats,
      .points_data_valid, .points_data_ready, .points_data,
      .wr_valid, .wr_ready, .wr_addr, .wr_data);
endmodule
`default_nettype wire
