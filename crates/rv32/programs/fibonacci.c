// The number F(n) of Fibonacci modulo 2^32, with F(0) = 0 and F(1) = 1, for the word n of the input. Exit code 1 if the
// input is not four bytes long.

#include "proofmill.h"

int main(void) {
    if (proofmill_remaining() != 4) {
        return 1;
    }
    uint32_t a = 0, b = 1;
    for (uint32_t n = proofmill_read_word(); n > 0; n--) {
        uint32_t next = a + b;
        a = b;
        b = next;
    }
    proofmill_write_word(a);
    return 0;
}
