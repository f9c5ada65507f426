// SPDX-License-Identifier: MIT OR Apache-2.0
#include "fixture.h"

int checks_passed, checks_failed;

void check(bool good, const char *what, const char *file, int line) {
    if (good) {
        checks_passed++;
    } else {
        checks_failed++;
        printf("FAILED %s:%d: %s\n", file, line, what);
        fflush(stdout);
    }
}
void check_code(const Completion &completion, int type, int code, const char *what, const char *file, int line) {
    const bool good = completion.status != 0xffff && completion.code() == (type << 8 | code);
    if (!good) printf("  status %x,%02x%s, wanted %x,%02x\n", completion.code() >> 8, completion.code() & 0xff,
                      completion.status == 0xffff ? " (no completion)" : "", type, code);
    check(good, what, file, line);
}

Problem::Problem(uint32_t count, uint32_t window, uint32_t levels, uint32_t seed) : count(count), window(window), levels(levels) {
    std::mt19937_64 random(seed);
    const curve::Point g = curve::generator();
    curve::Point point = g;
    const uint32_t digits = (BITS + window - 1) / window, passes = (digits + levels - 1) / levels;
    std::vector<uint64_t> sum(8);  // sum of s_j (j + 1), an integer
    for (uint32_t j = 0; j < count; j++) {
        curve::Point level = point;
        for (uint32_t i = 0; i < levels; i++) {
            table.push_back(curve::entry(level));
            if (i + 1 < levels)
                for (uint32_t k = 0; k < window * passes; k++) level = curve::add(level, level);
        }
        point = curve::add(point, g);
        curve::Scalar s{random(), random(), random(), random() % constants::R_ORDER[3]};
        scalars.push_back(s);
        unsigned __int128 carry = 0;
        for (int i = 0; i < 8; i++) {
            carry += sum[i];
            if (i < 4) carry += (unsigned __int128)s[i] * (j + 1);
            sum[i] = uint64_t(carry);
            carry >>= 64;
        }
    }
    expected = curve::multiple(g, sum.data(), 6);
}

bool Fixture::boot() {
    return host.enable() && host.create_queues(1, 16, 16, 1).ok() && host.create_queues(2, 4, 4, 2).ok();
}

Completion Fixture::write_blocks(uint64_t block, std::vector<uint8_t> data, int q, uint32_t offset) {
    data.resize((data.size() + 511) / 512 * 512);
    Command c{.opcode = 1, .nsid = 1};
    c.cdw10 = uint32_t(block);
    c.cdw11 = uint32_t(block >> 32);
    c.cdw12 = uint32_t(data.size() / 512 - 1);
    return host.write(q, c, data.data(), uint32_t(data.size()), offset);
}
Completion Fixture::read_blocks(uint64_t block, std::vector<uint8_t> &data, int q, uint32_t offset) {
    Command c{.opcode = 2, .nsid = 1};
    c.cdw10 = uint32_t(block);
    c.cdw11 = uint32_t(block >> 32);
    c.cdw12 = uint32_t(data.size() / 512 - 1);
    return host.read(q, c, data.data(), uint32_t(data.size()), offset);
}
Completion Fixture::write_memory(uint64_t address, const void *data, uint32_t bytes) {
    Command c{.opcode = 5, .nsid = 2};
    c.cdw10 = uint32_t(address);
    c.cdw11 = uint32_t(address >> 32);
    c.cdw12 = bytes;
    return host.write(1, c, data, bytes);
}
Completion Fixture::read_memory(uint64_t address, void *data, uint32_t bytes) {
    Command c{.opcode = 2, .nsid = 2};
    c.cdw10 = uint32_t(address);
    c.cdw11 = uint32_t(address >> 32);
    c.cdw12 = bytes;
    return host.read(1, c, data, bytes);
}

void Fixture::load(const Problem &problem, uint32_t scalars_block, uint32_t table_block) {
    const auto *s = reinterpret_cast<const uint8_t *>(problem.scalars.data());
    const auto *t = reinterpret_cast<const uint8_t *>(problem.table.data());
    CHECK_OK(write_blocks(scalars_block, {s, s + problem.scalar_bytes()}));
    CHECK_OK(write_blocks(table_block, {t, t + problem.table_bytes()}));
}

bool Fixture::result_at(uint32_t block, const curve::Point &expected) {
    std::vector<uint8_t> bytes(512);
    if (!read_blocks(block, bytes).ok()) return false;
    const auto point = at<curve::Point>(bytes, 0);
    return curve::valid(point) && curve::equal(point, expected);
}

Command Fixture::start(uint32_t scalars, uint32_t table, uint32_t result, const Problem &problem, uint32_t flags, uint32_t tag) {
    Command c{.opcode = 0x80, .nsid = 1};
    c.cdw10 = scalars;
    c.cdw11 = table;
    c.cdw12 = result;
    c.cdw13 = problem.count;
    c.cdw14 = problem.window | problem.levels << 8 | flags << 24;
    c.cdw15 = tag;
    return c;
}

std::vector<uint8_t> Fixture::log(uint8_t page, uint32_t bytes, bool retain) {
    std::vector<uint8_t> data(bytes);
    Command c{.opcode = 2, .nsid = 0xffffffff};
    c.cdw10 = page | uint32_t(retain) << 15 | (bytes / 4 - 1) << 16;
    CHECK_OK(host.read(0, c, data.data(), bytes));
    return data;
}
Completion Fixture::identify(uint8_t cns, uint32_t nsid, uint8_t csi, std::vector<uint8_t> &page) {
    page.assign(4096, 0xee);
    Command c{.opcode = 6, .nsid = nsid};
    c.cdw10 = cns;
    c.cdw11 = uint32_t(csi) << 24;
    return host.read(0, c, page.data(), 4096);
}
int Fixture::job_state(uint32_t number, bool retain) {
    const auto page = log(0xc1, 1088, retain);
    for (int i = 0; i < 16; i++)
        if (at<uint32_t>(page, 64 + 64 * i) == number) return page[64 + 64 * i + 8];
    return 0;
}
