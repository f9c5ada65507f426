// Environment calls of the machine, for freestanding programs in C.
//
// A call has its number in register a7, its argument in a0 and its result in a0. It accesses no memory. The README of
// the crate has the table of calls.

#ifndef PROOFMILL_H
#define PROOFMILL_H

#include <stdint.h>

#define PROOFMILL_HALT 0u
#define PROOFMILL_REMAINING 1u
#define PROOFMILL_READ_BYTE 2u
#define PROOFMILL_READ_WORD 3u
#define PROOFMILL_WRITE_BYTE 4u
#define PROOFMILL_WRITE_WORD 5u

// Result of proofmill_read_byte at the end of the input.
#define PROOFMILL_END_OF_INPUT 0xffffffffu

static inline uint32_t proofmill_call(uint32_t number, uint32_t argument) {
    register uint32_t a0 __asm__("a0") = argument;
    register uint32_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7));
    return a0;
}

// Ends the program. A return from main does the same with its result.
__attribute__((noreturn)) static inline void proofmill_halt(uint32_t code) {
    proofmill_call(PROOFMILL_HALT, code);
    __builtin_unreachable();
}

// Number of bytes of the input not read yet.
static inline uint32_t proofmill_remaining(void) {
    return proofmill_call(PROOFMILL_REMAINING, 0);
}

// Next byte of the input, or PROOFMILL_END_OF_INPUT.
static inline uint32_t proofmill_read_byte(void) {
    return proofmill_call(PROOFMILL_READ_BYTE, 0);
}

// Next four bytes of the input, little-endian, with zeros beyond its end. The number of bytes read before has to be a
// multiple of 4, unless nothing remains.
static inline uint32_t proofmill_read_word(void) {
    return proofmill_call(PROOFMILL_READ_WORD, 0);
}

// Appends the low byte to the output.
static inline void proofmill_write_byte(uint32_t byte) {
    proofmill_call(PROOFMILL_WRITE_BYTE, byte);
}

// Appends four bytes to the output, little-endian. The number of bytes written before has to be a multiple of 4.
static inline void proofmill_write_word(uint32_t word) {
    proofmill_call(PROOFMILL_WRITE_WORD, word);
}

// The program. Its result is the exit code.
int main(void);

#endif
