// SPDX-License-Identifier: MIT OR Apache-2.0
// Registers of the system on chip as the firmware sees them (rtl/soc/zkpu_soc.sv), and helpers to use them.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(address))

// NVMe registers (rtl/soc/nvme_registers.sv).
#define NVME_CC REGISTER(0x10000000)
#define NVME_CSTS REGISTER(0x10000004)
#define NVME_AQA REGISTER(0x10000008)
#define NVME_ASQ_LOW REGISTER(0x1000000c)
#define NVME_ASQ_HIGH REGISTER(0x10000010)
#define NVME_ACQ_LOW REGISTER(0x10000014)
#define NVME_ACQ_HIGH REGISTER(0x10000018)
#define NVME_EVENTS REGISTER(0x1000001c)  // write ones to clear
#define NVME_SQ_TAIL(q) REGISTER(0x10000040 + 4 * (q))
#define NVME_CQ_HEAD(q) REGISTER(0x10000060 + 4 * (q))
#define NVME_CQ_POSTED(q) REGISTER(0x10000080 + 4 * (q))  // tail, vector << 16, raise << 30, enable << 31
#define NVME_QUEUE_RESET(q) REGISTER(0x100000a0 + 4 * (q))  // 1 submission, 2 completion

#define EVENT_CC (1u << 16)
#define EVENT_SUBSYSTEM (1u << 17)
#define EVENT_BAD_DOORBELL (1u << 18)
#define EVENT_DISABLED (1u << 19)

// DMA engine.
#define DMA_SRC_LOW REGISTER(0x20000000)
#define DMA_SRC_HIGH REGISTER(0x20000004)
#define DMA_DST_LOW REGISTER(0x20000008)
#define DMA_DST_HIGH REGISTER(0x2000000c)
#define DMA_LENGTH REGISTER(0x20000010)
#define DMA_CONTROL REGISTER(0x20000014)  // write: spaces, starts; read: 1 busy, 2 error

enum space { SPACE_FIRMWARE = 0, SPACE_DEVICE = 1, SPACE_HOST = 2, SPACE_ZERO = 3 };

// MSM core.
#define MSM_CONTROL REGISTER(0x30000000)  // write: see MSM_START, 2 abort, 4 reset; read: MSM_BUSY ...
#define MSM_SCALARS_LOW REGISTER(0x30000004)
#define MSM_SCALARS_HIGH REGISTER(0x30000008)
#define MSM_POINTS_LOW REGISTER(0x3000000c)
#define MSM_POINTS_HIGH REGISTER(0x30000010)
#define MSM_RESULT_LOW REGISTER(0x30000014)
#define MSM_RESULT_HIGH REGISTER(0x30000018)
#define MSM_COUNT REGISTER(0x3000001c)
#define MSM_SHAPE REGISTER(0x30000020)  // window, levels << 8, doublings of a precompute << 16
#define MSM_COUNTER_LOW(i) REGISTER(0x30000028 + 8 * (i))  // cycles, operations, conflicts, replicas, stalls
#define MSM_COUNTER_HIGH(i) REGISTER(0x3000002c + 8 * (i))
#define MSM_PARAMETERS REGISTER(0x30000050)  // adders, window minimum, window maximum, levels maximum
#define MSM_START 1u             // a product
#define MSM_START_PRECOMPUTE 8u  // a table
#define MSM_BUSY 1u
#define MSM_DONE 2u
#define MSM_ERROR(control) (((control) >> 4) & 15u)

// System.
#define SYSTEM_CYCLES_LOW REGISTER(0x40000000)  // reading it samples the high half
#define SYSTEM_CYCLES_HIGH REGISTER(0x40000004)
#define SYSTEM_WATCHDOG REGISTER(0x40000008)
#define SYSTEM_FATAL REGISTER(0x4000000c)
#define SYSTEM_MEMORY_PAGES REGISTER(0x40000010)
#define SYSTEM_POWER_ON_LOW REGISTER(0x40000014)
#define SYSTEM_POWER_ON_HIGH REGISTER(0x40000018)
#define SYSTEM_CLOCK_KHZ REGISTER(0x4000001c)
#define SYSTEM_WARM REGISTER(0x40000020)
#define SYSTEM_DEBUG REGISTER(0x40000028)
#define SYSTEM_SERIAL_LOW REGISTER(0x4000002c)
#define SYSTEM_SERIAL_HIGH REGISTER(0x40000030)

static inline uint64_t cycles_now(void) {
  uint32_t low = SYSTEM_CYCLES_LOW;
  return (uint64_t)SYSTEM_CYCLES_HIGH << 32 | low;
}

static inline uint64_t power_on_id(void) {
  return (uint64_t)SYSTEM_POWER_ON_HIGH << 32 | SYSTEM_POWER_ON_LOW;
}

// Device memory in bytes and in blocks of 512 bytes.
static inline uint64_t memory_bytes(void) { return (uint64_t)SYSTEM_MEMORY_PAGES << 12; }
static inline uint64_t memory_blocks(void) { return (uint64_t)SYSTEM_MEMORY_PAGES << 3; }

static inline uint64_t address_of(const void *pointer) { return (uint32_t)(uintptr_t)pointer; }

// Copies `length` bytes and waits; false when a side answered with an error. The wait ends: the engine drains on errors,
// and a host port that never answers is caught by the watchdog, which is not fed here.
static inline bool copy(enum space to, uint64_t dst, enum space from, uint64_t src, uint32_t length) {
  if (length == 0) return true;
  DMA_SRC_LOW = (uint32_t)src;
  DMA_SRC_HIGH = (uint32_t)(src >> 32);
  DMA_DST_LOW = (uint32_t)dst;
  DMA_DST_HIGH = (uint32_t)(dst >> 32);
  DMA_LENGTH = length;
  // The engine reads firmware memory behind the compiler's back.
  __asm__ volatile("" ::: "memory");
  DMA_CONTROL = (uint32_t)from | (uint32_t)to << 2;
  uint32_t state;
  do state = DMA_CONTROL;
  while (state & 1);
  __asm__ volatile("" ::: "memory");
  return (state & 2) == 0;
}
