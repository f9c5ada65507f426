/* SPDX-License-Identifier: MIT OR Apache-2.0
 * The simulated device as a library (C interface) and as a program, zkpu-sim, for hosts in other languages.
 *
 * zkpu-sim FIRMWARE.hex [DEVICE_BYTES [POWER_ON_ID]] speaks frames on standard input and output, all numbers
 * little-endian. Every request is answered by one frame with its tag; commands are answered when they complete, in any
 * order, so an Asynchronous Event Request is a command like others. The program enables the controller and makes I/O queue pairs 1 to 4 by itself.
 * The clock runs while a command other than an event request is outstanding or the core is busy; else it rests.
 *
 * frame    0-3 bytes after this field, 4 kind, 5-7 zero, 8-11 tag, 12... body
 *
 * request  1 command         12-13 queue (0 admin, 1-4), 14 direction (0 none, 1 to the device, 2 from it), 15 bit 0: the
 *                            entry keeps its identifier, which must not be in use on the queue (else the program chooses
 *                            one), 16-19 data bytes (at most 1 MiB), 20-83 submission entry (PRPs are replaced),
 *                            84... data when direction is 1
 *          2 reset           disables the controller and enables it with the CC of 12-15 (left out: all command sets); a
 *                            CC whose bit 0 is 0 leaves it disabled; outstanding commands are answered by kind 143
 *          3 register read   12-15 offset
 *          4 register write  12-15 offset, 16-19 value
 *          5 status
 *          6 power cycle     12-19 new power-on identifier; device memory is lost
 *          7 quit            (end of input does the same)
 *          8 queue renewal   12-13 queue, 1-4: deleted and created again by admin commands; its outstanding commands are
 *                            answered by kind 143
 *
 * answer 129 completion      12-15 dword 0, 16-19 dword 1, 20-21 status (15 bits: code 7:0, type 10:8, 14 do not retry),
 *                            22-23 zero, 24-27 data bytes, 28... data when direction was 2 and the status is 0
 *        130, 134 reset or power cycle done     12-15 one if the controller is ready, or disabled as the request says
 *        136 queue renewed 12-15 one if both queues exist
 *        131 value           12-15
 *        132 written
 *        133 status          12-19 clocks, 20-23 core busy, 24-27 outstanding commands
 *        143 command dropped by a reset or with its queue
 *        255 refused         12... text */
#pragma once
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct zkpu_sim zkpu_sim;

/* One simulation at a time in a process. Memory sizes are multiples of 4,096. */
zkpu_sim *zkpu_sim_open(const char *firmware, uint64_t device_bytes, uint64_t power_on_id);
void zkpu_sim_close(zkpu_sim *sim);
/* Registers of the NVMe controller; each access takes one clock. */
uint32_t zkpu_sim_register_read(zkpu_sim *sim, uint32_t offset);
void zkpu_sim_register_write(zkpu_sim *sim, uint32_t offset, uint32_t value);
void zkpu_sim_step(zkpu_sim *sim, uint64_t clocks);
uint64_t zkpu_sim_clocks(const zkpu_sim *sim);
int zkpu_sim_interrupt(const zkpu_sim *sim);
int zkpu_sim_core_busy(const zkpu_sim *sim);
/* Host memory that the device can reach: its first address and size; copies in and out answer 0, or -1 outside of it. */
uint64_t zkpu_sim_host_base(const zkpu_sim *sim);
uint64_t zkpu_sim_host_bytes(const zkpu_sim *sim);
int zkpu_sim_host_read(zkpu_sim *sim, uint64_t address, void *data, uint64_t bytes);
int zkpu_sim_host_write(zkpu_sim *sim, uint64_t address, const void *data, uint64_t bytes);

#ifdef __cplusplus
}
#endif
