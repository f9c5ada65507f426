// SPDX-License-Identifier: MIT OR Apache-2.0
// Firmware memory: one port of 32 bytes with byte strobes, read data one clock after the request.
`default_nettype none
module soc_sram #(
    parameter int BYTES = 65536,
    parameter string IMAGE = "firmware.hex"  // 64 hexadecimal digits a line; overridden by +firmware=FILE in simulation
) (
    input  wire                       clk,
    input  wire                       valid,
    input  wire                       write,
    input  wire [$clog2(BYTES)-1:5]   line,
    input  wire [255:0]               wdata,
    input  wire [31:0]                wstrb,
    output logic [255:0]              rdata
);
  // Not UltraRAM, which has no contents to begin with.
  (* ram_style = "block" *) logic [255:0] memory[BYTES/32];
  initial begin
`ifdef VERILATOR
    string file;
    if ($value$plusargs("firmware=%s", file)) $readmemh(file, memory);
    else $readmemh(IMAGE, memory);
`else
    $readmemh(IMAGE, memory);
`endif
  end
  always_ff @(posedge clk) begin
    if (valid) begin
      if (write) begin
        for (int i = 0; i < 32; i++) if (wstrb[i]) memory[line][8*i+:8] <= wdata[8*i+:8];
      end else rdata <= memory[line];
    end
  end
endmodule
`default_nettype wire
