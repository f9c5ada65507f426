// SPDX-License-Identifier: MIT OR Apache-2.0
// Identify and Get Log Page: answers are built in `page` and sent to the host.
#include "device.h"

static void put16(uint32_t at, uint32_t value) { *(uint16_t *)(void *)&page[at] = (uint16_t)value; }
static void put32(uint32_t at, uint32_t value) { *(uint32_t *)(void *)&page[at] = value; }
static void put64(uint32_t at, uint64_t value) {
  put32(at, (uint32_t)value);
  put32(at + 4, (uint32_t)(value >> 32));
}

static uint32_t text(uint32_t at, const char *value) {
  while (*value) page[at++] = (uint8_t)*value++;
  return at;
}

static void spaces(uint32_t at, uint32_t end) { while (at < end) page[at++] = ' '; }

static uint32_t serial(uint32_t at) {
  uint64_t value = (uint64_t)SYSTEM_SERIAL_HIGH << 32 | SYSTEM_SERIAL_LOW;
  for (int shift = 60; shift >= 0; shift -= 4) page[at++] = (uint8_t)"0123456789ABCDEF"[value >> shift & 15];
  return at;
}

static void capability(void) {
  uint32_t parameters = MSM_PARAMETERS;
  text(3072, "ZKPU");
  put16(3076, 1);
  put16(3078, 0x13);  // memory and compute personalities, Precompute
  put32(3080, 1);
  put32(3084, COUNT_MAX);
  put64(3088, memory_bytes());
  put32(3096, parameters);
  put16(3100, JOBS_LIVE_MAX);
  put16(3102, JOBS);
  put16(3104, BASES);
  put16(3106, RANGE_SETS);
  put32(3108, SYSTEM_CLOCK_KHZ);
  put64(3112, power_on_id());
}

static void controller(void) {
  spaces(4, 72);
  serial(4);
  text(24, "ZKPU MSM BLS12-377 (Proofmill, RTL)");
  text(64, "1.0");
  page[77] = 8;
  put16(78, 1);
  put32(80, 0x00020000);
  page[111] = 1;
  page[258] = 3;
  page[259] = EVENT_REQUESTS - 1;
  page[260] = 0x03;
  page[261] = 0x06;
  page[262] = ERRORS - 1;
  put16(266, 358);
  put16(268, 368);
  page[512] = 0x66;
  page[513] = 0x44;
  put16(514, QUEUE_ENTRIES_MAX);
  put32(516, 3);
  serial(text(768, "nqn.2026-01.org.proofmill:zkpu:"));
  put16(2048, 2500);
  capability();
}

// Globally unique: the serial and the namespace.
static void nguid(uint32_t at, uint32_t nsid) {
  text(at, "ZKPU");
  put32(at + 4, SYSTEM_SERIAL_HIGH);
  put32(at + 8, SYSTEM_SERIAL_LOW);
  put32(at + 12, nsid);
}

static uint8_t namespace_set(uint32_t nsid) { return nsid == 1 ? CSI_NVM : nsid == 2 ? CSI_MEMORY : CSI_PROGRAMS; }

static void namespace_blocks(void) {
  put64(0, memory_blocks());
  put64(8, memory_blocks());
  put64(16, memory_blocks());
  nguid(104, 1);
  put32(128, 9 << 16);
}

static uint16_t namespace_of_set(uint32_t nsid, uint32_t set) {
  if (set != CSI_NVM && set != CSI_MEMORY && set != CSI_PROGRAMS) return INVALID_COMMAND_SET;
  if (!namespace_exists(nsid)) return INVALID_NAMESPACE;
  if (namespace_set(nsid) != set) return INVALID_COMMAND_SET;
  if (set == CSI_MEMORY) {
    put64(0, memory_bytes());
    put64(8, memory_bytes());
    put16(16, 4);
  }
  if (set == CSI_PROGRAMS) {
    put16(0, 1);
    put16(2, RANGE_SETS);
    put16(4, 6);
    page[6] = RANGES;
  }
  return SUCCESS;
}

static void list(uint32_t after, bool one_set, uint32_t set) {
  uint32_t at = 0;
  for (uint32_t nsid = 1; nsid <= 3; nsid++) {
    if (nsid <= after || !namespace_exists(nsid) || (one_set && namespace_set(nsid) != set)) continue;
    put32(at, nsid);
    at += 4;
  }
}

uint16_t identify(const struct command *command) {
  uint32_t what = command->cdw10 & 0xff, set = command->cdw11 >> 24, nsid = command->nsid;
  uint16_t status = SUCCESS;
  memset(page, 0, PAGE);
  switch (what) {
    case 0x00:
      if (!namespace_exists(nsid)) return INVALID_NAMESPACE;
      if (nsid != 1) return INVALID_COMMAND_SET;
      namespace_blocks();
      break;
    case 0x01: controller(); break;
    case 0x02:
    case 0x07:
      if (nsid >= 0xfffffffe) return INVALID_NAMESPACE;
      list(nsid, what == 0x07, set);
      break;
    case 0x03:
      if (!namespace_exists(nsid)) return INVALID_NAMESPACE;
      page[0] = 2;
      page[1] = 16;
      nguid(4, nsid);
      page[20] = 4;
      page[21] = 1;
      page[24] = namespace_set(nsid);
      break;
    case 0x05: status = namespace_of_set(nsid, set); break;
    case 0x06:
      if (set != CSI_NVM && set != CSI_MEMORY && set != CSI_PROGRAMS) return INVALID_COMMAND_SET;
      break;
    case 0x08:
      if (!namespace_exists(nsid)) return INVALID_NAMESPACE;
      page[14] = 1;
      break;
    case 0x1c: put32(0, 1 << CSI_NVM | 1 << CSI_MEMORY | 1 << CSI_PROGRAMS); break;
    default: return INVALID_FIELD;
  }
  if (status) return status;
  struct walk walk;
  status = walk_start(&walk, command, PAGE);
  return status ? status : walk_to_host(&walk, SPACE_FIRMWARE, address_of(page), PAGE);
}

static uint32_t log_errors(void) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < ERRORS && i < counters.errors_logged; i++, at += sizeof errors[0])
    memcpy(&page[at], &errors[(counters.errors_logged - 1 - i) & (ERRORS - 1)], sizeof errors[0]);
  return ERRORS * sizeof errors[0];
}

// Data units of the health page: thousands of 512 bytes, rounded up. The processor has no division.
static uint64_t data_units(uint64_t bytes) {
  uint64_t blocks = ((bytes + 511) >> 9) + 999, units = 0;
  uint32_t rest = 0;
  for (uint8_t bit = 0; bit < 64; bit++) {
    rest = rest << 1 | (uint32_t)(blocks >> 63);
    blocks <<= 1;
    units <<= 1;
    if (rest >= 1000) {
      rest -= 1000;
      units |= 1;
    }
  }
  return units;
}

static uint32_t log_health(void) {
  if (counters.fault) page[0] = 0x04;  // reliability degraded
  page[3] = 100;                       // spare
  page[4] = 10;
  // What the host reads is what this device writes to its memory.
  put64(32, data_units(counters.host_written));
  put64(48, data_units(counters.host_read));
  put64(176, counters.errors_logged);
  return 512;
}

static uint32_t log_zkpu(void) {
  uint32_t at = 24;
  const uint64_t *value = &counters.jobs_accepted;
  put16(0, 1);
  page[2] = (uint8_t)((device.running < JOBS ? 1 : 0) | (counters.fault ? 2 : 0));
  page[3] = counters.fault;
  put32(4, 0x00010000);
  put64(8, power_on_id());
  put64(16, cycles_now());
  // From 24 on the page has the counters in the order of their structure, to `events`.
  for (uint8_t i = 0; i < 18; i++, at += 8) put64(at, value[i]);
  put16(168, 0);
  page[170] = jobs_live();
  for (uint8_t i = 0; i < BASES; i++) if (device.bases[i].count) page[171]++;
  for (uint8_t i = 0; i < RANGE_SETS; i++) if (device.range_sets[i].ranges) page[172]++;
  return 512;
}

static uint32_t log_jobs(void) {
  put16(0, 1);
  put16(2, JOBS);
  put16(4, 64);
  put16(6, jobs_live());
  put32(8, device.ends_unreported);
  put32(12, device.job_newest);
  put64(16, power_on_id());
  for (uint8_t i = 0; i < JOBS; i++)
    if (device.jobs[i].state) memcpy(&page[64 + ((uint32_t)i << 6)], &device.jobs[i], 64);
  return 64 + JOBS * 64;
}

// Commands Supported and Effects, for one command set: bit 0 says that a command is supported, bit 1 that it may change the
// content of a namespace. Linux makes devices of namespaces only for sets that have this page.
static uint32_t log_effects(uint32_t set) {
  static const uint8_t admin[] = {0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0c};
  for (uint8_t i = 0; i < sizeof admin; i++) put32((uint32_t)admin[i] << 2, 1);
  if (set == CSI_NVM) {
    static const uint8_t reading[] = {0x00, 0x02, 0x84, 0x88, 0x8c}, writing[] = {0x01, 0x80, 0x90};
    for (uint8_t i = 0; i < sizeof reading; i++) put32(1024 + ((uint32_t)reading[i] << 2), 1);
    for (uint8_t i = 0; i < sizeof writing; i++) put32(1024 + ((uint32_t)writing[i] << 2), 3);
  } else if (set == CSI_MEMORY) {
    put32(1024 + (0x00 << 2), 3);
    put32(1024 + (0x02 << 2), 1);
    put32(1024 + (0x05 << 2), 3);
  } else {
    for (uint32_t opcode = 0x85; opcode <= 0x89; opcode++)
      if (opcode == 0x85 || opcode >= 0x88) put32(opcode << 2, 1);
    put32(1024 + (0x01 << 2), 3);
  }
  return PAGE;
}

uint16_t get_log(const struct command *command) {
  uint32_t id = command->cdw10 & 0xff, size;
  bool retain = (command->cdw10 >> 15 & 1) != 0;
  uint64_t length = (((uint64_t)(command->cdw11 & 0xffff) << 16 | command->cdw10 >> 16) + 1) << 2;
  uint64_t offset = (uint64_t)command->cdw13 << 32 | command->cdw12;
  if (length > TRANSFER_MAX || (offset & 3)) return INVALID_FIELD;
  memset(page, 0, PAGE);
  switch (id) {
    case LOG_ERRORS: size = log_errors(); break;
    case LOG_HEALTH: size = log_health(); break;
    case LOG_FIRMWARE:
      page[0] = 1;
      text(8, "1.0     ");
      size = 512;
      break;
    case LOG_EFFECTS: {
      uint32_t set = command->cdw14 >> 24;
      if (set != CSI_NVM && set != CSI_MEMORY && set != CSI_PROGRAMS) return INVALID_COMMAND_SET;
      size = log_effects(set);
      break;
    }
    case LOG_ZKPU: size = log_zkpu(); break;
    case LOG_JOBS: size = log_jobs(); break;
    default: return INVALID_LOG_PAGE;
  }
  if (offset > size) return INVALID_FIELD;
  uint32_t present = size - (uint32_t)offset;
  if (present > length) present = (uint32_t)length;
  struct walk walk;
  uint16_t status = walk_start(&walk, command, (uint32_t)length);
  if (!status) status = walk_to_host(&walk, SPACE_FIRMWARE, address_of(page) + offset, present);
  if (!status) status = walk_to_host(&walk, SPACE_ZERO, 0, (uint32_t)length - present);
  if (status || retain) return status;
  // Reading the page re-arms its event.
  if (id == LOG_JOBS) {
    device.events_masked &= (uint8_t)~EVENT_JOBS;
    device.events_due &= (uint8_t)~EVENT_JOBS;
    device.ends_unreported = 0;
  }
  if (id == LOG_ZKPU) device.events_masked &= (uint8_t)~EVENT_FAULT;
  if (id == LOG_ERRORS) device.events_masked &= (uint8_t)~(EVENT_DOORBELL_REGISTER | EVENT_DOORBELL_VALUE);
  return SUCCESS;
}
