// SPDX-License-Identifier: MIT OR Apache-2.0
// Firmware of the ZKPU: an endless loop that watches the controller's registers, the job queue and the doorbells.
//
// Every pass does a bounded amount of work: at most one command of each submission queue. Nothing waits for the host.
#include "device.h"

struct device device;
struct counters counters __attribute__((section(".persistent")));
struct error_entry errors[ERRORS] __attribute__((section(".persistent"), aligned(32)));
uint8_t page[PAGE] __attribute__((aligned(64)));

static void status_write(bool ready, bool shut_down, bool fatal) {
  NVME_CSTS = (ready ? 1u : 0) | (fatal ? 2u : 0) | (shut_down ? 2u << 2 : 0);
}

// State of a disabled controller; jobs and sets are gone, memory and counters stay.
static void controller_reset(void) {
  jobs_drop_all(false);
  completions_forget(QUEUES);
  memset(&device, 0, sizeof device);
  device.running = JOBS;
  device.program_active = true;
  device.events_enabled = 1;
  device.features[0x04] = 358;
  for (uint8_t i = 0; i < QUEUES; i++) NVME_QUEUE_RESET(i) = 3;
}

static void controller_enable(uint32_t cc) {
  uint32_t aqa = NVME_AQA, sets = cc >> 4 & 7;
  uint32_t sq_entries = (aqa & 0xfff) + 1, cq_entries = (aqa >> 16 & 0xfff) + 1;
  bool supported = (sets == 0 || sets == 6) && (cc >> 7 & 15) == 0 && (cc >> 11 & 7) == 0;
  device.enabled = true;
  if (!supported || sq_entries < 2 || cq_entries < 2) {
    status_write(false, false, true);  // fatal until the host disables the controller
    return;
  }
  device.all_sets = sets == 6;
  device.sq[0] = (struct submission_queue){.base = (uint64_t)NVME_ASQ_HIGH << 32 | NVME_ASQ_LOW,
                                           .entries = (uint16_t)sq_entries, .valid = true};
  device.cq[0] = (struct completion_queue){.base = (uint64_t)NVME_ACQ_HIGH << 32 | NVME_ACQ_LOW,
                                           .entries = (uint16_t)cq_entries, .valid = true, .interrupts = true, .phase = 1};
  status_write(true, false, false);
}

static void controller_poll(void) {
  uint32_t events = NVME_EVENTS;
  NVME_EVENTS = events;
  uint32_t cc = NVME_CC;
  if ((events & EVENT_DISABLED) || (device.enabled && !(cc & 1))) {
    controller_reset();
    counters.resets++;
    status_write(false, false, false);
    cc = NVME_CC;
  }
  if ((cc & 1) && !device.enabled) controller_enable(cc);
  if ((events & EVENT_BAD_DOORBELL) && device.enabled) {
    error_record(0xffff, 0, 0);
    event_raise(EVENT_DOORBELL_REGISTER);
  }
  if ((cc >> 14 & 3) && !device.shut_down) {
    jobs_drop_all(true);
    device.shut_down = true;
    status_write(device.enabled && (NVME_CSTS & 1), true, false);
  }
}

static bool conflict(uint8_t sq, uint16_t cid) { return sq != 0 && waiter_exists(sq, cid); }

static void command_execute(uint8_t index, const struct command *command) {
  uint32_t dw0 = 0, dw1 = 0;
  uint16_t status;
  if ((command->flags & 0xc3) != 0) status = INVALID_FIELD;  // fused, or SGL
  else if (conflict(index, command->cid)) status = COMMAND_ID_CONFLICT;
  else status = index == 0 ? admin_execute(command, &dw0) : io_execute(index, command, &dw0, &dw1);
  if (status == PENDING) return;
  if (status) {
    error_record(index, command, status);
    if (status != CORE_ERROR) dw0 = 0;
  }
  completion_post(index, device.sq[index].completion, command->cid, status, dw0, dw1);
}

static void queue_poll(uint8_t index) {
  struct submission_queue *sq = &device.sq[index];
  if (!sq->valid) return;
  uint16_t tail = (uint16_t)NVME_SQ_TAIL(index);
  if (tail >= sq->entries) {
    if (!sq->bad_tail) {
      sq->bad_tail = true;
      error_record(index, 0, 0);
      event_raise(EVENT_DOORBELL_VALUE);
    }
    return;
  }
  sq->bad_tail = false;
  if (sq->head == tail) return;
  // A command is fetched only when its completion has a place, so the device never waits for the host inside one.
  struct completion_queue *cq = &device.cq[sq->completion];
  if (cq->deferred || completion_room(sq->completion) == 0) return;
  static struct command command;
  uint64_t address = sq->base + ((uint32_t)sq->head << 6);
  if (!copy(SPACE_FIRMWARE, address_of(&command), SPACE_HOST, address, sizeof command)) {
    counters.transfer_errors++;
    status_write(NVME_CSTS & 1, device.shut_down, true);  // the queue is not readable: fatal
    sq->valid = false;
    return;
  }
  if (++sq->head == sq->entries) sq->head = 0;
  command_execute(index, &command);
}

int main(void) {
  // After a restart the engine may still have answers of the old run to wait for.
  while (DMA_CONTROL & 1) { }
  MSM_CONTROL = 4;
  MSM_CONTROL = 0;
  controller_reset();
  for (;;) {
    SYSTEM_WATCHDOG = 0;
    controller_poll();
    if (!device.enabled) continue;
    jobs_poll();
    completions_flush();
    events_deliver();
    if (device.shut_down) continue;
    for (uint8_t i = 0; i < QUEUES; i++) queue_poll(i);
  }
}
