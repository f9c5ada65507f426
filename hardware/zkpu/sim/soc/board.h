// SPDX-License-Identifier: MIT OR Apache-2.0
// The simulated board: clock, host memory behind the DMA port, host registers, contents of device memory.
#pragma once
#include "Vzkpu_board.h"
#include "curve.h"
#include "verilated.h"
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

class Board {
  public:
    static constexpr uint64_t HOST_BASE = 0x1'0000'0000;  // above 4 GiB, so that high halves matter
    static constexpr uint64_t HOST_BYTES = 32 << 20;
    static constexpr uint32_t REG_CAP = 0x00, REG_VS = 0x08, REG_CC = 0x14, REG_CSTS = 0x1c, REG_NSSR = 0x20, REG_AQA = 0x24,
                              REG_ASQ = 0x28, REG_ACQ = 0x30;

    Board(const std::string &firmware, uint64_t device_bytes, uint64_t power_on_id = 1);
    ~Board();

    void tick(uint64_t clocks = 1);
    uint64_t now() const { return cycles; }
    uint32_t read32(uint32_t address);
    uint64_t read64(uint32_t address) { return read32(address) | uint64_t(read32(address + 4)) << 32; }
    void write32(uint32_t address, uint32_t value);
    void write64(uint32_t address, uint64_t value) {
        write32(address, uint32_t(value));
        write32(address + 4, uint32_t(value >> 32));
    }
    bool interrupt() const { return top->interrupt_pin; }
    bool core_busy() const { return top->core_busy; }
    // Power loss: everything but the image is gone; device memory is filled with noise.
    void power_cycle(uint64_t power_on_id);

    uint8_t *host(uint64_t address) { return &host_memory.at(address - HOST_BASE); }
    bool host_valid(uint64_t address, uint64_t bytes) const {
        return address >= HOST_BASE && address + bytes <= HOST_BASE + HOST_BYTES;
    }

    std::vector<uint8_t> device_memory, host_memory;
    uint64_t messages[32] = {};       // interrupts by vector
    uint64_t host_errors = 0;         // accesses outside host memory, answered with an error
    uint64_t host_write_low = ~0ull, host_write_high = 0;
    int host_latency = 20;
    int standin_behaviour = 0;        // 0 work, 1 error, 2 never end, 3 never end and ignore abort

  private:
    struct Answer {
        uint64_t at;
        bool error;
        std::array<uint32_t, 8> data;
    };
    std::unique_ptr<VerilatedContext> context;
    std::unique_ptr<Vzkpu_board> top;
    std::deque<Answer> answers;
    std::mt19937 random{7};
    uint64_t cycles = 0, power_on;
    std::string image;
    void reset();
    void power_on_with(uint64_t power_on_id);
};
