// The 32-bit little-endian words of the input in increasing order. Exit code 1 if the length of the input is not a
// multiple of 4, and 2 if it has more than 2^20 words. Nothing is written then.

#include "proofmill.h"

#define WORDS_MAX (1u << 20)

static uint32_t words[WORDS_MAX];

// Moves a word down a heap of some length until no child is greater.
static void sift(uint32_t at, uint32_t length) {
    uint32_t word = words[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= length) {
            break;
        }
        if (child + 1 < length && words[child + 1] > words[child]) {
            child++;
        }
        if (words[child] <= word) {
            break;
        }
        words[at] = words[child];
        at = child;
    }
    words[at] = word;
}

int main(void) {
    uint32_t bytes = proofmill_remaining();
    if (bytes % 4 != 0) {
        return 1;
    }
    uint32_t length = bytes / 4;
    if (length > WORDS_MAX) {
        return 2;
    }
    for (uint32_t i = 0; i < length; i++) {
        words[i] = proofmill_read_word();
    }
    for (uint32_t i = length / 2; i > 0; i--) {
        sift(i - 1, length);
    }
    for (uint32_t end = length; end > 1; end--) {
        uint32_t greatest = words[0];
        words[0] = words[end - 1];
        words[end - 1] = greatest;
        sift(0, end - 1);
    }
    for (uint32_t i = 0; i < length; i++) {
        proofmill_write_word(words[i]);
    }
    return 0;
}
