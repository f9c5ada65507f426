//! Records of work under way, with which it survives the process: attempts that have begun, the
//! time at which a retry is due, and the time since which a group is gathered.
//!
//! None of it is waited for. That an attempt has begun is recorded when it has lasted: most attempts at a
//! task of milliseconds end before, and cost no record ([`Progress`](crate::core::progress::Progress)).
//! Other changes are appended after the event that made them, in one batch. So a crash may lose that an
//! attempt had begun. A program that kills the process at once could profit from that for ever; therefore,
//! after a restart, assignments are recorded at once and wait until it is durable that they have begun: of
//! tasks that were there before, and in the first minute of all.

use std::sync::Arc;
use std::time::Duration;

use super::fail::{draw, reason};
use super::{Core, Then};
use crate::conversation::{Lease, WorkerCommand};
use crate::core::change::Change;
use crate::core::collectors::GroupNote;
use crate::core::event::{Action, Time};
use crate::core::limits::FORGET_MAX;
use crate::core::tasks::{Phase, TaskNo};
use crate::core::timers::Timer;
use crate::id::{Part, WorkerId};
use crate::plan::StageIx;
use crate::record::{Begun, Failure, Record, RecordKey, RunRecord};

/// For so long after a restart every assignment waits for its record: what was submitted again since
/// the log had lost it may be what ended the process.
const CAUTION: Duration = Duration::from_secs(60);

/// Failure text of an attempt of which nobody has spoken since a restart.
const LOST: &str = "the process that ran it, and the coordinator with it, ended while it did";

impl Core {
    /// Hands an assignment out: at once, or when it is durable that it has begun.
    pub(super) fn hand_out(&mut self, worker: &WorkerId, leases: Vec<Lease>) {
        let since_start = self.started_at.until(self.now.mono);
        let in_doubt = self.reopened && since_start < CAUTION;
        let is_old = |lease: &Lease| {
            let task = self.tasks.with_id(&lease.task.id);
            task.is_some_and(|task| task.is_replayed())
        };
        if in_doubt || leases.iter().any(is_old) {
            self.progress.wait_for_record(self.actions.len());
        }
        self.tell_worker(worker, WorkerCommand::Assign(leases));
    }

    /// Appends what has changed of the work under way.
    pub(super) fn record_progress(&mut self) {
        let is_new = self.tasks.has_changed() || self.collectors.has_changed();
        if !is_new && !self.progress.has_lasting() {
            return;
        }
        let mut tasks = self.tasks.take_changed();
        let groups = self.collectors.take_changed();
        if !self.progress.is_awaited() {
            tasks.retain(|no| !self.is_brief(*no));
        }
        tasks.extend(self.progress.take_lasting());
        let mut changes = Vec::new();
        changes.extend(tasks.into_iter().filter_map(|no| self.run_change(no)));
        for (stage, key) in groups {
            changes.extend(self.group_change(stage, &key));
        }
        while changes.len() > FORGET_MAX {
            let rest = changes.split_off(FORGET_MAX);
            self.append(std::mem::replace(&mut changes, rest), Then::Nothing);
        }
        if changes.is_empty() && !self.progress.is_awaited() {
            return;
        }
        let token = self.append(changes, Then::Nothing);
        for at in self.progress.take_waiting() {
            if let Some(Action::Worker { after, .. }) = self.actions.get_mut(at) {
                *after = Some(token);
            }
        }
    }

    /// Whether all that is new of a task is an attempt that has just begun: it is recorded later, if
    /// it lasts.
    fn is_brief(&mut self, no: TaskNo) -> bool {
        let Some(task) = self.tasks.get(no) else {
            return true;
        };
        let waits = task.waits_for_backoff().is_some();
        if task.is_run_recorded() || !task.lost().is_empty() || waits {
            return false;
        }
        let now = self.now.mono;
        let mut copies = task.copies().iter();
        if copies.any(|held| held.since() == now) {
            let due = self.progress.begin(no, now);
            self.set_begun_timer(due);
        }
        true
    }

    /// Attempts may have lasted long enough to be recorded.
    pub(super) fn begun_due(&mut self) {
        let due = self.progress.ripen(self.now.mono);
        self.set_begun_timer(due);
    }

    fn set_begun_timer(&mut self, due: Option<Time>) {
        if let Some(due) = due {
            self.timers.set(due, Timer::Begun);
        }
    }

    /// What the log is to have of the attempts at a task, if that is not what it has.
    fn run_change(&mut self, no: TaskNo) -> Option<(RecordKey, Change)> {
        let now = self.now;
        let task = self.tasks.get(no)?;
        // Its record goes in the append that ends it.
        if task.phase() == Phase::Finishing {
            return None;
        }
        let held = task.copies().iter().map(|held| Begun {
            worker: held.worker().clone(),
            attempt: held.attempt(),
            at_ms: held.since_wall_ms(),
            orphaned: false,
        });
        let record = RunRecord {
            begun: task.lost().iter().cloned().chain(held).collect(),
            retry_at_ms: match task.phase() {
                Phase::Delayed { until } => {
                    let left = now.mono.until(until).as_millis();
                    Some(now.wall_ms.saturating_add(left as u64))
                }
                _ => None,
            },
        };
        let key = RecordKey::Run(task.id().clone());
        let is_empty = record.begun.is_empty() && record.retry_at_ms.is_none();
        if is_empty && !task.is_run_recorded() {
            return None;
        }
        self.tasks.set_run_recorded(no, !is_empty);
        let change = match is_empty {
            true => Change::Delete,
            false => Change::put(Record::Run(record)),
        };
        Some((key, change))
    }

    /// After a restart: a dispatcher's task waits for what is left of its backoff.
    pub(super) fn resume_backoff(&mut self, no: TaskNo) -> bool {
        let now = self.now;
        let Some(retry_at_ms) = self.tasks.take_retry_time(no) else {
            return false;
        };
        let task = &self.tasks[no];
        let Some(dispatcher) = self.plan.stage(task.stage()).dispatcher() else {
            return false;
        };
        let retry = task.tried();
        // A clock that was set back does not make it longer.
        let whole = dispatcher.backoff.delay(retry, draw(task.id(), retry));
        let left = Duration::from_millis(retry_at_ms.saturating_sub(now.wall_ms)).min(whole);
        if left.is_zero() {
            return false;
        }
        let until = now.mono.plus(left);
        self.set_phase(no, Phase::Delayed { until });
        self.timers.set(until, Timer::Wake(no));
        true
    }

    /// After a restart: attempts that had begun, and whose worker has not been heard of. Where no
    /// worker outlives the coordinator they have failed. Where workers do, they have the time of a
    /// lease to say that they still run, but for those that have had it before.
    pub(super) fn resume_attempts(&mut self, no: TaskNo) {
        let workers_live_on = !self.options.adopt_grace.is_zero();
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        if task.lost().is_empty() || task.phase() == Phase::Finishing {
            return;
        }
        let (stage, is_first) = (task.stage(), task.attempts().is_empty());
        let failed = self
            .tasks
            .settle_lost(no, |begun| !begun.orphaned && workers_live_on);
        // The first time it may well be innocent: there is no reason to wait.
        if !failed.is_empty() && is_first {
            self.tasks.retry_at_once(no);
        }
        if !self.tasks[no].lost().is_empty() {
            let t_ack = self.plan.stage(stage).dispatcher().map(|of| of.t_ack);
            let due = self.now.mono.plus(t_ack.unwrap_or_default());
            self.timers.set(due, Timer::Lost(no));
        }
        for begun in failed {
            self.charge(no, &begun.worker, &reason(LOST));
        }
    }

    /// Nobody has spoken of these attempts for as long as a lease lasts.
    pub(super) fn lost_due(&mut self, no: TaskNo) {
        let task = self.tasks.get(no);
        if task.is_none_or(|task| task.lost().is_empty()) {
            return;
        }
        for begun in self.tasks.settle_lost(no, |_| false) {
            self.charge(no, &begun.worker, &reason(LOST));
        }
    }

    /// Attempts have been charged: the task may be spent.
    fn charge(&mut self, no: TaskNo, worker: &WorkerId, failure: &Failure) {
        let alive = self.tasks.get(no);
        if alive.is_some_and(|task| task.phase() != Phase::Finishing) {
            self.record_failure(no, worker, failure);
        }
    }

    // Groups.

    fn group_change(&mut self, stage: StageIx, key: &Arc<str>) -> Option<(RecordKey, Change)> {
        // What hosts are offered again they may not have spoken of yet.
        let is_offered_again = self.hosts.has(stage) && self.tasks.present(stage).total() > 0;
        let note = self.collectors.note_of(stage, key, is_offered_again)?;
        let key = RecordKey::Since(self.layout.name(stage).clone(), Part::from_text(key));
        let change = match note {
            GroupNote::Began { since_ms } => Change::put(Record::Since(since_ms)),
            GroupNote::Ended => Change::Delete,
        };
        Some((key, change))
    }

    /// After a restart: groups that were gathered and are no more.
    pub(super) fn forget_groups(&mut self) {
        let ended = self.collectors.forget_ended().into_iter();
        let ended = ended.map(|(stage, part)| {
            let key = RecordKey::Since(self.layout.name(stage).clone(), part);
            (key, Change::Delete)
        });
        let mut changes: Vec<_> = ended.collect();
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(FORGET_MAX));
            self.append(std::mem::replace(&mut changes, rest), Then::Nothing);
        }
    }
}
