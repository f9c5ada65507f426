// SPDX-License-Identifier: MIT OR Apache-2.0
// NVMe controller registers and doorbells (NVM Express Base Specification 2.0, section 3.1), with the firmware's view.
//
// The host's side is a 32-bit register port of 16 KiB. The firmware's side shows what the host wrote, collects events,
// sets CSTS and posts interrupts. Interrupts leave as messages (vector and a one-clock valid, held while masked) and as
// a pin that follows "a completion queue with interrupts enabled is not empty".
`default_nettype none
module nvme_registers #(
    parameter int QUEUES = 5  // the admin pair and the I/O pairs
) (
    input  wire         clk,
    input  wire         rst,
    // Host.
    input  wire         host_valid,
    input  wire         host_write,
    input  wire  [13:0] host_addr,
    input  wire  [31:0] host_wdata,
    output logic [31:0] host_rdata,  // the clock after `host_valid`
    output logic        msi_valid,
    output logic [4:0]  msi_vector,
    output logic        interrupt_pin,
    // Firmware.
    input  wire         cpu_valid,
    input  wire         cpu_write,
    input  wire  [8:0]  cpu_addr,
    // verilator lint_off UNUSEDSIGNAL
    input  wire  [31:0] cpu_wdata,
    // verilator lint_on UNUSEDSIGNAL
    output logic [31:0] cpu_rdata,   // combinational
    // Fatal conditions and the resets that follow from the registers.
    input  wire         fatal,
    output logic        subsystem_reset,  // one clock
    output logic        revive            // one clock: the host disables a controller that had failed
);
  localparam logic [63:0] CAP = {
      8'd0, 4'd0, 4'd0,        // MPSMAX, MPSMIN: 4 KiB
      3'd0, 8'h41, 1'b1, 4'd0, // BPS/CPS, CSS: NVM and I/O command sets, NSSRS, DSTRD
      8'd20, 5'd0, 2'd0, 1'b1, // TO in 500 ms, AMS, CQR
      16'd255                  // MQES
  };
  localparam logic [31:0] VERSION = 32'h0002_0000;
  localparam logic [31:0] RESET_MAGIC = 32'h4E56_4D65;

  logic [31:0] cc, aqa, mask;
  logic [63:0] asq, acq;
  logic ready, failed, reset_occurred;
  logic [1:0] shutdown;
  logic [15:0] sq_tail[QUEUES];
  logic [15:0] cq_head[QUEUES];
  logic [15:0] cq_tail[QUEUES];
  logic [4:0] vector[QUEUES];
  logic [QUEUES-1:0] interrupt_enable, sq_rang, cq_rang;
  logic cc_written, subsystem_written, bad_doorbell, disabled;
  logic [31:0] pending;

  wire [31:0] csts = {26'b0, 1'b0, reset_occurred, shutdown, failed, ready};

  // Host reads.
  always_ff @(posedge clk) begin
    if (host_valid && !host_write) begin
      host_rdata <= 32'b0;
      unique case (host_addr)
        14'h0000: host_rdata <= CAP[31:0];
        14'h0004: host_rdata <= CAP[63:32];
        14'h0008: host_rdata <= VERSION;
        14'h000c, 14'h0010: host_rdata <= mask;
        14'h0014: host_rdata <= cc;
        14'h001c: host_rdata <= csts;
        14'h0024: host_rdata <= aqa;
        14'h0028: host_rdata <= asq[31:0];
        14'h002c: host_rdata <= asq[63:32];
        14'h0030: host_rdata <= acq[31:0];
        14'h0034: host_rdata <= acq[63:32];
        default: ;
      endcase
    end
  end

  // Doorbells: SQ y at 1000h + 8y, CQ y at 1004h + 8y.
  wire doorbell = host_valid && host_write && host_addr[13:12] == 2'b01;
  wire [8:0] doorbell_queue = host_addr[11:3];
  wire doorbell_known = doorbell_queue < 9'(QUEUES);
  wire [2:0] doorbell_index = doorbell_queue[2:0];

  wire cpu_store = cpu_valid && cpu_write;
  wire [2:0] cpu_index = cpu_addr[4:2];
  wire store_events = cpu_store && cpu_addr == 9'h01c;
  wire store_posted = cpu_store && cpu_addr[8:5] == 4'h4 && cpu_index < 3'(QUEUES);

  // The lowest pending vector that is not masked leaves first.
  logic [31:0] deliverable;
  logic [4:0] lowest;
  always_comb begin
    deliverable = pending & ~mask;
    lowest = 5'd0;
    for (int i = 31; i >= 0; i--) if (deliverable[i]) lowest = 5'(i);
    interrupt_pin = 1'b0;
    for (int i = 0; i < QUEUES; i++)
      if (interrupt_enable[i] && cq_tail[i] != cq_head[i] && !mask[vector[i]]) interrupt_pin = 1'b1;
  end

  always_ff @(posedge clk) begin
    msi_valid <= 1'b0;
    subsystem_reset <= 1'b0;
    revive <= 1'b0;
    if (rst) begin
      cc <= 32'b0;
      aqa <= 32'b0;
      asq <= 64'b0;
      acq <= 64'b0;
      mask <= 32'b0;
      ready <= 1'b0;
      failed <= 1'b0;
      reset_occurred <= 1'b0;
      shutdown <= 2'd0;
      interrupt_enable <= '0;
      sq_rang <= '0;
      cq_rang <= '0;
      cc_written <= 1'b0;
      subsystem_written <= 1'b0;
      bad_doorbell <= 1'b0;
      disabled <= 1'b0;
      pending <= 32'b0;
      for (int i = 0; i < QUEUES; i++) begin
        sq_tail[i] <= 16'd0;
        cq_head[i] <= 16'd0;
        cq_tail[i] <= 16'd0;
        vector[i] <= 5'd0;
      end
    end else begin
      // Firmware.
      if (store_events) begin
        sq_rang <= sq_rang & ~cpu_wdata[QUEUES-1:0];
        cq_rang <= cq_rang & ~cpu_wdata[8+:QUEUES];
        if (cpu_wdata[16]) cc_written <= 1'b0;
        if (cpu_wdata[17]) subsystem_written <= 1'b0;
        if (cpu_wdata[18]) bad_doorbell <= 1'b0;
        if (cpu_wdata[19]) disabled <= 1'b0;
      end
      if (cpu_store && cpu_addr == 9'h004) begin
        ready <= cpu_wdata[0];
        shutdown <= cpu_wdata[3:2];
        if (cpu_wdata[1]) failed <= 1'b1;
      end
      // Queue q: 80h + 4q takes the posted tail, the vector (20:16), enable (31) and "raise" (30).
      if (store_posted) begin
        cq_tail[cpu_index] <= cpu_wdata[15:0];
        vector[cpu_index] <= cpu_wdata[20:16];
        interrupt_enable[cpu_index] <= cpu_wdata[31];
        if (cpu_wdata[31] && cpu_wdata[30]) pending[cpu_wdata[20:16]] <= 1'b1;
      end
      // Queue reset: a0h + 4q clears the doorbells of a queue that is created or deleted.
      if (cpu_store && cpu_addr[8:5] == 4'h5 && cpu_index < 3'(QUEUES)) begin
        if (cpu_wdata[0]) begin
          sq_tail[cpu_index] <= 16'd0;
          sq_rang[cpu_index] <= 1'b0;
        end
        if (cpu_wdata[1]) begin
          cq_head[cpu_index] <= 16'd0;
          cq_tail[cpu_index] <= 16'd0;
          cq_rang[cpu_index] <= 1'b0;
          interrupt_enable[cpu_index] <= 1'b0;
        end
      end
      // Host.
      if (host_valid && host_write) begin
        unique case (host_addr)
          14'h000c: mask <= mask | host_wdata;
          14'h0010: mask <= mask & ~host_wdata;
          14'h0014: begin
            cc <= host_wdata;
            cc_written <= 1'b1;
            if (cc[0] && !host_wdata[0]) begin
              pending <= 32'b0;
              disabled <= 1'b1;
              if (failed) begin
                failed <= 1'b0;
                ready <= 1'b0;
                revive <= 1'b1;
              end
            end
          end
          14'h001c: if (host_wdata[4]) reset_occurred <= 1'b0;
          14'h0020: if (host_wdata == RESET_MAGIC) begin
            cc <= 32'b0;
            ready <= 1'b0;
            failed <= 1'b0;
            shutdown <= 2'd0;
            pending <= 32'b0;
            reset_occurred <= 1'b1;
            subsystem_written <= 1'b1;
            subsystem_reset <= 1'b1;
          end
          // The admin queue's place may change only while the controller is disabled.
          14'h0024: if (!cc[0]) aqa <= host_wdata;
          14'h0028: if (!cc[0]) asq[31:0] <= {host_wdata[31:12], 12'b0};
          14'h002c: if (!cc[0]) asq[63:32] <= host_wdata;
          14'h0030: if (!cc[0]) acq[31:0] <= {host_wdata[31:12], 12'b0};
          14'h0034: if (!cc[0]) acq[63:32] <= host_wdata;
          default: ;
        endcase
      end
      if (doorbell) begin
        if (!doorbell_known) bad_doorbell <= 1'b1;
        else if (host_addr[2]) begin
          cq_head[doorbell_index] <= host_wdata[15:0];
          cq_rang[doorbell_index] <= 1'b1;
        end else begin
          sq_tail[doorbell_index] <= host_wdata[15:0];
          sq_rang[doorbell_index] <= 1'b1;
        end
      end
      if (deliverable != 32'b0) begin
        msi_valid <= 1'b1;
        msi_vector <= lowest;
        pending[lowest] <= 1'b0;
      end
      if (fatal) failed <= 1'b1;
    end
  end

  always_comb begin
    cpu_rdata = 32'b0;
    unique case (cpu_addr)
      9'h000: cpu_rdata = cc;
      9'h004: cpu_rdata = csts;
      9'h008: cpu_rdata = aqa;
      9'h00c: cpu_rdata = asq[31:0];
      9'h010: cpu_rdata = asq[63:32];
      9'h014: cpu_rdata = acq[31:0];
      9'h018: cpu_rdata = acq[63:32];
      9'h01c: begin
        cpu_rdata[QUEUES-1:0] = sq_rang;
        cpu_rdata[8+:QUEUES] = cq_rang;
        cpu_rdata[19:16] = {disabled, bad_doorbell, subsystem_written, cc_written};
      end
      default: ;
    endcase
    // Queue q: 40h + 4q submission tail, 60h + 4q completion head.
    if (cpu_addr[8:5] == 4'h2 && cpu_index < 3'(QUEUES)) cpu_rdata = {16'b0, sq_tail[cpu_index]};
    if (cpu_addr[8:5] == 4'h3 && cpu_index < 3'(QUEUES)) cpu_rdata = {16'b0, cq_head[cpu_index]};
  end
endmodule
`default_nettype wire
