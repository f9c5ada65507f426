// An interpreter of brainfuck. The input is the program up to the first "!", or to the end, and then the program's own
// input. Its output is the interpreter's.
//
// Cells are bytes that wrap around; the tape has 2^16 cells and wraps around. A read at the end of the input gives 0.
// Exit code 1 if brackets do not match, and 2 if the program has more than 2^16 commands.

#include "proofmill.h"

#define COMMANDS_MAX (1u << 16)

static uint8_t commands[COMMANDS_MAX];
// Index of the matching bracket, for brackets.
static uint16_t matching[COMMANDS_MAX];
// Brackets open while the program is read.
static uint16_t open[COMMANDS_MAX];
static uint8_t tape[1 << 16];

static uint32_t length;

// Reads the program and matches its brackets. The result is an exit code.
static int load(void) {
    uint32_t depth = 0;
    for (;;) {
        uint32_t byte = proofmill_read_byte();
        switch (byte) {
        case PROOFMILL_END_OF_INPUT:
        case '!':
            return depth > 0;
        case '[':
        case ']':
        case '<':
        case '>':
        case '+':
        case '-':
        case '.':
        case ',':
            break;
        default:
            continue;
        }
        if (length == COMMANDS_MAX) {
            return 2;
        }
        if (byte == '[') {
            open[depth++] = (uint16_t)length;
        } else if (byte == ']') {
            if (depth == 0) {
                return 1;
            }
            uint16_t start = open[--depth];
            matching[start] = (uint16_t)length;
            matching[length] = start;
        }
        commands[length++] = (uint8_t)byte;
    }
}

int main(void) {
    int code = load();
    if (code != 0) {
        return code;
    }
    uint16_t cell = 0;
    for (uint32_t at = 0; at < length; at++) {
        switch (commands[at]) {
        case '<':
            cell--;
            break;
        case '>':
            cell++;
            break;
        case '+':
            tape[cell]++;
            break;
        case '-':
            tape[cell]--;
            break;
        case '.':
            proofmill_write_byte(tape[cell]);
            break;
        case ',': {
            uint32_t byte = proofmill_read_byte();
            tape[cell] = byte == PROOFMILL_END_OF_INPUT ? 0 : (uint8_t)byte;
            break;
        }
        case '[':
            if (tape[cell] == 0) {
                at = matching[at];
            }
            break;
        default:
            if (tape[cell] != 0) {
                at = matching[at];
            }
        }
    }
    return 0;
}
