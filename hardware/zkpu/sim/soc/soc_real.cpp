// SPDX-License-Identifier: MIT OR Apache-2.0
// The device with the real MSM core: products by both personalities against the oracle of sim/core, device memory compared
// byte by byte after each job, core errors, cancels and resets while the core works.
//   soc_real FIRMWARE.hex test SEED       2^5 ... 2^10 points; ends with 'N passed, N failed'
//   soc_real FIRMWARE.hex few SEED        small jobs, for the multipliers in RTL
//   soc_real FIRMWARE.hex bench LOG_N WINDOW KINDS...    one row for each kind of scalars
//   soc_real FIRMWARE.hex placed LOG_N WINDOW KINDS...   the same by the memory personality only, with the table put into the
//                                                        model's memory: for the multipliers in RTL
#include "host.h"
#include "problem.h"

namespace {

int passed, failed;
bool check(bool good, const std::string &name) {
    (good ? passed : failed)++;
    if (!good) printf("FAILED: %s\n", name.c_str());
    return good;
}

uint64_t rounded(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

struct Range {
    uint32_t nsid, length;
    uint64_t first, reserved[2];
};

struct Device {
    Board board;
    Host host;
    std::vector<uint8_t> mirror;  // what device memory must hold
    std::mt19937_64 random;
    // Addresses of the present problem: the second scalars are 64 and not 512 bytes aligned.
    uint64_t scalars = 4096, second_scalars = 0, table = 0, result = 0;
    const Table *points = nullptr;
    uint32_t room = 0;  // scalars that the areas hold
    uint64_t core_cycles = 0, event_clocks = 0;

    Device(const std::string &firmware, uint64_t bytes, uint64_t seed) : board(firmware, bytes), host(board), random(seed) {
        mirror = board.device_memory;
        up();
    }
    void up() {
        check(host.enable(16), "enable");
        check(host.create_queues(1, 32, 32, 1).ok(), "I/O queues");
    }

    // Moves bytes by Write or Read of namespace 1 (whole blocks), or by those of namespace 2.
    bool transfer(bool blocks, bool to_device, uint64_t address, void *data, uint64_t bytes) {
        for (uint64_t at = 0; at < bytes;) {
            const uint32_t part = uint32_t(std::min<uint64_t>(bytes - at, 1 << 20));
            Command c{.opcode = uint8_t(to_device ? (blocks ? 1 : 5) : 2), .nsid = blocks ? 1u : 2u};
            const uint64_t place = blocks ? (address + at) / 512 : address + at;
            c.cdw10 = uint32_t(place);
            c.cdw11 = uint32_t(place >> 32);
            c.cdw12 = blocks ? part / 512 - 1 : part;
            auto *from = static_cast<uint8_t *>(data) + at;
            const Completion done = to_device ? host.write(1, c, from, part, 4 * (random() % 8)) : host.read(1, c, from, part);
            if (!done.ok()) return false;
            if (to_device) memcpy(&mirror[address + at], from, part);
            at += part;
        }
        return true;
    }
    bool write_blocks(uint64_t address, const void *data, uint64_t bytes) {
        std::vector<uint8_t> padded(rounded(bytes, 512));
        memcpy(padded.data(), data, bytes);
        return transfer(true, true, address, padded.data(), padded.size());
    }
    bool memory_as_expected(const std::string &name) {
        return check(mirror == board.device_memory, name + ": device memory outside the result");
    }

    // Loads a table of `count` points, those of `t` in turn: the first half as blocks, the second by bytes; or `placed`.
    void load(const Table &t, uint32_t count, bool placed = false) {
        points = &t;
        room = count;
        second_scalars = scalars + rounded(32ull * count, 512) + 64;
        table = rounded(second_scalars + 32ull * count, 512);
        const uint64_t row = 144ull * t.levels, bytes = row * count;
        result = table + rounded(bytes, 512);
        if (!check(result + 1024 <= mirror.size(), "the problem fits")) exit(1);
        std::vector<uint8_t> data(rounded(bytes, 512));
        for (uint32_t j = 0; j < count; j++) memcpy(&data[row * j], &t.entries[3ull * t.levels * (j % t.points)], row);
        if (placed) {
            memcpy(&mirror[table], data.data(), data.size());
            memcpy(&board.device_memory[table], data.data(), data.size());
            return;
        }
        const uint64_t half = data.size() / 1024 * 512;
        check(transfer(true, true, table, data.data(), half), "table as blocks");
        check(transfer(false, true, table + half, &data[half], data.size() - half), "table by bytes");
    }

    bool right(uint64_t at, const Pt &expected) {
        Fe coordinates[4];
        memcpy(coordinates, &board.device_memory[at], 192);
        memcpy(&mirror[at], coordinates, 192);
        return right_result(coordinates[0], coordinates[1], coordinates[2], coordinates[3], expected);
    }
    // Noise where the result goes, so that an old result cannot pass for a new one.
    void spoil(uint64_t at) {
        for (int i = 0; i < 192; i++) board.device_memory[at + i] = mirror[at + i] = uint8_t(random());
    }

    Command start(uint32_t count, uint32_t flags) {
        Command c{.opcode = 0x80, .nsid = 1};
        c.cdw10 = uint32_t(scalars / 512);
        c.cdw11 = uint32_t(table / 512);
        c.cdw12 = uint32_t(result / 512);
        c.cdw13 = count;
        c.cdw14 = uint32_t(points->window) | uint32_t(points->levels) << 8 | flags << 24;
        c.cdw15 = uint32_t(random());
        return c;
    }
    // Entry of the job in log page C1h; reading it lets the next event come.
    std::vector<uint8_t> job_entry(uint32_t number) {
        std::vector<uint8_t> page(1088);
        Command log{.opcode = 2, .nsid = 0xffffffff};
        log.cdw10 = 0xc1 | (1088 / 4 - 1) << 16;
        check(host.read(0, log, page.data(), 1088).ok(), "job table");
        for (int i = 0; i < 16; i++) {
            uint32_t at;
            memcpy(&at, &page[64 + 64 * i], 4);
            if (at == number) return {page.begin() + 64 + 64 * i, page.begin() + 128 + 64 * i};
        }
        return std::vector<uint8_t>(64);
    }

    // Memory personality: Write, Start, event, log page, Read.
    void memory_product(const std::vector<Scalar> &s, const Pt &expected, const std::string &name) {
        check(write_blocks(scalars, s.data(), 32 * s.size()), name + ": scalars");
        spoil(result);
        const uint16_t event = host.submit(0, Command{.opcode = 0x0c});
        const uint64_t before = board.now();
        const Completion started = host.run(1, start(uint32_t(s.size()), 0));
        check(started.ok(), name + ": start");
        const auto raised = host.wait(0, event, 400'000'000);
        event_clocks = board.now() - before;
        check(raised && raised->dw0 == 0xc10107, name + ": event");
        const auto entry = job_entry(started.dw0);
        check(entry[8] == 3 && entry[9] == 0, name + ": the job is done");
        memcpy(&core_cycles, &entry[32], 8);
        std::vector<uint8_t> block(512);
        check(transfer(true, false, result, block.data(), 512), name + ": read");
        check(memcmp(block.data(), &board.device_memory[result], 512) == 0, name + ": what is read is what is there");
        check(right(result, expected), name + " by the memory personality");
        memory_as_expected(name);
    }

    // Compute personality: Memory Write, range set, Execute Program, Memory Read.
    void compute_product(const std::vector<Scalar> &s, const Pt &expected, const std::string &name) {
        std::vector<Scalar> copy = s;
        const uint64_t at = result + 320;
        check(transfer(false, true, second_scalars, copy.data(), 32 * s.size()), name + ": scalars by bytes");
        spoil(at);
        const uint64_t bytes = rounded(144ull * points->levels * s.size(), 64);
        Range ranges[3] = {{2, uint32_t(rounded(32 * s.size(), 64)), second_scalars, {}}, {2, uint32_t(bytes), table, {}}, {2, 192, at, {}}};
        Command manage{.opcode = 0x89, .nsid = 3};
        manage.cdw11 = 3;
        const Completion set = host.write(0, manage, ranges, sizeof ranges);
        check(set.ok(), name + ": range set");
        Command execute{.opcode = 1, .nsid = 3, .cdw2 = 1 | set.dw0 << 16};
        execute.cdw10 = uint32_t(s.size());
        execute.cdw11 = uint32_t(points->window) | uint32_t(points->levels) << 8;
        const auto done = host.wait(1, host.submit(1, execute), 400'000'000);
        check(done && done->ok() && (done->dw0 | done->dw1), name + ": execute");
        std::vector<uint8_t> read(192);
        check(transfer(false, false, at, read.data(), 192), name + ": read by bytes");
        check(memcmp(read.data(), &board.device_memory[at], 192) == 0, name + ": what is read is what is there");
        check(right(at, expected), name + " by the compute personality");
        memory_as_expected(name);
        manage.cdw10 = 1 | set.dw0 << 16;
        check(host.run(0, manage).ok(), name + ": delete of the set");
    }

    void product(const std::string &kind, uint32_t count, bool compute = true) {
        const auto s = make_scalars(kind, count, points->window, random());
        const Pt expected = points->expected(s);
        const std::string name = "n = " + std::to_string(count) + ", w = " + std::to_string(points->window) + ", L = " +
                                 std::to_string(points->levels) + ", " + kind;
        memory_product(s, expected, name);
        if (compute) compute_product(s, expected, name);
    }
};

// A scalar that is not below the order, cancels and controller resets at several moments; a right product after each.
void disturbed(Device &d) {
    const uint32_t count = d.room;
    auto s = make_scalars("random", count, d.points->window, d.random());
    const Pt expected = d.points->expected(s);
    auto bad = s;
    memcpy(bad[count / 2].w, constants::R_ORDER, 32);
    check(d.write_blocks(d.scalars, bad.data(), 32 * count), "scalars");
    const Completion refused = d.host.run(1, d.start(count, 1));
    check(refused.code() == 0x1c1 && refused.dw0 == 4, "a scalar that is not below r");
    d.memory_as_expected("a scalar that is not below r");
    d.memory_product(s, expected, "after a bad scalar");
    for (uint64_t clocks : {1, 200, 1000, 3000, 6000}) {
        const std::string name = "cancel after " + std::to_string(clocks) + " clocks";
        d.spoil(d.result);
        const uint16_t cid = d.host.submit(1, d.start(count, 1));
        for (int i = 0; i < 20000 && !d.board.core_busy(); i++) d.board.tick();
        check(d.board.core_busy(), name + ": the core works");
        d.board.tick(clocks);
        Command cancel{.opcode = 0x88, .nsid = 1};
        std::vector<uint8_t> page(1088);
        Command log{.opcode = 2, .nsid = 0xffffffff};
        log.cdw10 = 0xc1 | (1088 / 4 - 1) << 16;
        check(d.host.read(0, log, page.data(), 1088).ok(), name + ": job table");
        memcpy(&cancel.cdw10, &page[12], 4);
        check(d.host.run(1, cancel).ok(), name);
        const auto ended = d.host.wait(1, cid);
        check(ended && (ended->code() == 0x1c3 || ended->ok()), name + ": the waiter is told");
        check(!d.board.core_busy(), name + ": the core rests");
        if (ended && ended->ok()) check(d.right(d.result, expected), name + ": it had ended");
        // A cancelled job leaves its result's bytes old, or new in part.
        memcpy(&d.mirror[d.result], &d.board.device_memory[d.result], 192);
        d.memory_as_expected(name);
        d.memory_product(s, expected, "after " + name);
    }
    for (uint64_t clocks : {10, 2000, 5000}) {
        const std::string name = "reset after " + std::to_string(clocks) + " clocks";
        d.spoil(d.result);
        d.host.submit(1, d.start(count, 1));
        for (int i = 0; i < 20000 && !d.board.core_busy(); i++) d.board.tick();
        d.board.tick(clocks);
        check(d.host.disable() && !d.board.core_busy(), name + ": the core rests");
        d.up();
        memcpy(&d.mirror[d.result], &d.board.device_memory[d.result], 192);
        d.memory_as_expected(name);
        d.memory_product(s, expected, "after " + name);
    }
}

// Eight jobs at once on one base set, each with its own number of points.
void queued(Device &d) {
    const uint32_t count = d.room;
    const auto s = make_scalars("random", count, d.points->window, d.random());
    check(d.write_blocks(d.scalars, s.data(), 32 * count), "scalars");
    Command base{.opcode = 0x8c, .nsid = 1};
    base.cdw10 = 5;
    base.cdw11 = uint32_t(d.table / 512);
    base.cdw13 = count;
    base.cdw14 = uint32_t(d.points->window) | uint32_t(d.points->levels) << 8;
    check(d.host.run(1, base).ok(), "base set");
    std::vector<uint16_t> commands;
    const uint64_t results = d.second_scalars + 512 - d.second_scalars % 512;  // that area is free here
    if (!check(results + 8 * 512 <= d.table, "room for eight results")) return;
    auto some = [&](uint32_t i) { return count - 3 * i; };
    for (uint32_t i = 0; i < 8; i++) {
        d.spoil(results + 512 * i);
        Command start = d.start(some(i), 3);
        start.cdw11 = 5;
        start.cdw12 = uint32_t(results / 512 + i);
        start.cdw14 = 3u << 24;
        commands.push_back(d.host.submit(1, start));
    }
    for (uint32_t i = 0; i < 8; i++) {
        const auto done = d.host.wait(1, commands[i], 100'000'000);
        check(done && done->ok(), "queued job " + std::to_string(i));
        check(d.right(results + 512 * i, d.points->expected({s.begin(), s.begin() + some(i)})), "result of queued job " + std::to_string(i));
    }
    d.memory_as_expected("queued jobs");
}

// A table made by the device from plain entries (Precompute) is that of the oracle to the byte, and products with it are right;
// then one that is cancelled and one that a reset ends.
void precomputed(Device &d, int window, int levels, uint32_t count) {
    const std::string name = "table of " + std::to_string(count) + " points, w = " + std::to_string(window) + ", L = " + std::to_string(levels);
    const Table t(window, levels, int(count), d.random(), true);
    d.load(t, count);
    const uint64_t bytes = 144ull * levels * count, source = d.result + 1024;
    std::vector<Fe> plain;
    for (uint32_t j = 0; j < count; j++)
        for (int i = 0; i < 3; i++) plain.push_back(t.entries[3ull * levels * j + i]);
    check(d.write_blocks(source, plain.data(), 144ull * count), name + ": plain entries");
    auto spoil = [&] {
        for (uint64_t i = 0; i < bytes; i++) d.board.device_memory[d.table + i] = d.mirror[d.table + i] = uint8_t(d.random());
    };
    Command make{.opcode = 0x90, .nsid = 1};
    make.cdw10 = uint32_t(source / 512);
    make.cdw11 = uint32_t(d.table / 512);
    make.cdw13 = count;
    make.cdw14 = uint32_t(window | levels << 8 | 1 << 24);
    auto whole = [&](const std::string &when) {
        spoil();
        const auto done = d.host.wait(1, d.host.submit(1, make), 400'000'000);
        check(done && done->ok(), name + when);
        memcpy(&d.mirror[d.table], t.entries.data(), bytes);
        d.memory_as_expected(name + when);
        const auto entry = d.job_entry(done ? done->dw0 : 0);
        uint64_t cycles;
        memcpy(&cycles, &entry[32], 8);
        check(entry[8] == 3 && entry[19] == 0x41 && cycles > 0, name + when + ": job table");
        return cycles;
    };
    const uint64_t cycles = whole("");
    printf("%s: %llu clocks, %.1f an entry\n", name.c_str(), (unsigned long long)cycles, double(cycles) / count / levels);
    d.product("random", count);
    d.product("edge", count);
    for (uint64_t clocks : {1ull, 50ull, 3000ull, (unsigned long long)cycles * 9 / 10}) {
        const std::string when = " ended after " + std::to_string(clocks) + " clocks";
        const bool reset = clocks == 50;
        spoil();
        const uint16_t cid = d.host.submit(1, make);
        for (int i = 0; i < 40000 && !d.board.core_busy(); i++) d.board.tick();
        check(d.board.core_busy(), name + when + ": the unit works");
        d.board.tick(clocks);
        if (reset) {
            check(d.host.disable(), name + when + ": reset");
            d.up();
        } else {
            check(d.host.run(0, Command{.opcode = 8, .cdw10 = 1u | uint32_t(cid) << 16}).ok(), name + when + ": abort");
            const auto ended = d.host.wait(1, cid);
            check(ended && ended->code() == 0x007, name + when + ": the waiter is told");
        }
        check(!d.board.core_busy(), name + when + ": the unit rests");
        memcpy(&d.mirror[d.table], &d.board.device_memory[d.table], bytes);
        d.memory_as_expected(name + when);
        d.memory_product(make_scalars("zero", count, window, 1), identity(), name + when + ": a product");
    }
    whole(" again");
}

void test(Device &d) {
    precomputed(d, 8, 4, 37);
    precomputed(d, 10, 26, 5);
    precomputed(d, 13, 1, 33);
    for (int power = 5; power <= 10; power++) {
        const int window = power < 9 ? 9 : power;
        const uint32_t count = 1u << power;
        const Table t(window, digits_of(window), std::min<uint32_t>(count, 256), d.random(), true);
        d.load(t, count);
        for (const char *kind : {"random", "equal", "zero-one", "sparse"}) d.product(kind, count);
        printf("n = 2^%d, w = %d: %llu clocks from start to event, %llu in the core (sparse)\n", power, window,
               (unsigned long long)d.event_clocks, (unsigned long long)d.core_cycles);
        if (power == 9) {
            queued(d);
            disturbed(d);
        }
    }
    // Several passes, an odd number of entries, every kind of scalar at few points.
    const Table t(10, 7, 37, d.random(), true);
    d.load(t, 37);
    for (const char *kind : {"random", "hot", "edge", "minus-one", "zero", "bits", "mixed"}) d.product(kind, 37);
    for (uint32_t count : {1, 2, 3, 8}) d.product("random", count);
}

void few(Device &d) {
    const Table t(10, 26, 13, d.random(), true);
    d.load(t, 13);
    d.product("random", 13);
    d.memory_product(make_scalars("edge", 13, t.window, 1), t.expected(make_scalars("edge", 13, t.window, 1)), "edge");
    precomputed(d, 12, 3, 3);
    const Table passes(12, 7, 5, d.random());
    d.load(passes, 5);
    d.product("random", 5);
}

void bench(Device &d, int power, int window, bool placed, int kinds, char **kind) {
    const uint32_t count = 1u << power;
    const Table t(window, digits_of(window), std::min<uint32_t>(count, 512), d.random(), true);
    d.load(t, count, placed);
    for (int i = 0; i < kinds; i++) {
        d.product(kind[i], count, !placed);
        printf("n = 2^%d, w = %d, L = %d, %s: %llu cycles in the core, %.3f a point; %llu clocks from start to event, %.3f a point\n", power,
               window, t.levels, kind[i], (unsigned long long)d.core_cycles, double(d.core_cycles) / count,
               (unsigned long long)d.event_clocks, double(d.event_clocks) / count);
    }
}

}  // namespace

int main(int argc, char **argv) {
    const std::string what = argc > 2 ? argv[2] : "";
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if ((what == "bench" || what == "placed") && argc > 5) {
        Device d(argv[1], 64 << 20, 14);
        bench(d, atoi(argv[3]), atoi(argv[4]), what == "placed", argc - 5, argv + 5);
    } else if ((what == "test" || what == "few") && argc > 3) {
        check(oracle_self_test() == 0, "the oracle's known answers");
        Device d(argv[1], 8 << 20, strtoull(argv[3], nullptr, 0));
        what == "test" ? test(d) : few(d);
    } else {
        fprintf(stderr, "usage: %s FIRMWARE.hex test SEED | few SEED | bench|placed LOG_N WINDOW KINDS...\n", argv[0]);
        return 2;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
