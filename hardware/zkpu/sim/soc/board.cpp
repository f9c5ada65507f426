// SPDX-License-Identifier: MIT OR Apache-2.0
#include "board.h"
#include "Vzkpu_board__Dpi.h"
#include <cstdio>

namespace {
Board *current;  // DPI functions have no handle: one board at a time
std::vector<curve::Scalar> standin_scalars;
std::vector<curve::Entry> standin_entries;
curve::Scalar scalar_now;
curve::Entry entry_now;
uint32_t standin_levels, entry_number;
curve::Point standin_sum;
}  // namespace

// Device memory. Reads outside answer zero (a stream may end past the last entry), writes outside are dropped.
long long dram_read(long long address) {
    uint64_t value = 0;
    if (uint64_t(address) + 8 <= current->device_memory.size()) memcpy(&value, &current->device_memory[address], 8);
    return (long long)value;
}
void dram_write(long long address, long long value, int strobe) {
    if (uint64_t(address) + 8 > current->device_memory.size()) return;
    for (int i = 0; i < 8; i++)
        if (strobe >> i & 1) current->device_memory[address + i] = uint8_t(uint64_t(value) >> (8 * i));
}

void standin_start(int, int, int levels) {
    standin_scalars.clear();
    standin_entries.clear();
    standin_levels = levels;
    entry_number = 0;
}
void standin_scalar(int word, long long value) {
    scalar_now[word] = value;
    if (word == 3) standin_scalars.push_back(scalar_now);
}
void standin_entry(int word, long long value) {
    reinterpret_cast<uint64_t *>(&entry_now)[word] = value;
    if (word == 17 && entry_number++ % standin_levels == 0) standin_entries.push_back(entry_now);
}
void standin_finish() { standin_sum = curve::product(standin_scalars, standin_entries); }
long long standin_result(int coordinate, int word) {
    const curve::Field *fields[4] = {&standin_sum.x, &standin_sum.y, &standin_sum.z, &standin_sum.t};
    return (long long)(*fields[coordinate])[word];
}
int standin_behaviour() { return current->standin_behaviour; }

Board::Board(const std::string &firmware, uint64_t device_bytes, uint64_t power_on_id)
    : device_memory(device_bytes), host_memory(HOST_BYTES), image("+firmware=" + firmware) {
    current = this;
    power_on_with(power_on_id);
}
Board::~Board() { top->final(); }

void Board::reset() {
    top->rst = 1;
    top->host_valid = 0;
    top->hmem_req_ready = 1;
    top->hmem_rsp_valid = 0;
    top->memory_pages = uint32_t(device_memory.size() / 4096);
    top->power_on_id = power_on;
    top->serial = 0x5a4b505530303031;
    answers.clear();
    tick(5);
    top->rst = 0;
    tick(1);
}

void Board::power_cycle(uint64_t power_on_id) {
    for (auto &byte : device_memory) byte = uint8_t(random());
    top->final();
    top.reset();  // before its context
    power_on_with(power_on_id);
}

// A new model, because the processor has written to the memory that holds its image.
void Board::power_on_with(uint64_t power_on_id) {
    power_on = power_on_id;
    context = std::make_unique<VerilatedContext>();
    const char *arguments[] = {"board", image.c_str()};
    context->commandArgs(2, arguments);
    top = std::make_unique<Vzkpu_board>(context.get());
    reset();
}

void Board::tick(uint64_t clocks) {
    while (clocks--) {
        // Inputs of this clock.
        top->hmem_rsp_valid = 0;
        if (!answers.empty() && answers.front().at <= cycles) {
            const Answer &answer = answers.front();
            top->hmem_rsp_valid = 1;
            top->hmem_rsp_error = answer.error;
            for (int i = 0; i < 8; i++) top->hmem_rsp_data[i] = answer.data[i];
            answers.pop_front();
        }
        top->hmem_req_ready = answers.size() < 24 && random() % 8 != 0;
        top->clk = 0;
        top->eval();
        const bool taken = top->hmem_req_valid && top->hmem_req_ready && !top->rst;
        if (taken) {
            Answer answer{cycles + uint64_t(host_latency), !host_valid(top->hmem_req_addr, 32), {}};
            if (answer.error) {
                host_errors++;
            } else {
                uint8_t *line = host(top->hmem_req_addr);
                if (top->hmem_req_write) {
                    const auto *data = reinterpret_cast<const uint8_t *>(&top->hmem_req_wdata[0]);
                    for (int i = 0; i < 32; i++)
                        if (top->hmem_req_wstrb >> i & 1) {
                            line[i] = data[i];
                            host_write_low = std::min(host_write_low, top->hmem_req_addr + i);
                            host_write_high = std::max(host_write_high, top->hmem_req_addr + i);
                        }
                } else {
                    memcpy(answer.data.data(), line, 32);
                }
            }
            answers.push_back(answer);
        }
        top->clk = 1;
        top->eval();
        if (top->msi_valid) messages[top->msi_vector]++;
        if (top->debug_valid) fputc(top->debug_byte, stderr);
        cycles++;
    }
}

uint32_t Board::read32(uint32_t address) {
    top->host_valid = 1;
    top->host_write = 0;
    top->host_addr = address;
    tick();
    top->host_valid = 0;
    return top->host_rdata;
}
void Board::write32(uint32_t address, uint32_t value) {
    top->host_valid = 1;
    top->host_write = 1;
    top->host_addr = address;
    top->host_wdata = value;
    tick();
    top->host_valid = 0;
}
