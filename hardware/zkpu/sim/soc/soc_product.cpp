// SPDX-License-Identifier: MIT OR Apache-2.0
// Products through the device, by both personalities, against scalars whose sum of products is known: the points are
// k_j G, so the result must be (sum s_j k_j mod r) G, whatever formulas the core or its stand-in uses.
// Usage: soc_product firmware.hex [largest power of two]. Ends with 'N passed, N failed'.
#include "host.h"
#include <cstdio>
#include <cstdlib>

namespace {

int passed, failed;
void check(bool ok, const std::string &name) {
    if (ok) passed++;
    else {
        failed++;
        printf("FAILED: %s\n", name.c_str());
    }
}

using curve::Scalar;
bool below_order(const Scalar &a) {
    for (int i = 3; i >= 0; i--)
        if (a[i] != constants::R_ORDER[i]) return a[i] < constants::R_ORDER[i];
    return false;
}
Scalar add_mod(const Scalar &a, const Scalar &b) {
    Scalar c;
    unsigned __int128 t = 0;
    for (int i = 0; i < 4; i++, t >>= 64) c[i] = uint64_t(t += (unsigned __int128)a[i] + b[i]);
    if (below_order(c)) return c;
    unsigned __int128 borrow = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned __int128 d = (unsigned __int128)c[i] - constants::R_ORDER[i] - borrow;
        c[i] = uint64_t(d);
        borrow = d >> 64 & 1;
    }
    return c;
}
Scalar multiply_mod(const Scalar &a, const Scalar &b) {
    Scalar r{};
    for (int i = 255; i >= 0; i--) {
        r = add_mod(r, r);
        if (b[i / 64] >> (i % 64) & 1) r = add_mod(r, a);
    }
    return r;
}

curve::Point generator() {
    curve::Point g{curve::constant(constants::GENERATOR_X_MONT), curve::constant(constants::GENERATOR_Y_MONT), curve::one(), {}};
    g.t = curve::multiply(g.x, g.y);
    return g;
}

struct Job {
    std::vector<Scalar> scalars;
    std::vector<curve::Entry> table;
    curve::Point expected;
    uint32_t window, levels;
};

// `kind`: 0 random, 1 equal, 2 zero or one, 3 all zero, 4 all r - 1.
Job make(uint32_t count, uint32_t window, uint32_t levels, int kind, std::mt19937_64 &random) {
    Job job{{}, {}, {}, window, levels};
    const uint32_t digits = (252 + window - 1) / window, stride = window * ((digits + levels - 1) / levels);
    const curve::Point g = generator();
    Scalar total{}, equal{random(), random(), random(), random() & 0x0fffffffffffffff};
    // Points are k G for k = k0, k0 + 1, ...; now and then the neutral point and a negative.
    Scalar k{random() & 0xffffff, 0, 0, 0};
    curve::Point p = curve::multiple(g, k.data(), 4);
    for (uint32_t j = 0; j < count; j++) {
        k = add_mod(k, Scalar{1});
        p = curve::add(p, g);
        const bool neutral = j % 17 == 5;
        Scalar s{random(), random(), random(), random() & 0x0fffffffffffffff};
        if (kind == 1) s = equal;
        if (kind == 2) s = Scalar{random() & 1};
        if (kind == 3) s = Scalar{};
        if (kind == 4) s = Scalar{constants::R_ORDER[0] - 1, constants::R_ORDER[1], constants::R_ORDER[2], constants::R_ORDER[3]};
        job.scalars.push_back(s);
        curve::Point multiple = neutral ? curve::neutral() : p;
        for (uint32_t level = 0; level < levels; level++) {
            job.table.push_back(curve::entry(multiple));
            for (uint32_t i = 0; i < stride && level + 1 < levels; i++) multiple = curve::add(multiple, multiple);
        }
        if (!neutral) total = add_mod(total, multiply_mod(s, k));
    }
    job.expected = curve::multiple(g, total.data(), 4);
    return job;
}

struct Range {
    uint32_t nsid, length;
    uint64_t first, reserved[2];
};

void right(const std::vector<uint8_t> &bytes, const Job &job, const std::string &name) {
    curve::Point result;
    memcpy(&result, bytes.data(), 192);
    check(curve::valid(result) && curve::equal(result, job.expected), name);
}

bool transfer(Host &host, bool memory, bool to_device, uint64_t address, void *data, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes;) {
        const uint32_t part = uint32_t(std::min<uint64_t>(bytes - at, 256 << 10));
        Command c{.opcode = uint8_t(memory ? (to_device ? 5 : 2) : (to_device ? 1 : 2)), .nsid = memory ? 2u : 1u};
        const uint64_t place = memory ? address + at : (address + at) / 512;
        c.cdw10 = uint32_t(place);
        c.cdw11 = uint32_t(place >> 32);
        c.cdw12 = memory ? part : part / 512 - 1;
        uint8_t *from = static_cast<uint8_t *>(data) + at;
        const Completion done = to_device ? host.write(1, c, from, part) : host.read(1, c, from, part);
        if (!done.ok()) return false;
        at += part;
    }
    return true;
}

template <class T> std::vector<uint8_t> padded(const std::vector<T> &data) {
    std::vector<uint8_t> bytes((data.size() * sizeof(T) + 511) / 512 * 512);
    memcpy(bytes.data(), data.data(), data.size() * sizeof(T));
    return bytes;
}

void product(Host &host, const Job &job, const std::string &name) {
    const uint32_t count = uint32_t(job.scalars.size());
    auto scalars = padded(job.scalars), table = padded(job.table);
    const uint64_t at_table = scalars.size(), at_result = at_table + table.size();
    // Memory personality: Write, Start, event, Read.
    std::vector<uint8_t> result(512);
    check(transfer(host, false, true, 0, scalars.data(), scalars.size()), name + " scalars");
    check(transfer(host, false, true, at_table, table.data(), table.size()), name + " table");
    const uint16_t event = host.submit(0, Command{.opcode = 0x0c});
    Command start{.opcode = 0x80, .nsid = 1};
    start.cdw11 = uint32_t(at_table / 512);
    start.cdw12 = uint32_t(at_result / 512);
    start.cdw13 = count;
    start.cdw14 = job.window | job.levels << 8;
    const uint64_t before = host.board.now();
    check(host.run(1, start).ok(), name + " start");
    const auto raised = host.wait(0, event, 100'000'000);
    const uint64_t clocks = host.board.now() - before;
    check(raised && raised->dw0 == 0xc10107, name + " event");
    check(transfer(host, false, false, at_result, result.data(), 512), name + " read");
    right(result, job, name + " by the memory personality");
    std::vector<uint8_t> jobs(1088);
    Command log{.opcode = 2, .nsid = 0xffffffff};
    log.cdw10 = 0xc1 | (1088 / 4 - 1) << 16;
    check(host.read(0, log, jobs.data(), 1088).ok(), name + " job table");
    // Compute personality: Memory Write of the scalars elsewhere, ranges, Execute, Memory Read.
    const uint64_t at_scalars = at_result + 1024;
    check(transfer(host, true, true, at_scalars, scalars.data(), scalars.size()), name + " memory write");
    const uint64_t at_second = at_scalars + scalars.size();
    Range ranges[3] = {{2, uint32_t(scalars.size()), at_scalars, {}}, {2, uint32_t(table.size()), at_table, {}}, {2, 192, at_second, {}}};
    Command manage{.opcode = 0x89, .nsid = 3};
    manage.cdw11 = 3;
    const Completion set = host.write(0, manage, ranges, sizeof ranges);
    check(set.ok(), name + " range set");
    Command execute{.opcode = 1, .nsid = 3, .cdw2 = 1 | set.dw0 << 16};
    execute.cdw10 = count;
    execute.cdw11 = job.window | job.levels << 8;
    const auto executed = host.wait(1, host.submit(1, execute), 100'000'000);
    check(executed && executed->ok() && executed->dw0 > 0, name + " execute");
    result.assign(192, 0);
    check(transfer(host, true, false, at_second, result.data(), 192), name + " memory read");
    right(result, job, name + " by the compute personality");
    // The same with ranges inside the command.
    execute.cdw2 = 1;
    execute.cdw3 = 3;
    execute.cdw4 = 96;
    const Completion inlined = host.wait(1, host.submit_data(1, execute, ranges, 96), 100'000'000).value_or(Completion{0, 0, 0, 0, 0, 0xffff});
    check(inlined.ok(), name + " execute with inline ranges");
    manage.cdw10 = 1 | set.dw0 << 16;
    check(host.run(0, manage).ok(), name + " delete of the set");
    printf("%-40s %llu clocks from start to event, %u in the core\n", name.c_str(), (unsigned long long)clocks, executed ? executed->dw0 : 0);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const int largest = argc > 2 ? atoi(argv[2]) : 6;
    auto board = std::make_unique<Board>(argv[1], 32 << 20, 9);
    auto driver = std::make_unique<Host>(*board);
    Host &host = *driver;
    check(host.enable(16), "enable");
    check(host.create_queues(1, 16, 16, 1).ok(), "queues");
    std::mt19937_64 random(377);
    const char *kinds[] = {"random", "equal", "zero-one", "zero", "r - 1"};
    for (int power = 0; power <= largest; power += power < 4 ? 2 : 1) {
        const uint32_t count = power == 0 ? 1 : (1u << power) - (power & 1);
        product(host, make(count, 8, 1, 0, random), "n = " + std::to_string(count) + ", w = 8, 1 level, random");
    }
    for (int kind = 0; kind < 5; kind++)
        product(host, make(24, 10, 2, kind, random), "n = 24, w = 10, 2 levels, " + std::string(kinds[kind]));
    // Several jobs in flight over one base set: results in order of acceptance.
    const Job job = make(16, 9, 1, 0, random);
    auto scalars = padded(job.scalars), table = padded(job.table);
    check(transfer(host, false, true, 0, scalars.data(), scalars.size()), "scalars");
    check(transfer(host, false, true, 8192, table.data(), table.size()), "table");
    Command base{.opcode = 0x8c, .nsid = 1};
    base.cdw10 = 3, base.cdw11 = 16, base.cdw13 = 16, base.cdw14 = 9 | 1 << 8;
    check(host.run(1, base).ok(), "base set");
    std::vector<uint16_t> commands;
    for (uint32_t i = 0; i < 8; i++) {
        Command start{.opcode = 0x80, .nsid = 1};
        start.cdw11 = 3, start.cdw12 = 64 + i, start.cdw13 = 16, start.cdw14 = 3u << 24, start.cdw15 = i;
        commands.push_back(host.submit(1, start));
    }
    uint32_t previous = 0;
    for (uint32_t i = 0; i < 8; i++) {
        const auto done = host.wait(1, commands[i], 100'000'000);
        check(done && done->ok() && done->dw0 > previous, "queued job");
        previous = done ? done->dw0 : 0;
        std::vector<uint8_t> result(512);
        check(transfer(host, false, false, (64 + i) * 512, result.data(), 512), "read");
        right(result, job, "queued job's result");
    }
    // Power loss: another identifier, sets gone, memory gone, and the device works again.
    driver.reset();
    board.reset();
    board = std::make_unique<Board>(argv[1], 32 << 20, 10);
    Host again(*board);
    check(again.enable(16) && again.create_queues(1, 16, 16, 1).ok(), "enable after power loss");
    Command start{.opcode = 0x80, .nsid = 1};
    start.cdw11 = 3, start.cdw12 = 64, start.cdw13 = 16, start.cdw14 = 3u << 24;
    check(again.run(1, start).code() == 0x1c6, "base sets are lost with power");
    std::vector<uint8_t> page(4096);
    Command identify{.opcode = 6};
    identify.cdw10 = 1;
    check(again.read(0, identify, page.data(), 4096).ok() && page[3112] == 10, "power-on identifier");
    product(again, make(8, 8, 1, 0, random), "n = 8 after power loss");
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
