// SPDX-License-Identifier: MIT OR Apache-2.0
// Instruction tests of the control processor: the RTL runs in lockstep with the interpreter on directed programs
// (every operation with edge operands) and on random streams with loads, stores, jumps, exceptions and CSR accesses.
// Usage: rv32i_test [streams]. Ends with 'N passed, N failed'.
#include "Vrv32i.h"
#include "rv32i_interpreter.h"
#include "verilated.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr uint32_t MEMORY_BYTES = 0x10000;
constexpr uint32_t HANDLER = 0x8000;     // exception handler: returns to the next instruction
constexpr uint32_t DATA_START = 0x9000;  // stores below it fault, so that no program changes itself

using Memory = std::vector<uint8_t>;

bool readable(uint32_t address) { return address < MEMORY_BYTES; }
bool writable(uint32_t address) { return address >= DATA_START && address < MEMORY_BYTES; }

uint32_t word(const Memory &memory, uint32_t address) {
    uint32_t value;
    memcpy(&value, &memory[address % MEMORY_BYTES & ~3u], 4);
    return value;
}

// Encoders.
uint32_t r_type(uint32_t f7, uint32_t rs2, uint32_t rs1, uint32_t f3, uint32_t rd, uint32_t op) {
    return f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op;
}
uint32_t i_type(uint32_t imm, uint32_t rs1, uint32_t f3, uint32_t rd, uint32_t op) {
    return (imm & 0xfff) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | op;
}
uint32_t s_type(uint32_t imm, uint32_t rs2, uint32_t rs1, uint32_t f3) {
    return (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | (imm & 31) << 7 | 0x23;
}
uint32_t b_type(uint32_t imm, uint32_t rs2, uint32_t rs1, uint32_t f3) {
    return (imm >> 12 & 1) << 31 | (imm >> 5 & 63) << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | (imm >> 1 & 15) << 8 |
           (imm >> 11 & 1) << 7 | 0x63;
}
uint32_t j_type(uint32_t imm, uint32_t rd) {
    return (imm >> 20 & 1) << 31 | (imm >> 1 & 1023) << 21 | (imm >> 11 & 1) << 20 | (imm >> 12 & 255) << 12 | rd << 7 | 0x6f;
}

struct Program {
    Memory memory = Memory(MEMORY_BYTES);
    uint32_t at = 0;
    void put(uint32_t instruction) {
        memcpy(&memory[at], &instruction, 4);
        at += 4;
    }
    void set(uint32_t rd, uint32_t value) {  // LUI and ADDI
        const uint32_t low = uint32_t(Rv32iInterpreter::sign(value & 0xfff, 12));
        put((value - low) | rd << 7 | 0x37);
        put(i_type(low, rd, 0, rd, 0x13));
    }
    // mtvec = HANDLER; the handler adds four to mepc and returns, with mscratch as its only storage.
    void install_handler() {
        set(31, HANDLER);
        put(i_type(0x305, 31, 1, 0, 0x73));
        const uint32_t resume = at;
        at = HANDLER;
        put(i_type(0x340, 31, 1, 31, 0x73));
        put(i_type(0x341, 0, 2, 31, 0x73));
        put(i_type(4, 31, 0, 31, 0x13));
        put(i_type(0x341, 31, 1, 0, 0x73));
        put(i_type(0x340, 31, 1, 31, 0x73));
        put(0x30200073);
        at = resume;
    }
};

// Runs both until `instructions` have been retired or the processor stops; returns an empty text, or the difference.
std::string lockstep(const Program &program, uint64_t instructions, uint32_t seed, bool stops) {
    std::mt19937 random(seed);
    auto context = std::make_unique<VerilatedContext>();
    auto rtl = std::make_unique<Vrv32i>(context.get());
    Memory mine = program.memory, theirs = program.memory;
    Rv32iInterpreter model;
    model.fetch = [&](uint32_t address) { return word(mine, address); };
    model.load = [&](uint32_t address, uint32_t bytes, uint32_t &value) {
        if (!readable(address)) return false;
        value = 0;
        memcpy(&value, &mine[address], bytes);
        return true;
    };
    model.store = [&](uint32_t address, uint32_t bytes, uint32_t value) {
        if (!writable(address)) return false;
        memcpy(&mine[address], &value, bytes);
        return true;
    };
    rtl->clk = 0;
    rtl->rst = 1;
    rtl->fetch_ready = rtl->data_ready = rtl->data_error = 0;
    auto tick = [&] {
        rtl->clk = 1;
        rtl->eval();
        rtl->clk = 0;
        rtl->eval();
    };
    tick();
    tick();
    rtl->rst = 0;
    rtl->eval();
    char text[200];
    uint64_t idle = 0, done = 0;
    bool model_stopped = false;
    while (done < instructions) {
        // Answers come after a random number of clocks.
        rtl->fetch_ready = rtl->fetch_valid && random() % 3 == 0;
        if (rtl->fetch_ready)
            for (int i = 0; i < 8; i++) rtl->fetch_line[i] = word(theirs, rtl->fetch_addr + 4 * i);
        rtl->data_ready = rtl->data_valid && random() % 2 == 0;
        rtl->data_error = 0;
        rtl->data_rdata = random();
        if (rtl->data_ready) {
            const uint32_t address = rtl->data_addr;
            rtl->data_error = !(rtl->data_write ? writable(address) : readable(address));
            if (!rtl->data_error) {
                const uint32_t base = address & ~3u;
                if (rtl->data_write) {
                    for (int i = 0; i < 4; i++)
                        if (rtl->data_wstrb >> i & 1) theirs[base + i] = rtl->data_wdata >> (8 * i);
                } else {
                    rtl->data_rdata = word(theirs, base);
                }
            }
        }
        rtl->eval();
        tick();
        if (rtl->trapped) break;
        if (!rtl->retire_valid) {
            if (++idle > 10000) return "the processor does not go on";
            continue;
        }
        idle = 0;
        Rv32iInterpreter::Step step;
        do step = model.step();
        while (!step.retired && !model.stopped);
        if (model.stopped) {
            model_stopped = true;
            return "the interpreter stopped and the processor did not";
        }
        const uint32_t value = rtl->retire_rd ? rtl->retire_value : 0;
        if (step.pc != rtl->retire_pc || step.rd != rtl->retire_rd || step.value != value) {
            snprintf(text, sizeof text, "instruction %llu: model pc %x x%u=%x, RTL pc %x x%u=%x (encoding %08x)",
                     (unsigned long long)done, step.pc, step.rd, step.value, rtl->retire_pc, rtl->retire_rd, value,
                     word(mine, step.pc));
            return text;
        }
        done++;
    }
    if (rtl->trapped) {
        while (!model.stopped && model.step().retired) {}
        if (!model.stopped) return "the processor stopped and the interpreter did not";
    }
    if (bool(rtl->trapped) != stops) return stops ? "the processor did not stop" : "the processor stopped";
    if (!model_stopped && mine != theirs) return "memories differ";
    return {};
}

const uint32_t EDGES[] = {0, 1, 2, 31, 32, 0x7ff, 0x800, 0xffff, 0x7fffffff, 0x80000000, 0x80000001, 0xffff8000, 0xffffffff};

Program every_operation() {
    Program p;
    p.install_handler();
    for (uint32_t a : EDGES)
        for (uint32_t b : EDGES) {
            if (p.at > HANDLER - 400) break;
            p.set(1, a);
            p.set(2, b);
            for (uint32_t f3 = 0; f3 < 8; f3++) p.put(r_type(0, 2, 1, f3, 3, 0x33));
            p.put(r_type(0x20, 2, 1, 0, 3, 0x33));
            p.put(r_type(0x20, 2, 1, 5, 3, 0x33));
            for (uint32_t f3 : {0, 1, 4, 5, 6, 7}) {
                p.put(b_type(8, 2, 1, f3));
                p.put(i_type(f3, 0, 0, 4, 0x13));
            }
        }
    p.put(j_type(0, 0));  // the end: a loop of one instruction
    return p;
}

Program immediates_and_memory() {
    Program p;
    p.install_handler();
    for (uint32_t a : EDGES) {
        p.set(1, a);
        for (uint32_t imm : {0u, 1u, 31u, 0x7ffu, 0x800u, 0xfffu})
            for (uint32_t f3 : {0, 2, 3, 4, 6, 7}) p.put(i_type(imm, 1, f3, 3, 0x13));
        for (uint32_t shift : {0u, 1u, 15u, 31u}) {
            p.put(i_type(shift, 1, 1, 3, 0x13));
            p.put(i_type(shift, 1, 5, 3, 0x13));
            p.put(i_type(shift | 0x400, 1, 5, 3, 0x13));
        }
        p.set(8, DATA_START + 0x100);
        for (uint32_t f3 = 0; f3 < 3; f3++)
            for (int offset = -4; offset < 5; offset++) {  // misaligned ones fault and are skipped by the handler
                p.put(s_type(offset, 1, 8, f3));
                for (uint32_t g3 : {0, 1, 2, 4, 5}) p.put(i_type(offset, 8, g3, 3, 0x03));
            }
    }
    for (uint32_t csr : {0x300u, 0x301u, 0x305u, 0x340u, 0x341u, 0x342u, 0x343u, 0xb02u, 0xf11u, 0xf14u, 0x7c0u})
        for (uint32_t f3 : {2u, 3u, 6u, 7u}) p.put(i_type(csr, 0, f3, 5, 0x73));
    p.put(i_type(0xf11, 1, 1, 5, 0x73));  // a write to a read-only register
    p.put(0x00000073);
    p.put(0x00100073);
    p.put(0x0000100f);
    p.put(0x0ff0000f);
    p.put(0x10500073);
    p.put(0xffffffff);
    p.put(0x00000000);
    p.put(j_type(0, 0));
    return p;
}

Program random_stream(uint32_t seed) {
    std::mt19937 random(seed);
    Program p;
    p.install_handler();
    for (uint32_t r = 1; r < 16; r++) p.set(r, random() % 4 ? random() : EDGES[random() % 13]);
    p.set(8, DATA_START + 0x1000);
    p.set(9, DATA_START + 0x3000 + random() % 4);
    auto any = [&](uint32_t n) { return uint32_t(random() % n); };
    auto target = [&] {  // a destination that the stream needs: any but the two pointers
        uint32_t r = any(16);
        return r == 8 || r == 9 ? 7u : r;
    };
    while (p.at < HANDLER - 64) {
        switch (any(16)) {
        case 0: case 1: case 2: case 3:
            p.put(r_type(any(3) ? 0 : 0x20, any(16), any(16), any(8), target(), 0x33));
            break;
        case 4: case 5: case 6:
            p.put(i_type(any(4) ? random() : random() & 0x41f, any(16), any(8), target(), 0x13));
            break;
        case 7: p.put((random() & 0xfffff000) | target() << 7 | (any(2) ? 0x37 : 0x17)); break;
        case 8: case 9:
            p.put(i_type(random(), any(12) ? 8 + any(2) : any(16), any(12) ? (uint32_t[]){0, 1, 2, 4, 5}[any(5)] : any(8), target(), 0x03));
            break;
        case 10: case 11: p.put(s_type(random(), any(16), any(12) ? 8 + any(2) : any(16), any(12) ? any(3) : any(8))); break;
        case 12: p.put(b_type(4 + 4 * any(15) + (any(20) ? 0 : 2), any(16), any(16), any(8))); break;
        case 13: p.put(j_type(4 + 4 * any(30) + (any(20) ? 0 : 2), target())); break;
        case 14: {  // AUIPC and a jump through the register, forward
            p.put(7u << 7 | 0x17);
            p.put(i_type(8 + 4 * any(20) + any(2), 7, 0, target(), 0x67));
            break;
        }
        default:
            if (any(3)) p.put(i_type((uint32_t[]){0x300, 0x340, 0x342, 0x343, 0xb02, 0xf14, 0x123}[any(7)], any(16), 1 + any(7), target(), 0x73));
            else p.put(any(2) ? random() | 3 : 0x0000100f);
        }
    }
    p.at = HANDLER - 64;
    while (p.at < HANDLER) p.put(j_type(0, 0));
    return p;
}

}  // namespace

int main(int argc, char **argv) {
    const int streams = argc > 1 ? atoi(argv[1]) : 60;
    int passed = 0, failed = 0;
    auto check = [&](const std::string &name, const std::string &difference) {
        if (difference.empty()) {
            passed++;
        } else {
            failed++;
            printf("FAILED %s: %s\n", name.c_str(), difference.c_str());
        }
    };
    check("every operation", lockstep(every_operation(), 9000, 1, false));
    check("immediates and memory", lockstep(immediates_and_memory(), 9000, 2, false));
    {
        Program p;  // without a handler an exception stops the processor
        p.set(1, 5);
        p.put(0x00000073);
        check("stop", lockstep(p, 100, 3, true));
    }
    for (int i = 0; i < streams; i++) check("stream " + std::to_string(i), lockstep(random_stream(1000 + i), 20000, i, false));
    printf("rv32i: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
