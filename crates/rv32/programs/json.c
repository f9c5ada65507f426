// A validator of JSON. It writes two words: the number of values, and the greatest depth of arrays and objects. A number
// alone has the depth 0. Names of members are not values. Source: RFC 8259; the bytes of strings may be anything from
// 0x20 on (UTF-8 is not checked).
//
// Exit code 1 on a syntax error, and 2 beyond a depth of 1024. Nothing is written then.

#include "proofmill.h"

#define DEPTH_MAX 1024u

// Whether the open bracket at each depth is an object's.
static uint8_t is_object[DEPTH_MAX];
// The byte not consumed yet.
static uint32_t next;

static void advance(void) {
    next = proofmill_read_byte();
}

__attribute__((noreturn)) static void fail(void) {
    proofmill_halt(1);
}

static void skip_space(void) {
    while (next == ' ' || next == '\t' || next == '\n' || next == '\r') {
        advance();
    }
}

static int is_digit(void) {
    return next - '0' < 10;
}

static void expect(uint32_t byte) {
    if (next != byte) {
        fail();
    }
    advance();
}

static void word(const char *letters) {
    for (; *letters; letters++) {
        expect((uint8_t)*letters);
    }
}

static void digits(void) {
    if (!is_digit()) {
        fail();
    }
    while (is_digit()) {
        advance();
    }
}

static void number(void) {
    if (next == '-') {
        advance();
    }
    if (next == '0') {
        advance();
    } else {
        digits();
    }
    if (next == '.') {
        advance();
        digits();
    }
    if ((next | 0x20) == 'e') {
        advance();
        if (next == '+' || next == '-') {
            advance();
        }
        digits();
    }
}

static void escape(void) {
    advance();
    switch (next) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        advance();
        return;
    case 'u':
        advance();
        for (int i = 0; i < 4; i++) {
            if (!is_digit() && (next | 0x20) - 'a' >= 6) {
                fail();
            }
            advance();
        }
        return;
    default:
        fail();
    }
}

static void string(void) {
    expect('"');
    while (next != '"') {
        if (next == '\\') {
            escape();
        } else if (next < 0x20 || next == PROOFMILL_END_OF_INPUT) {
            fail();
        } else {
            advance();
        }
    }
    advance();
}

// The name of a member and its colon.
static void name(void) {
    skip_space();
    string();
    skip_space();
    expect(':');
    skip_space();
}

static void scalar(void) {
    switch (next) {
    case '"':
        string();
        return;
    case 't':
        word("true");
        return;
    case 'f':
        word("false");
        return;
    case 'n':
        word("null");
        return;
    default:
        number();
    }
}

int main(void) {
    uint32_t values = 0, depth = 0, depth_max = 0;
    advance();
    skip_space();
    for (;;) {
        // A value begins here.
        values++;
        if (next == '[' || next == '{') {
            int object = next == '{';
            if (depth == DEPTH_MAX) {
                return 2;
            }
            is_object[depth++] = (uint8_t)object;
            if (depth > depth_max) {
                depth_max = depth;
            }
            advance();
            skip_space();
            if (next != (object ? '}' : ']')) {
                if (object) {
                    name();
                }
                continue;
            }
        } else {
            scalar();
            skip_space();
        }
        // A value has ended, or an empty bracket is open.
        while (depth > 0 && next == (is_object[depth - 1] ? '}' : ']')) {
            depth--;
            advance();
            skip_space();
        }
        if (depth == 0) {
            break;
        }
        expect(',');
        skip_space();
        if (is_object[depth - 1]) {
            name();
        }
    }
    if (next != PROOFMILL_END_OF_INPUT) {
        fail();
    }
    proofmill_write_word(values);
    proofmill_write_word(depth_max);
    return 0;
}
