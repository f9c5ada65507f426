// SPDX-License-Identifier: MIT OR Apache-2.0
// The device against docs/zkpu.md where it says no: every malformed command's status, waiters, aborts, full queues, broken
// PRP lists, cores that fail or hang, resets at random moments, random commands. Ends with 'N passed, N failed'.
// Usage: soc_conformance firmware.hex [random commands] [resets]
#include "host.h"
#include <algorithm>
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
void expect(const Completion &c, uint16_t code, const std::string &name) {
    char text[160];
    snprintf(text, sizeof text, "%s: status %03x, expected %03x", name.c_str(), c.code(), code);
    check(c.status != 0xffff && c.code() == code, text);
}

Command admin(uint8_t opcode, uint32_t nsid = 0, uint32_t cdw10 = 0, uint32_t cdw11 = 0) {
    Command c{.opcode = opcode, .nsid = nsid};
    c.cdw10 = cdw10;
    c.cdw11 = cdw11;
    return c;
}
Command io(uint8_t opcode, uint32_t nsid, uint32_t cdw10 = 0, uint32_t cdw11 = 0, uint32_t cdw12 = 0, uint32_t cdw13 = 0,
           uint32_t cdw14 = 0, uint32_t cdw15 = 0) {
    Command c{.opcode = opcode, .nsid = nsid};
    c.cdw10 = cdw10;
    c.cdw11 = cdw11;
    c.cdw12 = cdw12;
    c.cdw13 = cdw13;
    c.cdw14 = cdw14;
    c.cdw15 = cdw15;
    return c;
}
constexpr uint32_t SHAPE = 13 | 1 << 8, WAIT = 1u << 24, BASE = 1u << 25, PLAIN = 1u << 26;
Command start(uint32_t flags = 0, uint32_t count = 4) { return io(0x80, 1, 0, 64, 128, count, SHAPE | flags, 7); }
struct Range {
    uint32_t nsid, length;
    uint64_t first, reserved[2];
};

struct Bench {
    Board board;
    Host host;
    uint64_t bytes = 1 << 20;
    explicit Bench(const std::string &image) : board(image, 1 << 20, 5), host(board) {}
    void up() {
        check(host.enable(32), "enable");
        for (int i = 1; i < 5; i++) expect(host.create_queues(i, 16, 16, i), 0, "create queues");
    }
    Completion range_set(const std::vector<Range> &ranges) {
        return host.write(0, admin(0x89, 3, 0, uint32_t(ranges.size())), ranges.data(), uint32_t(32 * ranges.size()));
    }
    std::vector<uint8_t> log(uint8_t id, uint32_t bytes_wanted, bool retain = false) {
        std::vector<uint8_t> data(bytes_wanted);
        const uint32_t dwords = bytes_wanted / 4 - 1;
        expect(host.read(0, admin(2, 0xffffffff, id | retain << 15 | dwords << 16), data.data(), bytes_wanted), 0, "log");
        return data;
    }
    // The page of effects of a command set: the entries of its I/O commands.
    std::vector<uint32_t> effects(uint32_t set) {
        std::vector<uint8_t> data(4096);
        Command c = admin(2, 0xffffffff, 0x05 | 1023 << 16);
        c.cdw14 = set << 24;
        expect(host.read(0, c, data.data(), 4096), 0, "effects");
        std::vector<uint32_t> entries(256);
        memcpy(entries.data(), &data[1024], 1024);
        return entries;
    }
    template <class T> static T at(const std::vector<uint8_t> &data, size_t offset) {
        T value;
        memcpy(&value, &data[offset], sizeof value);
        return value;
    }
};

void malformed(Bench &b) {
    b.up();
    Host &h = b.host;
    const uint32_t blocks = uint32_t(b.bytes / 512);
    std::vector<uint8_t> page(1 << 16);
    auto in = [&](int q, Command c, uint16_t code, const char *name) { expect(h.run(q, c), code, name); };
    auto with = [&](int q, Command c, uint16_t code, const char *name, uint32_t bytes = 4096) {
        expect(h.read(q, c, page.data(), bytes), code, name);
    };
    // Admin.
    in(0, admin(0x7f), 0x001, "unknown admin opcode");
    Command c = admin(6, 0, 1);
    c.flags = 0x40;
    with(0, c, 0x002, "SGL");
    c.flags = 1;
    with(0, c, 0x002, "fused");
    with(0, admin(6, 0, 0x77), 0x002, "unknown CNS");
    with(0, admin(6, 0, 0), 0x00b, "CNS 0 of namespace 0");
    with(0, admin(6, 4, 0), 0x00b, "CNS 0 of namespace 4");
    with(0, admin(6, 2, 0), 0x12c, "CNS 0 of namespace 2");
    with(0, admin(6, 1, 5, 4u << 24), 0x12c, "namespace 1 as programs");
    with(0, admin(6, 1, 6, 9u << 24), 0x12c, "unknown command set");
    with(0, admin(6, 0xfffffffe, 2), 0x00b, "list after FFFFFFFEh");
    with(0, admin(2, 0, 0x82 | 127 << 16), 0x109, "unknown log page");
    c = admin(2, 0, 0x05 | 127 << 16);
    c.cdw14 = 2u << 24;
    with(0, c, 0x12c, "effects of an unknown command set");
    c = admin(2, 0, 0xc1 | 127 << 16);
    c.cdw12 = 4092;
    with(0, c, 0x002, "log page offset past its end");
    in(0, admin(5, 0, 15 << 16 | 0, 1), 0x101, "completion queue 0");
    in(0, admin(5, 0, 15 << 16 | 5, 1), 0x101, "completion queue 5");
    in(0, admin(5, 0, 15 << 16 | 1, 1), 0x101, "completion queue in use");
    in(0, admin(1, 0, 15 << 16 | 1, 1 << 16 | 1), 0x101, "submission queue in use");
    in(0, admin(4, 0, 1), 0x10c, "delete of a completion queue in use");
    in(0, admin(0, 0, 9), 0x101, "delete of no submission queue");
    in(0, admin(0, 0, 4), 0, "delete submission queue 4");
    in(0, admin(0, 0, 4), 0x101, "delete it again");
    in(0, admin(1, 0, 15 << 16 | 4, 9 << 16 | 1), 0x100, "submission queue without completion queue");
    in(0, admin(1, 0, 0 << 16 | 4, 4 << 16 | 1), 0x102, "queue of one entry");
    in(0, admin(1, 0, 256 << 16 | 4, 4 << 16 | 1), 0x102, "queue too large");
    in(0, admin(1, 0, 15 << 16 | 4, 4 << 16 | 0), 0x002, "queue that is not contiguous");
    in(0, admin(4, 0, 4), 0, "delete completion queue 4");
    in(0, admin(5, 0, 15 << 16 | 4, 77 << 16 | 3), 0x108, "vector 77");
    in(0, admin(9, 0, 0x77), 0x002, "unknown feature");
    in(0, admin(9, 0, 1u << 31 | 0x0b), 0x10d, "save of a feature");
    in(0, admin(9, 0, 7, 0xffff), 0x002, "65,536 queues");
    expect(h.create_queues(4, 16, 16, 4), 0, "queues 4 again");
    in(0, admin(0x85, 3, 1), 0x19a, "load program 1");
    in(0, admin(0x85, 3, 2), 0x18f, "load program 2");
    in(0, admin(0x88, 3, 2 | 1 << 16), 0x18f, "activate program 2");
    in(0, admin(0x88, 1, 1 | 1 << 16), 0x00b, "activate in namespace 1");
    // Namespaces 1 and 2.
    in(1, io(0x02, 9), 0x00b, "read of namespace 9");
    in(1, io(0x02, 0), 0x00b, "read of namespace 0");
    in(1, io(0x55, 1), 0x001, "unknown opcode, namespace 1");
    in(1, io(0x01, 2), 0x001, "Memory Copy");
    in(1, io(0x02, 3), 0x001, "read of namespace 3");
    with(1, io(0x02, 1, blocks - 1, 0, 1), 0x080, "read across the end");
    with(1, io(0x01, 1, 0, 1, 0), 0x080, "write far outside");
    with(1, io(0x02, 1, 0xffffffff, 0xffffffff, 0), 0x080, "read at the last block number");
    in(1, io(0x02, 1, 0, 0, 2048), 0x002, "more than 1 MiB");
    in(1, io(0x02, 1, 0, 0, 1u << 29), 0x002, "protection information");
    with(1, io(0x02, 2, 2, 0, 64), 0x002, "misaligned byte address");
    with(1, io(0x02, 2, 0, 0, 66), 0x002, "misaligned length");
    with(1, io(0x05, 2, uint32_t(b.bytes) - 64, 0, 128), 0x080, "bytes across the end");
    in(1, io(0x05, 2, uint32_t(b.bytes), 0, 0), 0, "no bytes at the end");
    in(1, io(0x05, 2, 0, 0, (1 << 20) + 4), 0x002, "more than 1 MiB of bytes");
    in(1, io(0x00, 2, 0, 0, uint32_t(b.bytes)), 0, "fill of all memory");
    in(1, io(0x00, 2, 4, 0, uint32_t(b.bytes)), 0x080, "fill beyond memory");
    // PRPs.
    c = io(0x02, 1, 0, 0, 0);
    c.prp1 = Board::HOST_BASE + 0x40001;
    in(1, c, 0x013, "odd PRP1");
    c = io(0x02, 1, 0, 0, 7);
    c.prp1 = Board::HOST_BASE + 0x40200;
    c.prp2 = Board::HOST_BASE + 0x41200;
    in(1, c, 0x013, "PRP2 inside a page");
    c.cdw12 = 31;
    c.prp2 = Board::HOST_BASE + 0x41004;
    in(1, c, 0x013, "misaligned PRP list");
    c = io(0x02, 1, 0, 0, 0);
    c.prp1 = 0x1000;
    in(1, c, 0x004, "unreadable host memory");
    c = io(0x01, 1, 0, 0, 0);
    c.prp1 = 0x1000;
    in(1, c, 0x004, "write from unreadable host memory");
    // A list whose only entry points to itself: the walk is bounded.
    const uint64_t circle = Board::HOST_BASE + 0x50ff8;
    memcpy(b.board.host(circle), &circle, 8);
    c = io(0x02, 1, 0, 0, 63);
    c.prp1 = Board::HOST_BASE + 0x60000;
    c.prp2 = circle;
    in(1, c, 0x002, "circular PRP list");
    // Start, Set Base.
    in(1, io(0x80, 1, 0, 64, 128, 4, SHAPE | 1 << 5), 0x002, "reserved bit of dword 14");
    in(1, io(0x80, 1, 0, 64, 128, 4, SHAPE | 1u << 28), 0x002, "reserved flag");
    in(1, start(PLAIN), 0x1c7, "plain points");
    in(1, io(0x80, 1, 0, 64, 128, 4, SHAPE | 3 << 16), 0x1c7, "unknown curve");
    in(1, io(0x80, 1, 0, 64, 128, 4, 3 | 1 << 8), 0x1c8, "window too small");
    in(1, io(0x80, 1, 0, 64, 128, 4, 31 | 1 << 8), 0x1c8, "window too large");
    in(1, io(0x80, 1, 0, 64, 128, 4, 13 | 0 << 8), 0x1c8, "no levels");
    in(1, io(0x80, 1, 0, 64, 128, 4, 13 | 31 << 8), 0x1c8, "too many levels");
    in(1, start(0, 0), 0x1c9, "count 0");
    in(1, start(0, 0xffffffff), 0x1c9, "count above its maximum");
    in(1, io(0x80, 1, blocks - 1, 64, 128, 100, SHAPE), 0x080, "scalars beyond memory");
    in(1, io(0x80, 1, 0, blocks - 1, 128, 100, SHAPE), 0x080, "table beyond memory");
    in(1, io(0x80, 1, 0, 64, blocks, 4, SHAPE), 0x080, "result beyond memory");
    in(1, io(0x80, 1, 0, 64, 0xffffffff, 4, SHAPE), 0x080, "result far beyond memory");
    in(1, io(0x80, 1, 0, 64, 0, 4, SHAPE), 0x1ca, "result over scalars");
    in(1, io(0x80, 1, 0, 64, 65, 4, SHAPE), 0x1ca, "result over the table");
    in(1, start(BASE), 0x1c6, "base set that does not exist");
    in(1, io(0x8c, 1, 0, 64, 0, 4, SHAPE), 0x1c6, "base set 0");
    in(1, io(0x8c, 1, 17, 64, 0, 4, SHAPE), 0x1c6, "base set 17");
    in(1, io(0x8c, 1, 1, 64, 0, 100000, SHAPE), 0x080, "base set beyond memory");
    in(1, io(0x8c, 1, 1, 64, 0, 4, 30 | 1 << 8), 0x1c8, "base set with a window too large");
    in(1, io(0x8c, 1, 1, 64, 0, 4, SHAPE), 0, "base set 1");
    in(1, io(0x80, 1, 0, 1, 128, 5, BASE), 0x1c9, "count above the base set's");
    in(1, io(0x84, 1, 99), 0x1c4, "wait for an unknown job");
    in(1, io(0x84, 1, 0), 0x1c4, "wait for job 0");
    in(1, io(0x88, 1, 99), 0x1c4, "cancel of an unknown job");
    // Precompute.
    in(1, io(0x90, 1, 0, 64, 0, 4, SHAPE | 1 << 5), 0x002, "table: reserved bit of dword 14");
    in(1, io(0x90, 1, 0, 64, 0, 4, SHAPE | BASE), 0x002, "table: a flag of Start");
    in(1, io(0x90, 1, 0, 64, 1, 4, SHAPE), 0x002, "table: dword 12");
    in(1, io(0x90, 1, 0, 64, 0, 4, SHAPE | 1 << 16), 0x1c7, "table: unknown curve");
    in(1, io(0x90, 1, 0, 64, 0, 4, 13 | 0 << 8), 0x1c8, "table: no levels");
    in(1, io(0x90, 1, 0, 64, 0, 4, 31 | 1 << 8), 0x1c8, "table: window too large");
    in(1, io(0x90, 1, 0, 64, 0, 0, SHAPE), 0x1c9, "table: count 0");
    in(1, io(0x90, 1, 0, 64, 0, 0xffffffff, SHAPE), 0x1c9, "table: count above its maximum");
    in(1, io(0x90, 1, blocks - 1, 64, 0, 4, SHAPE), 0x080, "table: plain entries beyond memory");
    in(1, io(0x90, 1, 0, blocks - 2, 0, 4, 13 | 4 << 8), 0x080, "table beyond memory");
    in(1, io(0x90, 1, 0, 1, 0, 4, SHAPE), 0x1ca, "table over its plain entries");
    in(1, io(0x90, 1, 2, 0, 0, 4, 13 | 4 << 8), 0x1ca, "plain entries inside the table");
    // Range sets, Execute.
    expect(b.range_set({{1, 64, 0}}), 0x18b, "range of namespace 1");
    expect(b.range_set({{2, 0, 0}}), 0x18c, "empty range");
    expect(b.range_set({{2, 65, 0}}), 0x18c, "odd range");
    expect(b.range_set({{2, 64, 32}}), 0x18c, "misaligned range");
    expect(b.range_set({{2, 64, b.bytes}}), 0x18c, "range beyond memory");
    expect(b.range_set({{2, 64, ~63ull}}), 0x18c, "range at the end of numbers");
    expect(b.range_set({{2, 128, 0}, {2, 64, 64}}), 0x197, "overlapping ranges");
    in(0, admin(0x89, 3, 0, 0), 0x191, "no ranges");
    in(0, admin(0x89, 3, 0, 5), 0x191, "five ranges");
    in(0, admin(0x89, 3, 2, 1), 0x002, "unknown selection");
    in(0, admin(0x89, 3, 1 | 3 << 16), 0x18d, "delete of an unknown set");
    for (int i = 1; i <= 16; i++) {
        const Completion made = b.range_set({{2, 128, 0}, {2, 576, 32768}, {2, 192, 65536}});
        expect(made, 0, "range set");
        check(made.dw0 == uint32_t(i), "range set number");
    }
    expect(b.range_set({{2, 128, 0}}), 0x192, "a 17th range set");
    in(0, admin(0x89, 3, 1 | 16 << 16), 0, "delete of a range set");
    expect(b.range_set({{2, 128, 0}, {2, 576, 32768}}), 0, "a set of two ranges");
    auto execute = [&](uint32_t cdw2, uint32_t count, uint32_t shape, uint16_t code, const char *name) {
        Command e = io(0x01, 3, count, shape);
        e.cdw2 = cdw2;
        in(2, e, code, name);
    };
    execute(2 | 1 << 16, 4, SHAPE, 0x18f, "program 2");
    execute(0 | 1 << 16, 4, SHAPE, 0x18f, "program 0");
    execute(1 | 17 << 16, 4, SHAPE, 0x18d, "unknown set");
    execute(1 | 16 << 16, 4, SHAPE, 0x18c, "set of two ranges");
    execute(1 | 0 << 16, 4, SHAPE, 0x191, "no set and no ranges");
    execute(1 | 1 << 16, 5, SHAPE, 0x18c, "scalars too short");
    execute(1 | 1 << 16, 4, 13 | 2 << 8, 0x18c, "table too short");
    execute(1 | 1 << 16, 0, SHAPE, 0x1c9, "execute of count 0");
    execute(1 | 1 << 16, 4, 0x1f | 1 << 8, 0x1c8, "execute with window 31");
    execute(1 | 1 << 16, 4, SHAPE | 1 << 16, 0x1c7, "execute of curve 1");
    execute(1 | 1 << 16, 4, SHAPE | 1u << 30, 0x002, "execute with a reserved bit");
    in(0, admin(0x88, 3, 1), 0, "deactivate");
    execute(1 | 1 << 16, 4, SHAPE, 0x198, "deactivated program");
    in(0, admin(0x88, 3, 1 | 1 << 16), 0, "activate");
    // The commands of each set are those that exist; the last of a set's is 90h.
    for (const auto &[set, opcodes] : std::vector<std::pair<uint32_t, std::vector<uint8_t>>>{
             {0, {0x00, 0x01, 0x02, 0x80, 0x84, 0x88, 0x8c, 0x90}}, {3, {0x00, 0x02, 0x05}}, {4, {0x01}}}) {
        const auto entries = b.effects(set);
        for (uint32_t opcode = 0; opcode < 256; opcode++) {
            const bool exists = std::find(opcodes.begin(), opcodes.end(), opcode) != opcodes.end();
            check((entries[opcode] & 1) == exists, "effects of " + std::to_string(opcode) + " in set " + std::to_string(set));
        }
    }
    // The error log has the newest error first.
    const auto errors = b.log(1, 64 * 16);
    check(Bench::at<uint16_t>(errors, 12) >> 1 == (0x4000 | 0x198), "newest error");
    check(Bench::at<uint64_t>(errors, 0) > 16 && Bench::at<uint64_t>(errors, 64) == Bench::at<uint64_t>(errors, 0) - 1, "order");
}

void waiters(Bench &b) {
    b.up();
    Host &h = b.host;
    b.board.standin_behaviour = 2;  // never ends
    // The queue takes 8 live jobs.
    const uint16_t waited = h.submit(1, start(WAIT));
    for (int i = 0; i < 7; i++) expect(h.run(2, start()), 0, "start");
    expect(h.run(2, start()), 0x1c0, "ninth job");
    check(!(h.run(2, start()).status & 0x4000), "a full queue may be retried");
    const uint16_t one = h.submit(3, io(0x84, 1, 2));
    b.board.tick(20000);
    expect(h.run(4, io(0x84, 1, 2)), 0x1c5, "second waiter");
    expect(h.run(0, admin(8, 0, 3 | one << 16)), 0, "abort of a wait");
    expect(*h.wait(3, one), 0x007, "aborted wait");
    auto table = b.log(0xc1, 1088);
    check(Bench::at<uint16_t>(table, 6) == 8, "eight jobs live");
    check(h.run(0, admin(8, 0, 3 | one << 16)).dw0 == 1, "abort of nothing");
    expect(h.run(2, io(0x88, 1, 3)), 0, "cancel of a queued job");
    expect(h.run(2, io(0x84, 1, 3)), 0x1c3, "wait for a cancelled job");
    expect(h.run(0, admin(8, 0, 1 | waited << 16)), 0, "abort of a waiting start");
    expect(*h.wait(1, waited), 0x007, "aborted start");
    table = b.log(0xc1, 1088);
    check(Bench::at<uint16_t>(table, 6) == 6, "its job is cancelled");
    // Deleting a queue completes what waits there, before the delete's own completion.
    const uint16_t lost = h.submit(3, io(0x84, 1, 4)), own = h.submit(3, start(WAIT));
    b.board.tick(20000);
    expect(h.run(0, admin(0, 0, 3)), 0, "delete of a queue with waiters");
    check(h.has(3, lost) && h.has(3, own), "waiters completed before the delete");
    expect(*h.wait(3, lost), 0x008, "wait on a deleted queue");
    expect(*h.wait(3, own), 0x008, "start on a deleted queue");
    expect(h.run(0, admin(4, 0, 3)), 0, "delete of its completion queue");
    expect(h.create_queues(3, 16, 16, 3), 0, "queues again");
    // Base sets of live jobs.
    expect(h.run(1, io(0x8c, 1, 2, 64, 0, 4, SHAPE)), 0, "base set 2");
    const Completion based = h.run(1, io(0x80, 1, 0, 2, 128, 4, BASE));
    expect(based, 0, "start with a base set");
    expect(h.run(1, io(0x8c, 1, 2, 64, 0, 0, 0)), 0x1cb, "delete of a base set in use");
    // Timeouts: 2^20 clocks each.
    expect(h.run(0, admin(9, 0, 0xc1, 1)), 0, "timeout feature");
    expect(h.run(0, admin(10, 0, 0xc1)), 0, "timeout feature read");
    for (uint32_t job = 1; job <= based.dw0; job++) h.run(1, io(0x88, 1, job));
    expect(h.run(1, start(WAIT)), 0x1c2, "job that never ends");
    b.board.standin_behaviour = 3;
    expect(h.run(1, start(WAIT)), 0x1c1, "core that ignores abort");
    b.board.standin_behaviour = 1;
    const Completion broken = h.run(1, start(WAIT));
    expect(broken, 0x1c1, "core error");
    check(broken.dw0 == 5, "core error's code");
    b.board.standin_behaviour = 0;
    expect(h.run(1, start(WAIT)), 0, "the next job runs");
    const auto health = b.log(0xc0, 512);
    check(Bench::at<uint64_t>(health, 32) == 1 && Bench::at<uint64_t>(health, 40) == 2 && Bench::at<uint64_t>(health, 48) == 1,
          "counters of done, failed, timed out");
    check(health[2] == 0, "not busy, not fenced");
}

void events(Bench &b) {
    b.up();
    Host &h = b.host;
    uint16_t requests[4];
    for (auto &r : requests) r = h.submit(0, admin(0x0c));
    expect(h.run(0, admin(0x0c)), 0x105, "fifth event request");
    expect(h.run(0, admin(8, 0, 0 | requests[0] << 16)), 0, "abort of an event request");
    expect(*h.wait(0, requests[0]), 0x007, "aborted event request");
    for (int i = 0; i < 3; i++) expect(h.run(1, start()), 0, "start");
    const auto first = h.wait(0, requests[1]);
    check(first && first->dw0 == 0xc10107, "event of ended jobs");
    b.board.tick(200000);
    h.poll();
    check(!h.has(0, requests[2]), "one event until the log page is read");
    auto table = b.log(0xc1, 1088, true);
    check(Bench::at<uint32_t>(table, 8) == 3, "three ends, retained");
    expect(h.run(1, start()), 0, "start");
    b.board.tick(200000);
    h.poll();
    check(!h.has(0, requests[2]), "retained read does not re-arm");
    b.log(0xc1, 1088);
    expect(h.run(1, start()), 0, "start");
    const auto second = h.wait(0, requests[2]);
    check(second && second->dw0 == 0xc10107, "next event after the read");
    b.log(0xc1, 1088);
    expect(h.run(1, start(WAIT)), 0, "waiting start");
    b.board.tick(100000);
    h.poll();
    check(!h.has(0, requests[3]), "no event for a waiter");
    expect(h.run(0, admin(9, 0, 0xc0, 0)), 0, "events off");
    expect(h.run(1, start()), 0, "start");
    b.board.tick(200000);
    h.poll();
    check(!h.has(0, requests[3]), "no event when off");
    b.board.write32(0x1000 + 8 * 40, 3);
    const auto bad = h.wait(0, requests[3]);
    check(bad && bad->dw0 == 0x010000, "event of a doorbell without queue");
    requests[0] = h.submit(0, admin(0x0c));
    b.board.write32(0x1000 + 8 * 2, 999);
    const auto value = h.wait(0, requests[0]);
    check(value && value->dw0 == 0x010100, "event of a doorbell out of range");
}

// A completion queue that the host does not empty: nothing is lost and other queues go on.
void full_queue(Bench &b) {
    check(b.host.enable(32), "enable");
    Host &h = b.host;
    expect(h.create_queues(1, 64, 4, 1), 0, "queue with 3 usable completions");
    expect(h.create_queues(2, 8, 8, 2), 0, "other queue");
    uint16_t cids[20];
    for (auto &cid : cids) cid = h.submit(1, io(0x00, 1));  // not polled
    b.board.tick(100000);
    const uint64_t before = b.board.messages[1];
    check(before == 3, "three completions fit");
    expect(h.run(2, io(0x00, 1)), 0, "the other queue goes on");
    for (auto cid : cids) check(h.wait(1, cid).has_value(), "completion after room was made");
    b.board.tick(2000);  // the entry is in memory a little before its interrupt
    check(b.board.messages[1] == 20, "an interrupt each, not " + std::to_string(b.board.messages[1]));
    // Waiters whose completions find no room.
    for (int i = 0; i < 8; i++) cids[i] = h.submit(1, start(WAIT));
    b.board.tick(600000);
    for (int i = 0; i < 8; i++) {
        const auto c = h.wait(1, cids[i]);
        check(c && c->ok(), "deferred waiter");
    }
}

void wrap(Bench &b) {
    check(b.host.enable(3), "enable with three admin entries");
    Host &h = b.host;
    for (int i = 1; i < 5; i++) expect(h.create_queues(i, 2 + i, 2 + 2 * i, i), 0, "small queues");
    std::mt19937 random(3);
    std::vector<uint8_t> memory(b.board.device_memory), data(1 << 16), back(1 << 16);
    int wrong = 0, lost = 0;
    for (int i = 0; i < 1500; i++) {
        const int q = 1 + random() % 4;
        const uint32_t count = 1 + random() % 24, first = random() % (uint32_t(b.bytes / 512) - count), offset = random() % 1024 * 4;
        h.small_lists = random() % 3 ? 0 : 2 + random() % 5;
        if (random() % 2) {
            for (uint32_t k = 0; k < count * 512; k++) data[k] = uint8_t(random());
            if (!h.write(q, io(1, 1, first, 0, count - 1), data.data(), count * 512, offset).ok()) lost++;
            memcpy(&memory[first * 512], data.data(), count * 512);
        } else {
            if (!h.read(q, io(2, 2, first * 512, 0, count * 512), back.data(), count * 512, offset).ok()) lost++;
            if (memcmp(&memory[first * 512], back.data(), count * 512)) wrong++;
        }
        if (i % 16 == 0 && !h.run(0, admin(10, 0, 7)).ok()) lost++;
    }
    check(lost == 0 && wrong == 0, "1,500 transfers over four wrapping queue pairs");
    check(memory == b.board.device_memory, "device memory after them");
}

void registers(Bench &b, const std::string &) {
    Host &h = b.host;
    Board &board = b.board;
    check(board.read64(Board::REG_CAP) >> 37 == (0x41) , "CAP.CSS and no more");
    check(h.enable(16), "enable");
    check(h.disable(), "disable");
    board.write32(Board::REG_CC, 6 << 16 | 4 << 20 | 3 << 4 | 1);  // command set 3 is reserved
    board.tick(20000);
    check((board.read32(Board::REG_CSTS) & 3) == 2, "unknown command set is fatal");
    check(h.enable(16), "enable after a fatal status");
    check(h.enable(16, 0), "enable with the NVM command set only");
    expect(h.create_queues(1, 8, 8, 1), 0, "queues");
    expect(h.run(1, io(0x02, 2)), 0x00b, "namespace 2 is hidden");
    // An admin queue that cannot be read.
    check(h.disable(), "disable");
    board.write64(Board::REG_ASQ, 0x1000);
    board.write32(Board::REG_CC, 6 << 16 | 4 << 20 | 6 << 4 | 1);
    board.tick(20000);
    board.write32(0x1000, 1);
    board.tick(20000);
    check(board.read32(Board::REG_CSTS) & 2, "unreadable admin queue is fatal");
    check(h.enable(16), "enable after it");
    // Shutdown.
    b.up();
    board.standin_behaviour = 2;
    const uint16_t cid = h.submit(1, start(WAIT));
    board.tick(20000);
    board.write32(Board::REG_CC, 6 << 16 | 4 << 20 | 1 << 14 | 6 << 4 | 1);
    board.tick(100000);
    check((board.read32(Board::REG_CSTS) >> 2 & 3) == 2, "shutdown complete");
    expect(*h.wait(1, cid), 0x1c3, "job cancelled by shutdown");
    board.standin_behaviour = 0;
    // Subsystem reset: the processor restarts; memory and counters stay.
    b.up();
    board.device_memory[777] = 42;
    const uint64_t commands = Bench::at<uint64_t>(b.log(0xc0, 512), 128);
    board.write32(Board::REG_NSSR, 0x4e564d65);
    board.tick(20000);
    check((board.read32(Board::REG_CSTS) & 0x13) == 0x10, "NSSRO after a subsystem reset");
    board.write32(Board::REG_CSTS, 0x10);
    check(!(board.read32(Board::REG_CSTS) & 0x10), "NSSRO cleared");
    b.up();
    check(board.device_memory[777] == 42, "memory survives a subsystem reset");
    check(Bench::at<uint64_t>(b.log(0xc0, 512), 128) > commands, "counters survive a subsystem reset");
}

// Resets while commands and jobs are in flight, at random clocks and in four ways.
void resets(Bench &b, int count) {
    std::mt19937 random(11);
    Host &h = b.host;
    std::vector<uint8_t> data(1 << 16);
    for (int i = 0; i < count; i++) {
        b.board.standin_behaviour = random() % 4 == 0 ? 2 : random() % 8 == 0 ? 3 : 0;
        check(h.enable(32), "enable after reset " + std::to_string(i));
        if (!h.create_queues(1, 16, 16, 1).ok()) check(false, "queues after reset");
        h.submit(0, admin(0x0c));
        for (uint32_t k = 0; k < 1 + random() % 5; k++) {
            if (random() % 2) h.submit(1, start(random() % 2 ? WAIT : 0));
            else h.submit_data(1, io(1 + random() % 2, 1, 256, 0, 127), data.data(), 1 << 16);
        }
        b.board.tick(random() % 30000);
        switch (random() % 4) {
            case 0: b.board.write32(Board::REG_NSSR, 0x4e564d65); break;
            case 1: b.board.write32(Board::REG_CC, 0); break;
            case 2:  // disabled and enabled without a look at CSTS between them
                b.board.write32(Board::REG_CC, 0);
                b.board.write32(Board::REG_CC, 6 << 16 | 4 << 20 | 6 << 4 | 1);
                break;
            default: b.board.write32(Board::REG_CC, 6 << 16 | 4 << 20 | 1 << 14 | 6 << 4 | 1); break;
        }
        b.board.tick(random() % 300);
    }
    b.board.standin_behaviour = 0;
    b.up();
    expect(h.run(1, start(WAIT)), 0, "a job after all resets");
}

// Random commands: every one completes or waits, memory outside its namespaces and the host's pages stay as they are.
void random_commands(Bench &b, int count) {
    std::mt19937 random(17);
    b.up();
    Host &h = b.host;
    b.board.standin_behaviour = 2;
    expect(h.run(0, admin(9, 0, 0xc1, 1)), 0, "short timeout");
    const uint8_t admin_opcodes[] = {0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x85, 0x88, 0x89, 0x80, 0x7f, 0x14};
    const uint8_t io_opcodes[] = {0x00, 0x01, 0x02, 0x05, 0x80, 0x84, 0x88, 0x8c, 0x90, 0x01, 0x02, 0xff};
    auto small = [&] { return random() % 3 ? random() % 64 : random() % 2 ? random() : random() % 8 << 16 | random() % 8; };
    std::vector<std::pair<int, uint16_t>> waiting;
    int answered = 0;
    for (int i = 0; i < count; i++) {
        const bool to_admin = random() % 4 == 0;
        Command c{.opcode = to_admin ? admin_opcodes[random() % 12] : io_opcodes[random() % 12]};
        if (random() % 64 == 0) c.flags = uint8_t(random());
        c.nsid = random() % 8 ? 1 + random() % 3 : random();
        c.cdw2 = small(), c.cdw3 = small() % 4, c.cdw4 = random() % 2 ? 96 : small();
        c.cdw10 = small(), c.cdw11 = random() % 2 ? 0 : small(), c.cdw12 = small(), c.cdw13 = small();
        c.cdw14 = random() % 2 ? SHAPE | (random() % 8) << 24 : small(), c.cdw15 = random();
        // Data pages between 1 MiB and 31 MiB of host memory, sometimes outside; list contents are random too.
        auto page = [&] {
            return random() % 32 == 0 ? uint64_t(random()) << 12 : Board::HOST_BASE + (1 << 20) + uint64_t(random() % 7000) * 4096;
        };
        c.prp1 = page() + (random() % 8 ? 0 : random() % 4096);
        c.prp2 = page() + (random() % 8 ? 0 : random() % 4096);
        if (b.board.host_valid(c.prp2, 4096))
            for (uint64_t k = 0; k + 8 <= 4096 - (c.prp2 & 4095); k += 8) {
                const uint64_t entry = page();
                memcpy(b.board.host(c.prp2 + k), &entry, 8);
            }
        const int q = to_admin ? 0 : 1 + random() % 4;
        const uint16_t cid = h.submit(q, c);
        const auto done = h.wait(q, cid, 200'000);
        if (done) answered++;
        else waiting.push_back({q, cid});
        if (b.board.read32(Board::REG_CSTS) != 1) {
            check(false, "controller failed after random command " + std::to_string(i));
            return;
        }
    }
    // Jobs end by their timeout of 2^20 clocks; after them only event requests wait.
    b.board.tick(10 << 20);
    int silent = 0, on_admin = 0;
    for (auto [q, cid] : waiting) {
        if (h.wait(q, cid, 1000)) answered++;
        else if (q == 0) on_admin++;
        else silent++;
    }
    check(silent == 0, std::to_string(silent) + " random I/O commands without completion");
    check(on_admin <= 4, "only event requests wait");
    printf("random: %d commands, %d answered, %zu waited, %llu host accesses refused\n", count, answered, waiting.size(),
           (unsigned long long)b.board.host_errors);
    b.board.standin_behaviour = 0;
    b.up();
    expect(h.run(1, start(WAIT)), 0, "a job after random commands");
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const int commands = argc > 2 ? atoi(argv[2]) : 2000, restarts = argc > 3 ? atoi(argv[3]) : 200;
    auto run = [&](const char *name, auto test) {
        Bench bench(argv[1]);
        const int before = failed;
        test(bench);
        printf("%-10s %s, %llu clocks\n", name, failed == before ? "ok" : "FAILED", (unsigned long long)bench.board.now());
    };
    run("malformed", malformed);
    run("waiters", waiters);
    run("events", events);
    run("full", full_queue);
    run("wrap", wrap);
    run("registers", [&](Bench &b) { registers(b, argv[1]); });
    run("resets", [&](Bench &b) { resets(b, restarts); });
    run("random", [&](Bench &b) { random_commands(b, commands); });
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
