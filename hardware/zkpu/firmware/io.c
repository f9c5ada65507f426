// SPDX-License-Identifier: MIT OR Apache-2.0
// I/O commands of the three namespaces, and Memory Range Set Management.
#include "device.h"

static uint64_t wide(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }

static uint16_t transfer(const struct command *command, bool to_host, uint64_t address, uint32_t length) {
  if (length > TRANSFER_MAX) return INVALID_FIELD;
  struct walk walk;
  uint16_t status = walk_start(&walk, command, length);
  if (status) return status;
  return to_host ? walk_to_host(&walk, SPACE_DEVICE, address, length)
                 : walk_from_host(&walk, SPACE_DEVICE, address, length);
}

// Namespace 1: Read and Write.
static uint16_t blocks(const struct command *command, bool to_host) {
  uint64_t first = wide(command->cdw10, command->cdw11);
  uint32_t count = (command->cdw12 & 0xffff) + 1;
  // Protection information is not formatted; the other bits (limited retry, force unit access) change nothing.
  if (command->cdw12 & 0x3c000000) return INVALID_FIELD;
  if (count > TRANSFER_MAX >> 9) return INVALID_FIELD;
  if (first >= memory_blocks() || count > memory_blocks() - first) return LBA_OUT_OF_RANGE;
  return transfer(command, to_host, first << 9, count << 9);
}

// Namespace 2: Memory Read, Write and Fill.
static uint16_t bytes(const struct command *command) {
  uint64_t first = wide(command->cdw10, command->cdw11);
  uint32_t length = command->cdw12;
  if ((command->cdw10 | length) & 3) return INVALID_FIELD;
  if (command->opcode != 0x00 && length > TRANSFER_MAX) return INVALID_FIELD;
  if (first > memory_bytes() || length > memory_bytes() - first) return LBA_OUT_OF_RANGE;
  if (command->opcode != 0x00) return transfer(command, command->opcode == 0x02, first, length);
  while (length) {
    uint32_t part = length < TRANSFER_MAX ? length : TRANSFER_MAX;
    if (!copy(SPACE_DEVICE, first, SPACE_ZERO, 0, part)) return INTERNAL_ERROR;
    SYSTEM_WATCHDOG = 0;
    first += part;
    length -= part;
  }
  return SUCCESS;
}

static uint16_t start(uint8_t sq, const struct command *command, uint32_t *number) {
  uint32_t shape = command->cdw14;
  if (shape & 0xf800e0e0) return INVALID_FIELD;
  struct job_request request = {
      .scalars = (uint64_t)command->cdw10 << 9, .table = (uint64_t)command->cdw11 << 9,
      .result = (uint64_t)command->cdw12 << 9, .count = command->cdw13, .tag = command->cdw15,
      .window = shape & 31, .levels = shape >> 8 & 31, .curve = (uint8_t)(shape >> 16), .flags = shape >> 24 & 7};
  if (request.flags & FLAG_PLAIN) return UNSUPPORTED_JOB;
  uint32_t count_max = COUNT_MAX;
  if (request.flags & FLAG_BASE) {
    uint32_t base = command->cdw11;
    if (base == 0 || base > BASES || device.bases[base - 1].count == 0) return UNKNOWN_BASE;
    request.base = (uint8_t)base;
    request.table = device.bases[base - 1].table;
    request.window = device.bases[base - 1].window;
    request.levels = device.bases[base - 1].levels;
    request.curve = device.bases[base - 1].curve;
    count_max = device.bases[base - 1].count;
  }
  if (request.curve != 0) return UNSUPPORTED_JOB;
  uint16_t status = shape_check(request.window, request.levels);
  if (status) return status;
  if (request.count == 0 || request.count > count_max) return INVALID_COUNT;
  return job_accept(&request, sq, command->cid, number);
}

// A table of multiples from plain entries, made in device memory.
static uint16_t precompute(uint8_t sq, const struct command *command, uint32_t *number) {
  uint32_t shape = command->cdw14;
  if ((shape & 0xfe00e0e0) || command->cdw12) return INVALID_FIELD;
  struct job_request request = {
      .table = (uint64_t)command->cdw10 << 9, .result = (uint64_t)command->cdw11 << 9, .count = command->cdw13,
      .tag = command->cdw15, .window = shape & 31, .levels = shape >> 8 & 31, .curve = (uint8_t)(shape >> 16),
      .flags = (shape >> 24 & FLAG_WAIT) | FLAG_PRECOMPUTE};
  if (request.curve != 0) return UNSUPPORTED_JOB;
  uint16_t status = shape_check(request.window, request.levels);
  if (status) return status;
  if (request.count == 0 || request.count > COUNT_MAX) return INVALID_COUNT;
  return job_accept(&request, sq, command->cid, number);
}

static uint16_t wait(uint8_t sq, const struct command *command, uint32_t *dw0) {
  struct job *job = job_find(command->cdw10);
  if (!job) return UNKNOWN_JOB;
  if (job->state == JOB_DONE) {
    *dw0 = job->core_cycles >> 32 ? 0xffffffff : (uint32_t)job->core_cycles;
    return SUCCESS;
  }
  if (job->state > JOB_DONE) {
    *dw0 = job->core_error;
    // The table keeps type and code; the retry bit belongs to the code.
    return job->state == JOB_TIMED_OUT_STATE ? JOB_TIMED_OUT : (uint16_t)(job->status | 0x4000);
  }
  if (job->waiter) return JOB_WAITED_FOR;
  job->waiter = WAITER_WAIT;
  job->waiter_sq = sq;
  job->waiter_cq = device.sq[sq].completion;
  job->waiter_cid = command->cid;
  return PENDING;
}

static uint16_t set_base(const struct command *command) {
  uint32_t number = command->cdw10, count = command->cdw13, shape = command->cdw14;
  if (number == 0 || number > BASES) return UNKNOWN_BASE;
  if (jobs_use((uint8_t)number, 0)) return BASE_IN_USE;
  struct base *base = &device.bases[number - 1];
  if (count == 0) {
    base->count = 0;
    return SUCCESS;
  }
  if (shape & 0xff00e0e0) return INVALID_FIELD;
  if (shape >> 16 & 0xff) return UNSUPPORTED_JOB;
  uint16_t status = shape_check(shape & 31, shape >> 8 & 31);
  if (status) return status;
  if (count > COUNT_MAX) return INVALID_COUNT;
  uint64_t table = (uint64_t)command->cdw11 << 9;
  if (table > memory_bytes() || table_bytes(count, shape >> 8 & 31) > memory_bytes() - table) return LBA_OUT_OF_RANGE;
  base->table = table;
  base->count = count;
  base->window = shape & 31;
  base->levels = shape >> 8 & 31;
  base->curve = 0;
  return SUCCESS;
}

// Range descriptors of a command, checked one by one and against each other.
static uint16_t ranges_read(const struct command *command, struct range_set *set, uint8_t count) {
  struct walk walk;
  uint16_t status = walk_start(&walk, command, (uint32_t)count << 5);
  if (!status) status = walk_from_host(&walk, SPACE_FIRMWARE, address_of(set->range), (uint32_t)count << 5);
  if (status) return status;
  for (uint8_t i = 0; i < count; i++) {
    const struct range *range = &set->range[i];
    if (range->nsid != 2) return INVALID_MEMORY_NAMESPACE;
    if (range->length == 0 || (range->length & 63) || ((uint32_t)range->first & 63)) return INVALID_RANGE_SET;
    if (range->first > memory_bytes() || range->length > memory_bytes() - range->first) return INVALID_RANGE_SET;
    for (uint8_t j = 0; j < i; j++) {
      const struct range *other = &set->range[j];
      if (range->first < other->first + other->length && other->first < range->first + range->length)
        return OVERLAPPING_RANGES;
    }
  }
  set->ranges = count;
  return SUCCESS;
}

uint16_t range_set_management(const struct command *command, uint32_t *dw0) {
  static struct range_set candidate;
  uint32_t select = command->cdw10 & 15, id = command->cdw10 >> 16, count = command->cdw11 & 0xff;
  if (select == 1) {
    if (id == 0 || id > RANGE_SETS || device.range_sets[id - 1].ranges == 0) return INVALID_RANGE_SET_ID;
    if (jobs_use(0, (uint8_t)id)) return RANGE_SET_IN_USE;
    device.range_sets[id - 1].ranges = 0;
    return SUCCESS;
  }
  if (select != 0) return INVALID_FIELD;
  if (count == 0 || count > RANGES) return RANGES_EXCEEDED;
  for (id = 1; id <= RANGE_SETS && device.range_sets[id - 1].ranges; id++) { }
  if (id > RANGE_SETS) return RANGE_SETS_EXCEEDED;
  uint16_t status = ranges_read(command, &candidate, (uint8_t)count);
  if (status) return status;
  device.range_sets[id - 1] = candidate;
  *dw0 = id;
  return SUCCESS;
}

static uint16_t execute(uint8_t sq, const struct command *command, uint32_t *number) {
  static struct range_set inline_set;
  uint32_t index = command->cdw2 & 0xffff, id = command->cdw2 >> 16;
  if (index != 1) return INVALID_PROGRAM_INDEX;
  if (!device.program_active) return PROGRAM_NOT_ACTIVATED;
  if ((command->cdw11 & 0xfb00e0e0) || command->cdw13) return INVALID_FIELD;
  if ((command->cdw11 & 1u << 26) || (command->cdw11 >> 16 & 0xff)) return UNSUPPORTED_JOB;
  const struct range_set *set = &inline_set;
  if (id) {
    if (command->cdw3 || (uint32_t)command->metadata) return INVALID_FIELD;
    if (id > RANGE_SETS || device.range_sets[id - 1].ranges == 0) return INVALID_RANGE_SET_ID;
    set = &device.range_sets[id - 1];
    if (set->ranges != 3) return INVALID_RANGE_SET;
  } else {
    if (command->cdw3 != 3) return RANGES_EXCEEDED;
    if ((uint32_t)command->metadata != 96) return INVALID_FIELD;  // DLEN is dword 4
    uint16_t status = ranges_read(command, &inline_set, 3);
    if (status) return status;
  }
  struct job_request request = {
      .scalars = set->range[0].first, .table = set->range[1].first, .result = set->range[2].first,
      .count = command->cdw10, .tag = command->cdw12, .window = command->cdw11 & 31,
      .levels = command->cdw11 >> 8 & 31, .flags = FLAG_EXECUTE, .range_set = (uint8_t)id};
  uint16_t status = shape_check(request.window, request.levels);
  if (status) return status;
  if (request.count == 0 || request.count > COUNT_MAX) return INVALID_COUNT;
  if ((uint64_t)request.count << 5 > set->range[0].length) return INVALID_RANGE_SET;
  if (table_bytes(request.count, request.levels) > set->range[1].length) return INVALID_RANGE_SET;
  if (set->range[2].length < 192) return INVALID_RANGE_SET;
  return job_accept(&request, sq, command->cid, number);
}

uint16_t io_execute(uint8_t sq, const struct command *command, uint32_t *dw0, uint32_t *dw1) {
  (void)dw1;
  if (!namespace_exists(command->nsid)) return INVALID_NAMESPACE;
  if (command->nsid == 1) {
    switch (command->opcode) {
      case 0x00: return SUCCESS;  // Flush: memory has no cache
      case 0x01: return blocks(command, false);
      case 0x02: return blocks(command, true);
      case 0x80: return start(sq, command, dw0);
      case 0x84: return wait(sq, command, dw0);
      case 0x88: {
        struct job *job = job_find(command->cdw10);
        if (!job) return UNKNOWN_JOB;
        job_cancel(job, JOB_CANCELLED);
        return SUCCESS;
      }
      case 0x8c: return set_base(command);
      case 0x90: return precompute(sq, command, dw0);
      default: return INVALID_OPCODE;
    }
  }
  if (command->nsid == 2) {
    bool known = command->opcode == 0x00 || command->opcode == 0x02 || command->opcode == 0x05;
    return known ? bytes(command) : INVALID_OPCODE;
  }
  return command->opcode == 0x01 ? execute(sq, command, dw0) : INVALID_OPCODE;
}
