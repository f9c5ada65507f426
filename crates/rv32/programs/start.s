# The entry: calls main and halts with its result. The machine has set the stack pointer, and memory is zero.

    .section .text.start, "ax", @progbits
    .globl _start
_start:
    call main
    li a7, 0
    ecall
