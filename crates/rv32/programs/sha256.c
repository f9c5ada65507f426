// SHA-256 of the input, written as 32 bytes. Source: FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1, 5.3.3 and 6.2.

#include "proofmill.h"

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t state[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t schedule[64];

static uint32_t rotate(uint32_t x, uint32_t by) {
    return x >> by | x << (32 - by);
}

// Reverses the bytes of a word.
static uint32_t swap(uint32_t x) {
    return x << 24 | (x & 0xff00) << 8 | (x >> 8 & 0xff00) | x >> 24;
}

// Compresses the block in the first 16 words of the schedule.
static void compress(void) {
    for (int t = 16; t < 64; t++) {
        uint32_t x = schedule[t - 15], y = schedule[t - 2];
        uint32_t s0 = rotate(x, 7) ^ rotate(x, 18) ^ x >> 3;
        uint32_t s1 = rotate(y, 17) ^ rotate(y, 19) ^ y >> 10;
        schedule[t] = s1 + schedule[t - 7] + s0 + schedule[t - 16];
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t++) {
        uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[t] + schedule[t];
        uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

int main(void) {
    uint32_t length = proofmill_remaining();
    uint32_t remaining = length;
    while (remaining >= 64) {
        for (int t = 0; t < 16; t++) {
            schedule[t] = swap(proofmill_read_word());
        }
        compress();
        remaining -= 64;
    }
    // The rest, the bit 1, and zeros. Words beyond the end of the input are read as zero.
    for (int t = 0; t < 16; t++) {
        schedule[t] = swap(proofmill_read_word());
    }
    schedule[remaining / 4] |= 0x80000000u >> 8 * (remaining % 4);
    if (remaining >= 56) {
        compress();
        for (int t = 0; t < 14; t++) {
            schedule[t] = 0;
        }
    }
    schedule[14] = length >> 29;
    schedule[15] = length << 3;
    compress();
    for (int i = 0; i < 8; i++) {
        proofmill_write_word(swap(state[i]));
    }
    return 0;
}
