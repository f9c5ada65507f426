//! The job queue: acceptance, the core, ends, waiters.

use crate::controller::device::{Area, CoreCounters, CoreJob, CoreState, MsmDevice, Stop, Work};
use crate::controller::state::{Controller, Reply};
use crate::nvme::zkpu::{Event, JobEntry, JobState, JobTable};
use crate::nvme::{Command, Status};

/// The table, and which job is in the core.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    slots: [Option<Job>; Jobs::SLOTS],
    /// Slot of the running job.
    running: Option<usize>,
    newest: u32,
    ends_unreported: u32,
}

/// A job and what its entry does not tell.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) entry: JobEntry,
    core: CoreJob,
    timeout_cycles: u64,
    /// Clock cycle at which a running job is stopped.
    deadline: u64,
    /// Status of a job that did not end well, with its "do not retry".
    status: Status,
    waiter: Option<Waiter>,
    /// Base set and range set in use while the job is live; 0 = none.
    base: u8,
    range_set: u16,
}

/// A command that waits for a job.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    kind: WaiterKind,
    queue: u16,
    cid: u16,
}

/// The command that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaiterKind {
    /// Start with *wait*: the answer is the job's number.
    Start,
    /// Execute Program: the answer is the core's cycles.
    Execute,
    /// Wait: the answer is the core's cycles, saturated.
    Wait,
}

/// The resources of a live job.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    Base(u8),
    RangeSet(u16),
    Program,
}

/// A job to accept, whose shape and count were checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) core: CoreJob,
    pub(super) tag: u32,
    pub(super) flags: u8,
    pub(super) queue: u16,
    pub(super) cid: u16,
    pub(super) waiter: Option<WaiterKind>,
    pub(super) base: u8,
    pub(super) range_set: u16,
}

/// Error code of a core that was stopped and had to be reset.
const CORE_ABORTED: u8 = 5;
const FAULT_CORE_STUCK: u8 = 1;
/// Unit of the job timeout, and its default: 16 units and one for each 1,024 points.
const TIMEOUT_UNIT_LOG: u32 = 20;
const TIMEOUT_UNITS: u64 = 16;

// === impl Jobs ===

impl Jobs {
    /// Entries of the table.
    pub(super) const SLOTS: usize = 16;
    /// Jobs queued and running at once.
    pub(super) const LIVE_MAX: usize = 8;

    pub(super) fn live(&self) -> usize {
        self.slots
            .iter()
            .flatten()
            .filter(|job| job.entry.state.is_live())
            .count()
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn find(&mut self, number: u32) -> Option<&mut Job> {
        self.slots
            .iter_mut()
            .flatten()
            .find(|job| job.entry.number == number)
    }

    pub(super) fn has_waiter(&self, queue: u16, cid: u16) -> bool {
        let is_it = |waiter: Waiter| waiter.queue == queue && waiter.cid == cid;
        self.slots
            .iter()
            .flatten()
            .any(|job| job.waiter.is_some_and(is_it))
    }

    pub(super) fn uses(&self, what: Use) -> bool {
        self.slots.iter().flatten().any(|job| {
            job.entry.state.is_live()
                && match what {
                    Use::Base(base) => job.base == base,
                    Use::RangeSet(id) => job.range_set == id,
                    Use::Program => job.entry.flags & JobEntry::EXECUTE != 0,
                }
        })
    }

    pub(super) fn clear_ends(&mut self) {
        self.ends_unreported = 0;
    }

    pub(super) fn table(&self, power_on_id: u64) -> JobTable {
        JobTable {
            live: self.live() as u16,
            ends: self.ends_unreported,
            newest: self.newest,
            power_on_id,
            jobs: self
                .slots
                .iter()
                .map(|slot| slot.as_ref().map(|job| job.entry))
                .collect(),
        }
    }

    /// An empty slot, else that of the job that ended first. At most half of the slots are live, so there is one.
    fn free_slot(&self) -> Option<usize> {
        let empty = self.slots.iter().position(Option::is_none);
        let ended = |(at, slot): (usize, &Option<Job>)| {
            let job = slot.as_ref().filter(|job| !job.entry.state.is_live())?;
            Some((job.entry.ended, at))
        };
        empty.or_else(|| {
            self.slots
                .iter()
                .enumerate()
                .filter_map(ended)
                .min()
                .map(|(_, at)| at)
        })
    }

    /// The queued job that was accepted first. Numbers wrap: they are compared by their distance from the newest.
    fn next_queued(&self) -> Option<usize> {
        let queued = |(at, slot): (usize, &Option<Job>)| {
            let job = slot
                .as_ref()
                .filter(|job| job.entry.state == JobState::Queued)?;
            Some((self.newest.wrapping_sub(job.entry.number), at))
        };
        self.slots
            .iter()
            .enumerate()
            .filter_map(queued)
            .max()
            .map(|(_, at)| at)
    }
}

// === impl Job ===

impl Job {
    /// Lets a Wait command wait.
    pub(super) fn wait(&mut self, queue: u16, cid: u16) -> Result<(), Status> {
        if self.waiter.is_some() {
            return Err(Status::JOB_WAITED_FOR);
        }
        self.waiter = Some(Waiter {
            kind: WaiterKind::Wait,
            queue,
            cid,
        });
        Ok(())
    }

    pub(super) fn end_status(&self) -> Status {
        self.status
    }
}

// === impl Controller ===

impl<D: MsmDevice> Controller<D> {
    /// Queues a job, after the checks that both personalities share: areas, overlap, fault, room.
    pub(super) fn accept_job(&mut self, request: Request) -> Result<u32, Status> {
        let (core, reads, writes) = (request.core, request.core.reads(), request.core.writes());
        let is_outside = |(first, length): &Area| !self.is_in_memory(*first, *length);
        if reads.iter().any(is_outside) || is_outside(&writes) {
            return Err(Status::LBA_OUT_OF_RANGE);
        }
        if reads.iter().any(|area| overlap(writes, *area)) {
            return Err(Status::OVERLAPPING_AREAS);
        }
        if self.fault != 0 {
            return Err(Status::INTERNAL_ERROR);
        }
        if self.jobs.live() >= Jobs::LIVE_MAX {
            return Err(Status::JOB_QUEUE_FULL);
        }
        let slot = self.jobs.free_slot().ok_or(Status::JOB_QUEUE_FULL)?;
        self.jobs.newest = self.jobs.newest.wrapping_add(1).max(1);
        let number = self.jobs.newest;
        let units = match self.features.job_timeout_units {
            0 => timeout_units(&core),
            units => units.into(),
        };
        self.jobs.slots[slot] = Some(Job {
            entry: JobEntry {
                number,
                tag: request.tag,
                state: JobState::Queued,
                core_error: 0,
                status: 0,
                count: core.count,
                shape: core.shape,
                curve: 0,
                flags: request.flags,
                queue: request.queue,
                cid: request.cid,
                result: core.result,
                core_cycles: 0,
                accepted: self.device.cycles(),
                ended: 0,
                operations: 0,
            },
            core,
            timeout_cycles: units << TIMEOUT_UNIT_LOG,
            deadline: u64::MAX,
            status: Status::SUCCESS,
            waiter: request.waiter.map(|kind| Waiter {
                kind,
                queue: request.queue,
                cid: request.cid,
            }),
            base: request.base,
            range_set: request.range_set,
        });
        self.counters.jobs_accepted += 1;
        Ok(number)
    }

    /// Notes the end of the running job, stops one that is late, and starts the next.
    pub(super) fn poll_jobs(&mut self) {
        if let Some(slot) = self.jobs.running {
            match self.device.poll() {
                CoreState::Ended(end) => {
                    self.jobs.running = None;
                    self.note_counters(slot, end.counters);
                    if let Some(job) = &mut self.jobs.slots[slot] {
                        job.entry.core_error = end.error;
                    }
                    match end.error {
                        0 => self.end_job(slot, JobState::Done, Status::SUCCESS, None),
                        _ => self.end_job(slot, JobState::Failed, Status::CORE_ERROR, None),
                    }
                }
                CoreState::Running if self.is_late(slot) => match self.stop_core(slot) {
                    true => self.end_job(slot, JobState::TimedOut, Status::JOB_TIMED_OUT, None),
                    false => self.end_job(slot, JobState::Failed, Status::CORE_ERROR, None),
                },
                CoreState::Running => {}
                // The device lost the job: it would never end.
                CoreState::Idle => {
                    self.jobs.running = None;
                    self.end_job(slot, JobState::Failed, Status::CORE_ERROR, None);
                }
            }
        }
        while self.jobs.running.is_none() {
            let Some(slot) = self.jobs.next_queued() else {
                break;
            };
            if self.fault != 0 {
                self.end_job(slot, JobState::Failed, Status::INTERNAL_ERROR, None);
                continue;
            }
            self.start_job(slot);
        }
    }

    fn is_late(&self, slot: usize) -> bool {
        let job = self.jobs.slots[slot].as_ref();
        job.is_some_and(|job| self.device.cycles() > job.deadline)
    }

    fn start_job(&mut self, slot: usize) {
        let now = self.device.cycles();
        let Some(job) = &mut self.jobs.slots[slot] else {
            return;
        };
        job.entry.state = JobState::Running;
        job.deadline = now.saturating_add(job.timeout_cycles);
        self.device.start(job.core);
        self.jobs.running = Some(slot);
    }

    /// Stops the core. False if it had to be reset, or is stuck.
    fn stop_core(&mut self, slot: usize) -> bool {
        self.jobs.running = None;
        let (counters, obeyed) = match self.device.stop() {
            Stop::Obeyed(counters) => (counters, true),
            Stop::Reset(counters) => (counters, false),
            Stop::Stuck => {
                self.fault = FAULT_CORE_STUCK;
                self.events.raise(Event::Fault);
                (CoreCounters::default(), false)
            }
        };
        self.note_counters(slot, counters);
        if let Some(job) = self.jobs.slots[slot].as_mut().filter(|_| !obeyed) {
            job.entry.core_error = CORE_ABORTED;
        }
        obeyed
    }

    fn note_counters(&mut self, slot: usize, counters: CoreCounters) {
        for (total, value) in self.counters.core.iter_mut().zip(counters.0) {
            *total = total.wrapping_add(value);
        }
        if let Some(job) = &mut self.jobs.slots[slot] {
            [job.entry.core_cycles, job.entry.operations, ..] = counters.0;
        }
    }

    /// Ends a job. Its waiter gets `waiter_status` if there is one, else the job's own.
    fn end_job(
        &mut self,
        slot: usize,
        state: JobState,
        status: Status,
        waiter_status: Option<Status>,
    ) {
        let now = self.device.cycles();
        let Some(job) = &mut self.jobs.slots[slot] else {
            return;
        };
        job.entry.state = state;
        job.entry.status = status.type_and_code();
        job.entry.ended = now;
        job.status = status;
        let (entry, waiter) = (job.entry, job.waiter.take());
        let points = match job.core.work {
            Work::Product => entry.count,
            Work::Precompute => 0,
        };
        let counter = match state {
            JobState::Done => {
                self.counters.points += u64::from(points);
                &mut self.counters.jobs_completed
            }
            JobState::TimedOut => &mut self.counters.jobs_timed_out,
            JobState::Cancelled => &mut self.counters.jobs_cancelled,
            _ => &mut self.counters.jobs_failed,
        };
        *counter += 1;
        match waiter {
            Some(waiter) => self.answer_waiter(waiter, &entry, waiter_status.unwrap_or(status)),
            None => {
                self.jobs.ends_unreported = self.jobs.ends_unreported.wrapping_add(1);
                if self.features.events_enabled {
                    self.events.raise(Event::JobsEnded);
                }
            }
        }
    }

    fn answer_waiter(&mut self, waiter: Waiter, entry: &JobEntry, status: Status) {
        let cycles = entry.core_cycles;
        let result = match (waiter.kind, status.is_success()) {
            (WaiterKind::Start, true) => [entry.number, 0],
            (WaiterKind::Execute, true) => [cycles as u32, (cycles >> 32) as u32],
            (WaiterKind::Wait, true) => [u32::try_from(cycles).unwrap_or(u32::MAX), 0],
            (_, false) if status.is(Status::CORE_ERROR) => [entry.core_error.into(), 0],
            (_, false) => [0, 0],
        };
        self.reply(Reply {
            queue: waiter.queue,
            cid: waiter.cid,
            status,
            result,
            data: Vec::new(),
        });
    }

    /// Ends a command with an error that has an answer in dword 0.
    pub(super) fn refuse_with_result(
        &mut self,
        queue: u16,
        command: &Command,
        status: Status,
        result: u32,
    ) {
        self.reply(Reply {
            queue,
            cid: command.cid,
            status,
            result: [result, 0],
            data: Vec::new(),
        });
    }

    /// Removes a queued job or aborts a running one. A job that has ended stays as it is.
    pub(super) fn cancel_job(&mut self, number: u32, waiter_status: Status) {
        let is_it = |slot: &Option<Job>| {
            slot.as_ref()
                .is_some_and(|job| job.entry.number == number && job.entry.state.is_live())
        };
        if let Some(slot) = self.jobs.slots.iter().position(is_it) {
            self.cancel_slot(slot, waiter_status);
        }
    }

    fn cancel_slot(&mut self, slot: usize, waiter_status: Status) {
        if self.jobs.running == Some(slot) {
            self.stop_core(slot);
        }
        self.end_job(
            slot,
            JobState::Cancelled,
            Status::JOB_CANCELLED,
            Some(waiter_status),
        );
    }

    fn live_slots(&self) -> Vec<usize> {
        let is_live =
            |slot: &Option<Job>| slot.as_ref().is_some_and(|job| job.entry.state.is_live());
        (0..Jobs::SLOTS)
            .filter(|at| is_live(&self.jobs.slots[*at]))
            .collect()
    }

    /// Cancels all jobs with replies, as a shutdown does.
    pub(super) fn cancel_all_jobs(&mut self) {
        for slot in self.live_slots() {
            self.cancel_slot(slot, Status::JOB_CANCELLED);
        }
    }

    /// Cancels all jobs without replies and empties the table, as a reset does.
    pub(super) fn forget_all_jobs(&mut self) {
        for slot in self.live_slots() {
            if let Some(job) = &mut self.jobs.slots[slot] {
                job.waiter = None;
            }
            self.cancel_slot(slot, Status::JOB_CANCELLED);
        }
        self.jobs = Jobs::default();
    }

    /// Aborts the command of a queue that waits for a job. A Wait alone ends; the job of another is cancelled.
    pub(super) fn abort_waiter(&mut self, queue: u16, cid: u16, status: Status) -> bool {
        let is_it = |slot: &Option<Job>| {
            let waiter = slot.as_ref().and_then(|job| job.waiter);
            waiter.is_some_and(|waiter| waiter.queue == queue && waiter.cid == cid)
        };
        let Some(slot) = self.jobs.slots.iter().position(is_it) else {
            return false;
        };
        let Some(job) = &mut self.jobs.slots[slot] else {
            return false;
        };
        match job.waiter {
            Some(waiter) if waiter.kind == WaiterKind::Wait => {
                job.waiter = None;
                let entry = job.entry;
                self.answer_waiter(waiter, &entry, status);
            }
            _ => self.cancel_slot(slot, status),
        }
        true
    }

    /// Aborts all commands of a queue that wait.
    pub(super) fn abort_waiters(&mut self, queue: u16, status: Status) {
        let waiters = self
            .jobs
            .slots
            .iter()
            .flatten()
            .filter_map(|job| job.waiter);
        let cids: Vec<u16> = waiters
            .filter(|waiter| waiter.queue == queue)
            .map(|waiter| waiter.cid)
            .collect();
        for cid in cids {
            self.abort_waiter(queue, cid, status);
        }
    }
}

/// The timeout of a job for which the host has set none. A precompute gets more than twice its cycles besides.
fn timeout_units(job: &CoreJob) -> u64 {
    let work = match job.work {
        Work::Product => 0,
        Work::Precompute => {
            let doublings = u64::from(job.shape.doublings());
            let batch = (1 << 15) + u64::from(job.shape.levels) * ((doublings << 10) + (1 << 12));
            ((u64::from(job.count >> 5) + 1) * batch) >> TIMEOUT_UNIT_LOG
        }
    };
    TIMEOUT_UNITS + u64::from(job.count >> 10) + work
}

/// Whether two areas have a byte in common. Both lie in memory.
fn overlap((a, a_bytes): Area, (b, b_bytes): Area) -> bool {
    a < b + b_bytes && b < a + a_bytes
}
