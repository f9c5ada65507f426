// SPDX-License-Identifier: MIT OR Apache-2.0
// What the tests of the system on chip share: checks, a booted host, points with tables, commands of docs/zkpu.md.
#pragma once
#include "host.h"
#include <cstdio>

extern int checks_passed, checks_failed;
void check(bool good, const char *what, const char *file, int line);
void check_code(const Completion &completion, int type, int code, const char *what, const char *file, int line);
#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
#define CHECK_OK(completion) check_code((completion), 0, 0, #completion, __FILE__, __LINE__)
#define CHECK_CODE(completion, type, code) check_code((completion), (type), (code), #completion, __FILE__, __LINE__)

// Points (j + 1) G with tables, random scalars and the product that is right for them.
struct Problem {
    std::vector<curve::Scalar> scalars;
    std::vector<curve::Entry> table;  // [point][level]
    curve::Point expected;
    uint32_t count, window, levels;
    Problem(uint32_t count, uint32_t window, uint32_t levels, uint32_t seed);
    uint32_t scalar_bytes() const { return uint32_t(scalars.size() * 32); }
    uint32_t table_bytes() const { return uint32_t(table.size() * 144); }
};

constexpr uint32_t BITS = 252;  // a folded scalar: W = ceil(BITS / w)

struct Fixture {
    Board board;
    Host host;
    std::mt19937 random{99};
    explicit Fixture(const std::string &firmware, uint64_t device_bytes = 8 << 20) : board(firmware, device_bytes), host(board) {}

    bool boot();  // enable and two I/O pairs: 1 of 16 entries, 2 of 4
    Completion write_blocks(uint64_t block, std::vector<uint8_t> data, int q = 1, uint32_t offset = 0);
    Completion read_blocks(uint64_t block, std::vector<uint8_t> &data, int q = 1, uint32_t offset = 0);
    Completion write_memory(uint64_t address, const void *data, uint32_t bytes);
    Completion read_memory(uint64_t address, void *data, uint32_t bytes);
    // Puts a problem's data at these blocks by ordinary writes.
    void load(const Problem &problem, uint32_t scalars_block, uint32_t table_block);
    bool result_at(uint32_t block, const curve::Point &expected);
    static Command start(uint32_t scalars, uint32_t table, uint32_t result, const Problem &problem, uint32_t flags = 0, uint32_t tag = 0);
    std::vector<uint8_t> log(uint8_t page, uint32_t bytes, bool retain = false);
    Completion identify(uint8_t cns, uint32_t nsid, uint8_t csi, std::vector<uint8_t> &page);
    // State of a job in log page C1h, 0 if it is not there.
    int job_state(uint32_t number, bool retain = true);
};

template <class T> T at(const std::vector<uint8_t> &bytes, size_t offset) {
    T value;
    memcpy(&value, &bytes[offset], sizeof value);
    return value;
}
