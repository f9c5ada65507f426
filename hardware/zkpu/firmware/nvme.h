// SPDX-License-Identifier: MIT OR Apache-2.0
// NVMe structures and codes (NVM Express Base Specification 2.0; docs/zkpu.md says where each comes from).
#pragma once
#include <stdint.h>

struct command {
  uint8_t opcode;
  uint8_t flags;  // fused 1:0, PSDT 7:6
  uint16_t cid;
  uint32_t nsid;
  uint32_t cdw2, cdw3;
  uint64_t metadata;
  uint64_t prp1, prp2;
  uint32_t cdw10, cdw11, cdw12, cdw13, cdw14, cdw15;
};
_Static_assert(sizeof(struct command) == 64, "submission queue entry");

struct completion {
  uint32_t dw0, dw1;
  uint16_t sq_head, sq_id, cid;
  uint16_t status;  // phase in bit 0
};
_Static_assert(sizeof(struct completion) == 16, "completion queue entry");

// A status is the 15-bit field of the completion: code 7:0, type 10:8, do not retry 14.
#define STATUS(type, code) ((uint16_t)((type) << 8 | (code) | 0x4000))
#define STATUS_RETRY(type, code) ((uint16_t)((type) << 8 | (code)))
#define SUCCESS ((uint16_t)0)
#define PENDING ((uint16_t)0xffff)  // not a status: the completion comes later

#define INVALID_OPCODE STATUS(0, 0x01)
#define INVALID_FIELD STATUS(0, 0x02)
#define COMMAND_ID_CONFLICT STATUS(0, 0x03)
#define DATA_TRANSFER_ERROR STATUS(0, 0x04)
#define INTERNAL_ERROR STATUS(0, 0x06)
#define ABORT_REQUESTED STATUS(0, 0x07)
#define ABORTED_SQ_DELETION STATUS(0, 0x08)
#define INVALID_NAMESPACE STATUS(0, 0x0b)
#define PRP_OFFSET_INVALID STATUS(0, 0x13)
#define INVALID_COMMAND_SET STATUS(1, 0x2c)
#define LBA_OUT_OF_RANGE STATUS(0, 0x80)

#define CQ_INVALID STATUS(1, 0x00)
#define INVALID_QUEUE_ID STATUS(1, 0x01)
#define INVALID_QUEUE_SIZE STATUS(1, 0x02)
#define EVENT_LIMIT_EXCEEDED STATUS(1, 0x05)
#define INVALID_VECTOR STATUS(1, 0x08)
#define INVALID_LOG_PAGE STATUS(1, 0x09)
#define INVALID_QUEUE_DELETION STATUS(1, 0x0c)
#define FEATURE_NOT_SAVEABLE STATUS(1, 0x0d)

#define INVALID_MEMORY_NAMESPACE STATUS(1, 0x8b)
#define INVALID_RANGE_SET STATUS(1, 0x8c)
#define INVALID_RANGE_SET_ID STATUS(1, 0x8d)
#define INVALID_PROGRAM_INDEX STATUS(1, 0x8f)
#define RANGES_EXCEEDED STATUS(1, 0x91)
#define RANGE_SETS_EXCEEDED STATUS(1, 0x92)
#define RANGE_SET_IN_USE STATUS(1, 0x95)
#define OVERLAPPING_RANGES STATUS(1, 0x97)
#define PROGRAM_NOT_ACTIVATED STATUS(1, 0x98)
#define PROGRAM_IN_USE STATUS(1, 0x99)
#define PROGRAM_NOT_DOWNLOADABLE STATUS(1, 0x9a)

#define JOB_QUEUE_FULL STATUS_RETRY(1, 0xc0)
#define CORE_ERROR STATUS(1, 0xc1)
#define JOB_TIMED_OUT STATUS_RETRY(1, 0xc2)
#define JOB_CANCELLED STATUS(1, 0xc3)
#define UNKNOWN_JOB STATUS(1, 0xc4)
#define JOB_WAITED_FOR STATUS(1, 0xc5)
#define UNKNOWN_BASE STATUS(1, 0xc6)
#define UNSUPPORTED_JOB STATUS(1, 0xc7)
#define INVALID_SHAPE STATUS(1, 0xc8)
#define INVALID_COUNT STATUS(1, 0xc9)
#define OVERLAPPING_AREAS STATUS(1, 0xca)
#define BASE_IN_USE STATUS(1, 0xcb)

enum { CSI_NVM = 0, CSI_MEMORY = 3, CSI_PROGRAMS = 4 };
enum { LOG_ERRORS = 0x01, LOG_HEALTH = 0x02, LOG_FIRMWARE = 0x03, LOG_EFFECTS = 0x05, LOG_ZKPU = 0xc0, LOG_JOBS = 0xc1 };
