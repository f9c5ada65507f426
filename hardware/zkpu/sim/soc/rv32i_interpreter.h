// SPDX-License-Identifier: MIT OR Apache-2.0
// Interpreter of RV32I with the machine-mode CSRs of rtl/soc/rv32i.sv, written from the ISA manual's tables and not
// from the RTL: the instruction tests run both in lockstep and compare every retired instruction.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

struct Rv32iInterpreter {
    // Memory accesses; false means that the access faults. `bytes` is 1, 2 or 4 and the address is aligned to it.
    std::function<bool(uint32_t address, uint32_t bytes, uint32_t &value)> load;
    std::function<bool(uint32_t address, uint32_t bytes, uint32_t value)> store;
    std::function<uint32_t(uint32_t address)> fetch;

    uint32_t pc = 0;
    std::array<uint32_t, 32> x{};
    uint32_t mtvec = 0, mepc = 0, mcause = 0, mtval = 0, mscratch = 0;
    bool mie = false, mpie = false;
    bool stopped = false;
    uint64_t retired = 0;

    // One executed instruction: either retired (register and value) or an exception that was taken.
    struct Step {
        bool retired;
        uint32_t pc, rd, value;
    };

    static int32_t sign(uint32_t value, int bits) { return int32_t(value << (32 - bits)) >> (32 - bits); }

    Step step() {
        const uint32_t at = pc, i = fetch(at);
        const uint32_t opcode = i & 0x7f, rd = (i >> 7) & 31, f3 = (i >> 12) & 7, rs1 = (i >> 15) & 31,
                       rs2 = (i >> 20) & 31, f7 = i >> 25;
        const uint32_t a = x[rs1], b = x[rs2];
        const uint32_t imm_i = sign(i >> 20, 12);
        const uint32_t imm_s = sign((f7 << 5) | rd, 12);
        const uint32_t imm_b =
            sign(((i >> 31) << 12) | (((i >> 7) & 1) << 11) | (((i >> 25) & 63) << 5) | (((i >> 8) & 15) << 1), 13);
        const uint32_t imm_j =
            sign(((i >> 31) << 20) | (((i >> 12) & 255) << 12) | (((i >> 20) & 1) << 11) | (((i >> 21) & 1023) << 1), 21);
        uint32_t next = at + 4, value = 0;
        bool writes = true;
        switch (opcode) {
        case 0x37: value = i & 0xfffff000; break;
        case 0x17: value = at + (i & 0xfffff000); break;
        case 0x6f: value = at + 4; next = at + imm_j; break;
        case 0x67:
            if (f3 != 0) return except(2, i);
            value = at + 4;
            next = (a + imm_i) & ~1u;
            break;
        case 0x63: {
            bool taken;
            switch (f3) {
            case 0: taken = a == b; break;
            case 1: taken = a != b; break;
            case 4: taken = int32_t(a) < int32_t(b); break;
            case 5: taken = int32_t(a) >= int32_t(b); break;
            case 6: taken = a < b; break;
            case 7: taken = a >= b; break;
            default: return except(2, i);
            }
            if (taken) next = at + imm_b;
            writes = false;
            break;
        }
        case 0x03: {
            if (f3 == 3 || f3 > 5) return except(2, i);
            const uint32_t bytes = 1u << (f3 & 3), address = a + imm_i;
            if (address % bytes) return except(4, address);
            if (!load(address, bytes, value)) return except(5, address);
            if (f3 == 0) value = sign(value, 8);
            if (f3 == 1) value = sign(value, 16);
            break;
        }
        case 0x23: {
            if (f3 > 2) return except(2, i);
            const uint32_t bytes = 1u << f3, address = a + imm_s;
            if (address % bytes) return except(6, address);
            if (!store(address, bytes, b)) return except(7, address);
            writes = false;
            break;
        }
        case 0x13:
        case 0x33: {
            const bool immediate = opcode == 0x13;
            const uint32_t c = immediate ? imm_i : b, shift = c & 31;
            const bool shifts = f3 == 1 || f3 == 5;
            const bool checked = !immediate || shifts;
            if (checked && f7 != 0 && !(f7 == 0x20 && (f3 == 5 || (f3 == 0 && !immediate)))) return except(2, i);
            switch (f3) {
            case 0: value = (!immediate && f7) ? a - c : a + c; break;
            case 1: value = a << shift; break;
            case 2: value = int32_t(a) < int32_t(c); break;
            case 3: value = a < c; break;
            case 4: value = a ^ c; break;
            case 5: value = f7 ? uint32_t(int32_t(a) >> shift) : a >> shift; break;
            case 6: value = a | c; break;
            default: value = a & c; break;
            }
            break;
        }
        case 0x0f:
            if (f3 > 1) return except(2, i);
            writes = false;
            break;
        case 0x73: {
            if (f3 == 0) {
                if (i == 0x00000073) return except(11, 0);
                if (i == 0x00100073) return except(3, at);
                if (i == 0x30200073) {  // MRET
                    mie = mpie;
                    mpie = true;
                    next = mepc;
                } else if (i != 0x10500073) {  // WFI does nothing
                    return except(2, i);
                }
                writes = false;
                break;
            }
            if (f3 == 4) return except(2, i);
            const uint32_t number = i >> 20, operand = f3 >= 4 ? rs1 : a;
            const bool writes_csr = (f3 & 3) == 1 || rs1 != 0;
            if (!csr_read(number, value)) return except(2, i);
            if (writes_csr && (number >> 10) == 3) return except(2, i);
            if (writes_csr)
                csr_write(number, (f3 & 3) == 1 ? operand : (f3 & 3) == 2 ? value | operand : value & ~operand);
            break;
        }
        default: return except(2, i);
        }
        if (next & 3) return except(0, next);
        if (writes && rd) x[rd] = value;
        pc = next;
        retired++;
        return {true, at, writes ? rd : 0, (writes && rd) ? value : 0};
    }

  private:
    Step except(uint32_t cause, uint32_t value) {
        const uint32_t at = pc;
        if (mtvec == 0) {
            stopped = true;
        } else {
            mepc = at;
            mcause = cause;
            mtval = value;
            mpie = mie;
            mie = false;
            pc = mtvec;
        }
        return {false, at, 0, 0};
    }
    bool csr_read(uint32_t number, uint32_t &value) const {
        switch (number) {
        case 0x300: value = 0x1800 | (mpie << 7) | (mie << 3); return true;
        case 0x301: value = 0x40000100; return true;
        case 0x304: case 0x344: value = 0; return true;
        case 0x305: value = mtvec; return true;
        case 0x340: value = mscratch; return true;
        case 0x341: value = mepc; return true;
        case 0x342: value = mcause; return true;
        case 0x343: value = mtval; return true;
        case 0xb02: value = uint32_t(retired); return true;
        case 0xb82: value = uint32_t(retired >> 32); return true;
        case 0xf11: case 0xf12: case 0xf13: case 0xf14: value = 0; return true;
        default: return false;
        }
    }
    void csr_write(uint32_t number, uint32_t value) {
        switch (number) {
        case 0x300: mie = value >> 3 & 1; mpie = value >> 7 & 1; break;
        case 0x305: mtvec = value & ~3u; break;
        case 0x340: mscratch = value; break;
        case 0x341: mepc = value & ~3u; break;
        case 0x342: mcause = value; break;
        case 0x343: mtval = value; break;
        default: break;
        }
    }
};
