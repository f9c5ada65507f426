# SPDX-License-Identifier: MIT OR Apache-2.0
# Entry of the firmware: stack, trap vector, clearing of memory, main. Counters survive a warm restart.
    .section .start, "ax"
    .globl _start
_start:
    la sp, stack_top
    la t0, trap
    csrw mtvec, t0
    la a0, bss_start
    la a1, bss_end
1:  bgeu a0, a1, 2f
    sw zero, 0(a0)
    addi a0, a0, 4
    j 1b
2:  li t0, 0x40000020           # SYSTEM_WARM
    lw t0, 0(t0)
    bnez t0, 4f
    la a0, persistent_start
    la a1, persistent_end
3:  bgeu a0, a1, 4f
    sw zero, 0(a0)
    addi a0, a0, 4
    j 3b
4:  call main

# A trap is a defect of the firmware: the host sees a fatal controller status and resets the controller.
    .balign 4
trap:
    li t0, 0x4000000c           # SYSTEM_FATAL
    sw zero, 0(t0)
5:  j 5b
