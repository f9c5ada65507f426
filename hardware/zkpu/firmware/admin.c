// SPDX-License-Identifier: MIT OR Apache-2.0
// Admin commands: queues, features, abort, event requests, programs.
#include "device.h"

bool namespace_exists(uint32_t nsid) { return nsid == 1 || (device.all_sets && nsid >= 1 && nsid <= 3); }

static uint16_t create_cq(const struct command *command) {
  uint32_t id = command->cdw10 & 0xffff, entries = (command->cdw10 >> 16) + 1;
  uint32_t vector = command->cdw11 >> 16;
  if (id == 0 || id >= QUEUES || device.cq[id].valid) return INVALID_QUEUE_ID;
  if (entries < 2 || entries > QUEUE_ENTRIES_MAX) return INVALID_QUEUE_SIZE;
  if (!(command->cdw11 & 1)) return INVALID_FIELD;  // CAP.CQR: contiguous queues only
  if (command->prp1 & (PAGE - 1)) return PRP_OFFSET_INVALID;
  if (vector >= QUEUES) return INVALID_VECTOR;
  NVME_QUEUE_RESET(id) = 2;
  device.cq[id] = (struct completion_queue){.base = command->prp1, .entries = (uint16_t)entries,
                                            .vector = (uint8_t)vector, .valid = true,
                                            .interrupts = (command->cdw11 & 2) != 0, .phase = 1};
  return SUCCESS;
}

static uint16_t create_sq(const struct command *command) {
  uint32_t id = command->cdw10 & 0xffff, entries = (command->cdw10 >> 16) + 1;
  uint32_t completion = command->cdw11 >> 16;
  if (id == 0 || id >= QUEUES || device.sq[id].valid) return INVALID_QUEUE_ID;
  if (entries < 2 || entries > QUEUE_ENTRIES_MAX) return INVALID_QUEUE_SIZE;
  if (completion == 0 || completion >= QUEUES || !device.cq[completion].valid) return CQ_INVALID;
  if (!(command->cdw11 & 1)) return INVALID_FIELD;
  if (command->prp1 & (PAGE - 1)) return PRP_OFFSET_INVALID;
  NVME_QUEUE_RESET(id) = 1;
  device.sq[id] = (struct submission_queue){.base = command->prp1, .entries = (uint16_t)entries,
                                            .completion = (uint8_t)completion, .valid = true};
  return SUCCESS;
}

static uint16_t delete_sq(const struct command *command) {
  uint32_t id = command->cdw10 & 0xffff;
  if (id == 0 || id >= QUEUES || !device.sq[id].valid) return INVALID_QUEUE_ID;
  waiters_abort_queue((uint8_t)id);
  device.sq[id].valid = false;
  return SUCCESS;
}

static uint16_t delete_cq(const struct command *command) {
  uint32_t id = command->cdw10 & 0xffff;
  if (id == 0 || id >= QUEUES || !device.cq[id].valid) return INVALID_QUEUE_ID;
  for (uint8_t i = 1; i < QUEUES; i++)
    if (device.sq[i].valid && device.sq[i].completion == id) return INVALID_QUEUE_DELETION;
  device.cq[id].valid = false;
  completions_forget((uint8_t)id);
  NVME_QUEUE_RESET(id) = 2;
  return SUCCESS;
}

// Features whose value is kept and given back, a bit each for 01h, 02h, 04h, 05h, 08h, 09h, 0Ah, 0Bh, 19h.
#define KEPT_FEATURES 0x02000f36u

static uint32_t feature_default(uint32_t id) {
  switch (id) {
    case 0x04: return 358;
    case 0x07: return (QUEUES - 2) << 16 | (QUEUES - 2);
    case 0xc0: return 1;
    default: return 0;
  }
}

static bool feature_known(uint32_t id) {
  return id == 0x07 || id == 0xc0 || id == 0xc1 || (id < 32 && (KEPT_FEATURES >> id & 1));
}

static uint16_t set_features(const struct command *command, uint32_t *dw0) {
  uint32_t id = command->cdw10 & 0xff, value = command->cdw11;
  if (!feature_known(id)) return INVALID_FIELD;
  if (command->cdw10 >> 31) return FEATURE_NOT_SAVEABLE;
  switch (id) {
    case 0x07:
      if ((value & 0xffff) == 0xffff || value >> 16 == 0xffff) return INVALID_FIELD;
      *dw0 = feature_default(id);
      return SUCCESS;
    case 0xc0: device.events_enabled = value & 1; return SUCCESS;
    case 0xc1: device.job_timeout_units = value; return SUCCESS;
    case 0x02: if (value & 31) return INVALID_FIELD; break;
    case 0x19: if (value & 0x1ff) return INVALID_FIELD; break;
    default: break;
  }
  device.features[id] = value;
  return SUCCESS;
}

static uint16_t get_features(const struct command *command, uint32_t *dw0) {
  uint32_t id = command->cdw10 & 0xff, select = command->cdw10 >> 8 & 7;
  if (!feature_known(id) || select > 3) return INVALID_FIELD;
  if (select == 3) *dw0 = 4;  // changeable, not saveable, not for each namespace
  else if (select || id == 0x07) *dw0 = feature_default(id);
  else if (id == 0xc0) *dw0 = device.events_enabled;
  else if (id == 0xc1) *dw0 = device.job_timeout_units;
  else if (id == 0x09) *dw0 = device.features[id] | (command->cdw11 & 0xffff);
  else *dw0 = device.features[id];
  return SUCCESS;
}

static uint16_t abort_command(const struct command *command, uint32_t *dw0) {
  uint32_t sq = command->cdw10 & 0xffff, cid = command->cdw10 >> 16;
  *dw0 = 1;  // not aborted
  if (sq >= QUEUES) return SUCCESS;
  if (sq == 0) {
    for (uint8_t i = 0; i < device.event_requests; i++) {
      if (device.event_request_cid[i] != cid) continue;
      device.event_requests--;
      for (uint8_t j = i; j < device.event_requests; j++) device.event_request_cid[j] = device.event_request_cid[j + 1];
      completion_post(0, 0, (uint16_t)cid, ABORT_REQUESTED, 0, 0);
      *dw0 = 0;
      return SUCCESS;
    }
    return SUCCESS;
  }
  if (waiter_abort((uint8_t)sq, (uint16_t)cid, ABORT_REQUESTED)) *dw0 = 0;
  return SUCCESS;
}

static uint16_t event_request(const struct command *command) {
  for (uint8_t i = 0; i < device.event_requests; i++)
    if (device.event_request_cid[i] == command->cid) return COMMAND_ID_CONFLICT;
  if (device.event_requests == EVENT_REQUESTS) return EVENT_LIMIT_EXCEEDED;
  device.event_request_cid[device.event_requests++] = command->cid;
  return PENDING;
}

static uint16_t program_activation(const struct command *command) {
  uint32_t index = command->cdw10 & 0xffff, select = command->cdw10 >> 16 & 15;
  if (index != 1) return INVALID_PROGRAM_INDEX;
  if (select > 1) return INVALID_FIELD;
  if (select == 0 && jobs_execute_live()) return PROGRAM_IN_USE;
  device.program_active = select == 1;
  return SUCCESS;
}

uint16_t admin_execute(const struct command *command, uint32_t *dw0) {
  switch (command->opcode) {
    case 0x00: return delete_sq(command);
    case 0x01: return create_sq(command);
    case 0x02: return get_log(command);
    case 0x04: return delete_cq(command);
    case 0x05: return create_cq(command);
    case 0x06: return identify(command);
    case 0x08: return abort_command(command, dw0);
    case 0x09: return set_features(command, dw0);
    case 0x0a: return get_features(command, dw0);
    case 0x0c: return event_request(command);
    default: break;
  }
  // Commands of the Computational Programs set.
  if (command->opcode != 0x85 && command->opcode != 0x88 && command->opcode != 0x89) return INVALID_OPCODE;
  if (command->nsid != 3 || !namespace_exists(3)) return INVALID_NAMESPACE;
  if (command->opcode == 0x88) return program_activation(command);
  if (command->opcode == 0x89) return range_set_management(command, dw0);
  return (command->cdw10 & 0xffff) == 1 ? PROGRAM_NOT_DOWNLOADABLE : INVALID_PROGRAM_INDEX;
}
