//! Records of work under way, with which it survives the process: the beginning of attempts, the time at
//! which a retry is due, and the time since which a group is gathered.
//!
//! Usually nothing waits for these records. The beginning of an attempt is recorded once the attempt has
//! lasted for a while: most attempts at tasks of milliseconds end earlier, and cost no record
//! ([`Progress`](crate::core::progress::Progress)). Other changes are appended in one batch after the event
//! that made them. A crash may therefore lose the beginning of an attempt. A program that kills the process
//! at once could exploit that for ever, so after a restart assignments are recorded at once and wait until
//! their beginning is durable: those of tasks that existed before the restart, and all in the first minute.

use std::sync::Arc;
use std::time::Duration;

use super::fail::draw;
use super::{Core, OnAccepted};
use crate::conversation::{Lease, WorkerCommand};
use crate::core::change::Change;
use crate::core::collectors::GroupNote;
use crate::core::event::{Action, Time};
use crate::core::limits::FORGET_MAX;
use crate::core::tasks::{Phase, TaskNo};
use crate::core::timers::Timer;
use crate::id::{Part, WorkerId};
use crate::plan::StageIx;
use crate::record::{AttemptsInProgress, Failure, Record, RecordKey, StartedAttempt};

/// Time after a restart during which every assignment waits for its record. A message that was submitted
/// again because the log had lost it may be the one that ended the process.
const CAUTION: Duration = Duration::from_secs(60);

/// Failure text of an attempt whose worker has sent nothing since a restart.
const LOST: &str = "the process that ran it, and the coordinator with it, ended while it did";

impl Core {
    /// Sends an assignment to its worker: at once, or once its beginning is durable.
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

    /// Appends the changes of the work under way.
    pub(super) fn record_progress(&mut self) {
        let is_new = self.tasks.has_changed() || self.collectors.has_changed();
        if !is_new && !self.progress.has_due() {
            return;
        }
        let mut tasks = self.tasks.take_changed();
        let groups = self.collectors.take_changed();
        if !self.progress.is_awaited() {
            tasks.retain(|no| !self.is_short(*no));
        }
        tasks.extend(self.progress.take_due());
        let mut changes = Vec::new();
        changes.extend(tasks.into_iter().filter_map(|no| self.run_change(no)));
        for (stage, key) in groups {
            changes.extend(self.group_change(stage, &key));
        }
        while changes.len() > FORGET_MAX {
            let rest = changes.split_off(FORGET_MAX);
            self.append(std::mem::replace(&mut changes, rest), OnAccepted::Nothing);
        }
        if changes.is_empty() && !self.progress.is_awaited() {
            return;
        }
        let token = self.append(changes, OnAccepted::Nothing);
        for at in self.progress.take_waiting() {
            if let Some(Action::Worker { after, .. }) = self.actions.get_mut(at) {
                *after = Some(token);
            }
        }
    }

    /// Whether the only change of a task is an attempt that has just begun. Such an attempt is recorded
    /// later, if it lasts.
    fn is_short(&mut self, no: TaskNo) -> bool {
        let Some(task) = self.tasks.get(no) else {
            return true;
        };
        let waits = task.waits_for_backoff().is_some();
        if task.is_run_recorded() || !task.unconfirmed().is_empty() || waits {
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

    /// Handles the timer for attempts that have lasted long enough to be recorded.
    pub(super) fn begun_due(&mut self) {
        let due = self.progress.collect_due(self.now.mono);
        self.set_begun_timer(due);
    }

    fn set_begun_timer(&mut self, due: Option<Time>) {
        if let Some(due) = due {
            self.timers.set(due, Timer::Begun);
        }
    }

    /// Change that updates the log's record of a task's attempts; `None` if the record is up to date.
    fn run_change(&mut self, no: TaskNo) -> Option<(RecordKey, Change)> {
        let now = self.now;
        let task = self.tasks.get(no)?;
        // The append that ends the task removes its record.
        if task.phase() == Phase::Finishing {
            return None;
        }
        let held = task.copies().iter().map(|held| StartedAttempt {
            worker: held.worker().clone(),
            attempt: held.attempt(),
            at_ms: held.since_wall_ms(),
            orphaned: false,
        });
        let record = AttemptsInProgress {
            attempts: task.unconfirmed().iter().cloned().chain(held).collect(),
            retry_at_ms: match task.phase() {
                Phase::Delayed { until } => {
                    let left = now.mono.until(until).as_millis();
                    Some(now.wall_ms.saturating_add(left as u64))
                }
                _ => None,
            },
        };
        let key = RecordKey::Run(task.id().clone());
        let is_empty = record.attempts.is_empty() && record.retry_at_ms.is_none();
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

    /// Makes a dispatcher's task wait, after a restart, for the rest of its backoff. Returns whether it must.
    pub(super) fn resume_backoff(&mut self, no: TaskNo) -> bool {
        let now = self.now;
        let Some(retry_at_ms) = self.tasks.take_retry_time(no) else {
            return false;
        };
        let task = &self.tasks[no];
        let Some(dispatcher) = self.plan.stage(task.stage()).dispatcher() else {
            return false;
        };
        let retry = task.failed_count();
        // A wall clock that was set back does not lengthen the wait.
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

    /// Handles, after a restart, attempts that had begun and whose workers have sent nothing since. If no
    /// worker outlives the coordinator, the attempts have failed. Otherwise their workers have the time of a
    /// lease (T_ack) to report them, except those that had that time after an earlier restart.
    pub(super) fn resume_attempts(&mut self, no: TaskNo) {
        let workers_live_on = !self.options.adopt_grace.is_zero();
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        if task.unconfirmed().is_empty() || task.phase() == Phase::Finishing {
            return;
        }
        let (stage, is_first) = (task.stage(), task.attempts().is_empty());
        let failed = self
            .tasks
            .settle_unconfirmed(no, |begun| !begun.orphaned && workers_live_on);
        // After a first failure the task may well be innocent, so there is no reason to wait.
        if !failed.is_empty() && is_first {
            self.tasks.set_retry_immediately(no);
        }
        if !self.tasks[no].unconfirmed().is_empty() {
            let t_ack = self.plan.stage(stage).dispatcher().map(|of| of.t_ack);
            let due = self.now.mono.plus(t_ack.unwrap_or_default());
            self.timers.set(due, Timer::Unconfirmed(no));
        }
        for begun in failed {
            self.charge(no, &begun, &Failure::retryable(LOST));
        }
    }

    /// Fails the attempts whose workers have sent nothing for the time of a lease.
    pub(super) fn unconfirmed_due(&mut self, no: TaskNo) {
        let task = self.tasks.get(no);
        if task.is_none_or(|task| task.unconfirmed().is_empty()) {
            return;
        }
        for begun in self.tasks.settle_unconfirmed(no, |_| false) {
            self.charge(no, &begun, &Failure::retryable(LOST));
        }
    }

    /// Records an unconfirmed attempt as failed, unless its task has ended.
    fn charge(&mut self, no: TaskNo, begun: &StartedAttempt, failure: &Failure) {
        self.trace_lost(no, begun, failure);
        let alive = self.tasks.get(no);
        if alive.is_some_and(|task| task.phase() != Phase::Finishing) {
            self.record_failure(no, &begun.worker, failure);
        }
    }

    // Groups.

    fn group_change(&mut self, stage: StageIx, key: &Arc<str>) -> Option<(RecordKey, Change)> {
        // Hosts may not have filed again the messages that they were offered anew.
        let is_offered_again = self.hosts.has(stage) && self.tasks.present(stage).total() > 0;
        let note = self.collectors.note_of(stage, key, is_offered_again)?;
        let key = RecordKey::GroupStart(self.layout.name(stage).clone(), Part::from_text(key));
        let change = match note {
            GroupNote::Began { since_ms } => Change::put(Record::GroupStart(since_ms)),
            GroupNote::Ended => Change::Delete,
        };
        Some((key, change))
    }

    /// Removes, after a restart, the records of groups that are no longer gathered.
    pub(super) fn forget_groups(&mut self) {
        let ended = self.collectors.forget_ended().into_iter();
        let ended = ended.map(|(stage, part)| {
            let key = RecordKey::GroupStart(self.layout.name(stage).clone(), part);
            (key, Change::Delete)
        });
        let mut changes: Vec<_> = ended.collect();
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(FORGET_MAX));
            self.append(std::mem::replace(&mut changes, rest), OnAccepted::Nothing);
        }
    }
}
