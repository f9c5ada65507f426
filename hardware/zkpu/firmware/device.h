// SPDX-License-Identifier: MIT OR Apache-2.0
// State of the device and the functions between the firmware's files.
#pragma once
#include "hardware.h"
#include "nvme.h"

enum {
  QUEUES = 5,             // admin and 4 I/O pairs
  QUEUE_ENTRIES_MAX = 256,
  PAGE = 4096,
  TRANSFER_MAX = 1 << 20,
  EVENT_REQUESTS = 4,
  JOBS = 16,              // entries of the job table
  JOBS_LIVE_MAX = 8,
  BASES = 16,
  RANGE_SETS = 16,
  RANGES = 4,
  ERRORS = 16,
  COUNT_MAX = 1 << 26,
  SCALAR_BITS = 252,      // of a folded scalar: W = ceil(SCALAR_BITS / w)
  DEFERRED = 80,          // at most 16 waiters for each I/O completion queue and 4 event requests
};

struct submission_queue {
  uint64_t base;
  uint16_t entries, head, tail;
  uint8_t completion;  // its completion queue
  bool valid;
  bool bad_tail;       // the last doorbell was out of range
};

struct completion_queue {
  uint64_t base;
  uint16_t entries, tail, head;
  uint8_t vector;
  bool valid, interrupts, phase;
  uint8_t deferred;    // completions that wait for room
};

enum job_state { JOB_EMPTY, JOB_QUEUED, JOB_RUNNING, JOB_DONE, JOB_FAILED, JOB_TIMED_OUT_STATE, JOB_CANCELLED_STATE };
enum { FLAG_WAIT = 1, FLAG_BASE = 2, FLAG_PLAIN = 4, FLAG_PRECOMPUTE = 0x40, FLAG_EXECUTE = 0x80 };
enum waiter { WAITER_NONE, WAITER_START, WAITER_EXECUTE, WAITER_WAIT };

struct job {
  // The entry of log page C1h.
  uint32_t number, tag;
  uint8_t state, core_error;
  uint16_t status;
  uint32_t count;
  uint8_t window, levels, curve, flags;
  uint16_t sq, cid;
  uint64_t result, core_cycles, accepted, ended, operations;
  // Private.
  uint64_t scalars, table, deadline_cycles;  // a precompute reads plain entries at `table` and writes at `result`
  uint8_t waiter, waiter_sq, waiter_cq;
  uint8_t base, range_set;  // in use while the job is live; 0 = none
  uint16_t waiter_cid;
};

struct base { uint64_t table; uint32_t count; uint8_t window, levels, curve; };
struct range { uint32_t nsid, length; uint64_t first; uint64_t reserved[2]; };
_Static_assert(sizeof(struct range) == 32, "range descriptor");
struct range_set { uint8_t ranges; struct range range[RANGES]; };

struct error_entry {  // log page 01h
  uint64_t count;
  uint16_t sq, cid, status, location;
  uint64_t lba;
  uint32_t nsid;
  uint8_t rest[36];
};
_Static_assert(sizeof(struct error_entry) == 64, "error log entry");

// Survives restarts of the processor; cleared at power-on only.
struct counters {
  uint64_t jobs_accepted, jobs_done, jobs_failed, jobs_timed_out, jobs_cancelled;
  uint64_t points, core[5];
  uint64_t host_read, host_written;
  uint64_t commands, commands_failed;
  uint64_t resets, transfer_errors, events;
  uint64_t errors_logged;
  uint8_t fault;
};

struct device {
  struct submission_queue sq[QUEUES];
  struct completion_queue cq[QUEUES];
  bool enabled, shut_down;
  bool all_sets;           // CC.CSS selects all command sets: namespaces 2 and 3 exist
  bool program_active;
  uint8_t event_requests;
  uint16_t event_request_cid[EVENT_REQUESTS];
  uint8_t events_due, events_masked;  // bits of enum event
  uint32_t ends_unreported;
  uint32_t job_newest;
  uint8_t running;         // index of the running job, JOBS = none
  uint32_t features[32];   // values of features 00h … 1Fh
  uint32_t events_enabled, job_timeout_units;
  struct job jobs[JOBS];
  struct base bases[BASES];
  struct range_set range_sets[RANGE_SETS];
};
enum event { EVENT_JOBS = 1, EVENT_FAULT = 2, EVENT_DOORBELL_REGISTER = 4, EVENT_DOORBELL_VALUE = 8 };

extern struct device device;
extern struct counters counters;
extern struct error_entry errors[ERRORS];
extern uint8_t page[PAGE];  // answer under construction

// queues.c
void completion_post(uint8_t sq, uint8_t cq, uint16_t cid, uint16_t status, uint32_t dw0, uint32_t dw1);
void completions_flush(void);
void completions_forget(uint8_t cq);
uint16_t completion_room(uint8_t cq);
void event_raise(uint8_t event);
void events_deliver(void);
void error_record(uint16_t sq, const struct command *command, uint16_t status);

// transfer.c: walks the PRP entries of a command.
struct walk {
  uint64_t address;   // host address of the next byte
  uint32_t room;      // bytes left in its page
  uint64_t next;      // the second page, or the list's next entry
  uint32_t pages;     // pages still to come
  bool listed;
  uint8_t hops;       // chained lists, bounded
  uint8_t cached, used;
};
uint16_t walk_start(struct walk *walk, const struct command *command, uint32_t length);
uint16_t walk_to_host(struct walk *walk, enum space from, uint64_t src, uint32_t length);
uint16_t walk_from_host(struct walk *walk, enum space to, uint64_t dst, uint32_t length);

// jobs.c
struct job_request {
  uint64_t scalars, table, result;
  uint32_t count, tag;
  uint8_t window, levels, curve, flags;
  uint8_t base, range_set;
};
uint16_t shape_check(uint8_t window, uint8_t levels);
uint64_t table_bytes(uint32_t count, uint8_t levels);
uint16_t job_accept(const struct job_request *request, uint8_t sq, uint16_t cid, uint32_t *number);
struct job *job_find(uint32_t number);
void job_cancel(struct job *job, uint16_t waiter_status);
void jobs_poll(void);
void jobs_drop_all(bool complete);
uint8_t jobs_live(void);
bool jobs_use(uint8_t base, uint8_t range_set);
bool jobs_execute_live(void);
bool waiter_exists(uint8_t sq, uint16_t cid);
bool waiter_abort(uint8_t sq, uint16_t cid, uint16_t status);
void waiters_abort_queue(uint8_t sq);

// admin.c, logs.c, io.c
uint16_t admin_execute(const struct command *command, uint32_t *dw0);
uint16_t identify(const struct command *command);
uint16_t get_log(const struct command *command);
bool namespace_exists(uint32_t nsid);
uint16_t io_execute(uint8_t sq, const struct command *command, uint32_t *dw0, uint32_t *dw1);
uint16_t range_set_management(const struct command *command, uint32_t *dw0);

// support.c
void *memset(void *to, int value, unsigned long bytes);
void *memcpy(void *to, const void *from, unsigned long bytes);
