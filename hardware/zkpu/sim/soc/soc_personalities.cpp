// SPDX-License-Identifier: MIT OR Apache-2.0
// The device against docs/zkpu.md where it says yes: registers, Identify, block and byte access with every shape of PRP
// list, products by both personalities, several jobs, base sets, power loss. soc_conformance.cpp has the refusals.
// Usage: soc_personalities firmware.hex. Ends with 'N passed, N failed'.
#include "fixture.h"

namespace {

void test_registers(Fixture &f) {
    const uint64_t cap = f.board.read64(Board::REG_CAP);
    CHECK((cap & 0xffff) == 255);
    CHECK((cap >> 16 & 1) == 1);
    CHECK((cap >> 37 & 0xff) == 0x41);
    CHECK((cap >> 36 & 1) == 1);
    CHECK(f.board.read32(Board::REG_VS) == 0x20000);
    CHECK(f.board.read32(Board::REG_CSTS) == 0);
    CHECK(f.boot());
    CHECK(f.board.messages[0] > 0);  // the admin queue's interrupts
    f.board.tick(2000);  // the device posts the tail after the entry
    CHECK(!f.board.interrupt());
}

void test_identify(Fixture &f) {
    std::vector<uint8_t> page;
    CHECK_OK(f.identify(1, 0, 0, page));
    CHECK(memcmp(&page[3072], "ZKPU", 4) == 0);
    CHECK(at<uint16_t>(page, 3076) == 1);
    CHECK(at<uint64_t>(page, 3088) == f.board.device_memory.size());
    CHECK(page[77] == 8);
    CHECK(memcmp(&page[24], "ZKPU", 4) == 0);
    CHECK(page[512] == 0x66 && page[513] == 0x44);
    CHECK(at<uint32_t>(page, 516) == 3);
    CHECK_OK(f.identify(0, 1, 0, page));
    CHECK(at<uint64_t>(page, 0) == f.board.device_memory.size() / 512);
    CHECK(page[130] == 9);
    CHECK_OK(f.identify(2, 0, 0, page));
    CHECK(at<uint32_t>(page, 0) == 1 && at<uint32_t>(page, 4) == 2 && at<uint32_t>(page, 8) == 3 && at<uint32_t>(page, 12) == 0);
    CHECK_OK(f.identify(3, 3, 0, page));
    CHECK(page[0] == 2 && page[20] == 4 && page[24] == 4);
    CHECK_OK(f.identify(5, 2, 3, page));
    CHECK(at<uint64_t>(page, 0) == f.board.device_memory.size());
    CHECK_OK(f.identify(5, 3, 4, page));
    CHECK(at<uint16_t>(page, 2) == 16);
    CHECK_OK(f.identify(6, 0, 0, page));
    CHECK_OK(f.identify(8, 2, 0, page));
    CHECK(page[14] & 1);
    CHECK_OK(f.identify(0x1c, 0, 0, page));
    CHECK(at<uint64_t>(page, 0) == 0x19);
    CHECK_CODE(f.identify(0, 0, 0, page), 0, 0x0b);
    CHECK_CODE(f.identify(0, 9, 0, page), 0, 0x0b);
    CHECK_CODE(f.identify(0, 2, 0, page), 1, 0x2c);
    CHECK_CODE(f.identify(5, 1, 7, page), 1, 0x2c);
    CHECK_CODE(f.identify(0x55, 1, 0, page), 0, 0x02);
    CHECK(f.log(2, 512)[3] == 100);
    CHECK(at<uint16_t>(f.log(0xc0, 512), 0) == 1);
}

// Random writes and reads at both byte granularities against a copy; every PRP shape; both queues wrap many times.
void test_blocks(Fixture &f) {
    std::vector<uint8_t> mirror(1 << 20);
    for (auto &byte : mirror) byte = uint8_t(f.random());
    const uint64_t read_before = at<uint64_t>(f.log(2, 512), 32), written_before = at<uint64_t>(f.log(2, 512), 48);
    CHECK_OK(f.write_blocks(0, mirror));
    // A megabyte is 2,048 blocks: two or three data units of a thousand.
    const uint64_t written = at<uint64_t>(f.log(2, 512), 48) - written_before;
    CHECK(written == 2 || written == 3);
    CHECK(at<uint64_t>(f.log(2, 512), 32) - read_before <= 1);
    std::vector<uint8_t> data(1 << 20);
    CHECK_OK(f.read_blocks(0, data));
    CHECK(data == mirror);
    const uint64_t read = at<uint64_t>(f.log(2, 512), 32) - read_before;
    CHECK(read == 2 || read == 3);
    for (int i = 0; i < 60; i++) {
        f.host.small_lists = i % 3 == 0 ? 2 + i % 5 : 0;  // chained lists
        const uint32_t blocks = 1 + f.random() % (i % 10 == 0 ? 200 : 20), block = f.random() % (2048 - blocks);
        const uint32_t offset = i % 2 ? 4 * (f.random() % 1024) : 0;
        data.resize(blocks * 512);
        if (f.random() % 2) {
            for (auto &byte : data) byte = uint8_t(f.random());
            CHECK_OK(f.write_blocks(block, data, 1 + i % 2, offset));
            memcpy(&mirror[block * 512], data.data(), data.size());
        } else {
            CHECK_OK(f.read_blocks(block, data, 1 + i % 2, offset));
            CHECK(memcmp(&mirror[block * 512], data.data(), data.size()) == 0);
        }
    }
    f.host.small_lists = 0;
    CHECK(memcmp(mirror.data(), f.board.device_memory.data(), mirror.size()) == 0);  // no other byte changed
    for (int i = 0; i < 40; i++) {  // namespace 2: the same memory by bytes
        const uint32_t bytes = 4 * (f.random() % 3000), address = 4 * (f.random() % ((1 << 18) - 3000));
        data.resize(bytes);
        if (f.random() % 2) {
            for (auto &byte : data) byte = uint8_t(f.random());
            CHECK_OK(f.write_memory(address, data.data(), bytes));
            if (bytes) memcpy(&mirror[address], data.data(), bytes);
        } else {
            CHECK_OK(f.read_memory(address, data.data(), bytes));
            CHECK(bytes == 0 || memcmp(&mirror[address], data.data(), bytes) == 0);
        }
    }
    Command fill{.opcode = 0, .nsid = 2};
    fill.cdw10 = 1000;
    fill.cdw12 = 5004;
    CHECK_OK(f.host.run(1, fill));
    memset(&mirror[1000], 0, 5004);
    CHECK(memcmp(mirror.data(), f.board.device_memory.data(), mirror.size()) == 0);
    CHECK_OK(f.host.run(1, Command{.opcode = 0, .nsid = 1}));
}

void test_memory_personality(Fixture &f) {
    // The paper's course: write, start, event, log, read.
    const Problem p(33, 13, 1, 1);
    f.load(p, 0, 64);
    const uint16_t event = f.host.submit(0, Command{.opcode = 0x0c});
    Completion c = f.host.run(1, Fixture::start(0, 64, 1000, p, 0, 4711));
    CHECK_OK(c);
    const uint32_t number = c.dw0;
    CHECK(number != 0);
    const auto told = f.host.wait(0, event);
    CHECK(told.has_value());
    if (told) CHECK(told->dw0 == 0xc10107);
    auto page = f.log(0xc1, 1088);
    bool found = false;
    for (int i = 0; i < 16; i++)
        if (at<uint32_t>(page, 64 + 64 * i) == number) {
            found = true;
            CHECK(at<uint32_t>(page, 64 + 64 * i + 4) == 4711);
            CHECK(page[64 + 64 * i + 8] == 3);
            CHECK(at<uint32_t>(page, 64 + 64 * i + 12) == 33);
            CHECK(at<uint64_t>(page, 64 + 64 * i + 32) > 0);
        }
    CHECK(found);
    CHECK(f.result_at(1000, p.expected));

    // Many jobs at once: more than the device takes, levels, both queues, waiters.
    std::vector<Problem> problems;
    for (uint32_t i = 0; i < 8; i++) problems.emplace_back(1 + 5 * i, 8 + i % 5, 1 + i % 3, 100 + i);
    for (uint32_t i = 0; i < 8; i++) f.load(problems[i], 2000 + 100 * i, 3000 + 100 * i);
    std::vector<uint16_t> ids;
    for (uint32_t i = 0; i < 8; i++)
        ids.push_back(f.host.submit(1, Fixture::start(2000 + 100 * i, 3000 + 100 * i, 5000 + i, problems[i], 1, i)));
    for (uint32_t i = 0; i < 8; i++) {
        const auto done = f.host.wait(1, ids[i]);
        CHECK(done && done->ok());
        CHECK(f.result_at(5000 + i, problems[i].expected));
    }
    // Base sets.
    Command base{.opcode = 0x8c, .nsid = 1};
    base.cdw10 = 3;
    base.cdw11 = 3700;
    base.cdw13 = problems[7].count;
    base.cdw14 = problems[7].window | problems[7].levels << 8;
    CHECK_OK(f.host.run(1, base));
    Command with_base = Fixture::start(2700, 3, 5100, problems[7], 2);
    with_base.cdw14 &= ~0xffffffu;
    c = f.host.run(1, with_base);
    CHECK_OK(c);
    Command wait{.opcode = 0x84, .nsid = 1};
    wait.cdw10 = c.dw0;
    CHECK_OK(f.host.run(2, wait));
    CHECK_OK(f.host.run(2, wait));  // again, after the end
    CHECK(f.result_at(5100, problems[7].expected));
    with_base.cdw13++;
    CHECK_CODE(f.host.run(1, with_base), 1, 0xc9);
    base.cdw13 = 0;
    CHECK_OK(f.host.run(1, base));
    CHECK_CODE(f.host.run(1, with_base), 1, 0xc6);
}

void test_compute_personality(Fixture &f) {
    const Problem p(20, 12, 2, 5);
    const uint64_t scalars = 0x40040, table = 0x50080, result = 0x60040;
    CHECK_OK(f.write_memory(scalars, p.scalars.data(), p.scalar_bytes()));
    CHECK_OK(f.write_memory(table, p.table.data(), p.table_bytes()));
    struct Range {
        uint32_t nsid, length;
        uint64_t first, reserved[2];
    } ranges[3] = {{2, 1024, scalars, {}}, {2, 6144, table, {}}, {2, 192, result, {}}};
    Command create{.opcode = 0x89, .nsid = 3};
    create.cdw11 = 3;
    Completion c = f.host.write(0, create, ranges, sizeof ranges);
    CHECK_OK(c);
    const uint32_t set = c.dw0;
    Command execute{.opcode = 1, .nsid = 3, .cdw2 = set << 16 | 1};
    execute.cdw10 = p.count;
    execute.cdw11 = p.window | p.levels << 8;
    execute.cdw12 = 77;
    c = f.host.run(1, execute);
    CHECK_OK(c);
    CHECK((c.dw0 | c.dw1) != 0);
    curve::Point point;
    CHECK_OK(f.read_memory(result, &point, 192));
    CHECK(curve::valid(point) && curve::equal(point, p.expected));
    // Ranges in the command's data.
    Command direct = execute;
    direct.cdw2 = 1;
    direct.cdw3 = 3;
    direct.cdw4 = 96;
    std::vector<uint8_t> zero(192);
    CHECK_OK(f.write_memory(result, zero.data(), 192));
    CHECK_OK(f.host.write(1, direct, ranges, sizeof ranges));
    CHECK_OK(f.read_memory(result, &point, 192));
    CHECK(curve::valid(point) && curve::equal(point, p.expected));

    Command bad = execute;
    bad.cdw2 = set << 16 | 2;
    CHECK_CODE(f.host.run(1, bad), 1, 0x8f);
    bad.cdw2 = 9 << 16 | 1;
    CHECK_CODE(f.host.run(1, bad), 1, 0x8d);
    bad = execute;
    bad.cdw10 = 40;
    CHECK_CODE(f.host.run(1, bad), 1, 0x8c);
    bad = direct;
    bad.cdw3 = 2;
    CHECK_CODE(f.host.write(1, bad, ranges, sizeof ranges), 1, 0x91);
    ranges[1].nsid = 1;
    CHECK_CODE(f.host.write(0, create, ranges, sizeof ranges), 1, 0x8b);
    ranges[1].nsid = 2;
    ranges[1].first += 32;
    CHECK_CODE(f.host.write(0, create, ranges, sizeof ranges), 1, 0x8c);
    ranges[1].first = scalars + 512;
    CHECK_CODE(f.host.write(0, create, ranges, sizeof ranges), 1, 0x97);
    ranges[1].first = f.board.device_memory.size() - 64;
    CHECK_CODE(f.host.write(0, create, ranges, sizeof ranges), 1, 0x8c);
    ranges[1].first = table;
    create.cdw11 = 5;
    CHECK_CODE(f.host.write(0, create, ranges, sizeof ranges), 1, 0x91);
    create.cdw11 = 3;
    for (int i = 0; i < 15; i++) CHECK_OK(f.host.write(0, create, ranges, sizeof ranges));
    CHECK_CODE(f.host.write(0, create, ranges, sizeof ranges), 1, 0x92);
    Command remove{.opcode = 0x89, .nsid = 3};
    for (uint32_t i = 1; i <= 16; i++) {
        remove.cdw10 = i << 16 | 1;
        CHECK_OK(f.host.run(0, remove));
    }
    CHECK_CODE(f.host.run(0, remove), 1, 0x8d);
    Command activate{.opcode = 0x88, .nsid = 3};
    activate.cdw10 = 1;
    CHECK_OK(f.host.run(0, activate));
    CHECK_CODE(f.host.write(1, direct, ranges, sizeof ranges), 1, 0x98);
    activate.cdw10 = 1 << 16 | 1;
    CHECK_OK(f.host.run(0, activate));
    CHECK_OK(f.host.write(1, direct, ranges, sizeof ranges));
    Command load{.opcode = 0x85, .nsid = 3};
    load.cdw10 = 1;
    CHECK_CODE(f.host.run(0, load), 1, 0x9a);
}

// Memory is lost, the identifier tells, and the device works again at once.
void test_power_loss(Fixture &f) {
    const Problem p(7, 10, 1, 9);
    f.load(p, 0, 64);
    CHECK_OK(f.host.run(1, Fixture::start(0, 64, 128, p, 0)));
    f.board.power_cycle(2);
    CHECK(f.board.read32(Board::REG_CSTS) == 0);
    CHECK(f.boot());
    std::vector<uint8_t> page;
    CHECK_OK(f.identify(1, 0, 0, page));
    CHECK(at<uint64_t>(page, 3112) == 2);
    CHECK(at<uint64_t>(f.log(0xc0, 512), 24) == 0);
    f.load(p, 0, 64);
    CHECK_OK(f.host.run(1, Fixture::start(0, 64, 128, p, 1)));
    CHECK(f.result_at(128, p.expected));
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s firmware.hex\n", argv[0]);
        return 2;
    }
    Fixture f(argv[1]);
    struct {
        const char *name;
        void (*run)(Fixture &);
    } tests[] = {{"registers", test_registers},
                 {"identify", test_identify},
                 {"blocks and bytes", test_blocks},
                 {"memory personality", test_memory_personality},
                 {"compute personality", test_compute_personality},
                 {"power loss", test_power_loss}};
    for (const auto &test : tests) {
        const uint64_t from = f.board.now();
        const int failed = checks_failed;
        test.run(f);
        printf("%-20s %s, %llu clocks\n", test.name, failed == checks_failed ? "good" : "BAD", (unsigned long long)(f.board.now() - from));
        fflush(stdout);
    }
    printf("soc personalities: %d passed, %d failed\n", checks_passed, checks_failed);
    return checks_failed != 0;
}
