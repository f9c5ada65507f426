// SPDX-License-Identifier: MIT OR Apache-2.0
// Control processor: RV32I with Zicsr (machine mode only) and Zifencei, in order, one instruction at a time.
//
// Instructions come in lines of 32 bytes; an instruction whose successor is in the same line takes one clock, a
// load or store takes the bus's time besides, and a new line costs one fetch. There are no interrupts: firmware polls.
// An exception goes to mtvec; with mtvec = 0 the processor stops and raises `trapped`, which the SoC shows to the
// host as a fatal controller status, so a broken image never hangs silently.
`default_nettype none
module rv32i #(
    parameter logic [31:0] RESET_PC = 32'h0
) (
    input  wire          clk,
    input  wire          rst,
    // Instruction lines: address is 32-byte aligned; `fetch_ready` comes with the data.
    output logic         fetch_valid,
    output logic [31:0]  fetch_addr,
    input  wire          fetch_ready,
    input  wire  [255:0] fetch_line,
    // Data: one word; held until `data_ready`, which comes with the read data.
    output logic         data_valid,
    output logic         data_write,
    output logic [31:0]  data_addr,
    output logic [31:0]  data_wdata,
    output logic [3:0]   data_wstrb,
    input  wire          data_ready,
    input  wire  [31:0]  data_rdata,
    input  wire          data_error,
    output logic         trapped,
    // Retired instructions, for lock-step tests and the waveform reader.
    output logic         retire_valid,
    output logic [31:0]  retire_pc,
    output logic [4:0]   retire_rd,
    output logic [31:0]  retire_value
);
  typedef enum logic [1:0] {FETCH, EXECUTE, MEMORY, STOPPED} state_t;
  state_t state;

  // Exception codes of the privileged specification.
  localparam logic [31:0] FETCH_MISALIGNED = 0, ILLEGAL = 2, BREAKPOINT = 3, LOAD_MISALIGNED = 4, LOAD_FAULT = 5;
  localparam logic [31:0] STORE_MISALIGNED = 6, STORE_FAULT = 7, ECALL_M = 11;

  logic [31:0] pc, instruction;
  logic [31:0] registers[32];
  logic [255:0] line;
  logic [26:0] line_tag;
  logic line_valid;

  logic [31:0] mtvec, mepc, mcause, mtval, mscratch;
  logic mie, mpie;
  logic [63:0] mcycle, minstret;

  // Fields of the instruction.
  wire [6:0] opcode = instruction[6:0];
  wire [4:0] rd = instruction[11:7], rs1 = instruction[19:15], rs2 = instruction[24:20];
  wire [2:0] funct3 = instruction[14:12];
  wire [6:0] funct7 = instruction[31:25];
  wire [31:0] imm_i = {{20{instruction[31]}}, instruction[31:20]};
  wire [31:0] imm_s = {{20{instruction[31]}}, instruction[31:25], instruction[11:7]};
  wire [31:0] imm_b = {{19{instruction[31]}}, instruction[31], instruction[7], instruction[30:25], instruction[11:8], 1'b0};
  wire [31:0] imm_u = {instruction[31:12], 12'b0};
  wire [31:0] imm_j = {{11{instruction[31]}}, instruction[31], instruction[19:12], instruction[20], instruction[30:21], 1'b0};
  wire [31:0] a = registers[rs1], b = registers[rs2];

  // Arithmetic.
  wire is_op = opcode == 7'h33;
  wire [31:0] operand = is_op ? b : imm_i;
  wire subtract = is_op && funct7[5];
  wire arithmetic = funct7[5];
  logic [31:0] alu;
  always_comb begin
    unique case (funct3)
      3'd0: alu = subtract ? a - operand : a + operand;
      3'd1: alu = a << operand[4:0];
      3'd2: alu = {31'b0, $signed(a) < $signed(operand)};
      3'd3: alu = {31'b0, a < operand};
      3'd4: alu = a ^ operand;
      3'd5: alu = arithmetic ? 32'($signed(a) >>> operand[4:0]) : a >> operand[4:0];
      3'd6: alu = a | operand;
      default: alu = a & operand;
    endcase
  end

  logic branch_taken;
  always_comb begin
    unique case (funct3)
      3'd0: branch_taken = a == b;
      3'd1: branch_taken = a != b;
      3'd4: branch_taken = $signed(a) < $signed(b);
      3'd5: branch_taken = $signed(a) >= $signed(b);
      3'd6: branch_taken = a < b;
      default: branch_taken = a >= b;
    endcase
  end

  // Control and status registers.
  wire [11:0] csr = instruction[31:20];
  logic [31:0] csr_value;
  logic csr_known;
  always_comb begin
    csr_known = 1'b1;
    unique case (csr)
      12'h300: csr_value = {19'b0, 2'b11, 3'b0, mpie, 3'b0, mie, 3'b0};
      12'h301: csr_value = 32'h4000_0100;
      12'h304, 12'h344: csr_value = 32'b0;
      12'h305: csr_value = mtvec;
      12'h340: csr_value = mscratch;
      12'h341: csr_value = mepc;
      12'h342: csr_value = mcause;
      12'h343: csr_value = mtval;
      12'hB00: csr_value = mcycle[31:0];
      12'hB80: csr_value = mcycle[63:32];
      12'hB02: csr_value = minstret[31:0];
      12'hB82: csr_value = minstret[63:32];
      12'hF11, 12'hF12, 12'hF13, 12'hF14: csr_value = 32'b0;
      default: begin
        csr_value = 32'b0;
        csr_known = 1'b0;
      end
    endcase
  end
  wire [31:0] csr_operand = funct3[2] ? {27'b0, rs1} : a;
  logic [31:0] csr_next;
  always_comb begin
    unique case (funct3[1:0])
      2'd2: csr_next = csr_value | csr_operand;
      2'd3: csr_next = csr_value & ~csr_operand;
      default: csr_next = csr_operand;
    endcase
  end
  wire csr_writes = funct3[1:0] == 2'd1 || rs1 != 5'd0;

  // Decode: what the instruction does, in one place.
  logic writes_rd, is_memory, is_store, is_csr, is_mret, is_fence_i;
  logic [31:0] value, next_pc, address;
  logic exception;
  logic [31:0] cause, cause_value;
  always_comb begin
    writes_rd = 1'b0;
    is_memory = 1'b0;
    is_store = 1'b0;
    is_csr = 1'b0;
    is_mret = 1'b0;
    is_fence_i = 1'b0;
    value = 32'b0;
    next_pc = pc + 32'd4;
    address = a + imm_i;
    exception = 1'b0;
    cause = ILLEGAL;
    cause_value = instruction;
    unique case (opcode)
      7'h37: begin writes_rd = 1'b1; value = imm_u; end
      7'h17: begin writes_rd = 1'b1; value = pc + imm_u; end
      7'h6f: begin writes_rd = 1'b1; value = pc + 32'd4; next_pc = pc + imm_j; end
      7'h67: begin
        writes_rd = 1'b1;
        value = pc + 32'd4;
        next_pc = (a + imm_i) & ~32'd1;
        exception = funct3 != 3'd0;
      end
      7'h63: begin
        if (funct3 == 3'd2 || funct3 == 3'd3) exception = 1'b1;
        else if (branch_taken) next_pc = pc + imm_b;
      end
      7'h03: begin
        is_memory = 1'b1;
        exception = funct3 == 3'd3 || funct3 == 3'd6 || funct3 == 3'd7;
        if (!exception && ((funct3[1:0] == 2'd1 && address[0]) || (funct3[1:0] == 2'd2 && address[1:0] != 2'd0))) begin
          exception = 1'b1;
          cause = LOAD_MISALIGNED;
          cause_value = address;
        end
      end
      7'h23: begin
        is_memory = 1'b1;
        is_store = 1'b1;
        address = a + imm_s;
        exception = funct3 > 3'd2;
        if (!exception && ((funct3 == 3'd1 && address[0]) || (funct3 == 3'd2 && address[1:0] != 2'd0))) begin
          exception = 1'b1;
          cause = STORE_MISALIGNED;
          cause_value = address;
        end
      end
      7'h13: begin
        writes_rd = 1'b1;
        value = alu;
        exception = (funct3 == 3'd1 && funct7 != 7'd0) || (funct3 == 3'd5 && (funct7 & 7'h5f) != 7'd0);
      end
      7'h33: begin
        writes_rd = 1'b1;
        value = alu;
        exception = !(funct7 == 7'd0 || (funct7 == 7'h20 && (funct3 == 3'd0 || funct3 == 3'd5)));
      end
      7'h0f: begin
        is_fence_i = funct3 == 3'd1;
        exception = funct3 > 3'd1;
      end
      7'h73: begin
        if (funct3 == 3'd0) begin
          if (instruction == 32'h3020_0073) begin
            is_mret = 1'b1;
            next_pc = mepc;
          end else if (instruction == 32'h1050_0073) begin
            // WFI is a no-operation: there is nothing to wait for.
          end else begin
            exception = 1'b1;
            if (instruction == 32'h0000_0073) begin cause = ECALL_M; cause_value = 32'b0; end
            if (instruction == 32'h0010_0073) begin cause = BREAKPOINT; cause_value = pc; end
          end
        end else begin
          is_csr = 1'b1;
          writes_rd = 1'b1;
          value = csr_value;
          exception = funct3 == 3'd4 || !csr_known || (csr_writes && csr[11:10] == 2'b11);
        end
      end
      default: exception = 1'b1;
    endcase
    if (!exception && next_pc[1:0] != 2'd0) begin
      exception = 1'b1;
      cause = FETCH_MISALIGNED;
      cause_value = next_pc;
    end
  end

  // Load data, shifted and extended.
  wire [31:0] shifted = data_rdata >> {data_addr[1:0], 3'b0};
  logic [31:0] loaded;
  always_comb begin
    unique case (funct3)
      3'd0: loaded = {{24{shifted[7]}}, shifted[7:0]};
      3'd1: loaded = {{16{shifted[15]}}, shifted[15:0]};
      3'd4: loaded = {24'b0, shifted[7:0]};
      3'd5: loaded = {16'b0, shifted[15:0]};
      default: loaded = shifted;
    endcase
  end

  // The successor's word, when it is in the line at hand.
  wire [31:2] successor = state == MEMORY ? pc[31:2] + 30'd1 : next_pc[31:2];
  wire successor_hit = line_valid && line_tag == successor[31:5] && !(state == EXECUTE && is_fence_i);
  wire [31:0] successor_word = line[{successor[4:2], 5'b0}+:32];
  wire pc_hit = line_valid && line_tag == pc[31:5];

  always_comb begin
    fetch_valid = state == FETCH && !pc_hit;
    fetch_addr = {pc[31:5], 5'b0};
    data_valid = state == MEMORY;
    trapped = state == STOPPED;
  end

  always_ff @(posedge clk) begin
    mcycle <= mcycle + 64'd1;
    retire_valid <= 1'b0;
    if (rst) begin
      state <= FETCH;
      pc <= RESET_PC;
      line_valid <= 1'b0;
      mtvec <= 32'b0;
      mie <= 1'b0;
      mpie <= 1'b0;
      mcycle <= 64'b0;
      minstret <= 64'b0;
      mepc <= 32'b0;
      mcause <= 32'b0;
      mtval <= 32'b0;
      mscratch <= 32'b0;
      registers[0] <= 32'b0;
    end else begin
      unique case (state)
        FETCH: begin
          if (pc_hit) begin
            instruction <= line[{pc[4:2], 5'b0}+:32];
            state <= EXECUTE;
          end else if (fetch_ready) begin
            line <= fetch_line;
            line_tag <= pc[31:5];
            line_valid <= 1'b1;
            instruction <= fetch_line[{pc[4:2], 5'b0}+:32];
            state <= EXECUTE;
          end
        end
        EXECUTE: begin
          if (exception) begin
            if (mtvec == 32'b0) state <= STOPPED;
            else begin
              mepc <= pc;
              mcause <= cause;
              mtval <= cause_value;
              mpie <= mie;
              mie <= 1'b0;
              pc <= mtvec;
              state <= FETCH;
            end
          end else if (is_memory) begin
            data_write <= is_store;
            data_addr <= address;
            data_wdata <= b << {address[1:0], 3'b0};
            unique case (funct3[1:0])
              2'd0: data_wstrb <= 4'b0001 << address[1:0];
              2'd1: data_wstrb <= 4'b0011 << address[1:0];
              default: data_wstrb <= 4'b1111;
            endcase
            state <= MEMORY;
          end else begin
            if (writes_rd && rd != 5'd0) registers[rd] <= value;
            if (is_csr && csr_writes) begin
              unique case (csr)
                12'h300: begin mie <= csr_next[3]; mpie <= csr_next[7]; end
                12'h305: mtvec <= {csr_next[31:2], 2'b0};
                12'h340: mscratch <= csr_next;
                12'h341: mepc <= {csr_next[31:2], 2'b0};
                12'h342: mcause <= csr_next;
                12'h343: mtval <= csr_next;
                default: ;
              endcase
            end
            if (is_mret) begin
              mie <= mpie;
              mpie <= 1'b1;
            end
            if (is_fence_i) line_valid <= 1'b0;
            minstret <= minstret + 64'd1;
            retire_valid <= 1'b1;
            retire_pc <= pc;
            retire_rd <= writes_rd ? rd : 5'd0;
            retire_value <= value;
            pc <= next_pc;
            instruction <= successor_word;
            state <= successor_hit ? EXECUTE : FETCH;
          end
        end
        MEMORY: if (data_ready) begin
          if (data_error) begin
            if (mtvec == 32'b0) state <= STOPPED;
            else begin
              mepc <= pc;
              mcause <= data_write ? STORE_FAULT : LOAD_FAULT;
              mtval <= data_addr;
              mpie <= mie;
              mie <= 1'b0;
              pc <= mtvec;
              state <= FETCH;
            end
          end else begin
            if (!data_write && rd != 5'd0) registers[rd] <= loaded;
            minstret <= minstret + 64'd1;
            retire_valid <= 1'b1;
            retire_pc <= pc;
            retire_rd <= data_write ? 5'd0 : rd;
            retire_value <= loaded;
            pc <= pc + 32'd4;
            instruction <= successor_word;
            state <= successor_hit ? EXECUTE : FETCH;
          end
        end
        STOPPED: ;
        default: state <= STOPPED;
      endcase
    end
  end
endmodule
`default_nettype wire
