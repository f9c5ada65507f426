// SPDX-License-Identifier: MIT OR Apache-2.0
// The system on chip around the MSM core: control processor with its firmware memory, NVMe registers, DMA engine.
//
// Outside ports: the host's register window and its memory (a PCIe endpoint drives them), interrupts, device memory (a
// controller, or the model in sim/soc). The processor's address map is in firmware/hardware.h.
`default_nettype none
module zkpu_soc #(
    parameter int ADDERS = 1,
    parameter int WINDOW_MIN = 4,
    parameter int WINDOW_MAX = 13,
    parameter int LEVELS_MAX = 8,
    parameter int MUL_KIND = 0,           // the core's field multiplier, see rtl/field/field_mul.sv
    parameter logic [31:0] CLOCK_KHZ = 100_000,
    parameter int WATCHDOG_BITS = 24,  // the firmware must come by within 2^WATCHDOG_BITS clocks
    parameter string FIRMWARE = "firmware.hex"
) (
    input  wire          clk,
    input  wire          rst,
    input  wire  [31:0]  memory_pages,    // device memory in pages of 4,096 bytes
    input  wire  [63:0]  power_on_id,     // differs after every loss of device memory
    input  wire  [63:0]  serial,
    // Host registers.
    input  wire          host_valid,
    input  wire          host_write,
    input  wire  [13:0]  host_addr,
    input  wire  [31:0]  host_wdata,
    output logic [31:0]  host_rdata,
    output logic         msi_valid,
    output logic [4:0]   msi_vector,
    output logic         interrupt_pin,
    // Host memory: every request is answered once, in order.
    output logic         hmem_req_valid,
    output logic         hmem_req_write,
    output logic [63:0]  hmem_req_addr,
    output logic [255:0] hmem_req_wdata,
    output logic [31:0]  hmem_req_wstrb,
    input  wire          hmem_req_ready,
    input  wire          hmem_rsp_valid,
    input  wire          hmem_rsp_error,
    input  wire  [255:0] hmem_rsp_data,
    // Device memory, lines of 32 bytes: every request is answered once, in order.
    output logic         dmem_req_valid,
    output logic         dmem_req_write,
    output logic [39:0]  dmem_req_addr,
    output logic [255:0] dmem_req_wdata,
    output logic [31:0]  dmem_req_wstrb,
    input  wire          dmem_req_ready,
    input  wire          dmem_rsp_valid,
    input  wire          dmem_rsp_error,
    input  wire  [255:0] dmem_rsp_data,
    // Device memory, the MSM core's streams.
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
    output logic [383:0] wr_data,
    output logic         core_rst,        // memory streams of an aborted core are dropped while high
    // Debug output of the firmware.
    output logic         debug_valid,
    output logic [7:0]   debug_byte
);
  // Resets: the processor restarts when the host resets the subsystem or revives a failed controller.
  logic subsystem_reset, revive, warm;
  logic [3:0] restart;
  wire cpu_rst = rst || restart != 4'd0;
  always_ff @(posedge clk) begin
    if (rst) begin
      restart <= 4'd0;
      warm <= 1'b0;
    end else if (subsystem_reset || revive) begin
      restart <= 4'd15;
      warm <= 1'b1;
    end else if (restart != 4'd0) restart <= restart - 4'd1;
  end

  // Processor.
  logic fetch_valid, fetch_ready, data_valid, data_write, data_ready, data_error, trapped;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] fetch_addr;  // firmware memory has 64 KiB: higher bits wrap
  // verilator lint_on UNUSEDSIGNAL
  logic [31:0] data_addr, data_wdata, data_rdata;
  logic [3:0] data_wstrb;
  logic unused_retire_valid;
  logic [31:0] unused_retire_pc, unused_retire_value;
  logic [4:0] unused_retire_rd;
  logic [255:0] sram_rdata;
  rv32i cpu (
      .clk, .rst(cpu_rst), .fetch_valid, .fetch_addr, .fetch_ready, .fetch_line(sram_rdata),
      .data_valid, .data_write, .data_addr, .data_wdata, .data_wstrb, .data_ready, .data_rdata, .data_error, .trapped,
      .retire_valid(unused_retire_valid), .retire_pc(unused_retire_pc), .retire_rd(unused_retire_rd),
      .retire_value(unused_retire_value));

  // Address decode of data accesses: bits 31:28.
  wire sel_sram = data_addr[31:16] == 16'h0000;
  wire sel_nvme = data_addr[31:28] == 4'h1;
  wire sel_dma = data_addr[31:28] == 4'h2;
  wire sel_msm = data_addr[31:28] == 4'h3;
  wire sel_system = data_addr[31:28] == 4'h4;
  wire sel_window = data_addr[31:30] == 2'b10;  // 1 GiB of device memory, banked
  wire sel_register = sel_nvme || sel_dma || sel_msm || sel_system;

  // Firmware memory: DMA, then data, then instructions.
  logic [2:0] dma_req_valid, dma_req_ready, dma_rsp_valid, dma_rsp_error;
  logic dma_req_write;
  logic [63:0] dma_req_addr;
  logic [255:0] dma_req_wdata;
  logic [31:0] dma_req_wstrb;
  logic [255:0] dma_rsp_data[3];
  typedef enum logic [1:0] {NOBODY, DMA, DATA, FETCH} owner_t;
  owner_t sram_owner;
  wire sram_dma = dma_req_valid[0];
  wire sram_data = data_valid && sel_sram && !sram_dma && sram_owner != DATA;
  wire sram_fetch = fetch_valid && !sram_dma && !sram_data && sram_owner != FETCH;
  wire sram_write = sram_dma ? dma_req_write : sram_data && data_write;
  wire [15:5] sram_line = sram_dma ? dma_req_addr[15:5] : sram_data ? data_addr[15:5] : fetch_addr[15:5];
  wire [31:0] data_lane_strb = {28'b0, data_wstrb} << {data_addr[4:2], 2'b0};
  soc_sram #(.IMAGE(FIRMWARE)) sram (
      .clk, .valid(sram_dma || sram_data || sram_fetch), .write(sram_write), .line(sram_line),
      .wdata(sram_dma ? dma_req_wdata : {8{data_wdata}}),
      .wstrb(sram_dma ? dma_req_wstrb : data_lane_strb),
      .rdata(sram_rdata));
  always_ff @(posedge clk) begin
    if (cpu_rst && !sram_dma) sram_owner <= NOBODY;
    else if (sram_dma) sram_owner <= DMA;
    else if (sram_data) sram_owner <= DATA;
    else if (sram_fetch) sram_owner <= FETCH;
    else sram_owner <= NOBODY;
  end
  assign fetch_ready = sram_owner == FETCH && fetch_valid;
  assign dma_req_ready[0] = 1'b1;
  assign dma_rsp_valid[0] = sram_owner == DMA;
  assign dma_rsp_error[0] = 1'b0;
  assign dma_rsp_data[0] = sram_rdata;

  // Host memory belongs to the DMA engine.
  assign hmem_req_valid = dma_req_valid[2];
  assign hmem_req_write = dma_req_write;
  assign hmem_req_addr = dma_req_addr;
  assign hmem_req_wdata = dma_req_wdata;
  assign hmem_req_wstrb = dma_req_wstrb;
  assign dma_req_ready[2] = hmem_req_ready;
  assign dma_rsp_valid[2] = hmem_rsp_valid;
  assign dma_rsp_error[2] = hmem_rsp_error;
  assign dma_rsp_data[2] = hmem_rsp_data;

  // Device memory is shared by the DMA engine and the processor's window; a FIFO remembers whose each answer is.
  logic [9:0] bank;
  logic window_asked;  // the processor's access waits for its answer
  logic [31:0] owner_fifo;
  logic [4:0] owner_count;
  wire window_wants = data_valid && sel_window && !window_asked && !cpu_rst;
  wire owner_room = owner_count < 5'd30;
  assign dmem_req_valid = owner_room && (window_wants || dma_req_valid[1]);
  assign dmem_req_write = window_wants ? data_write : dma_req_write;
  assign dmem_req_addr = window_wants ? {bank, data_addr[29:5], 5'b0} : dma_req_addr[39:0];
  assign dmem_req_wdata = window_wants ? {8{data_wdata}} : dma_req_wdata;
  assign dmem_req_wstrb = window_wants ? data_lane_strb : dma_req_wstrb;
  assign dma_req_ready[1] = dmem_req_ready && owner_room && !window_wants;
  wire dmem_issued = dmem_req_valid && dmem_req_ready;
  wire answer_is_cpu = owner_fifo[0];
  assign dma_rsp_valid[1] = dmem_rsp_valid && !answer_is_cpu;
  assign dma_rsp_error[1] = dmem_rsp_error;
  assign dma_rsp_data[1] = dmem_rsp_data;
  wire window_answer = dmem_rsp_valid && answer_is_cpu;
  always_ff @(posedge clk) begin
    if (rst) begin
      owner_fifo <= 32'b0;
      owner_count <= 5'd0;
      window_asked <= 1'b0;
    end else begin
      logic [31:0] fifo;
      logic [4:0] count;
      fifo = owner_fifo;
      count = owner_count;
      if (dmem_rsp_valid) begin
        fifo = fifo >> 1;
        count = count - 5'd1;
      end
      if (dmem_issued) begin
        fifo[count] = window_wants;
        count = count + 5'd1;
      end
      owner_fifo <= fifo;
      owner_count <= count;
      // After a restart of the processor an old answer may still come: the new access waits for it.
      if (dmem_issued && window_wants) window_asked <= 1'b1;
      else if (window_answer) window_asked <= 1'b0;
    end
  end

  // DMA engine's registers.
  logic [63:0] dma_src, dma_dst;
  logic [31:0] dma_length;
  logic dma_busy, dma_error;
  wire store = data_valid && data_write && data_ready;
  wire dma_start = store && sel_dma && data_addr[4:2] == 3'd5;
  dma_engine dma (
      .clk, .rst, .start(dma_start), .src_space(data_wdata[1:0]), .dst_space(data_wdata[3:2]), .src(dma_src),
      .dst(dma_dst), .length(dma_length), .busy(dma_busy), .error(dma_error),
      .req_valid(dma_req_valid), .req_write(dma_req_write), .req_addr(dma_req_addr), .req_wdata(dma_req_wdata),
      .req_wstrb(dma_req_wstrb), .req_ready(dma_req_ready), .rsp_valid(dma_rsp_valid), .rsp_error(dma_rsp_error),
      .rsp_data(dma_rsp_data));
  always_ff @(posedge clk) begin
    if (store && sel_dma) begin
      unique case (data_addr[4:2])
        3'd0: dma_src[31:0] <= data_wdata;
        3'd1: dma_src[63:32] <= data_wdata;
        3'd2: dma_dst[31:0] <= data_wdata;
        3'd3: dma_dst[63:32] <= data_wdata;
        3'd4: dma_length <= data_wdata;
        default: ;
      endcase
    end
  end

  // MSM core.
  logic msm_start, msm_abort, msm_reset, msm_busy, msm_done, msm_done_seen;
  logic [39:0] scalars_base, points_base, result_base;
  logic [31:0] msm_count;
  logic [4:0] msm_window, msm_levels;
  logic [3:0] msm_error, msm_error_seen;
  logic [63:0] msm_cycles, msm_operations, msm_conflicts, msm_replicas, msm_stalls;
  logic precompute_start, precompute_busy, precompute_done, precompute_last;
  logic [7:0] doublings;
  logic [63:0] precompute_cycles;
  logic core_points_req_valid, core_points_data_ready, core_wr_valid;
  logic table_points_req_valid, table_points_data_ready, table_wr_valid;
  logic [39:0] core_points_req_addr, core_wr_addr, table_points_req_addr, table_wr_addr;
  logic [31:0] core_points_req_beats, table_points_req_beats;
  logic [383:0] core_wr_data, table_wr_data;
  assign core_rst = rst || msm_reset || restart != 4'd0;
  msm_core #(.ADDERS(ADDERS), .MUL_KIND(MUL_KIND), .WINDOW_TOP(WINDOW_MAX)) core (
      .clk, .rst(core_rst), .start(msm_start), .abort(msm_abort),
      .scalars_addr(scalars_base), .points_addr(points_base), .result_addr(result_base),
      .count(msm_count), .window(msm_window), .levels(msm_levels),
      .busy(msm_busy), .done(msm_done), .error(msm_error),
      .cycles(msm_cycles), .operations(msm_operations), .conflicts(msm_conflicts), .replicas(msm_replicas),
      .stalls(msm_stalls),
      .scalars_req_valid, .scalars_req_ready, .scalars_req_addr, .scalars_req_beats,
      .scalars_data_valid, .scalars_data_ready, .scalars_data,
      .points_req_valid(core_points_req_valid), .points_req_ready(points_req_ready && !precompute_busy),
      .points_req_addr(core_points_req_addr), .points_req_beats(core_points_req_beats),
      .points_data_valid(points_data_valid && !precompute_busy), .points_data_ready(core_points_data_ready), .points_data,
      .wr_valid(core_wr_valid), .wr_ready(wr_ready && !precompute_busy), .wr_addr(core_wr_addr), .wr_data(core_wr_data));
  // Tables are made by a unit of its own, on the core's memory ports: the firmware runs one of the two at a time.
  precompute #(.ADDERS(ADDERS), .MUL_KIND(MUL_KIND)) tables (
      .clk, .rst(core_rst), .start(precompute_start), .abort(msm_abort), .source_addr(points_base), .table_addr(result_base),
      .count(msm_count), .levels(msm_levels), .doublings, .busy(precompute_busy), .done(precompute_done),
      .cycles(precompute_cycles),
      .points_req_valid(table_points_req_valid), .points_req_ready, .points_req_addr(table_points_req_addr),
      .points_req_beats(table_points_req_beats), .points_data_valid, .points_data_ready(table_points_data_ready), .points_data,
      .wr_valid(table_wr_valid), .wr_ready, .wr_addr(table_wr_addr), .wr_data(table_wr_data));
  assign points_req_valid = precompute_busy ? table_points_req_valid : core_points_req_valid;
  assign points_req_addr = precompute_busy ? table_points_req_addr : core_points_req_addr;
  assign points_req_beats = precompute_busy ? table_points_req_beats : core_points_req_beats;
  assign points_data_ready = precompute_busy ? table_points_data_ready : core_points_data_ready;
  assign wr_valid = precompute_busy ? table_wr_valid : core_wr_valid;
  assign wr_addr = precompute_busy ? table_wr_addr : core_wr_addr;
  assign wr_data = precompute_busy ? table_wr_data : core_wr_data;
  always_ff @(posedge clk) begin
    msm_start <= 1'b0;
    msm_abort <= 1'b0;
    precompute_start <= 1'b0;
    if (rst) precompute_last <= 1'b0;
    if (core_rst) msm_done_seen <= 1'b0;
    else if (msm_done || precompute_done) begin
      msm_done_seen <= 1'b1;
      msm_error_seen <= msm_done ? msm_error : 4'd0;
    end
    if (rst || restart != 4'd0) msm_reset <= 1'b0;
    else if (store && sel_msm) begin
      unique case (data_addr[6:2])
        5'd0: begin
          msm_start <= data_wdata[0];
          msm_abort <= data_wdata[1];
          msm_reset <= data_wdata[2];
          precompute_start <= data_wdata[3];
          if (data_wdata[0] || data_wdata[3]) begin
            msm_done_seen <= 1'b0;
            precompute_last <= data_wdata[3];
          end
        end
        5'd1: scalars_base[31:0] <= data_wdata;
        5'd2: scalars_base[39:32] <= data_wdata[7:0];
        5'd3: points_base[31:0] <= data_wdata;
        5'd4: points_base[39:32] <= data_wdata[7:0];
        5'd5: result_base[31:0] <= data_wdata;
        5'd6: result_base[39:32] <= data_wdata[7:0];
        5'd7: msm_count <= data_wdata;
        5'd8: begin
          msm_window <= data_wdata[4:0];
          msm_levels <= data_wdata[12:8];
          doublings <= data_wdata[23:16];
        end
        default: ;
      endcase
    end
  end
  logic [31:0] msm_rdata;
  always_comb begin
    unique case (data_addr[6:2])
      5'd0: msm_rdata = {23'b0, msm_reset, msm_error_seen, 2'b0, msm_done_seen,
                        msm_busy || msm_start || precompute_busy || precompute_start};
      5'd10: msm_rdata = precompute_last ? precompute_cycles[31:0] : msm_cycles[31:0];
      5'd11: msm_rdata = precompute_last ? precompute_cycles[63:32] : msm_cycles[63:32];
      5'd12: msm_rdata = msm_operations[31:0];
      5'd13: msm_rdata = msm_operations[63:32];
      5'd14: msm_rdata = msm_conflicts[31:0];
      5'd15: msm_rdata = msm_conflicts[63:32];
      5'd16: msm_rdata = msm_replicas[31:0];
      5'd17: msm_rdata = msm_replicas[63:32];
      5'd18: msm_rdata = msm_stalls[31:0];
      5'd19: msm_rdata = msm_stalls[63:32];
      5'd20: msm_rdata = {8'(LEVELS_MAX), 8'(WINDOW_MAX), 8'(WINDOW_MIN), 8'(ADDERS)};
      default: msm_rdata = 32'b0;
    endcase
  end

  // System registers.
  logic [63:0] cycles;
  logic [31:0] cycles_high;  // sampled when the low half is read
  logic [WATCHDOG_BITS:0] watchdog;
  logic fatal;
  wire kick = store && sel_system && data_addr[5:2] == 4'd2;
  always_ff @(posedge clk) begin
    debug_valid <= 1'b0;
    fatal <= trapped || watchdog[WATCHDOG_BITS];
    cycles <= rst ? 64'b0 : cycles + 64'd1;
    if (data_valid && !data_write && sel_system && data_addr[5:2] == 4'd0) cycles_high <= cycles[63:32];
    if (cpu_rst || kick) watchdog <= '0;
    else if (!watchdog[WATCHDOG_BITS]) watchdog <= watchdog + 1'b1;
    if (rst) bank <= 10'd0;
    if (store && sel_system) begin
      unique case (data_addr[5:2])
        4'd3: fatal <= 1'b1;
        4'd9: bank <= data_wdata[9:0];
        4'd10: begin
          debug_valid <= 1'b1;
          debug_byte <= data_wdata[7:0];
        end
        default: ;
      endcase
    end
    if (cpu_rst) fatal <= 1'b0;
  end
  logic [31:0] system_rdata;
  always_comb begin
    unique case (data_addr[5:2])
      4'd0: system_rdata = cycles[31:0];
      4'd1: system_rdata = cycles_high;
      4'd4: system_rdata = memory_pages;
      4'd5: system_rdata = power_on_id[31:0];
      4'd6: system_rdata = power_on_id[63:32];
      4'd7: system_rdata = CLOCK_KHZ;
      4'd8: system_rdata = {31'b0, warm};
      4'd11: system_rdata = serial[31:0];
      4'd12: system_rdata = serial[63:32];
      default: system_rdata = 32'b0;
    endcase
  end

  // NVMe registers.
  logic [31:0] nvme_rdata;
  nvme_registers nvme (
      .clk, .rst, .host_valid, .host_write, .host_addr, .host_wdata, .host_rdata, .msi_valid, .msi_vector,
      .interrupt_pin, .cpu_valid(data_valid && sel_nvme), .cpu_write(data_write), .cpu_addr(data_addr[8:0]),
      .cpu_wdata(data_wdata), .cpu_rdata(nvme_rdata), .fatal, .subsystem_reset, .revive);

  // The processor's data answers: registers at once, memories when they have the data.
  wire [255:0] data_line = sel_window ? dmem_rsp_data : sram_rdata;
  always_comb begin
    data_error = 1'b0;
    data_rdata = data_line[{data_addr[4:2], 5'b0}+:32];
    data_ready = 1'b0;
    if (sel_sram) data_ready = sram_owner == DATA;
    else if (sel_window) begin
      data_ready = window_asked && window_answer;
      data_error = dmem_rsp_error;
    end else if (sel_register) begin
      data_ready = data_valid;
      data_rdata = sel_nvme ? nvme_rdata : sel_dma ? {30'b0, dma_error, dma_busy} : sel_msm ? msm_rdata : system_rdata;
    end else begin
      data_ready = data_valid;
      data_error = 1'b1;
    end
  end
endmodule
`default_nettype wire
