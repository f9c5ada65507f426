// SPDX-License-Identifier: MIT OR Apache-2.0
// Completions, asynchronous events and the error log.
#include "device.h"

struct deferred { uint8_t sq, cq; uint16_t cid, status; uint32_t dw0, dw1; };
static struct deferred deferred[DEFERRED];
static uint8_t deferred_count;

// Free entries of a completion queue. A head out of range is reported and the last good one is used.
uint16_t completion_room(uint8_t index) {
  struct completion_queue *cq = &device.cq[index];
  uint16_t head = (uint16_t)NVME_CQ_HEAD(index);
  if (head < cq->entries) cq->head = head;
  uint16_t used = cq->tail >= cq->head ? cq->tail - cq->head : cq->tail + cq->entries - cq->head;
  return cq->entries - 1 - used;
}

static void write_entry(const struct deferred *d) {
  struct completion_queue *cq = &device.cq[d->cq];
  struct completion entry = {.dw0 = d->dw0, .dw1 = d->dw1, .sq_head = device.sq[d->sq].head, .sq_id = d->sq,
                             .cid = d->cid, .status = (uint16_t)(d->status << 1 | (cq->phase ? 1 : 0))};
  uint64_t address = cq->base + ((uint32_t)cq->tail << 4);
  // A host that took its queue away cannot be told; the error is counted and the queue goes on.
  if (!copy(SPACE_HOST, address, SPACE_FIRMWARE, address_of(&entry), sizeof entry)) counters.transfer_errors++;
  if (++cq->tail == cq->entries) {
    cq->tail = 0;
    cq->phase = !cq->phase;
  }
  NVME_CQ_POSTED(d->cq) = cq->tail | (uint32_t)cq->vector << 16 | (cq->interrupts ? 3u << 30 : 0);
  counters.commands++;
  if (d->status) counters.commands_failed++;
}

void completion_post(uint8_t sq, uint8_t cq, uint16_t cid, uint16_t status, uint32_t dw0, uint32_t dw1) {
  struct deferred d = {sq, cq, cid, status, dw0, dw1};
  if (!device.cq[cq].valid) return;
  if (device.cq[cq].deferred == 0 && completion_room(cq) > 0) write_entry(&d);
  else if (deferred_count < DEFERRED) {
    deferred[deferred_count++] = d;
    device.cq[cq].deferred++;
  } else SYSTEM_FATAL = 0;  // excluded by the bound at DEFERRED
}

void completions_flush(void) {
  uint8_t kept = 0;
  for (uint8_t i = 0; i < deferred_count; i++) {
    struct deferred d = deferred[i];
    if (completion_room(d.cq) > 0) {
      write_entry(&d);
      device.cq[d.cq].deferred--;
    } else deferred[kept++] = d;
  }
  deferred_count = kept;
}

// Forgets what waits for a queue that goes away; QUEUES forgets everything.
void completions_forget(uint8_t cq) {
  uint8_t kept = 0;
  for (uint8_t i = 0; i < deferred_count; i++)
    if (cq != QUEUES && deferred[i].cq != cq) deferred[kept++] = deferred[i];
  deferred_count = kept;
  for (uint8_t i = 0; i < QUEUES; i++) if (cq == QUEUES || i == cq) device.cq[i].deferred = 0;
}

void event_raise(uint8_t event) { device.events_due |= event; }

// Event, dword 0 of its completion: type, information << 8, log page << 16.
static uint32_t event_word(uint8_t event) {
  switch (event) {
    case EVENT_JOBS: return 7 | 0x01 << 8 | LOG_JOBS << 16;
    case EVENT_FAULT: return 7 | 0x02 << 8 | LOG_ZKPU << 16;
    case EVENT_DOORBELL_REGISTER: return 0 | 0x00 << 8 | LOG_ERRORS << 16;
    default: return 0 | 0x01 << 8 | LOG_ERRORS << 16;
  }
}

void events_deliver(void) {
  for (uint8_t event = 1; event <= EVENT_DOORBELL_VALUE; event <<= 1) {
    if (!(device.events_due & event) || (device.events_masked & event) || device.event_requests == 0) continue;
    device.events_due &= (uint8_t)~event;
    device.events_masked |= event;
    uint16_t cid = device.event_request_cid[0];
    device.event_requests--;
    for (uint8_t i = 0; i < device.event_requests; i++) device.event_request_cid[i] = device.event_request_cid[i + 1];
    counters.events++;
    completion_post(0, 0, cid, SUCCESS, event_word(event), 0);
  }
}

void error_record(uint16_t sq, const struct command *command, uint16_t status) {
  struct error_entry *entry = &errors[counters.errors_logged & (ERRORS - 1)];
  memset(entry, 0, sizeof *entry);
  entry->count = ++counters.errors_logged;
  entry->sq = sq;
  entry->cid = command ? command->cid : 0xffff;
  entry->status = (uint16_t)(status << 1);
  entry->location = 0xffff;
  entry->nsid = command ? command->nsid : 0;
  if (command && command->nsid == 1) entry->lba = (uint64_t)command->cdw11 << 32 | command->cdw10;
}
