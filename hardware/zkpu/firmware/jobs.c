// SPDX-License-Identifier: MIT OR Apache-2.0
// The job queue: acceptance, the MSM core, ends, waiters.
#include "device.h"

enum { STOP_CYCLES = 1 << 16, RESET_CYCLES = 64 };

static uint32_t digits(uint8_t window) {
  uint32_t count = 0;
  for (uint32_t bits = 0; bits < SCALAR_BITS; bits += window) count++;
  return count;
}

uint16_t shape_check(uint8_t window, uint8_t levels) {
  uint32_t parameters = MSM_PARAMETERS;
  if (window < (uint8_t)(parameters >> 8) || window > (uint8_t)(parameters >> 16)) return INVALID_SHAPE;
  if (levels == 0 || levels > (uint8_t)(parameters >> 24) || levels > digits(window)) return INVALID_SHAPE;
  return SUCCESS;
}

// 144 bytes an entry; levels is at most 31.
uint64_t table_bytes(uint32_t count, uint8_t levels) {
  uint64_t entries = 0;
  for (uint8_t i = 0; i < levels; i++) entries += count;
  return (entries << 7) + (entries << 4);
}

static bool live(const struct job *job) { return job->state == JOB_QUEUED || job->state == JOB_RUNNING; }

uint8_t jobs_live(void) {
  uint8_t count = 0;
  for (uint8_t i = 0; i < JOBS; i++) if (live(&device.jobs[i])) count++;
  return count;
}

bool jobs_use(uint8_t base, uint8_t range_set) {
  for (uint8_t i = 0; i < JOBS; i++) {
    const struct job *job = &device.jobs[i];
    if (live(job) && ((base && job->base == base) || (range_set && job->range_set == range_set))) return true;
  }
  return false;
}

bool jobs_execute_live(void) {
  for (uint8_t i = 0; i < JOBS; i++)
    if (live(&device.jobs[i]) && (device.jobs[i].flags & FLAG_EXECUTE)) return true;
  return false;
}

struct job *job_find(uint32_t number) {
  if (number == 0) return 0;
  for (uint8_t i = 0; i < JOBS; i++)
    if (device.jobs[i].state != JOB_EMPTY && device.jobs[i].number == number) return &device.jobs[i];
  return 0;
}

// An empty entry, else the one whose job ended first. At most JOBS_LIVE_MAX of JOBS are live, so there is one.
static struct job *free_entry(void) {
  struct job *oldest = 0;
  for (uint8_t i = 0; i < JOBS; i++) {
    struct job *job = &device.jobs[i];
    if (job->state == JOB_EMPTY) return job;
    if (!live(job) && (!oldest || job->ended < oldest->ended)) oldest = job;
  }
  return oldest;
}

// Doublings between two levels of a table: window * ceil(digits / levels).
static uint32_t doublings(uint8_t window, uint8_t levels) {
  uint32_t count = 0, all = digits(window);
  for (uint32_t covered = 0; covered < all; covered += levels) count += window;
  return count;
}

// More than twice the clocks that rtl/precompute needs, in units of 2^20: 32 points at a time, 12 instructions of 32 clocks a
// doubling, an inversion, and the stores.
static uint32_t precompute_units(uint32_t count, uint8_t window, uint8_t levels) {
  uint32_t batch = 32768, level = (doublings(window, levels) << 10) + 4096;
  for (uint8_t i = 0; i < levels; i++) batch += level;
  return (uint32_t)((uint64_t)((count >> 5) + 1) * batch >> 20);
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// Checks what both personalities have in common; their own checks came before.
uint16_t job_accept(const struct job_request *request, uint8_t sq, uint16_t cid, uint32_t *number) {
  uint64_t memory = memory_bytes();
  bool precompute = (request->flags & FLAG_PRECOMPUTE) != 0;
  uint64_t scalars = precompute ? 0 : (uint64_t)request->count << 5;
  uint64_t table = table_bytes(request->count, precompute ? 1 : request->levels);
  uint64_t result = precompute ? table_bytes(request->count, request->levels) : 192;
  if (request->scalars > memory || scalars > memory - request->scalars) return LBA_OUT_OF_RANGE;
  if (request->table > memory || table > memory - request->table) return LBA_OUT_OF_RANGE;
  if (request->result > memory || result > memory - request->result) return LBA_OUT_OF_RANGE;
  if (overlap(request->result, result, request->scalars, scalars) || overlap(request->result, result, request->table, table))
    return OVERLAPPING_AREAS;
  if (counters.fault) return INTERNAL_ERROR;
  if (jobs_live() >= JOBS_LIVE_MAX) return JOB_QUEUE_FULL;
  struct job *job = free_entry();
  memset(job, 0, sizeof *job);
  if (++device.job_newest == 0) device.job_newest = 1;
  job->number = device.job_newest;
  job->tag = request->tag;
  job->state = JOB_QUEUED;
  job->count = request->count;
  job->window = request->window;
  job->levels = request->levels;
  job->curve = request->curve;
  job->flags = request->flags;
  job->sq = sq;
  job->cid = cid;
  job->scalars = request->scalars;
  job->table = request->table;
  job->result = request->result;
  job->base = request->base;
  job->range_set = request->range_set;
  job->accepted = cycles_now();
  uint32_t units = device.job_timeout_units ? device.job_timeout_units : 16 + (request->count >> 10);
  if (precompute && !device.job_timeout_units) units += precompute_units(request->count, request->window, request->levels);
  job->deadline_cycles = (uint64_t)units << 20;
  if (request->flags & (FLAG_WAIT | FLAG_EXECUTE)) {
    job->waiter = request->flags & FLAG_EXECUTE ? WAITER_EXECUTE : WAITER_START;
    job->waiter_sq = sq;
    job->waiter_cq = device.sq[sq].completion;
    job->waiter_cid = cid;
  }
  counters.jobs_accepted++;
  *number = job->number;
  return job->waiter ? PENDING : SUCCESS;
}

static void waiter_complete(struct job *job, uint16_t status) {
  uint32_t dw0 = 0, dw1 = 0;
  if (status == CORE_ERROR) dw0 = job->core_error;
  else if (job->waiter == WAITER_START) dw0 = job->number;
  else if (status == SUCCESS) {
    dw0 = (uint32_t)job->core_cycles;
    dw1 = (uint32_t)(job->core_cycles >> 32);
    if (job->waiter == WAITER_WAIT) {
      if (dw1) dw0 = 0xffffffff;
      dw1 = 0;
    }
  }
  uint8_t waiter_sq = job->waiter_sq, waiter_cq = job->waiter_cq;
  job->waiter = WAITER_NONE;
  completion_post(waiter_sq, waiter_cq, job->waiter_cid, status, dw0, dw1);
}

// `waiter_status` is what a waiter gets; the job's own status says why it ended.
static void job_end(struct job *job, uint8_t state, uint16_t status, uint16_t waiter_status) {
  job->state = state;
  job->status = status & 0x7ff;
  job->ended = cycles_now();
  if (state == JOB_DONE) {
    counters.jobs_done++;
    if (!(job->flags & FLAG_PRECOMPUTE)) counters.points += job->count;
  } else if (state == JOB_FAILED) counters.jobs_failed++;
  else if (state == JOB_TIMED_OUT_STATE) counters.jobs_timed_out++;
  else counters.jobs_cancelled++;
  if (job->waiter) waiter_complete(job, waiter_status);
  else {
    device.ends_unreported++;
    if (device.events_enabled) event_raise(EVENT_JOBS);
  }
}

static void wait_cycles(uint32_t cycles) {
  uint32_t from = SYSTEM_CYCLES_LOW;
  while (SYSTEM_CYCLES_LOW - from < cycles) { }
}

// Leaves the core idle and its memory streams empty; false when it had to be reset to stop.
static bool core_stop(void) {
  MSM_CONTROL = 2;
  uint32_t from = SYSTEM_CYCLES_LOW;
  while ((MSM_CONTROL & MSM_BUSY) && SYSTEM_CYCLES_LOW - from < STOP_CYCLES) { }
  bool obeyed = !(MSM_CONTROL & MSM_BUSY);
  MSM_CONTROL = 4;
  wait_cycles(RESET_CYCLES);
  MSM_CONTROL = 0;
  if (MSM_CONTROL & MSM_BUSY) {
    counters.fault = 1;
    event_raise(EVENT_FAULT);
  }
  return obeyed;
}

static void core_counters(struct job *job) {
  // A precompute has cycles only; the other counters are still those of the last product.
  for (uint8_t i = 0; i < (job->flags & FLAG_PRECOMPUTE ? 1 : 5); i++) {
    uint64_t value = (uint64_t)MSM_COUNTER_HIGH(i) << 32 | MSM_COUNTER_LOW(i);
    counters.core[i] += value;
    if (i == 0) job->core_cycles = value;
    if (i == 1) job->operations = value;
  }
}

void job_cancel(struct job *job, uint16_t waiter_status) {
  if (!live(job)) return;
  if (job->state == JOB_RUNNING) {
    core_stop();
    core_counters(job);
    device.running = JOBS;
  }
  job_end(job, JOB_CANCELLED_STATE, JOB_CANCELLED, waiter_status);
}

static void job_start(uint8_t index) {
  struct job *job = &device.jobs[index];
  MSM_SCALARS_LOW = (uint32_t)job->scalars;
  MSM_SCALARS_HIGH = (uint32_t)(job->scalars >> 32);
  MSM_POINTS_LOW = (uint32_t)job->table;
  MSM_POINTS_HIGH = (uint32_t)(job->table >> 32);
  MSM_RESULT_LOW = (uint32_t)job->result;
  MSM_RESULT_HIGH = (uint32_t)(job->result >> 32);
  MSM_COUNT = job->count;
  MSM_SHAPE = job->window | (uint32_t)job->levels << 8;
  if (job->flags & FLAG_PRECOMPUTE) MSM_SHAPE = job->window | (uint32_t)job->levels << 8 | doublings(job->window, job->levels) << 16;
  job->state = JOB_RUNNING;
  job->deadline_cycles += cycles_now();  // from the start, not from the acceptance
  device.running = index;
  MSM_CONTROL = job->flags & FLAG_PRECOMPUTE ? MSM_START_PRECOMPUTE : MSM_START;
}

void jobs_poll(void) {
  if (device.running < JOBS) {
    struct job *job = &device.jobs[device.running];
    uint32_t state = MSM_CONTROL;
    if ((state & MSM_DONE) && !(state & MSM_BUSY)) {
      device.running = JOBS;
      core_counters(job);
      job->core_error = (uint8_t)MSM_ERROR(state);
      if (job->core_error) job_end(job, JOB_FAILED, CORE_ERROR, CORE_ERROR);
      else job_end(job, JOB_DONE, SUCCESS, SUCCESS);
    } else if (cycles_now() > job->deadline_cycles) {
      device.running = JOBS;
      bool obeyed = core_stop();
      core_counters(job);
      if (obeyed) job_end(job, JOB_TIMED_OUT_STATE, JOB_TIMED_OUT, JOB_TIMED_OUT);
      else job_end(job, JOB_FAILED, CORE_ERROR, CORE_ERROR);
    }
  }
  if (device.running < JOBS) return;
  uint8_t next = JOBS;
  for (uint8_t i = 0; i < JOBS; i++) {
    if (device.jobs[i].state != JOB_QUEUED) continue;
    if (counters.fault) job_end(&device.jobs[i], JOB_FAILED, INTERNAL_ERROR, INTERNAL_ERROR);
    // Numbers wrap: compare by their difference.
    else if (next == JOBS || (int32_t)(device.jobs[i].number - device.jobs[next].number) < 0) next = i;
  }
  if (next < JOBS) job_start(next);
}

// Shutdown cancels with completions; a controller reset empties the table without.
void jobs_drop_all(bool complete) {
  for (uint8_t i = 0; i < JOBS; i++) {
    if (!complete) device.jobs[i].waiter = WAITER_NONE;
    job_cancel(&device.jobs[i], JOB_CANCELLED);
  }
  if (!complete) {
    memset(device.jobs, 0, sizeof device.jobs);
    device.running = JOBS;
  }
}

static struct job *waiter_find(uint8_t sq, uint16_t cid) {
  for (uint8_t i = 0; i < JOBS; i++) {
    struct job *job = &device.jobs[i];
    if (job->waiter && job->waiter_sq == sq && job->waiter_cid == cid) return job;
  }
  return 0;
}

bool waiter_exists(uint8_t sq, uint16_t cid) { return waiter_find(sq, cid) != 0; }

bool waiter_abort(uint8_t sq, uint16_t cid, uint16_t status) {
  struct job *job = waiter_find(sq, cid);
  if (!job) return false;
  if (job->waiter == WAITER_WAIT) waiter_complete(job, status);
  else job_cancel(job, status);
  return true;
}

void waiters_abort_queue(uint8_t sq) {
  for (uint8_t i = 0; i < JOBS; i++) {
    struct job *job = &device.jobs[i];
    if (job->waiter && job->waiter_sq == sq) waiter_abort(sq, job->waiter_cid, ABORTED_SQ_DELETION);
  }
}
